/* The table of columns, and what a rule names: see columns.h. */
#include "sampler/columns.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A column that rules name has the name of its member of gw_edge_rule. A derived column is made of the feature of
 * column `of`; the key of its array ends in the suffix. */
static const struct {
	const char *name;
	size_t member;
	enum gw_column of;
	const char *suffix;
	const char *what, *option; /* of a derived column: what it is, and the option of "graphwire partition" for it */
} rows[GW_COLUMN_COUNT] = {
	[GW_COLUMN_ALIAS] = {.of = GW_COLUMN_WEIGHT, .suffix = ".alias", .what = "alias table", .option = "--weight"},
	[GW_COLUMN_WEIGHT] = {.name = "weight",
			      .member = offsetof(struct gw_edge_rule, weight),
			      .of = GW_COLUMN_WEIGHT,
			      .suffix = ""},
	[GW_COLUMN_MASK] = {.name = "mask",
			    .member = offsetof(struct gw_edge_rule, mask),
			    .of = GW_COLUMN_MASK,
			    .suffix = ""},
	[GW_COLUMN_TIME] = {.name = "time",
			    .member = offsetof(struct gw_edge_rule, time),
			    .of = GW_COLUMN_TIME,
			    .suffix = ""},
	[GW_COLUMN_IDS] = {.of = GW_COLUMN_IDS}, /* of every list */
	[GW_COLUMN_FENCE] = {.of = GW_COLUMN_TIME,
			     .suffix = GW_TIME_FENCE_TAIL,
			     .what = "fence of times",
			     .option = "--time"},
	[GW_COLUMN_END] = {.name = "end",
			   .member = offsetof(struct gw_edge_rule, end),
			   .of = GW_COLUMN_END,
			   .suffix = ""},
};

struct gw_column_names gw_column_names_of(const struct gw_graph_meta *meta, uint32_t etype,
					  const struct gw_edge_rule *rule)
{
	struct gw_column_names names = {.meta = meta, .etype = etype, .pick = rule->pick};
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
		if (rows[c].name)
			memcpy(&names.of[c], (const char *)rule + rows[c].member, sizeof(names.of[c]));
	}
	return names;
}

struct gw_edge_rule gw_column_names_rule(const struct gw_column_names *names)
{
	struct gw_edge_rule rule = {.pick = names->pick};
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
		if (rows[c].name)
			memcpy((char *)&rule + rows[c].member, &names->of[c], sizeof(names->of[c]));
	}
	return rule;
}

gw_status gw_column_names_check(const struct gw_column_names *names)
{
	char type[GW_EDGE_FOLDER_MAX + 1];
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
		if (names->of[c] && (!*names->of[c] || strlen(names->of[c]) > GW_COLUMN_NAME_MAX))
			return gw_fail(GW_INVALID, "edge type %s: the rule's %s names no feature",
				       gw_meta_etype_text(names->meta, names->etype, type), rows[c].name);
	}
	return GW_OK;
}

uint32_t gw_column_names_bits(const struct gw_column_names *names)
{
	uint32_t bits = 0;
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++)
		bits |= names->of[c] ? GW_COLUMN_BIT(c) : 0;
	return bits;
}

uint32_t gw_columns_nameable(void)
{
	uint32_t bits = 0;
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++)
		bits |= rows[c].name ? GW_COLUMN_BIT(c) : 0;
	return bits;
}

const char *gw_column_name(enum gw_column column)
{
	return rows[column].name;
}

const char *gw_column_names_text(const struct gw_column_names *names, const char *what, char text[GW_COLUMN_NAMES_TEXT])
{
	size_t at = 0;
	text[0] = 0;
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
		if (names->of[c])
			at += (size_t)snprintf(text + at, GW_COLUMN_NAMES_TEXT - at, "%s%s \"%.*s\"", at ? ", " : "",
					       what ? what : rows[c].name, (int)GW_COLUMN_NAME_MAX, names->of[c]);
	}
	return text;
}

/* Whether the lists of the edge type are sorted by this feature, and arrays of older names are no fences. */
static bool sorted_by(const struct gw_column_names *names, const char *name)
{
	const struct gw_edge_type *type = &names->meta->etypes[names->etype];
	return names->meta->minor >= GW_FORMAT_MINOR_TIMES && type->order == GW_ORDER_TIME_SRC &&
	       strcmp(type->time_name, name) == 0;
}

const char *gw_column_key(const struct gw_column_names *names, enum gw_column column, char key[GW_COLUMN_KEY_MAX])
{
	const char *name = names->of[rows[column].of];
	if (!name || (column == GW_COLUMN_FENCE && !sorted_by(names, name)))
		return NULL;
	snprintf(key, GW_COLUMN_KEY_MAX, "edge/%s/%s%s", names->meta->etypes[names->etype].folder, name,
		 rows[column].suffix);
	return key;
}

gw_status gw_column_forms(const struct gw_column_names *names, const struct gw_sampling_kind *kind,
			  const struct gw_array_meta *const arrays[GW_COLUMN_COUNT],
			  struct gw_column_form forms[GW_COLUMN_COUNT])
{
	struct gw_draw draw = {.kind = kind};
	char type[GW_EDGE_FOLDER_MAX + 1], text[GW_COLUMN_NAMES_TEXT];
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
		if (names->of[c] && !arrays[c])
			return gw_fail(GW_NOT_FOUND, "edge type %s has no feature \"%s\" to draw its edges by",
				       gw_meta_etype_text(names->meta, names->etype, type), names->of[c]);
		if (arrays[c])
			forms[c] = draw.forms[c] = (struct gw_column_form){
				.entry_bytes = (uint32_t)gw_array_meta_row_bytes(arrays[c]), .dtype = arrays[c]->dtype};
	}
	gw_status status = gw_draw_check(&draw);
	return status == GW_OK
		       ? GW_OK
		       : gw_context(status, "edge type %s, %s", gw_meta_etype_text(names->meta, names->etype, type),
				    gw_column_names_text(names, "feature", text));
}

gw_status gw_column_fail_mutable(const struct gw_column_names *names, enum gw_column column)
{
	char type[GW_EDGE_FOLDER_MAX + 1];
	return gw_fail(GW_UNSUPPORTED, "edge type %s: \"%s\" is served as mutable rows, so edges cannot be drawn by it",
		       gw_meta_etype_text(names->meta, names->etype, type), names->of[rows[column].of]);
}

const char *gw_column_advice(const struct gw_column_names *names, enum gw_column column, char text[GW_COLUMN_ADVICE])
{
	const char *name = names->of[rows[column].of];
	if (!rows[column].what || !name)
		return NULL;
	snprintf(
		text, GW_COLUMN_ADVICE,
		"a draw by \"%s\" reads a whole list, because no %s exists; partition the graph with %s %s to make one",
		name, rows[column].what, rows[column].option, name);
	return text;
}

gw_status gw_column_context(gw_status status, const struct gw_draw *draw, enum gw_column column, uint64_t vertex)
{
	const struct gw_column_names *names = draw->names;
	char type[GW_EDGE_FOLDER_MAX + 1];
	if (!names)
		return gw_context(status, "%ss, in the list of vertex %llu", rows[column].name,
				  (unsigned long long)vertex);
	return gw_context(status, "%s \"%s\" of %s, in the list of vertex %llu", rows[column].name, names->of[column],
			  gw_meta_etype_text(names->meta, names->etype, type), (unsigned long long)vertex);
}
