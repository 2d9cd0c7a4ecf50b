/* One opened part: its arrays in memory, checked.
 *
 *   gw_part_open -> arena laid out -> gw_load (digests) -> shapes, monotone offsets, id bounds -> views
 *
 * The loader trusts nothing: every fault is an error that names the file, the key and the position.
 */
#ifndef GW_GRAPH_PART_H
#define GW_GRAPH_PART_H

#include "core/files/load.h"
#include "core/graph/meta.h"
#include "core/memory/arena.h"

/* Why an array is not in the part's memory. */
enum gw_array_apart {
	GW_ARRAY_HERE,     /* it is */
	GW_ARRAY_CHANGES,  /* its rows change: gw_part_load_apart loads it for their owner */
	GW_ARRAY_ON_DISK,  /* its rows stay in the file: gw_part_file */
	GW_ARRAY_LEFT_OUT, /* the opener needs none of it */
};

/* An array in memory. */
struct gw_array {
	const struct gw_array_meta *meta;
	const uint8_t *data;
	uint64_t offset;    /* offset of data in the part's arena (0 if mapped) */
	uint64_t rows;      /* shape[0] */
	uint64_t row_bytes; /* bytes of one row */
	/* not GW_ARRAY_HERE: the part does not load it (set_apart, only_lists); data is NULL */
	enum gw_array_apart apart;
};

/* An edge type's lists in one part, as a sampler reads them. */
struct gw_adjacency {
	const void *indptr;  /* [rows + 1, columns] of the destination type */
	const void *indices; /* [edges], source ids */
	uint64_t rows;       /* number of destinations that the part owns */
	uint64_t edges;
	uint32_t columns, column;
	uint8_t indptr_bytes, index_bytes; /* 4 or 8 */
	uint64_t dst_start;                /* global id of local row 0 */
	uint64_t edge_start;               /* global id of CSC position 0; unused if eid is set */
	const uint64_t *eid;               /* [edges] for transposed lists, else NULL */
	bool on_disk;                      /* some of indptr, indices and eid stay in their files, and are NULL */
};

struct gw_part;

struct gw_part_options {
	bool mapped; /* for tools: map the files instead of loading an arena; compares digests unless skip_verify */
	bool skip_verify; /* do not compare digests */
	bool skip_checks; /* do not check offsets and ids (gw_part_check does) */
	/* Selects arrays that the opening does not load; NULL: none. Only features, arrays that
	 * gw_array_is_of_edges and gw_array_is_of_offsets have, and indexes of original ids and times may be selected.
	 * gw_part_check does not check their values, nor lists whose offsets or entries are among them. Not with
	 * `mapped`. */
	enum gw_array_apart (*set_apart)(const void *context, const char *key);
	const void *apart_context;
	/* Opens the part's lists alone (core/graph/part_lists.h): all other arrays stay apart, and their files need not
	 * exist. Not with `mapped`. */
	bool only_lists;
	/* Memory of another part, with room for the arrays, which are loaded into it; it must outlive the part. NULL:
	 * the part makes an arena of its own. Not with `mapped`. */
	struct gw_arena *into;
	uint64_t room; /* bytes that the part's own arena has besides its arrays, for parts that go into it */
	struct gw_arena_options arena;
	struct gw_load_options load;
};

/* Opens part `number` of a graph. meta must outlive the part. options may be NULL (load, verify, check). */
gw_status gw_part_open(const struct gw_graph_meta *meta, uint32_t number, const struct gw_part_options *options,
		       struct gw_part **out);
/* Opens a part whose arrays are in an arena that another process of this program loaded and checked (gw_arena_adopt).
 * Reads no file of the part. options: set_apart, only_lists and into alone count. arena: NULL with `into`. The caller
 * compares the arrays' offsets with those of the other process. The part owns the arena if the call succeeds.
 * GW_NO_MEMORY: the arena is too short for the arrays. */
gw_status gw_part_adopt(const struct gw_graph_meta *meta, uint32_t number, const struct gw_part_options *options,
			struct gw_arena *arena, struct gw_part **out);
void gw_part_close(struct gw_part *part); /* NULL is allowed */

const struct gw_graph_meta *gw_part_meta(const struct gw_part *part);
uint32_t gw_part_number(const struct gw_part *part);
struct gw_arena *gw_part_arena(const struct gw_part *part); /* NULL if mapped; `into`, if that was given */
const struct gw_load_stats *gw_part_load_stats(const struct gw_part *part);

/* The array of a key, or NULL. The part owns it. */
const struct gw_array *gw_part_array(const struct gw_part *part, const char *key);
/* Arrays by number, in the JSON's order; NULL past the end. */
const struct gw_array *gw_part_array_at(const struct gw_part *part, uint32_t number);

/* Describes the file of an array that set_apart selected: its path and key, which stay the part's, and where its
 * payload is. Checks the header, the length, and that the file of digests is the one that the JSON names; the payload
 * is not read (graphwire verify compares it). GW_NOT_FOUND, GW_IO, GW_FORMAT, GW_DIGEST. */
gw_status gw_part_file(const struct gw_part *part, const struct gw_array *array, struct gw_load_item *out);

/* Loads an array that set_apart selected, verified, into memory that the caller owns; arena_options as for
 * gw_arena_create. It may be called any number of times, and reads the file again each time. *out is NULL if the array
 * has no bytes. */
gw_status gw_part_load_apart(const struct gw_part *part, const struct gw_array *array,
			     const struct gw_arena_options *arena_options, struct gw_arena **out);

/* The adjacency of an edge type; never NULL. */
const struct gw_adjacency *gw_part_adjacency(const struct gw_part *part, uint32_t etype);
/* The transposed lists of an edge type: rows are owned sources, indices are destination ids, eid are global edge ids.
 * NULL if the type is not stored transposed. */
const struct gw_adjacency *gw_part_out_adjacency(const struct gw_part *part, uint32_t etype);

/* Checks everything that digests do not prove: offsets start at 0, ascend and end at the number of edges; ids are below
 * their type's count; lists are in order; masks, relations and alias entries are in range. GW_FORMAT or GW_RANGE with
 * the key and the row of the first fault. */
gw_status gw_part_check(const struct gw_part *part, unsigned threads);
/* Reports a fault of an array, after its file and key. The digests match, so the file was written with the fault. */
__attribute__((format(printf, 4, 5), cold)) gw_status
gw_part_bad(const struct gw_graph_meta *meta, gw_status status, const struct gw_array *array, const char *format, ...);

/* Value i of an offsets or id array of 4- or 8-byte elements. */
static inline uint64_t gw_load_id(const void *array, uint8_t bytes, uint64_t i)
{
	return bytes == 4 ? ((const uint32_t *)array)[i] : ((const uint64_t *)array)[i];
}

/* [begin, end) of the list of a local row, as CSC positions. */
static inline void gw_adjacency_list(const struct gw_adjacency *a, uint64_t row, uint64_t *begin, uint64_t *end)
{
	*begin = gw_load_id(a->indptr, a->indptr_bytes, row * a->columns + a->column);
	*end = gw_load_id(a->indptr, a->indptr_bytes, (row + 1) * a->columns + a->column);
}

#endif
