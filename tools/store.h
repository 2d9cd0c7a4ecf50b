/* --store of import and partition: which features are stored in a narrower type than they have.
 *
 *   "NAME=DTYPE"                 every node type and edge type with a feature NAME
 *   "TYPE:NAME=DTYPE"            one node type
 *   "SRC:REL:DST:NAME=DTYPE"     one edge type
 *
 * DTYPE is float16, bfloat16 or int8_row (core/numbers/convert.h). Words with a type come before words without one.
 * Only rows of real numbers can be narrow, and no times, weights or labels: those are compared, counted and drawn by.
 */
#ifndef GW_TOOLS_STORE_H
#define GW_TOOLS_STORE_H

#include "core/graph/writer.h"
#include "tools/times.h"

#define GW_STORE_WORDS_MAX 256u /* --store of one command line */
#define GW_STORE_KEY_MAX   (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32)

/* How the planner sees a graph. */
struct gw_store_view {
	const struct gw_time_view *features;
	const struct gw_time_plan *times; /* the times that --time names */
	/* Whether an edge feature gets an alias table. */
	bool (*is_weight)(const void *weights, uint32_t etype, const char *name);
	const void *weights;
};

/* A feature that is stored narrow. */
struct gw_store_rule {
	char key[GW_STORE_KEY_MAX];
	gw_dtype original, dtype;
	uint64_t numbers; /* of a row */
	bool typed;       /* a word names its type */
};

struct gw_store_plan {
	struct gw_store_rule *rules; /* [count] */
	uint32_t count;
};

/* Checks the form of a word. GW_INVALID. */
gw_status gw_store_word_check(const char *word);

/* Makes the plan. words: [count], checked. threads: 0: all processors. GW_NOT_FOUND: no type has the feature;
 * GW_UNSUPPORTED: a feature whose rows cannot be narrow, or would take no fewer bytes; GW_RANGE names the row and the
 * column that an int8_row cannot hold; GW_INVALID: two words of one feature; GW_NO_MEMORY. */
gw_status gw_store_plan_make(const struct gw_store_view *view, const char *const *words, uint32_t count,
			     unsigned threads, struct gw_store_plan *out);
void gw_store_plan_free(struct gw_store_plan *plan); /* a zeroed one is allowed */

/* Makes the writer store the features so: gw_writer_store for each. */
gw_status gw_store_plan_apply(const struct gw_store_plan *plan, struct gw_writer *writer);

#endif
