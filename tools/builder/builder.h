/* Turns edge lists, features and original ids into a one-part graph on disk. import, generate and the package importer
 * share it.
 *
 *   gw_builder_create -> _ntype, _etype, _node_array, _edge_array, _strings ... -> gw_builder_write
 *
 * For each edge type, gw_csc_build runs first; then everything that belongs to edges is permuted into CSC order. With
 * `reverse`, the reversed edges make a second type "rev_<rel>" with the same features.
 *
 * Memory:
 *   - the borrowed input
 *   - 16 bytes for each edge of the type being written, 4 more if its edges have orig_id, and 8 more if its lists are
 *     sorted by time
 *   - a piece of the array being written
 *   - at the end, the index of original ids: 256 MiB or the limit's half at most, or a sixteenth of a larger index
 */
#ifndef GW_TOOLS_BUILDER_BUILDER_H
#define GW_TOOLS_BUILDER_BUILDER_H

#include <stdbool.h>

#include "core/graph/meta.h"

struct gw_builder;
struct gw_spill;

/* One edge type. Arrays are borrowed until gw_builder_destroy, or passed to the builder with gw_builder_own. */
struct gw_builder_edges {
	uint64_t count;
	const uint64_t *src, *dst; /* [count]; the write checks them against the types' counts */
	const uint64_t *origin;    /* [count] the input row of each edge, which indexes arrays and orig_id; NULL: the
				      edge's index */
	uint64_t input_rows;       /* above every origin; not used without origin */
	const uint32_t *rel;       /* [input rows] below `relations`; NULL: one relation; not together with time */
	uint32_t relations;
	const int64_t *time; /* [input rows], or NULL; stored as time_name; first key of the list order */
	const char *time_name;
	enum gw_time_unit time_unit;
	bool symmetric;    /* every edge exists in both directions: the type is its own reverse */
	bool reverse;      /* add dst:rev_<rel>:src */
	bool transpose;    /* store out-edges too */
	bool keep_orig_id; /* store orig_id even without features */
};

/* An array to store, of nodes or edges. */
struct gw_builder_array {
	const char *name; /* copied */
	gw_dtype dtype;
	uint32_t ndim;
	uint64_t shape[GW_DIMS_MAX]; /* shape[0]: nodes of the type, or input rows of the edge type */
	const void *data;            /* borrowed */
	enum gw_time_unit unit;      /* of times */
	const char *source;          /* its file, for error texts; borrowed, or NULL */
	bool weight;                 /* edges only: [rows] or [rows, 1] of numbers >= 0; stored with its alias table */
};

struct gw_builder_options {
	unsigned threads; /* 0: all processors */
	uint64_t memory;  /* for the caller, who passes it to gw_builder_limit */
	bool replace;     /* replace an existing graph of this name */
	bool quiet;       /* show no progress */
	/* --time: [num_times] checked words of tools/times.h, which choose among the arrays that were added; borrowed
	 */
	const char *const *times;
	uint32_t num_times;
	const char *const *records; /* [num_records] checked words of core/graph/records.h; borrowed */
	uint32_t num_records;
	const char *const *stores; /* --store: [num_stores] checked words of tools/store.h; borrowed */
	uint32_t num_stores;
};

struct gw_builder_stats {
	uint64_t nodes, edges; /* over all types */
	uint64_t bytes;        /* payload written */
	uint64_t times_bytes;  /* of these, of arrays that are made of times */
	uint64_t csc_ns, write_ns;
	uint64_t runs;       /* in which edges were sorted, over all types; 0: one for each type */
	uint64_t file_bytes; /* in temporary files */
	uint64_t graph_id;
};

/* GW_EXISTS if the folder exists and replace is false. Call it before the work, not after. GW_INVALID: with replace, a
 * file of the graph in the folder is mapped: call it again when the inputs are open. */
gw_status gw_builder_target_check(const char *folder, bool replace);
/* GW_INVALID if the input is a file of the graph in the folder, which `replace` would remove, or the folder itself. */
gw_status gw_builder_input_check(const char *folder, const char *input);

