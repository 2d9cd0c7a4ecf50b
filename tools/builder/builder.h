/* From edge lists, features and original ids to a one-part graph on disk: what import, generate and the package
 * importer share.
 *
 *   gw_builder_create -> _ntype, _etype, _node_array, _edge_array, _strings ... -> gw_builder_write
 *
 * For each edge type: gw_csc_build, then everything that belongs to edges permuted into CSC order. With `reverse`, the
 * same edges turned round make a second type "rev_<rel>", with the same features. Memory: the borrowed input, 16 bytes
 * per edge of the edge type being written, 4 more where its edges have orig_id, and a piece of the array being written.
 */
#ifndef GW_TOOLS_BUILDER_BUILDER_H
#define GW_TOOLS_BUILDER_BUILDER_H

#include <stdbool.h>

#include "core/graph/meta.h"

struct gw_builder;

/* One edge type. Arrays are borrowed until gw_builder_destroy (or handed over with gw_builder_own). */
struct gw_builder_edges {
	uint64_t count;
	const uint64_t *src, *dst; /* [count]; checked against the types' counts when written */
	const uint64_t
		*origin;     /* [count] the input row of each edge, which arrays and orig_id go by; NULL: its index */
	uint64_t input_rows; /* all origins lie below it; not used without origin */
	const uint32_t *rel; /* [input rows] below relations, or NULL: not fused; excludes time */
	uint32_t relations;
	const int64_t *time; /* [input rows], or NULL; stored as time_name and the first key of the list order */
	const char *time_name;
	bool symmetric;    /* every edge is there in both directions: it is its own reverse type */
	bool reverse;      /* add dst:rev_<rel>:src */
	bool transpose;    /* store out-edges too */
	bool keep_orig_id; /* store orig_id even without features */
};

/* An array to be stored: a node's or an edge's. */
struct gw_builder_array {
	const char *name; /* copied */
	gw_dtype dtype;
	uint32_t ndim;
	uint64_t shape[GW_DIMS_MAX]; /* shape[0]: nodes of the type, or input rows of the edge type */
	const void *data;            /* borrowed */
	bool weight;                 /* edges only: float32 >= 0; stored with its alias table */
};

struct gw_builder_options {
	unsigned threads; /* 0: all processors */
	bool replace;     /* an existing graph of that name */
	bool quiet;       /* no progress */
};

struct gw_builder_stats {
	uint64_t nodes, edges; /* over all types */
	uint64_t bytes;        /* payload written */
	uint64_t csc_ns, write_ns;
	uint64_t graph_id;
};

/* GW_EXISTS if the folder is there and may not be replaced: asked before the work, not after it. */
gw_status gw_builder_target_check(const char *folder, bool replace);

gw_status gw_builder_create(const char *graph_name, struct gw_builder **out);
void gw_builder_destroy(struct gw_builder *builder); /* NULL is allowed; releases what it owns */

/* Another name for the graph. GW_INVALID for a bad one, which leaves the old. */
gw_status gw_builder_rename(struct gw_builder *builder, const char *graph_name);
const char *gw_builder_name(const struct gw_builder *builder);

/* The number of the node type of that name, added with count 0 if it is new. GW_INVALID for a bad name. */
gw_status gw_builder_ntype(struct gw_builder *builder, const char *name, uint32_t *out);
void gw_builder_ntype_count(struct gw_builder *builder, uint32_t ntype, uint64_t count);

/* Makes edges symmetric: each that is no loop is there turned round as well, with the origin of the first. The arrays
 * are new ones, which the builder owns. */
gw_status gw_builder_mirror(struct gw_builder *builder, struct gw_builder_edges *edges);

/* Adds an edge type. GW_EXISTS if src:rel:dst is there. */
gw_status gw_builder_etype(struct gw_builder *builder, uint32_t src, const char *rel, uint32_t dst,
			   const struct gw_builder_edges *edges, uint32_t *out);

/* An array of a node type, row i of node i; of an edge type, row i of input row i. GW_EXISTS for a name that is given
 * twice, GW_INVALID for one that the format uses itself. */
gw_status gw_builder_node_array(struct gw_builder *builder, uint32_t ntype, const struct gw_builder_array *array);
gw_status gw_builder_edge_array(struct gw_builder *builder, uint32_t etype, const struct gw_builder_array *array);

/* Strings: count + 1 offsets into bytes. name: "orig_id", one for each node, or "label.names" for a table of names.
 * Edges have tables of names only. */
gw_status gw_builder_node_strings(struct gw_builder *builder, uint32_t ntype, const char *name, uint64_t count,
				  const uint64_t *offsets, const char *bytes);
gw_status gw_builder_edge_strings(struct gw_builder *builder, uint32_t etype, const char *name, uint64_t count,
				  const uint64_t *offsets, const char *bytes);

/* Hands memory over: release(memory) is called by gw_builder_destroy. On failure it is called at once. */
gw_status gw_builder_own(struct gw_builder *builder, void *memory, void (*release)(void *memory));

/* Memory of count elements, at least one byte, that the builder releases; NULL with *status set. For calls in a row:
 * one that finds *status set already does nothing. */
void *gw_builder_take(struct gw_builder *builder, uint64_t count, size_t bytes, gw_status *status);

/* Writes <folder>/<graph name>.json and part0. GW_RANGE names the edge type, the edge and the id. */
gw_status gw_builder_write(struct gw_builder *builder, const char *folder, const struct gw_builder_options *options,
			   struct gw_builder_stats *stats);

#endif
