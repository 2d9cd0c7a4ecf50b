/* --time of import, generate and partition: by which times the lists of each edge type are sorted, and which node times
 * get an index.
 *
 *   "NAME"                 each edge type with an edge feature NAME by it; of the others, each type whose source type
 *                          has a node feature NAME by the times of its sources, as NAME.source
 *   "NAME.source"          the times of the sources, even if the type has an edge feature NAME
 *   "SRC:REL:DST:NAME"     the same for one edge type
 *
 * Two times of one edge type are an error. Each node type that has a feature of a named time gets an index of it
 * (core/graph/times.h).
 */
#ifndef GW_TOOLS_TIMES_H
#define GW_TOOLS_TIMES_H

#include <stdbool.h>

#include "core/graph/times.h"

#define GW_TIME_WORDS_MAX 64u /* --time of one command line */
#define GW_TIME_ROW_MAX   96u

/* A feature of nodes or edges. */
struct gw_time_column {
	gw_dtype dtype;
	uint32_t ndim;
	uint64_t shape[GW_DIMS_MAX];
	const void *data;   /* borrowed */
	const char *source; /* its file for error texts, or NULL */
	enum gw_time_unit unit;
};

/* How the planner sees a graph. */
struct gw_time_view {
	const struct gw_graph_meta *meta;
	bool keeps_orders; /* words without an edge type leave the types alone that the schema sorts by another time */
	const void *context;
	/* Finds a feature of a type by name; false: none. */
	bool (*find)(const void *context, bool edge, uint32_t type, const char *name, struct gw_time_column *out);
	/* Names the row of a feature, such as "node 5", in an error text. */
	void (*name_row)(const void *context, bool edge, uint32_t type, uint64_t row, char text[GW_TIME_ROW_MAX]);
};

/* By what the lists of an edge type are sorted. */
struct gw_time_order {
	char name[GW_NAME_MAX + 1]; /* "": as without --time */
	bool of_source;             /* the column belongs to the source's type */
	bool typed;                 /* a word names the edge type */
	struct gw_time_column column;
};

struct gw_time_plan {
	struct gw_time_order *orders; /* [edge types] */
	struct gw_time_index *index;  /* [num_index] */
	uint32_t num_index;
};

/* Checks the form of a word: "NAME" or "SRC:REL:DST:NAME". GW_INVALID. */
gw_status gw_time_word_check(const char *word);

/* Whether the text names a time, "NAME" or "NAME.source", of the feature. */
bool gw_time_word_means(const char *text, const char *feature);

/* GW_RANGE names the first row that is NaN or NaT. name: of the feature. threads: 0: all processors. */
gw_status gw_time_values_check(const struct gw_time_view *view, bool edge, uint32_t type, const char *name,
			       const struct gw_time_column *column, unsigned threads);

/* Makes the plan. words: [count], checked. threads: 0: all processors. GW_NOT_FOUND: no type has the feature;
 * GW_UNSUPPORTED: a dtype or a shape that cannot be a time, or lists with relations; GW_RANGE names the row of a time
 * that is NaN; GW_INVALID: two times of a type; GW_NO_MEMORY. */
gw_status gw_time_plan_make(const struct gw_time_view *view, const char *const *words, uint32_t count, unsigned threads,
			    struct gw_time_plan *out);
void gw_time_plan_free(struct gw_time_plan *plan); /* a zeroed one is allowed */

/* Adds an index, unless the plan has it. */
gw_status gw_time_plan_add_index(struct gw_time_plan *plan, uint32_t ntype, const char *name);

#endif
