/* --weight: which edge features get alias tables.
 *
 *   plan: a word -> the features that it names, or a column that becomes the feature "weight"
 *   features: a feature that is a weight -> dtype, shape and values checked -> the builder makes the table
 *
 * A feature comes before a column of the same name. A weight without a type means all edge types with such a feature;
 * if no type has one, it is a column of all inputs.
 */
#include "tools/weights.h"

#include <stdio.h>
#include <string.h>

#include "tools/import/import.h"
#include "tools/import/words.h"

#define ETYPE_TEXT_MAX (3 * (size_t)(GW_NAME_MAX + 1))

static void etype_text(const struct gw_import *im, const struct gw_import_set *set, char text[ETYPE_TEXT_MAX])
{
	snprintf(text, ETYPE_TEXT_MAX, "%s:%s:%s", im->spaces[set->src].name, set->rel, im->spaces[set->dst].name);
}

bool gw_import_is_weight(const struct gw_import *im, uint32_t set, const char *name)
{
	for (uint32_t i = 0; i < im->num_weights; i++) {
		if (im->weights[i].set == set && strcmp(im->weights[i].name, name) == 0)
			return true;
	}
	return false;
}

static bool word_makes_feature(const struct gw_import_word *word, const char *etype, const char *name)
{
	struct gw_import_parts parts;
	char given[ETYPE_TEXT_MAX] = "_N:_E:_N";
	if (word->kind != GW_IMPORT_EDGE_FEATURE && word->kind != GW_IMPORT_EDGE_COLUMN)
		return false;
	if (gw_import_word_split(word->text, 3, &parts) != GW_OK || parts.count == 0 ||
	    strcmp(parts.names[parts.count - 1], name) != 0)
		return false;
	if (word->kind == GW_IMPORT_EDGE_COLUMN)
		return true; /* columns belong to every input */
	if (parts.count == 4)
		snprintf(given, sizeof(given), "%s:%s:%s", parts.names[0], parts.names[1], parts.names[2]);
	return strcmp(given, etype) == 0;
}

bool gw_import_has_feature(const struct gw_import *im, uint32_t set, const char *name)
{
	char etype[ETYPE_TEXT_MAX];
	etype_text(im, &im->sets[set], etype);
	for (uint32_t i = 0; i < im->options->num_words; i++) {
		if (word_makes_feature(&im->options->words[i], etype, name))
			return true;
	}
	for (uint32_t i = 0; i < im->num_features; i++) { /* of a chunked graph */
		const struct gw_import_feature *feature = &im->features[i];
		if (feature->edge && feature->owner == set && strcmp(feature->name, name) == 0)
			return true;
	}
	return false;
}

static gw_status add_weight(struct gw_import *im, uint32_t set, const char *name)
{
	if (gw_import_is_weight(im, set, name))
		return GW_OK;
	gw_status status = gw_weight_name_check(name);
	if (status != GW_OK)
		return status;
	status = gw_import_grow((void **)&im->weights, im->num_weights, &im->weights_room, sizeof(*im->weights));
	if (status != GW_OK)
		return status;
	struct gw_import_weight *weight = &im->weights[im->num_weights++];
	weight->set = set;
	snprintf(weight->name, sizeof(weight->name), "%s", name); /* the name of a feature, so it fits */
	return GW_OK;
}

gw_status gw_import_column_possible(const struct gw_import_set *set, const char *column, const char *what)
{
	for (uint32_t f = 0; f < set->num_files; f++) {
		if (set->files[f].format != GW_FROM_TEXT)
			return gw_fail(GW_INVALID,
				       "%s: \"%s\" is not %s (NAME or SRC:REL:DST:NAME), "
				       "and only text has columns: pass arrays with --edge-feature",
				       set->files[f].path, column, what);
	}
	return GW_OK;
}

/* A column becomes the feature "weight", so an edge type can have one. */
static gw_status set_column(struct gw_import_set *set, const char *column)
{
	gw_status status = gw_import_column_possible(set, column, "an edge feature");
	if (status != GW_OK)
		return status;
	if (set->weight_column && strcmp(set->weight_column, column) != 0)
		return gw_fail(
			GW_INVALID,
			"columns %s and %s would both become the feature \"weight\": name each with --edge-column "
			"NAME=COLUMN, and then --weight NAME",
			set->weight_column, column);
	set->weight_column = column;
	return GW_OK;
}

static gw_status plan_weight(struct gw_import *im, const char *text)
{
	char etype[ETYPE_TEXT_MAX];
	uint32_t found = 0;
	gw_status status = GW_OK;
	for (uint32_t s = 0; s < im->num_sets; s++) {
		etype_text(im, &im->sets[s], etype);
		const char *name = gw_weight_name_in(text, etype);
		if (name)
			return gw_import_has_feature(im, s, name) ? add_weight(im, s, name)
								  : set_column(&im->sets[s], name);
	}
	for (uint32_t s = 0; s < im->num_sets && status == GW_OK; s++) {
		if (!gw_import_has_feature(im, s, text))
			continue;
		status = add_weight(im, s, text);
		found++;
	}
	for (uint32_t s = 0; s < im->num_sets && status == GW_OK && !found; s++)
		status = set_column(&im->sets[s], text);
	return status;
}

gw_status gw_import_plan_weights(struct gw_import *im)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < im->options->num_words && status == GW_OK; i++) {
		const struct gw_import_word *word = &im->options->words[i];
		if (word->kind != GW_IMPORT_WEIGHT)
			continue;
		status = plan_weight(im, word->text);
		if (status != GW_OK)
			status = gw_context(status, "--weight");
	}
	return status;
}

gw_status gw_import_weight_check(const struct gw_import *im, const struct gw_import_feature *feature,
				 const struct gw_builder_array *array)
{
	char text[GW_WEIGHT_TEXT_MAX];
	const char *path = feature->source;
	gw_status status = gw_weight_form_check(array->dtype, array->ndim, array->shape);
	if (status != GW_OK)
		return gw_context(status, "%s: feature \"%s\"", path, feature->name);
	uint64_t first = 0, row = gw_weight_first_fault(array->dtype, array->data, array->shape[0], im->threads, text);
	if (row == GW_NONE)
		return GW_OK;
	for (uint32_t i = 0; i < feature->num_chunks && feature->chunks[i].first_row <= row; i++) {
		path = feature->chunks[i].path;
		first = feature->chunks[i].first_row;
	}
	return gw_fail(GW_RANGE, "%s, row %llu: weight \"%s\" is %s: " GW_WEIGHT_RULE, path,
		       (unsigned long long)(row - first), feature->name, text);
}
