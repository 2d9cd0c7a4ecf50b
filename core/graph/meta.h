/* mygraph.json in memory: what a partitioned graph consists of, without its arrays.
 *
 * Node and edge types are numbered by their order in the JSON. Nodes of a type are numbered so that part p owns
 * [starts[p], starts[p + 1]); an edge belongs to the part that owns its destination, and its global id is
 * starts[p] + its CSC position there. A homogeneous graph is the case of one type of each, "_N" and "_N:_E:_N".
 */
#ifndef GW_GRAPH_META_H
#define GW_GRAPH_META_H

#include <stdbool.h>

#include "core/errors/status.h"
#include "core/files/owned.h"
#include "core/numbers/dtype.h"

#define GW_FORMAT_NAME     "graphwire-1"
#define GW_FORMAT_MINOR    1  /* the newest minor version that this program knows; 0: what version 0.1 wrote */
#define GW_NAME_MAX        64 /* bytes of a type's or a feature's name */
#define GW_EDGE_FOLDER_MAX (3 * GW_NAME_MAX + 4)
#define GW_TYPES_MAX       4096 /* node types, and edge types, of a graph */
#define GW_PARTS_MAX       65536
#define GW_ARRAYS_MAX      65536 /* arrays of one part */
#define GW_JSON_BYTES_MAX  (1u << 30)
#define GW_TYPE_NONE       UINT32_MAX

/* What the lists of an edge type are sorted by; ties keep the input order. */
enum gw_list_order { GW_ORDER_SRC, GW_ORDER_TIME_SRC, GW_ORDER_REL_SRC };

struct gw_node_type {
	char name[GW_NAME_MAX + 1];
	uint64_t count;              /* over all parts */
	uint64_t *starts;            /* [parts + 1] */
	uint32_t columns;            /* of its indptr: the edge types that end here */
	uint32_t *column_edge_types; /* [columns], ascending */
	uint32_t out_columns;        /* of its out_indptr: the edge types that start here and are stored transposed */
	uint32_t *out_column_edge_types;
};

struct gw_edge_type {
	char name[GW_NAME_MAX + 1];          /* the relation, "cites" */
	char folder[GW_EDGE_FOLDER_MAX + 1]; /* "paper__cites__paper" */
	uint32_t src, dst;                   /* node types */
	uint64_t count;
	uint64_t *starts;    /* [parts + 1] */
	uint32_t column;     /* its column in the indptr of dst */
	uint32_t out_column; /* its column in the out_indptr of src, or GW_TYPE_NONE */
	uint32_t relations;  /* > 0: fused; rel.npy holds numbers below it */
	enum gw_list_order order;
	char time_name[GW_NAME_MAX + 1]; /* the feature that order TIME_SRC sorts by, else "" */
	uint32_t reverse;                /* the edge type that holds the same edges turned round, or GW_TYPE_NONE */
};

struct gw_array_meta {
	char *key;  /* "node/paper/feat", "edge/paper__cites__paper/indices" */
	char *file; /* relative to the JSON's folder: "part0/node/paper/feat.npy" */
	gw_dtype dtype;
	uint32_t ndim;
	uint64_t shape[GW_DIMS_MAX];
	uint64_t digest; /* XXH3-64 of the .xxh file's bytes */
};

struct gw_part_meta {
	struct gw_array_meta *arrays; /* sorted by key */
	uint32_t count;
};

struct gw_graph_meta {
	char graph_name[GW_NAME_MAX + 1];
	char part_method[GW_NAME_MAX + 1]; /* "none", "metis", "random" */
	uint64_t graph_id;                 /* digest over all digests; set by the writer */
	uint32_t minor;                    /* of the JSON; of a graph that is made, the lowest that describes it */
	uint32_t num_parts, num_ntypes, num_etypes;
	struct gw_node_type *ntypes;
	struct gw_edge_type *etypes;
	struct gw_part_meta *parts; /* [num_parts] */
	char *folder;               /* where the JSON lies; "" for one that is not on disk */
};

/* GW_INVALID unless name matches [A-Za-z0-9_.+-]{1,64} and is neither "." nor "..". what: "node type", "feature". */
gw_status gw_name_check(const char *what, const char *name);

/* The array of an edge type that leads from original ids to edges: core/graph/inverse.h. */
#define GW_INVERSE_TAIL ".inverse"
#define GW_INVERSE_NAME "orig_id.inverse"

/* Whether the format uses the name itself (indptr, indices, rel, an edge's orig_id and orig_id.inverse, what ends in
 * .alias, .offsets or .bytes), so that a feature or a time column should have another. */
bool gw_name_is_taken(bool edge, const char *name);

