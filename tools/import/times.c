/* Times of edges.
 *
 *   --time: a word -> the features that it names, which the builder sorts by (tools/times.h), or a column that becomes
 *   the feature "time"
 *   --edge-time: an array of int64, one for each edge in the order of the edges -> the feature "time"
 *
 * The lists of the graph are sorted by them. A feature comes before a column of the same name. A word without a type
 * means all types with such a feature; if no type has one, it is a column of all inputs. Errors: an edge type that does
 * not exist, a type or a number of rows that does not fit, two times of one type.
 */
#include <stdio.h>
#include <string.h>

#include "tools/import/import.h"
#include "tools/import/words.h"
#include "tools/weights.h"

/* Whether a type of nodes gets a feature that the word means. */
static bool has_node_feature(const struct gw_import *im, const char *name)
{
	for (uint32_t i = 0; i < im->options->num_words; i++) {
		const struct gw_import_word *word = &im->options->words[i];
		struct gw_import_parts parts;
		if ((word->kind == GW_IMPORT_NODE_FEATURE || word->kind == GW_IMPORT_NODE_COLUMN) &&
		    gw_import_word_split(word->text, 1, &parts) == GW_OK && parts.count > 0 &&
		    gw_time_word_means(name, parts.names[parts.count - 1]))
			return true;
	}
	for (uint32_t i = 0; i < im->num_features; i++) { /* of a chunked graph */
		if (!im->features[i].edge && gw_time_word_means(name, im->features[i].name))
			return true;
	}
	return false;
}

static gw_status set_time_column(struct gw_import_set *set, const char *column)
{
	return gw_import_set_column(set, &set->time_column, column, "time", "a feature of edges or nodes");
}

static gw_status add_time_word(struct gw_import *im, const char *text)
{
	gw_status status = gw_time_word_check(text);
	if (status == GW_OK && im->num_times == GW_TIME_WORDS_MAX)
		status = gw_fail(GW_LIMIT, "more than %u", GW_TIME_WORDS_MAX);
	if (status == GW_OK)
		im->times[im->num_times++] = text;
	return status;
}

static gw_status plan_time(struct gw_import *im, const char *text)
{
	char etype[GW_IMPORT_ETYPE_MAX];
	bool found = has_node_feature(im, text);
	for (uint32_t s = 0; s < im->num_sets; s++) {
		const struct gw_import_set *set = &im->sets[s];
		gw_import_etype_text(im, set, etype);
		const char *name = gw_weight_name_in(text, etype);
		if (name && !gw_import_has_feature(im, s, name) && !has_node_feature(im, name))
			return set_time_column(&im->sets[s], name);
		found |= gw_import_has_feature(im, s, text);
	}
	if (found || gw_weight_is_typed(text))
		return add_time_word(im, text);
	gw_status status = GW_OK;
	for (uint32_t s = 0; s < im->num_sets && status == GW_OK; s++)
		status = set_time_column(&im->sets[s], text);
	return status;
}

gw_status gw_import_plan_times(struct gw_import *im)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < im->options->num_words && status == GW_OK; i++) {
		if (im->options->words[i].kind == GW_IMPORT_TIME)
			status = plan_time(im, im->options->words[i].text);
	}
	return status == GW_OK ? GW_OK : gw_context(status, "--time");
}

static gw_status times_open(struct gw_import *im, const struct gw_import_word *word)
{
	struct gw_import_parts parts;
	struct gw_import_set *set;
	const struct gw_npy_file *array;
	gw_status status = gw_import_word_split(word->text, 3, &parts);
	if (status == GW_OK)
		status = gw_context(gw_import_set_of(im, &parts, "SRC:REL:DST=FILE", &set), "--edge-time");
	if (status == GW_OK && (set->time_column || set->given_times))
		status = gw_fail(GW_INVALID, "edge type %s has two times", set->rel);
	if (status == GW_OK)
		status = gw_import_array(im, parts.value, &array);
	if (status != GW_OK)
		return status;
	if (array->npy.ndim != 1 || array->npy.dtype != GW_INT64)
		return gw_fail(GW_FORMAT,
			       "%s: times are int64, one for each edge; others are features: --edge-feature and --time",
			       parts.value);
	if (array->npy.shape[0] != set->rows)
		return gw_fail(GW_FORMAT, "%s: %llu times, but there are %llu input edges", parts.value,
			       (unsigned long long)array->npy.shape[0], (unsigned long long)set->rows);
	set->given_times = array->data;
	set->time_unit = array->npy.unit;
	return GW_OK;
}

gw_status gw_import_times(struct gw_import *im)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < im->options->num_words && status == GW_OK; i++) {
		if (im->options->words[i].kind == GW_IMPORT_EDGE_TIME)
			status = times_open(im, &im->options->words[i]);
	}
	return status;
}
