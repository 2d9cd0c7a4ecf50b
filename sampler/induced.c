/* See induced.h. A look-up reads one bucket, which has one source on average. Ids that a peer has chosen may share
 * buckets; a bucket is bisected, so that they cost no more than a bisection of the set. */
#include "sampler/induced.h"

#include "sampler/lookup.h"

#define BISECT_WORK 16u /* the cost of a bisection, in positions */

/* --- The set. --- */

gw_status gw_source_set_fill(struct gw_source_set *set, const uint64_t *ids, uint32_t count)
{
	uint64_t span = ids[count - 1] - ids[0];
	uint32_t shift = 0;
	while (span >> shift >= count)
		shift++;
	uint32_t buckets = (uint32_t)(span >> shift) + 1;
	if (gw_vec_reserve(&set->buckets, ((size_t)buckets + 1) * sizeof(uint32_t)) != GW_OK)
		return GW_NO_MEMORY;
	uint32_t *starts = set->buckets.data, bucket = 0;
	starts[0] = 0;
	for (uint32_t i = 0; i < count; i++) {
		while (bucket < (ids[i] - ids[0]) >> shift)
			starts[++bucket] = i;
	}
	starts[buckets] = count;
	set->ids = ids;
	set->count = count;
	set->shift = shift;
	return GW_OK;
}

void gw_source_set_free(struct gw_source_set *set)
{
	gw_vec_free(&set->buckets);
}

/* The place of the first source that is not below the id; count, if no such source exists. */
static uint32_t lower_place(const struct gw_source_set *set, uint64_t id)
{
	const uint64_t *ids = set->ids;
	if (id <= ids[0])
		return 0;
	if (id > ids[set->count - 1])
		return set->count;
	uint64_t bucket = (id - ids[0]) >> set->shift;
	uint32_t low = ((const uint32_t *)set->buckets.data)[bucket];
	uint32_t high = ((const uint32_t *)set->buckets.data)[bucket + 1];
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (ids[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool source_set_find(const struct gw_source_set *set, uint64_t id, uint32_t *place)
{
	*place = lower_place(set, id);
	return *place < set->count && set->ids[*place] == id;
}

/* --- The list. --- */

static uint64_t induced_source(const struct gw_induced *induced, uint64_t position)
{
	return gw_load_id(induced->lists->indices, induced->lists->index_bytes, position);
}

gw_status gw_induced_begin(struct gw_induced *induced, const struct gw_adjacency *lists, enum gw_list_order order,
			   uint64_t row, const struct gw_source_set *set, uint64_t from)
{
	*induced = (struct gw_induced){.lists = lists};
	gw_status status = gw_lookup_list(lists, row, from, &induced->at, &induced->end);
	if (status != GW_OK)
		return status;
	induced->by_source = order == GW_ORDER_SRC && (induced->end - induced->at) / BISECT_WORK > set->count;
	if (induced->by_source)
		induced->next = lower_place(set, induced_source(induced, induced->at));
	return GW_OK;
}

static bool next_by_entry(struct gw_induced *induced, const struct gw_source_set *set, uint64_t *budget,
			  uint64_t *position, uint32_t *place)
{
	while (*budget > 0 && induced->at < induced->end) {
		uint64_t at = induced->at++;
		--*budget;
		if (source_set_find(set, induced_source(induced, at), place)) {
			*position = at;
			return true;
		}
	}
	return false;
}

static bool next_by_source(struct gw_induced *induced, const struct gw_source_set *set, uint64_t *budget,
			   uint64_t *position, uint32_t *place)
{
	for (; induced->next < set->count; induced->next++) {
		if (!*budget)
			return false;
		if (induced->at < induced->end && induced_source(induced, induced->at) == set->ids[induced->next]) {
			--*budget;
			*place = induced->next;
			*position = induced->at++;
			return true;
		}
		*budget -= *budget < BISECT_WORK ? *budget : BISECT_WORK;
		induced->at = gw_lookup_source(induced->lists, induced->at, induced->end, set->ids[induced->next]);
		if (induced->at == induced->end)
			return false;
		if (induced_source(induced, induced->at) == set->ids[induced->next]) {
			*place = induced->next;
			*position = induced->at++;
			return true;
		}
	}
	induced->at = induced->end;
	return false;
}

bool gw_induced_next(struct gw_induced *induced, const struct gw_source_set *set, uint64_t *budget, uint64_t *position,
		     uint32_t *place)
{
	return induced->by_source ? next_by_source(induced, set, budget, position, place)
				  : next_by_entry(induced, set, budget, position, place);
}
