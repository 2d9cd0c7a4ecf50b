/* graphwire import: the description of an import, and the steps that its files share.
 *
 *   options -> inputs opened and examined -> edges read -> nodes numbered -> features -> builder -> written
 *
 * Edge lists, NumPy arrays, triples and chunked graphs all become edge sets between node spaces.
 */
#ifndef GW_TOOLS_IMPORT_IMPORT_H
#define GW_TOOLS_IMPORT_IMPORT_H

#include "core/graph/npy.h"
#include "tools/builder/builder.h"
#include "tools/import/numbering.h"
#include "tools/import/table.h"
#include "tools/times.h"

#define GW_IMPORT_INPUTS_MAX  65536u /* files of one import */
#define GW_IMPORT_COLUMNS_MAX 64u    /* more columns of an edge list */

enum gw_import_ids { GW_IDS_AUTO, GW_IDS_DENSE, GW_IDS_COMPACT, GW_IDS_TEXT };
enum gw_import_format { GW_FROM_AUTO, GW_FROM_TEXT, GW_FROM_NPY, GW_FROM_NPZ, GW_FROM_DGL };
enum gw_import_split { GW_SPLIT_NONE, GW_SPLIT_TRAIN, GW_SPLIT_VALID, GW_SPLIT_TEST };

/* The kind of a word of the command line. The step that uses the word reads the rest of it. */
enum gw_import_kind {
	GW_IMPORT_EDGES,        /* "src:rel:dst=FILE" or FILE */
	GW_IMPORT_TRIPLES,      /* "train=FILE" or FILE */
	GW_IMPORT_NODE_TYPE,    /* "type": it may have no edges */
	GW_IMPORT_NODES,        /* "type=FILE" or FILE: the ids of a type in the order of their numbers */
	GW_IMPORT_NUM_NODES,    /* "type=N" or N */
	GW_IMPORT_NODE_TABLE,   /* "type=FILE" or FILE: a node in each row; its columns are: */
	GW_IMPORT_ID_COLUMN,    /* "type=COLUMN" or COLUMN */
	GW_IMPORT_NODE_COLUMN,  /* "[type:]name=COLUMN,…" */
	GW_IMPORT_LABEL_COLUMN, /* "type=COLUMN" or COLUMN */
	GW_IMPORT_MASK_COLUMN,
	GW_IMPORT_NODE_FEATURE, /* "[type:]name=FILE[:MEMBER]" */
	GW_IMPORT_NODE_MASK,
	GW_IMPORT_EDGE_FEATURE, /* "[src:rel:dst:]name=FILE[:MEMBER]" */
	GW_IMPORT_EDGE_COLUMN,  /* "name=COLUMN" */
	GW_IMPORT_EDGE_TIME,    /* "src:rel:dst=FILE" or FILE */
	GW_IMPORT_WEIGHT,       /* "[src:rel:dst:]name" of an edge feature, or a column */
	GW_IMPORT_TIME,         /* "[src:rel:dst:]name" of a feature of edges or nodes, or a column */
	GW_IMPORT_REVERSE,      /* "src:rel:dst" */
};

struct gw_import_word {
	enum gw_import_kind kind;
	const char *text;
};

struct gw_import_options {
	const struct gw_import_word *words;
	uint32_t num_words;
	enum gw_import_format format;
	enum gw_import_ids ids;
	const char *relations; /* dictionary of the relations of triples, or NULL */
	struct gw_table_format text;
	bool comments_given;                              /* the format's comments are the user's choice */
	const char *src_column, *dst_column, *rel_column; /* names or numbers, or NULL */
	const char *const *names; /* [num_names]: a first row with one of these names is a header */
	uint32_t num_names;
	uint32_t time_digits;
	bool time_digits_given; /* further digits are dropped; else they must be zeros */
	bool undirected, reverse, transpose;
	bool edge_ids; /* store orig_id also for edges without data */
	const char *out;
	const char *name; /* NULL: the metadata's name, else "graph" */
	struct gw_builder_options build;
};

/* A word among numbers in a column of ids. */
struct gw_import_mixed {
	uint64_t row;
	struct gw_text_span word; /* at NULL: no such word */
};

