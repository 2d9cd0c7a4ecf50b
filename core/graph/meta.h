/* mygraph.json in memory: the description of a partitioned graph, without its arrays.
 *
 * Node and edge types are numbered by their order in the JSON. Part p owns nodes [starts[p], starts[p + 1]) of a type.
 * The part that owns an edge's destination owns the edge, and the edge's global id is starts[p] + its CSC position
 * there. A homogeneous graph has one node type, "_N", and one edge type, "_N:_E:_N".
 */
#ifndef GW_GRAPH_META_H
#define GW_GRAPH_META_H

#include <stdbool.h>

#include "core/errors/status.h"
#include "core/files/owned.h"
#include "core/numbers/dtype.h"
#include "core/numbers/time_unit.h"

#define GW_FORMAT_NAME     "graphwire-1"
#define GW_FORMAT_MINOR    5  /* the newest minor version that this program knows; version 0.1 wrote 0 */
#define GW_NAME_MAX        64 /* bytes of a type's or a feature's name */
#define GW_EDGE_FOLDER_MAX (3 * GW_NAME_MAX + 4)
#define GW_TYPES_MAX       4096 /* node types, and edge types, of a graph */
#define GW_PARTS_MAX       65536
#define GW_ARRAYS_MAX      65536 /* arrays of one part */
#define GW_JSON_BYTES_MAX  (1u << 30)
#define GW_TYPE_NONE       UINT32_MAX

/* The sort order of an edge type's lists; ties keep the input order. */
enum gw_list_order { GW_ORDER_SRC, GW_ORDER_TIME_SRC, GW_ORDER_REL_SRC };

struct gw_node_type {
	char name[GW_NAME_MAX + 1];
	uint64_t count;              /* over all parts */
	uint64_t *starts;            /* [parts + 1] */
	uint32_t columns;            /* of its indptr: the number of edge types that end here */
	uint32_t *column_edge_types; /* [columns], ascending */
	/* of its out_indptr: the number of edge types that start here and are stored transposed */
	uint32_t out_columns;
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
	uint32_t relations;  /* > 0: a fused type; rel.npy has numbers below `relations` */
	enum gw_list_order order;
	/* the feature that GW_ORDER_TIME_SRC sorts by, or NAME.source for the feature NAME of src; else "" */
	char time_name[GW_NAME_MAX + 1];
	/* the edge type with the same edges in the opposite direction, or GW_TYPE_NONE */
	uint32_t reverse;
};

struct gw_array_meta {
	char *key;  /* "node/paper/feat", "edge/paper__cites__paper/indices" */
	char *file; /* relative to the JSON's folder: "part0/node/paper/feat.npy" */
	gw_dtype dtype;
	uint32_t ndim;
	uint64_t shape[GW_DIMS_MAX];
	uint64_t digest; /* XXH3-64 of the .xxh file's bytes */
};

/* The unit of an array of times, in all parts. */
struct gw_unit_meta {
	char *key;
	enum gw_time_unit unit;
};

/* What the rows of a narrow array were before they were stored so, in all parts. */
struct gw_original_meta {
	char *key;
	gw_dtype dtype;
	uint64_t columns; /* of an int8_row: how many numbers a row has; else 0 */
};

#define GW_REPLICA_BY_MAX 32

/* The replicas of a feature's rows, in all parts: core/graph/replicas.h. */
struct gw_replica_meta {
	char *key;                      /* of the feature */
	char by[GW_REPLICA_BY_MAX + 1]; /* how the rows were chosen: "vip", "degree", "epochs:3" */
	uint64_t of;                    /* gw_replicas_digest of the arrays that the rows were copied from */
};

struct gw_part_meta {
	struct gw_array_meta *arrays; /* sorted by key */
	uint32_t count;
};

struct gw_graph_meta {
	char graph_name[GW_NAME_MAX + 1];
	char part_method[GW_NAME_MAX + 1]; /* "none", "metis", "random", "given" */
	uint64_t graph_id;                 /* digest over all digests; the writer sets it */
	uint32_t minor;                    /* of the JSON; for a created graph, the lowest version that describes it */
	uint32_t num_parts, num_ntypes, num_etypes;
	struct gw_node_type *ntypes;
	struct gw_edge_type *etypes;
	struct gw_part_meta *parts; /* [num_parts] */
	struct gw_unit_meta *units; /* [num_units], sorted by key */
	uint32_t num_units;
	struct gw_original_meta *originals; /* [num_originals], sorted by key */
	uint32_t num_originals;
	struct gw_replica_meta *replicas; /* [num_replicas], sorted by key */
	uint32_t num_replicas;
	char *folder; /* folder of the JSON; "" if the JSON is not on disk */
};

/* GW_INVALID unless name matches [A-Za-z0-9_.+-]{1,64} and is neither "." nor "..". what: "node type", "feature". */
gw_status gw_name_check(const char *what, const char *name);

/* The end of the key, and the name, of the array that leads from an edge type's original ids to its edges: see
 * core/graph/inverse.h. */