/* A graph with room for its types and their starts, all zero but out_column and reverse, which are GW_TYPE_NONE; parts
 * and ntypes 1 or more. The caller fills names, counts, starts, src and dst in place, then calls gw_meta_finish. */
gw_status gw_meta_create(const char *graph_name, uint32_t parts, uint32_t ntypes, uint32_t etypes,
			 struct gw_graph_meta **out);
void gw_meta_destroy(struct gw_graph_meta *meta); /* NULL is allowed */

/* Fills folder, column and column_edge_types of every type once names, src, dst and out flags (out_column != NONE) are
 * set, and checks it all: names, duplicates, folders that coincide, ranges of src and dst, starts ascending from 0 to
 * count. GW_INVALID names the type. */
gw_status gw_meta_finish(struct gw_graph_meta *meta);

/* A finished copy without its arrays, graph_id and folder. */
gw_status gw_meta_copy(const struct gw_graph_meta *meta, struct gw_graph_meta **out);

/* What a key means: "node/<ntype>/<name>", "edge/<folder>/<name>" or "edge/<folder>/out/<name>". */
struct gw_array_key {
	bool edge, out;
	uint32_t type;    /* node or edge type */
	const char *name; /* within the key */
};
gw_status gw_array_key_parse(const struct gw_graph_meta *meta, const char *key, struct gw_array_key *out);

/* Adds an array to a part; key and file are copied. GW_EXISTS, GW_LIMIT, GW_NO_MEMORY. */
gw_status gw_meta_add_array(struct gw_graph_meta *meta, uint32_t part, const struct gw_array_meta *array);

/* Is the array, by key, dtype and shape, one that the part may have? Names the key and what it should be. */
gw_status gw_meta_check_array(const struct gw_graph_meta *meta, uint32_t part, const struct gw_array_meta *array);

/* Has every part all arrays that the format demands, and the same as every other part, in dtype and row shape? */
gw_status gw_meta_check_arrays(const struct gw_graph_meta *meta);

/* The graph's id: the digest over formats, types, ranges, and each array's key, dtype, shape and digest; file names and
 * the graph's name do not enter. */
gw_status gw_meta_digest(const struct gw_graph_meta *meta, uint64_t *graph_id);

/* Whether both describe one graph: its id, types, ranges, and each array's key, dtype, shape and digest. An id alone is
 * what its writer says. */
bool gw_meta_same(const struct gw_graph_meta *a, const struct gw_graph_meta *b);

/* Reads and checks a JSON. config: the file, or a folder that holds exactly one graphwire JSON. Every fault in it is
 * GW_FORMAT (GW_VERSION for another "format", GW_DIGEST for a text or a graph_id that is not what was written) and
 * names the file and the key. Of a newer minor version, keys and arrays that this program does not know are ignored.
 * GW_NOT_FOUND, GW_INVALID (no regular file, a folder of several graphs), GW_LIMIT (too long), GW_IO, GW_NO_MEMORY.
 * File paths that are absolute or climb are refused, and no memory is taken for what the text only claims to have. */
gw_status gw_meta_read(const char *config, struct gw_graph_meta **out);

/* May the folder be replaced by a graph? GW_EXISTS unless it is absent, empty, or holds a graph: --replace must not
 * take away what a wrong --out names. *owned: the files of the graph there, or NULL where there is none; owned may be
 * NULL. Nothing else in the folder goes with them. */
gw_status gw_meta_check_replaceable(const char *folder, struct gw_owned **owned);

/* From and to the JSON text, for the wire and for fuzzing; *text is to be freed with gw_free. */
gw_status gw_meta_parse(const char *text, size_t bytes, const char *name, struct gw_graph_meta **out);
gw_status gw_meta_print(const struct gw_graph_meta *meta, char **text);

/* Numbers of types by name; an edge type by "src:rel:dst", or by "rel" alone where that is unique.
 * GW_NOT_FOUND lists what there is. */
gw_status gw_meta_ntype(const struct gw_graph_meta *meta, const char *name, uint32_t *out);
gw_status gw_meta_etype(const struct gw_graph_meta *meta, const char *name, uint32_t *out);

/* "src:rel:dst" of an edge type; returns text. */
char *gw_meta_etype_text(const struct gw_graph_meta *meta, uint32_t etype, char text[GW_EDGE_FOLDER_MAX + 1]);

/* The array of a key in a part, or NULL. */
const struct gw_array_meta *gw_meta_array(const struct gw_graph_meta *meta, uint32_t part, const char *key);

/* Payload bytes of an array, and of one row of it (the product of all dimensions but the first). */
uint64_t gw_array_meta_bytes(const struct gw_array_meta *array);
uint64_t gw_array_meta_row_bytes(const struct gw_array_meta *array);

#endif