gw_status gw_builder_create(const char *graph_name, struct gw_builder **out);
void gw_builder_destroy(struct gw_builder *builder); /* NULL is allowed; releases everything that the builder owns */

/* Renames the graph. GW_INVALID for an invalid name, which keeps the old name. */
gw_status gw_builder_rename(struct gw_builder *builder, const char *graph_name);
const char *gw_builder_name(const struct gw_builder *builder);

/* The number of the node type with this name; adds the type with count 0 if it is new. GW_INVALID for an invalid
 * name. */
gw_status gw_builder_ntype(struct gw_builder *builder, const char *name, uint32_t *out);
void gw_builder_ntype_count(struct gw_builder *builder, uint32_t ntype, uint64_t count);

/* Makes edges symmetric: adds the reverse of each edge that is not a loop, with the origin of the edge. The builder
 * owns the new arrays. */
gw_status gw_builder_mirror(struct gw_builder *builder, struct gw_builder_edges *edges);

/* Adds an edge type. GW_EXISTS if src:rel:dst exists. */
gw_status gw_builder_etype(struct gw_builder *builder, uint32_t src, const char *rel, uint32_t dst,
			   const struct gw_builder_edges *edges, uint32_t *out);

/* Adds an array of a node type (row i belongs to node i) or of an edge type (row i belongs to input row i). GW_EXISTS
 * for a repeated name, GW_INVALID for a name that the format reserves, GW_UNSUPPORTED for a weight of another dtype or
 * shape. */
gw_status gw_builder_node_array(struct gw_builder *builder, uint32_t ntype, const struct gw_builder_array *array);
gw_status gw_builder_edge_array(struct gw_builder *builder, uint32_t etype, const struct gw_builder_array *array);

/* Adds strings: count + 1 offsets into bytes. name: "orig_id", one string for each node, or "label.names" for a table
 * of names. Edges may have tables of names only. */
gw_status gw_builder_node_strings(struct gw_builder *builder, uint32_t ntype, const char *name, uint64_t count,
				  const uint64_t *offsets, const char *bytes);
gw_status gw_builder_edge_strings(struct gw_builder *builder, uint32_t etype, const char *name, uint64_t count,
				  const uint64_t *offsets, const char *bytes);

/* Limits the memory of the arrays that the builder takes and of the edges that it sorts to `bytes`, in addition to
 * 8 bytes for each node. 0: seven tenths of the memory that the process may use now. What exceeds the limit is in
 * temporary files in the parent folder of `out`, the folder of the graph. The graph's bytes are the same with any
 * limit. quiet: says nothing of these files on stderr. Call it before the builder takes arrays. GW_NO_MEMORY. */
gw_status gw_builder_limit(struct gw_builder *builder, const char *out, uint64_t bytes, bool quiet);

/* The blocks within the limit, for what a caller needs besides gw_builder_take, and the bytes that one step may have
 * while it works; 0: any number. */
struct gw_spill *gw_builder_spill(struct gw_builder *builder, uint64_t *step_bytes);

/* Passes memory to the builder: gw_builder_destroy calls release(memory). If this call fails, it calls release at
 * once. */
gw_status gw_builder_own(struct gw_builder *builder, void *memory, void (*release)(void *memory));

/* Allocates count elements, at least one byte, which the builder releases. NULL with *status set on failure. For
 * sequences of calls: a call that finds *status set does nothing. */
void *gw_builder_take(struct gw_builder *builder, uint64_t count, size_t bytes, gw_status *status);

/* Writes <folder>/<graph name>.json and part0. GW_RANGE names the edge type, the edge and the id, or the input
 * row of a weight that is no weight. Errors of gw_time_plan_make and gw_store_plan_make. */
gw_status gw_builder_write(struct gw_builder *builder, const char *folder, const struct gw_builder_options *options,
			   struct gw_builder_stats *stats);

#endif
