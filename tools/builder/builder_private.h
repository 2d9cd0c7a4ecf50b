/* The state of a builder and of its writing, shared by builder.c, write.c and edges.c. */
#ifndef GW_TOOLS_BUILDER_BUILDER_PRIVATE_H
#define GW_TOOLS_BUILDER_BUILDER_PRIVATE_H

#include "core/graph/writer.h"
#include "core/system/progress.h"
#include "tools/builder/builder.h"
#include "tools/builder/spill.h"
#include "tools/store.h"
#include "tools/times.h"

#define GW_BUILDER_KEY_MAX (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32)
#define GW_BUILDER_GRAIN   (64u << 10) /* rows or edges of a chunk */

struct builder_item {
	char name[GW_NAME_MAX + 1];
	struct gw_builder_array array; /* its name points to `name` below */
	bool strings;                  /* offsets in strings_offsets, bytes in array.data; shape[0] strings */
	const uint64_t *offsets;
};

struct builder_items {
	struct builder_item *items;
	uint32_t count, capacity;
};

struct builder_ntype {
	char name[GW_NAME_MAX + 1];
	uint64_t count;
	struct builder_items arrays;
};

struct builder_etype {
	char rel[GW_NAME_MAX + 1];
	char time_name[GW_NAME_MAX + 1];
	uint32_t src, dst;
	struct gw_builder_edges edges;
	struct builder_items arrays;
};

struct builder_owned {
	void *memory;
	void (*release)(void *memory);
};

struct gw_builder {
	char name[GW_NAME_MAX + 1];
	struct builder_ntype *ntypes;
	struct builder_etype *etypes;
	struct builder_owned *owned;
	uint32_t num_ntypes, num_etypes, num_owned;
	uint32_t ntype_room, etype_room, owned_room;
	struct gw_spill spill;
	uint64_t run_bytes; /* for the edges of a run while they are sorted; 0: no limit */
};

struct builder_writing {
	struct gw_builder *builder;
	struct gw_graph_meta *meta; /* the schema */
	struct gw_writer *writer;
	uint64_t **indptr;     /* [etypes] offsets by destination */
	uint64_t **out_indptr; /* [etypes] offsets by source, of transposed types */
	struct gw_time_plan times;
	struct gw_store_plan stores;
	unsigned threads;
	struct gw_progress progress;
	struct gw_builder_stats stats;
};

/* Whether edges of the type have orig_id. */
static inline bool gw_builder_keeps_origins(const struct builder_etype *type)
{
	return type->arrays.count || type->edges.time || type->edges.keep_orig_id;
}

/* The edge type of a number in the schema, which counts the reverse types too; *turned: it is the reverse. */
const struct builder_etype *gw_builder_etype_at(const struct gw_builder *builder, uint32_t number, bool *turned);

/* Plans by which times lists are sorted, and sets the schema's orders. */
gw_status gw_builder_plan_times(struct builder_writing *w, const struct gw_builder_options *options);

/* The bytes of temporary files that sorting an edge type takes at once; 0: one run. */
uint64_t gw_builder_sort_files(const struct gw_builder *builder, const struct builder_etype *type);

/* Plans which features are stored narrow, after the times. */
gw_status gw_builder_plan_stores(struct builder_writing *w, const struct gw_builder_options *options);

/* Sets the units of times in the writer. */
gw_status gw_builder_set_units(struct builder_writing *w);

/* Writes all edge types with their reverses, except the offsets, which it leaves in indptr and out_indptr. */
gw_status gw_builder_write_edges(struct builder_writing *w);

gw_status gw_builder_write_strings(struct builder_writing *w, const char *key, const struct builder_item *item);

/* GW_INVALID unless an array has one row for each node of the type (what: "node") or each input row (what: "edge").
 * */
gw_status gw_builder_check_rows(const struct builder_item *item, const char *what, const char *type, uint64_t rows);

static inline void gw_builder_wrote(struct builder_writing *w, uint64_t bytes)
{
	w->stats.bytes += bytes;
	gw_progress_update(&w->progress, w->stats.bytes);
}

/* Bytes of one row of an array. */
static inline uint64_t gw_builder_row_bytes(const struct gw_builder_array *array)
{
	uint64_t bytes = gw_dtype_bytes(array->dtype);
	for (uint32_t i = 1; i < array->ndim; i++)
		bytes *= array->shape[i];
	return bytes;
}

#endif