/* What a file declares about its matrix. */
struct gw_import_matrix {
	const char *what; /* "Matrix Market"; NULL: not a matrix */
	enum { GW_MATRIX_COO, GW_MATRIX_CSR, GW_MATRIX_CSC } layout;
	uint64_t rows, columns, entries;
	uint32_t base;  /* the number of the first row and column */
	bool symmetric; /* an entry off the diagonal stands for two entries */
	bool skew;      /* ... and the second has the opposite value */
	bool swapped;   /* the columns are the sources */
};

/* One file of an edge set. */
struct gw_import_file {
	const char *path;
	enum gw_import_format format;
	enum gw_import_split split;
	char delimiter; /* of a chunk, from its metadata; 0: from the options */
	struct gw_text text;
	struct gw_table_format text_format;
	struct gw_table table;
	struct gw_npy_file arrays[2]; /* NumPy: [E, 2] or [2, E] in the first array, or one column in each */
	struct gw_import_matrix matrix;
	uint32_t id_columns[3]; /* text: the columns of source ids, destination ids, relations, from 0 */
	bool known_names;       /* the header has known names of ends */
	bool given_names;       /* the caller names columns, so the first row is a header */
	bool doubtful;          /* the first row may be a header or an edge */
	bool text_ids[3];       /* whether source ids, destination ids, relations are text */
	struct gw_import_mixed mixed[3];
	uint64_t first_row, rows; /* in the set */
};

struct gw_import_column {
	char name[GW_NAME_MAX + 1];
	const char *column;
	void *values;             /* [rows] 8 bytes each when read; dtype afterwards */
	enum gw_column_kind kind; /* that was read */
	gw_dtype dtype;
	bool weight;
};

struct gw_import_set {
	uint32_t src, dst; /* node spaces */
	char rel[GW_NAME_MAX + 1];
	bool triples, reverse; /* reverse: add dst:rev_rel:src */
	struct gw_import_file *files;
	uint32_t num_files, files_room;
	uint64_t rows, rows_expected; /* expected: the count in the metadata, */
	const char *rows_key;         /* ... under this key; NULL: no count */
	uint64_t *src_ids, *dst_ids;  /* [rows] */
	uint64_t *relations;          /* [rows], triples */
	uint32_t *rel_numbers;        /* the same memory, after numbering */
	int64_t *times;               /* [rows] or NULL */
	const int64_t *given_times;   /* [rows] of --edge-time, or NULL */
	enum gw_time_unit time_unit;  /* of these */
	struct gw_import_column *columns;
	uint32_t num_columns;
	const char *weight_column; /* becomes the feature "weight"; NULL: none */
	const char *time_column;   /* becomes the feature "time"; NULL: none */
	uint32_t etype;            /* in the builder */
};

struct gw_import_space {
	char name[GW_NAME_MAX + 1];
	enum gw_import_ids ids;
	uint64_t num_nodes; /* from --num-nodes; GW_NONE: not given */
	uint64_t count;
	uint64_t shape_nodes;   /* the number in a matrix, */
	const char *shape_path; /* ... of this file; NULL: no matrix */
	uint32_t base;          /* the first id of its edges, 0 or 1; */
	const char *base_path;  /* ... according to this file; NULL: no file read yet */
	uint64_t feature_rows;  /* the largest number of rows of its features */
	uint64_t counted_rows;  /* ... of features in the archive of its edges, which define the number of nodes */
	const char *list_path;  /* of --nodes, or a table: */
	bool is_table;          /* ... of --node-table */
	const char *id_column;  /* of the table; NULL: by its name */
	uint32_t list_column;   /* ... from 0 */
	struct gw_text list_text;
	struct gw_table list_table;
	uint64_t *list;  /* [list_table.rows] values in the order of their numbers: text or whole numbers */
	uint64_t *lines; /* [list_table.rows] the line of each number, from 0; NULL: number i has line i */
	bool list_is_text;
	uint32_t ntype;    /* in the builder */
	uint64_t *values;  /* [count] the whole numbers that compact ids stand for; NULL: other ids */
	uint64_t *offsets; /* [count + 1] and bytes of text ids; else NULL */
	char *bytes;
};

