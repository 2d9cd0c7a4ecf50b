/* See seed_lists.h. */
#include "client/batch/seed_lists.h"

#include <string.h>

static uint64_t seed_bound(const struct gw_client *client, const struct gw_sample_spec *spec, uint32_t number,
			   uint32_t type)
{
	return spec->edges ? gw_edge_seeds_bound(client->meta, &spec->edges[number]) : client->ntypes[type].count;
}

static gw_status check_seed_list(const struct gw_seeds *list, const char *type, uint64_t bound)
{
	for (uint64_t i = 0; list->ids && i < list->count; i++) {
		if ((uint64_t)list->ids[i] >= bound)
			return gw_fail(GW_RANGE, "seed %lld at position %llu: %s has ids 0 to %lld",
				       (long long)list->ids[i], (unsigned long long)i, type, (long long)bound - 1);
	}
	if (!list->ids && (list->times || list->times_from) && list->count != bound)
		return gw_fail(GW_INVALID, "%llu times for all %llu seeds of %s: give one for each",
			       (unsigned long long)list->count, (unsigned long long)bound, type);
	return GW_OK;
}

gw_status gw_seed_lists_check(const struct gw_client *client, const struct gw_sample_spec *spec,
			      const struct gw_seeds *lists, uint32_t count)
{
	const struct gw_type_info *infos = spec->edges ? client->etypes : client->ntypes;
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < count && status == GW_OK; i++)
		status = check_seed_list(&lists[i], infos[lists[i].type].name,
					 seed_bound(client, spec, i, lists[i].type));
	return status;
}

/* Copies n elements of 8 bytes to *at, and moves *at behind them. NULL stays NULL. */
static const void *take_array(const void *from, uint64_t n, int64_t **at)
{
	int64_t *to = *at;
	if (from && n)
		memcpy(to, from, n * sizeof(*to));
	*at += from ? n : 0;
	return from ? to : NULL;
}

gw_status gw_seed_lists_take(struct gw_seed_lists *seeds, const struct gw_client *client,
			     const struct gw_sample_spec *spec, const struct gw_seeds *lists, uint32_t count)
{
	uint64_t ids = 0, times = 0;
	for (uint32_t i = 0; i < count; i++) {
		ids += lists[i].ids ? lists[i].count : 0;
		times += (lists[i].times ? lists[i].count : 0) + (lists[i].times_from ? lists[i].count : 0);
	}
	/* One element more, so that an empty list is not NULL. */
	if (gw_vec_reserve(&seeds->lists, count * sizeof(*lists)) != GW_OK ||
	    gw_vec_reserve(&seeds->ids, (ids + 1) * sizeof(int64_t)) != GW_OK ||
	    gw_vec_reserve(&seeds->times, (times + 1) * sizeof(int64_t)) != GW_OK)
		return GW_NO_MEMORY;
	struct gw_seeds *copies = seeds->lists.data;
	int64_t *id = seeds->ids.data, *time = seeds->times.data;
	for (uint32_t i = 0; i < count; i++) {
		const struct gw_seeds *from = &lists[i];
		uint64_t n = from->ids ? from->count : seed_bound(client, spec, i, from->type);
		copies[i] = (struct gw_seeds){.type = from->type, .count = n};
		copies[i].ids = take_array(from->ids, n, &id);
		copies[i].times = take_array(from->times, n, &time);
		copies[i].times_from = take_array(from->times_from, n, &time);
		seeds->has_times[0] |= copies[i].times != NULL;
		seeds->has_times[1] |= copies[i].times_from != NULL;
		seeds->total += n;
	}
	seeds->count = count;
	return GW_OK;
}

void gw_seed_lists_free(struct gw_seed_lists *seeds)
{
	gw_vec_free(&seeds->lists);
	gw_vec_free(&seeds->ids);
	gw_vec_free(&seeds->times);
}

static void fill_seed(struct gw_batch *batch, uint64_t to, const struct gw_seeds *list, uint64_t at)
{
	((int64_t *)batch->seeds.data)[to] = list->ids ? list->ids[at] : (int64_t)at;
	if (list->times)
		((int64_t *)batch->times[0].data)[to] = ((const int64_t *)list->times)[at];
	if (list->times_from)
		((int64_t *)batch->times[1].data)[to] = ((const int64_t *)list->times_from)[at];
}

gw_status gw_seed_lists_fill(const struct gw_seed_lists *seeds, struct gw_batch *batch, const uint64_t *places,
			     uint64_t n)
{
	const struct gw_seeds *from = seeds->lists.data;
	struct gw_seeds *to = batch->lists.data;
	gw_status status = gw_vec_reserve(&batch->seeds, n * sizeof(int64_t));
	for (uint32_t k = 0; k < 2 && status == GW_OK; k++) {
		batch->has_times[k] = seeds->has_times[k];
		if (seeds->has_times[k])
			status = gw_vec_reserve(&batch->times[k], n * sizeof(int64_t));
	}
	uint64_t first = 0, at = 0;
	for (uint32_t l = 0; l < seeds->count && status == GW_OK; l++) {
		uint64_t before = at;
		for (uint64_t i = 0; i < n; i++) {
			if (places[i] >= first && places[i] - first < from[l].count)
				fill_seed(batch, at++, &from[l], places[i] - first);
		}
		to[l].count = at - before;
		first += from[l].count;
	}
	return status;
}
