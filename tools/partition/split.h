/* The interface between the files of gw_split: numbers in the narrowest width, lists and rows of a part. */
#ifndef GW_TOOLS_PARTITION_SPLIT_H
#define GW_TOOLS_PARTITION_SPLIT_H

#include "core/graph/writer.h"
#include "core/system/progress.h"
#include "tools/builder/spill.h"
#include "tools/partition/plan.h"

#define GW_KEY_MAX (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32)

/* An array of numbers: 4 bytes each if all of them fit, else 8. */
struct gw_numbers {
	void *data;
	uint8_t bytes;
};

/* Takes count numbers up to limit, not zeroed. Free data with gw_spill_give. */
gw_status gw_numbers_make(struct gw_spill *spill, uint64_t count, uint64_t limit, struct gw_numbers *out);

static inline uint64_t gw_numbers_get(const struct gw_numbers *numbers, uint64_t i)
{
	return gw_load_id(numbers->data, numbers->bytes, i);
}

static inline void gw_numbers_put(struct gw_numbers *numbers, uint64_t i, uint64_t value)
{
	if (numbers->bytes == 4)
		((uint32_t *)numbers->data)[i] = (uint32_t)value;
	else
		((uint64_t *)numbers->data)[i] = value;
}

struct gw_split {
	const struct gw_plan *plan;
	const struct gw_part *part; /* the input */
	const struct gw_graph_meta *in;
	const struct gw_assignment *assignment;
	struct gw_graph_meta *schema; /* the output's schema */
	struct gw_writer *writer;
	struct gw_numbers *new_id;  /* [ntypes]: by old node id */
	struct gw_numbers *old_id;  /* [ntypes]: by new node id */
	bool has_times;             /* the output has arrays that are made of times */
	struct gw_numbers *edge_id; /* [etypes]: new edge ids of old ones; only for types that are stored transposed */
	struct gw_spill spill;      /* of all numbers */
	unsigned threads;
	uint64_t bytes; /* payload written */
	struct gw_progress progress;
	uint64_t edges_done; /* edges written so far, of all types and transposes */
};

/* The order that --time gives to an edge type; NULL: its lists keep their order. */
static inline const struct gw_time_order *gw_split_time_order(const struct gw_split *split, uint32_t etype)
{
	const struct gw_time_order *orders = split->plan->times.orders;
	return orders && orders[etype].name[0] ? &orders[etype] : NULL;
}

/* The renumbered and sorted lists of one part and edge type. */
struct gw_split_lists {
	const struct gw_adjacency *from; /* lists of the input */
	uint32_t etype, part;
	uint32_t row_type, id_type; /* node types of the rows and of the ids in the lists */
	uint64_t rows, row_start;   /* rows of the part, and the new id of the first */
	uint64_t *offsets;          /* [rows + 1] */
	struct gw_numbers ids;      /* [edges]: new ids of the neighbours */
	struct gw_numbers at;       /* [edges]: each edge's old id */
};

/* Fills the offsets of a part's rows; rows, row_start and offsets are set. */
gw_status gw_split_offsets(const struct gw_split *split, struct gw_split_lists *lists);
/* Fills ids and at, in the format's order; ties keep their old order. */
gw_status gw_split_fill(struct gw_split *split, struct gw_split_lists *lists);
void gw_split_lists_free(struct gw_split_lists *lists);

/* Writes all arrays of a node type's part except offsets, or of an edge type's part except ids. */
gw_status gw_split_node_rows(struct gw_split *split);
gw_status gw_split_edge_rows(struct gw_split *split, const struct gw_split_lists *lists);

/* Writes numbers as elements of dtype, GW_UINT32 or a type of 8 bytes; maps them through map if it is not NULL. */
gw_status gw_split_write_numbers(struct gw_split *split, uint32_t part, const char *key, gw_dtype dtype,
				 const struct gw_numbers *numbers, uint64_t begin, uint64_t count,
				 const struct gw_numbers *map);

#endif