struct gw_npz;
struct gw_import_strings;

/* A file of a feature that is joined from several. */
struct gw_import_chunk {
	const char *path;
	uint64_t first_row; /* in the feature */
};

/* A feature, label or mask for the nodes of a space or the edges of a set. */
struct gw_import_feature {
	enum gw_import_feature_kind {
		GW_FEATURE_ARRAY,
		GW_FEATURE_MASK,  /* a bool, 0 or 1 for each row; or a list of ids */
		GW_FEATURE_FLAGS, /* a bool, 0 or 1 for each row */
		GW_FEATURE_SPARSE,
		GW_FEATURE_TEXT
	} kind;
	bool edge;
	bool counts;    /* its rows define the number of nodes: it is in the archive of the edges */
	uint32_t owner; /* space or set */
	char name[GW_NAME_MAX + 1];
	const char *source;              /* for error texts */
	const struct gw_npy_file *array; /* SPARSE: indptr; TEXT: NULL */
	const struct gw_npy_file *indices, *values;
	uint64_t columns;                        /* SPARSE */
	const struct gw_import_strings *strings; /* TEXT */
	const struct gw_import_chunk *chunks;    /* [num_chunks], for error texts; none: the source is one file */
	uint32_t num_chunks;
};

/* An edge feature that gets an alias table. */
struct gw_import_weight {
	uint32_t set;
	char name[GW_NAME_MAX + 1];
};

struct gw_import_archive {
	const char *path;
	struct gw_npz *npz;
};

struct gw_import {
	const struct gw_import_options *options;
	struct gw_builder *builder;
	struct gw_import_space *spaces;
	struct gw_import_space relations; /* of triples; not a node type */
	struct gw_import_set *sets;
	struct gw_import_archive *archives;
	struct gw_import_feature *features;
	struct gw_import_weight *weights;
	uint32_t num_spaces, spaces_room, num_sets, sets_room, num_archives, archives_room;
	uint32_t num_features, features_room, num_weights, weights_room;
	const char *times[GW_TIME_WORDS_MAX]; /* [num_times] words of --time that name features */
	uint32_t num_times;
	unsigned threads;
	uint64_t input_bytes; /* text and arrays read */
	uint64_t number_runs; /* by which ids were numbered, over all types; 0: none had more than memory holds */
};

/* Checks that the word, by itself, fits its option. GW_INVALID and other errors mean wrong usage. */
gw_status gw_import_word_check(enum gw_import_kind kind, const char *text);

/* The same for a column: its name, or its number from 1. */
gw_status gw_import_column_check(const char *column);

/* Runs an import; everything of the command except parsing its words. name: the graph's name, once it is written. */
gw_status gw_import_run(const struct gw_import_options *options, struct gw_builder_stats *stats,
			char name[GW_NAME_MAX + 1]);

/* Releases everything that the steps acquired, and zeroes it. A zeroed one is allowed. */
void gw_import_close(struct gw_import *im);

/* ---- steps, in order; each has its file in tools/import ---- */

gw_status gw_import_plan(struct gw_import *im);         /* words -> spaces, sets, files */
gw_status gw_import_plan_weights(struct gw_import *im); /* ... and the features that get alias tables */
gw_status gw_import_plan_times(struct gw_import *im);   /* ... and the features or columns that lists are sorted by */
gw_status gw_import_open_all(struct gw_import *im);     /* opens files, decides formats and kinds of ids */
/* ... opens one text file, and decides its format, without counting its rows */
gw_status gw_import_text_examine(struct gw_import *im, struct gw_import_set *set, struct gw_import_file *file);
/* ... makes the ids of a type text if they are text in the file; warns of a word among numbers */
void gw_import_text_kinds(struct gw_import *im, const struct gw_import_set *set, const struct gw_import_file *file);
gw_status gw_import_open_tables(struct gw_import *im);   /* tables of nodes, and their kinds of ids */
gw_status gw_import_read_all(struct gw_import *im);      /* edges in memory */
gw_status gw_import_times(struct gw_import *im);         /* times of edges from files */
gw_status gw_import_number(struct gw_import *im);        /* ids -> numbers; orig ids to the builder */
gw_status gw_import_add_edges(struct gw_import *im);     /* sets -> the builder's edge types */
gw_status gw_import_features(struct gw_import *im);      /* node and edge features, masks */
gw_status gw_import_open_features(struct gw_import *im); /* ... opened before nodes are numbered */

