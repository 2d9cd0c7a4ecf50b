/* Makes masks of whole numbers: flags, 0 or 1 for each row, or a list of ids. Errors name the file, the mask and the
 * element. */
#include "tools/import/masks.h"

#include <stdlib.h>
#include <string.h>

static gw_status mask_numbers(struct gw_import *im, const struct gw_import_feature *feature, uint64_t rows,
			      uint64_t **numbers, uint64_t *count, bool *flags)
{
	const struct gw_npy *npy = &feature->array->npy;
	gw_status status = GW_OK;
	*count = npy->shape[0];
	*numbers = gw_import_take(im, *count, 8, &status);
	if (status == GW_OK)
		status = gw_import_whole(npy, feature->array->data, 0, 1, *count, feature->name, im->threads, *numbers);
	if (status != GW_OK)
		return gw_context(status, "%s", feature->source);
	*flags = *count == rows;
	for (uint64_t i = 0; i < *count && *flags; i++)
		*flags = (*numbers)[i] <= 1;
	return GW_OK;
}

static struct gw_builder_array mask_array(const struct gw_import_feature *feature, uint64_t rows, const uint8_t *mask)
{
	return (struct gw_builder_array){
		.name = feature->name, .dtype = GW_BOOL, .ndim = 1, .shape = {rows}, .data = mask};
}

gw_status gw_import_mask_of_flags(struct gw_import *im, const struct gw_import_feature *feature, uint64_t rows,
				  struct gw_builder_array *array)
{
	uint64_t *numbers = NULL, count = 0;
	bool flags = false;
	gw_status status = mask_numbers(im, feature, rows, &numbers, &count, &flags);
	if (status != GW_OK)
		return status;
	if (!flags)
		return gw_fail(GW_FORMAT, "%s: mask \"%s\" of %llu rows is not a 0 or 1 for each of the %llu",
			       feature->source, feature->name, (unsigned long long)count, (unsigned long long)rows);
	uint8_t *mask = gw_import_take(im, rows, 1, &status);
	for (uint64_t i = 0; i < rows && status == GW_OK; i++)
		mask[i] = (uint8_t)numbers[i];
	*array = mask_array(feature, rows, mask);
	return status;
}

struct id_number {
	uint64_t id, number;
};

static int compare_id_numbers(const void *a, const void *b)
{
	uint64_t x = ((const struct id_number *)a)->id, y = ((const struct id_number *)b)->id;
	return (x > y) - (x < y);
}

static gw_status number_ids_by_list(struct gw_import *im, const struct gw_import_space *space,
				    const struct gw_import_feature *feature, uint64_t *ids, uint64_t count)
{
	gw_status status = GW_OK;
	struct id_number *sorted = gw_import_take(im, space->count, sizeof(*sorted), &status);
	if (status != GW_OK)
		return status;
	for (uint64_t i = 0; i < space->count; i++)
		sorted[i] = (struct id_number){.id = space->values[i], .number = i};
	qsort(sorted, space->count, sizeof(*sorted), compare_id_numbers);
	for (uint64_t i = 0; i < count; i++) {
		const struct id_number wanted = {.id = ids[i]};
		const struct id_number *found =
			bsearch(&wanted, sorted, space->count, sizeof(*sorted), compare_id_numbers);
		if (!found)
			return gw_fail(GW_RANGE, "%s: \"%s\": element %llu is node %llu, which is not in %s",
				       feature->source, feature->name, (unsigned long long)i,
				       (unsigned long long)ids[i], space->list_path);
		ids[i] = found->number;
	}
	return GW_OK;
}

gw_status gw_import_mask_of_ids(struct gw_import *im, const struct gw_import_space *space,
				const struct gw_import_feature *feature, struct gw_builder_array *array, bool *by_id)
{
	uint64_t *ids = NULL, count = 0;
	bool flags = false;
	gw_status status = mask_numbers(im, feature, space->count, &ids, &count, &flags);
	if (status != GW_OK)
		return status;
	if (space->values && !space->list)
		return gw_fail(GW_UNSUPPORTED,
			       "%s: \"%s\" lists input ids, which were renumbered: pass a mask of bools, "
			       "or the ids with --nodes",
			       feature->source, feature->name);
	if (!flags && space->base)
		return gw_fail(GW_UNSUPPORTED, "%s: \"%s\" lists ids, which count from %u in %s: pass a mask of bools",
			       feature->source, feature->name, space->base, space->base_path);
	*by_id = !flags;
	if (!flags && space->values)
		status = number_ids_by_list(im, space, feature, ids, count);
	uint8_t *mask = gw_import_take(im, space->count, 1, &status);
	if (status != GW_OK)
		return status;
	memset(mask, 0, space->count);
	for (uint64_t i = 0; i < count; i++) {
		if (flags) {
			mask[i] = (uint8_t)ids[i];
			continue;
		}
		if (ids[i] >= space->count)
			return gw_fail(GW_RANGE, "%s: \"%s\": element %llu is node %llu, but only %llu exist",
				       feature->source, feature->name, (unsigned long long)i,
				       (unsigned long long)ids[i], (unsigned long long)space->count);
		if (mask[ids[i]]) /* most likely flags for another number of nodes */
			return gw_fail(GW_FORMAT,
				       "%s: \"%s\": element %llu repeats node %llu: a mask is a list of ids, "
				       "or 0 or 1 for each of the %llu nodes",
				       feature->source, feature->name, (unsigned long long)i,
				       (unsigned long long)ids[i], (unsigned long long)space->count);
		mask[ids[i]] = 1;
	}
	*array = mask_array(feature, space->count, mask);
	return GW_OK;
}
