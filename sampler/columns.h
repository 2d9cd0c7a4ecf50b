/* The columns of a rule: which features it names, in which arrays of a part they are stored, and their forms.
 *
 *   rule {weight: "w"} ─▶ names ─▶ kind (draw.h) ─▶ keys of its columns: edge/FOLDER/w, edge/FOLDER/w.alias ─▶ forms
 *
 * The client and the server take the same steps. A column is a row of the table in columns.c.
 */
#ifndef GW_SAMPLER_COLUMNS_H
#define GW_SAMPLER_COLUMNS_H

#include <graphwire/edges.h>

#include "core/graph/meta.h"
#include "sampler/draw.h"

/* The longest name of a feature in a rule: a time may be NAME.source. */
#define GW_COLUMN_NAME_MAX (GW_NAME_MAX + sizeof(GW_TIME_SOURCE_TAIL) - 1)

/* The features that a rule names, by column. */
struct gw_column_names {
	const struct gw_graph_meta *meta;
	uint32_t etype;
	const char *of[GW_COLUMN_COUNT]; /* NULL: the rule does not name one. Not copied */
	enum gw_edge_pick pick;
};

/* What a rule names, and the rule again. */
struct gw_column_names gw_column_names_of(const struct gw_graph_meta *meta, uint32_t etype,
					  const struct gw_edge_rule *rule);
struct gw_edge_rule gw_column_names_rule(const struct gw_column_names *names);

/* GW_INVALID: a name is empty or too long. */
gw_status gw_column_names_check(const struct gw_column_names *names);

/* The columns that are named, as GW_COLUMN_BITs. 0: uniform sampling. */
uint32_t gw_column_names_bits(const struct gw_column_names *names);

/* The columns that rules can name, as GW_COLUMN_BITs. Rules do not name derived columns, or the neighbours' ids. */
uint32_t gw_columns_nameable(void);

/* The name of a column in a rule: "weight"; NULL: rules cannot name it. */
const char *gw_column_name(enum gw_column column);

/* Each column with its feature, for error texts: weight "w", time "t". what: a word instead of the column's name, or
 * NULL. */
#define GW_COLUMN_NAMES_TEXT ((size_t)GW_COLUMN_COUNT * (GW_COLUMN_NAME_MAX + 16))
const char *gw_column_names_text(const struct gw_column_names *names, const char *what,
				 char text[GW_COLUMN_NAMES_TEXT]);

/* The key of the array in which a column is stored; NULL: the rule names no feature for it, or the lists are not sorted
 * by the time of a fence. */
#define GW_COLUMN_KEY_MAX (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32)
const char *gw_column_key(const struct gw_column_names *names, enum gw_column column, char key[GW_COLUMN_KEY_MAX]);

/* The forms of the columns that a kind draws with. arrays: by column; NULL: the graph does not have the array.
 * GW_NOT_FOUND: the edge type does not have a named feature; GW_UNSUPPORTED: the kind cannot draw with its values. */
gw_status gw_column_forms(const struct gw_column_names *names, const struct gw_sampling_kind *kind,
			  const struct gw_array_meta *const arrays[GW_COLUMN_COUNT],
			  struct gw_column_form forms[GW_COLUMN_COUNT]);

/* Fails: the feature of a column is served as mutable rows. GW_UNSUPPORTED. */
gw_status gw_column_fail_mutable(const struct gw_column_names *names, enum gw_column column);

/* Why draws read whole lists if the graph does not have this column, and what to do. NULL: the column is not derived
 * from a named feature. */
#define GW_COLUMN_ADVICE (2 * GW_COLUMN_NAME_MAX + 192)
const char *gw_column_advice(const struct gw_column_names *names, enum gw_column column, char text[GW_COLUMN_ADVICE]);

/* Adds to an error text that a column's entries in the list of a vertex are the cause. Returns the status. */
gw_status gw_column_context(gw_status status, const struct gw_draw *draw, enum gw_column column, uint64_t vertex);

#endif