gw_status gw_import_table_columns(struct gw_import *im); /* columns of tables of nodes as features */

/* Adds the spaces, sets and features of a chunked graph. */
gw_status gw_import_chunked(struct gw_import *im, const char *path);

/* ---- shared helpers ---- */

gw_status gw_import_space(struct gw_import *im, const char *name, uint32_t *out);
struct gw_import_space *gw_import_space_find(const struct gw_import *im, const char *name); /* or NULL */
gw_status gw_import_set_add(struct gw_import *im, const char *src, const char *rel, const char *dst,
			    struct gw_import_set **out);
gw_status gw_import_file_add(struct gw_import_set *set, const char *path, enum gw_import_format format,
			     enum gw_import_split split);
/* Memory that the builder releases: gw_builder_take. */
static inline void *gw_import_take(struct gw_import *im, uint64_t count, size_t bytes, gw_status *status)
{
	return gw_builder_take(im->builder, count, bytes, status);
}
/* What a numbering of the import's values may use. */
static inline struct gw_numbering_memory gw_import_memory(struct gw_import *im)
{
	struct gw_numbering_memory memory;
	memory.spill = gw_builder_spill(im->builder, &memory.bytes);
	return memory;
}
/* An array of FILE.npy or FILE.npz:MEMBER, which the builder closes. */
gw_status gw_import_array(struct gw_import *im, const char *source, const struct gw_npy_file **out);
/* A member of an archive, which the builder closes. */
/* Passes an opened array to the builder, which closes it. */
gw_status gw_import_own_array(struct gw_import *im, const struct gw_npy_file *opened, const struct gw_npy_file **out);
gw_status gw_import_member(struct gw_import *im, const struct gw_npz *npz, const char *name,
			   const struct gw_npy_file **out);
/* Whether the name is one of the names of masks: train_mask, val_mask, test_mask. */
bool gw_import_is_mask(const char *name);
gw_status gw_import_feature_add(struct gw_import *im, const struct gw_import_feature *feature);
/* Adds the members of an archive that have known names: x, y, train_idx, num_nodes and others. */
gw_status gw_import_archive_features(struct gw_import *im, const struct gw_npz *npz, const char *path, uint32_t space);
/* Whether the edge set has a feature of this name. */
bool gw_import_has_feature(const struct gw_import *im, uint32_t set, const char *name);
/* Makes a column the feature "weight" or "time" of the edge set. *to: the column that is this feature so far, or NULL.
 * what: the option's kinds of features. GW_INVALID: another column is, or a file is not text. */
gw_status gw_import_set_column(struct gw_import_set *set, const char **to, const char *column, const char *feature,
			       const char *what);
/* SRC:REL:DST of an edge set. */
#define GW_IMPORT_ETYPE_MAX (3 * (size_t)(GW_NAME_MAX + 1))
void gw_import_etype_text(const struct gw_import *im, const struct gw_import_set *set, char text[GW_IMPORT_ETYPE_MAX]);
/* Whether --weight names this feature of the edge set. */
bool gw_import_is_weight(const struct gw_import *im, uint32_t set, const char *name);
/* Checks a feature that is a weight. GW_UNSUPPORTED: its dtype or shape; GW_RANGE: a value, with its file and row. */
gw_status gw_import_weight_check(const struct gw_import *im, const struct gw_import_feature *feature,
				 const struct gw_builder_array *array);
gw_status gw_import_archive(struct gw_import *im, const char *path, struct gw_npz **out);
/* Whole numbers of any integer dtype as uint64; GW_RANGE for a negative one, named by `what`. */
gw_status gw_import_whole(const struct gw_npy *npy, const void *data, uint64_t first, uint64_t stride, uint64_t count,
			  const char *what, unsigned threads, uint64_t *out);
/* The format that the file's name suggests. */
enum gw_import_format gw_import_format_of(const char *path);

#endif
