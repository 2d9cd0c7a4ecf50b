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

bool gw_import_is_weight(const struct gw_import *im, uint32_t set, const char *name)
{
	for (uint32_t i = 0; i < im->num_weights; i++) {
		if (im->weights[i].set == set && strcmp(im->weights[i].name, name) == 0)
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

static gw_status set_weight_column(struct gw_import_set *set, const char *column)
{
	return gw_import_set_column(set, &set->weight_column, column, "weight", "an edge feature");
}

static gw_status plan_weight(struct gw_import *im, const char *text)
{
	char etype[GW_IMPORT_ETYPE_MAX];
	uint32_t found = 0;
	gw_status status = GW_OK;
	for (uint32_t s = 0; s < im->num_sets; s++) {
		gw_import_etype_text(im, &im->sets[s], etype);
		const char *name = gw_weight_name_in(text, etype);
		if (name)
			return gw_import_has_feature(im, s, name) ? add_weight(im, s, name)
								  : set_weight_column(&im->sets[s], name);
	}
	for (uint32_t s = 0; s < im->num_sets && status == GW_OK; s++) {
		if (!gw_import_has_feature(im, s, text))
			continue;
		status = add_weight(im, s, text);
		found++;
	}
	for (uint32_t s = 0; s < im->num_sets && status == GW_OK && !found; s++)
		status = set_weight_column(&im->sets[s], text);
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
