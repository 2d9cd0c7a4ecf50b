/* Times of edges from files of --edge-time: int64 for each edge, in the order of the edges. The lists of the graph are
 * sorted by them, as by those of --time. Errors: an edge type that does not exist, a type or a number of rows that does
 * not fit, two times of one type. */

#include "tools/import/import.h"
#include "tools/import/words.h"

static gw_status times_open(struct gw_import *im, const struct gw_import_word *word)
{
	struct gw_import_parts parts;
	struct gw_import_set *set;
	const struct gw_npy_file *array;
	gw_status status = gw_import_word_split(word->text, 3, &parts);
	if (status == GW_OK)
		status = gw_context(gw_import_set_of(im, &parts, "SRC:REL:DST=FILE", &set), "--edge-time");
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
