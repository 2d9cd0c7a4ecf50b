/* Times of edges from files of --edge-time: int64 for each edge, in the order of the edges. The lists of the graph are
 * sorted by them, as by those of --time. Errors: an edge type that does not exist, a type or a number of rows that does
 * not fit, two times of one type. */
#include <string.h>

#include "tools/import/import.h"
#include "tools/import/words.h"

static gw_status times_find_set(const struct gw_import *im, const struct gw_import_parts *parts,
				struct gw_import_set **out)
{
	const char *src = parts->count ? parts->names[0] : "_N", *rel = parts->count ? parts->names[1] : "_E";
	const char *dst = parts->count ? parts->names[2] : "_N";
	for (uint32_t i = 0; i < im->num_sets; i++) {
		struct gw_import_set *set = &im->sets[i];
		if (strcmp(im->spaces[set->src].name, src) == 0 && strcmp(set->rel, rel) == 0 &&
		    strcmp(im->spaces[set->dst].name, dst) == 0) {
			*out = set;
			return GW_OK;
		}
	}
	return gw_fail(GW_NOT_FOUND, "--edge-time: edge type %s:%s:%s does not exist: write SRC:REL:DST=FILE", src, rel,
		       dst);
}

static gw_status times_open(struct gw_import *im, const struct gw_import_word *word)
{
	struct gw_import_parts parts;
	struct gw_import_set *set;
	const struct gw_npy_file *array;
	gw_status status = gw_import_word_split(word->text, 3, &parts);
	if (status == GW_OK)
		status = times_find_set(im, &parts, &set);
	if (status == GW_OK && (set->times || set->given_times))
		status = gw_fail(GW_INVALID, "edge type %s has two times", set->rel);
	if (status == GW_OK)
		status = gw_import_array(im, parts.value, &array);
	if (status != GW_OK)
		return status;
	if (array->npy.ndim != 1 || array->npy.dtype != GW_INT64)
		return gw_fail(GW_FORMAT, "%s: times are int64, one for each edge", parts.value);
	if (array->npy.shape[0] != set->rows)
		return gw_fail(GW_FORMAT, "%s: %llu times, but there are %llu input edges", parts.value,
			       (unsigned long long)array->npy.shape[0], (unsigned long long)set->rows);
	set->given_times = array->data;
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