#define GW_INVERSE_TAIL ".inverse"
#define GW_INVERSE_NAME "orig_id.inverse"

/* The arrays that lead from the original ids of nodes to the nodes: see core/graph/id_index.h. A graph of an older
 * minor version may have features of these names. */
#define GW_FORMAT_MINOR_IDS 2
#define GW_ID_INDEX_NAME    "orig_id.index"
#define GW_ID_BUCKETS_NAME  "orig_id.buckets"

/* Masks of several splits: train_mask, val_mask and test_mask may have more dimensions than one. */
#define GW_FORMAT_MINOR_SPLITS 3

/* Arrays that are made of times, and end in these: see core/graph/times.h. A graph of an older minor version may have
 * features of such names. */
#define GW_FORMAT_MINOR_TIMES 4
#define GW_TIME_SOURCE_TAIL   ".source"      /* of edges: the time of each edge's source */
#define GW_TIME_FENCE_TAIL    ".fence"       /* of edges: the keys of every 64th time */
#define GW_TIMES_TAIL         ".times"       /* of nodes: the keys of their times, ascending */
#define GW_TIMES_NODES_TAIL   ".times_nodes" /* of nodes: the row of each of these */

/* "originals": narrow rows and what they were. */
#define GW_FORMAT_MINOR_ORIGINALS 5

/* Copies of rows of other parts: core/graph/replicas.h. A graph of an older minor version may have features of such
 * names. */
#define GW_FORMAT_MINOR_REPLICAS 5
#define GW_REPLICA_INDEX_NAME    "replica.index"
#define GW_REPLICA_TAIL          ".replica"

/* Whether a name is one of the arrays of replicas, of nodes. */
bool gw_name_is_of_replicas(const char *name);

/* Whether a name is one of the arrays that lead from the original ids of nodes to the nodes. */
bool gw_name_is_node_ids(const char *name);

/* Whether a name is one of the arrays that are made of times. */
bool gw_name_is_of_times(bool edge, const char *name);

/* Whether a name ends in this, after at least one character. */
bool gw_name_ends_in(const char *name, const char *tail);

/* Whether the format uses the name itself (indptr, indices, rel, an edge's orig_id, the arrays above, and names that
 * end in .alias, .offsets or .bytes). A feature or a time column must have another name; but lists may be sorted by
 * NAME.source. */
bool gw_name_is_taken(bool edge, const char *name);

/* Creates a graph with room for its types and their starts. All fields are zero except out_column and reverse, which
 * are GW_TYPE_NONE. parts and ntypes are 1 or more. The caller fills in names, counts, starts, src and dst, then calls
 * gw_meta_finish. */
gw_status gw_meta_create(const char *graph_name, uint32_t parts, uint32_t ntypes, uint32_t etypes,
			 struct gw_graph_meta **out);
void gw_meta_destroy(struct gw_graph_meta *meta); /* NULL is allowed */

/* Computes folder, column and column_edge_types of every type. The caller has set names, src, dst and out flags
 * (out_column != NONE). The call checks names, duplicates, equal folders, ranges of src and dst, and starts ascending
 * from 0 to count. GW_INVALID names the type. */
gw_status gw_meta_finish(struct gw_graph_meta *meta);

/* A finished copy without its arrays, units, originals, replicas, graph_id and folder. */
gw_status gw_meta_copy(const struct gw_graph_meta *meta, struct gw_graph_meta **out);

/* A parsed key: "node/<ntype>/<name>", "edge/<folder>/<name>" or "edge/<folder>/out/<name>". */
struct gw_array_key {
	bool edge, out;
	uint32_t type;    /* node or edge type */
	const char *name; /* points into the key */
};
gw_status gw_array_key_parse(const struct gw_graph_meta *meta, const char *key, struct gw_array_key *out);

/* Adds an array to a part; copies key and file. GW_EXISTS, GW_LIMIT, GW_NO_MEMORY. */
gw_status gw_meta_add_array(struct gw_graph_meta *meta, uint32_t part, const struct gw_array_meta *array);

/* Sets the unit of an array of times; copies the key. The graph is of minor version GW_FORMAT_MINOR_TIMES.
 * GW_NO_MEMORY. */
gw_status gw_meta_set_unit(struct gw_graph_meta *meta, const char *key, enum gw_time_unit unit);

/* The unit of an array of times; GW_UNIT_NONE: plain numbers. */
enum gw_time_unit gw_meta_unit(const struct gw_graph_meta *meta, const char *key);

/* Records what an array's rows were before they were stored narrow; copies the key. columns: of an int8_row, else 0.
 * The graph is of minor version GW_FORMAT_MINOR_ORIGINALS. GW_NO_MEMORY. */
gw_status gw_meta_set_original(struct gw_graph_meta *meta, const char *key, gw_dtype dtype, uint64_t columns);

/* NULL: the array's rows are as they came, or a newer minor version says about them what this program does not know. */
const struct gw_original_meta *gw_meta_original(const struct gw_graph_meta *meta, const struct gw_array_meta *array);

/* Records that a feature has replicas; copies the key. The graph is of minor version GW_FORMAT_MINOR_REPLICAS, and has
 * no such record yet. GW_NO_MEMORY. */
gw_status gw_meta_set_replicas(struct gw_graph_meta *meta, const char *key, const char *by, uint64_t of);

/* NULL: the feature has no replicas. */
const struct gw_replica_meta *gw_meta_replicas(const struct gw_graph_meta *meta, const char *key);

/* How many numbers a row of an array has: the product of all dimensions but the first; of an int8_row, the numbers that
 * it was made of, or all that fit if that is not recorded. */
uint64_t gw_meta_row_numbers(const struct gw_graph_meta *meta, const struct gw_array_meta *array);

/* The lowest minor version in which an array of this key may have so many dimensions; 0 for most arrays. */
uint32_t gw_meta_minor_of(const struct gw_graph_meta *meta, const char *key, uint32_t ndim);

/* Checks that the part may have this array, by key, dtype and shape. Errors name the key and the expected value. */
gw_status gw_meta_check_array(const struct gw_graph_meta *meta, uint32_t part, const struct gw_array_meta *array);

/* Checks that the payload has less than 2^63 bytes, so that later sums and products need no checks. */
gw_status gw_meta_check_size(const struct gw_array_meta *array);

/* Checks that every part has all arrays that the format requires, and the same arrays as every other part, in dtype and
 * row shape. */
gw_status gw_meta_check_arrays(const struct gw_graph_meta *meta);

/* Checks a description whose arrays came from several sources: gw_meta_check_arrays, and that the graph's id is the one
 * that the arrays give. A newer minor version may have arrays that this program does not know, so its id is not
 * checked. GW_DIGEST: another id. */
gw_status gw_meta_check_whole(const struct gw_graph_meta *meta);

/* Computes the graph's id: the digest over formats, types, ranges, each array's key, dtype, shape and digest, and
 * units and originals. File names, the graph's name and replicas are not included. */
gw_status gw_meta_digest(const struct gw_graph_meta *meta, uint64_t *graph_id);

/* The digest over the book alone: types, ranges, units and originals, without arrays. */
gw_status gw_meta_book_digest(const struct gw_graph_meta *meta, uint64_t *digest);

/* Whether both describe one array: compares key, dtype, shape and digest. */
bool gw_array_meta_same(const struct gw_array_meta *a, const struct gw_array_meta *b);

/* Reads and checks a JSON. config: the file, or a folder that contains exactly one graphwire JSON. Every fault in the
 * JSON is GW_FORMAT and names the file and the key; GW_VERSION: another "format"; GW_DIGEST: the text or a graph_id was
 * changed. In a newer minor version, unknown keys and arrays are ignored. Refuses file paths that are absolute or leave
 * the folder. Allocates no memory for sizes that the text only claims. GW_NOT_FOUND, GW_INVALID (no regular file, a
 * folder of several graphs), GW_LIMIT (too long), GW_IO, GW_NO_MEMORY. */
gw_status gw_meta_read(const char *config, struct gw_graph_meta **out);

/* Checks that a graph may replace the folder. GW_EXISTS unless the folder is absent, empty, or contains a graph:
 * --replace must not delete other data after a wrong --out. *owned: the files of the existing graph, or NULL without a
 * graph; owned may be NULL. All other files in the folder stay. */
gw_status gw_meta_check_replaceable(const char *folder, struct gw_owned **owned);

/* Conversion from and to the JSON text, for the wire and for fuzzing; free *text with gw_free. */
gw_status gw_meta_parse(const char *text, size_t bytes, const char *name, struct gw_graph_meta **out);
gw_status gw_meta_print(const struct gw_graph_meta *meta, char **text);

/* The same for a graph's book: its description without the arrays of its parts, whose size grows with the parts and not
 * with their arrays. The parser refuses arrays. */
gw_status gw_meta_parse_book(const char *text, size_t bytes, const char *name, struct gw_graph_meta **out);
gw_status gw_meta_print_book(const struct gw_graph_meta *meta, char **text);

/* Finds the number of a type by name; an edge type by "src:rel:dst", or by "rel" alone if that is unique. GW_NOT_FOUND
 * lists the existing types. */
gw_status gw_meta_ntype(const struct gw_graph_meta *meta, const char *name, uint32_t *out);
gw_status gw_meta_etype(const struct gw_graph_meta *meta, const char *name, uint32_t *out);

/* "src:rel:dst" of an edge type; returns text. */
char *gw_meta_etype_text(const struct gw_graph_meta *meta, uint32_t etype, char text[GW_EDGE_FOLDER_MAX + 1]);

/* The array of a key in a part, or NULL. */
const struct gw_array_meta *gw_meta_array(const struct gw_graph_meta *meta, uint32_t part, const char *key);

/* Payload bytes of an array, and of one row of it (the product of all dimensions except the first). */
uint64_t gw_array_meta_bytes(const struct gw_array_meta *array);
uint64_t gw_array_meta_row_bytes(const struct gw_array_meta *array);

#endif
