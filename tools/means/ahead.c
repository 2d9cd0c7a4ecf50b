/* What a loader fetches with look-ahead and kept rows: its own counts and its own choice (client/batch/kept_rows.h),
 * over the lists of batches that were sampled before.
 *
 * A loader has counts for each fetch. Features of one type are fetched for the same nodes, so here their fetches share
 * the counts. */
#include <string.h>

#include "core/memory/alloc.h"
#include "tools/means/means.h"

struct gw_means_ahead {
	const struct gw_means_graph *graph;
	struct gw_kept *kept, **all; /* [fetch_count] */
	struct gw_vec positions;     /* uint32_t: of a batch's nodes that no replica has */
	struct gw_vec fetched;       /* uint64_t [batches][ntypes]: rows that a batch fetches */
	uint64_t batches;
	uint32_t lookahead;
};

gw_status gw_means_ahead_create(const struct gw_means_graph *graph, struct gw_means_ahead **out)
{
	struct gw_means_ahead *ahead = gw_calloc(1, sizeof(*ahead));
	*out = ahead;
	if (!ahead)
		return GW_NO_MEMORY;
	ahead->graph = graph;
	ahead->kept = gw_calloc(graph->fetch_count, sizeof(*ahead->kept));
	ahead->all = gw_calloc(graph->fetch_count, sizeof(struct gw_kept *));
	if (!ahead->kept || !ahead->all)
		return GW_NO_MEMORY;
	for (uint32_t f = 0; f < graph->fetch_count; f++) {
		ahead->kept[f].ids = graph->hot.meta->ntypes[graph->fetches[f].ntype].count;
		ahead->all[f] = &ahead->kept[f];
	}
	return GW_OK;
}

/* The first fetch of its type has the counts. */
static uint32_t counting_fetch(const struct gw_means_graph *graph, uint32_t fetch)
{
	uint32_t first = 0;
	while (graph->fetches[first].ntype != graph->fetches[fetch].ntype)
		first++;
	return first;
}

static void ahead_end_counts(struct gw_means_ahead *ahead)
{
	for (uint32_t f = 0; f < ahead->graph->fetch_count; f++) {
		if (counting_fetch(ahead->graph, f) == f)
			gw_kept_count_end(&ahead->kept[f]);
		ahead->kept[f].seen = NULL;
	}
}

void gw_means_ahead_free(struct gw_means_ahead *ahead)
{
	if (!ahead)
		return;
	if (ahead->kept)
		ahead_end_counts(ahead);
	gw_free(ahead->kept);
	gw_free(ahead->all);
	gw_vec_free(&ahead->positions);
	gw_vec_free(&ahead->fetched);
	gw_free(ahead);
}

static gw_status count_type(struct gw_means_ahead *ahead, struct gw_kept *kept, const struct gw_means_batches *batches,
			    const struct gw_replica_block *near, uint32_t ntype)
{
	const uint64_t *ends = batches->ends[ntype].data;
	const uint32_t types = ahead->graph->hot.meta->num_ntypes;
	uint64_t first = 0;
	for (uint64_t b = 0; b < batches->count; first = ends[b++]) {
		const int64_t *ids = (const int64_t *)batches->ids[ntype].data + first;
		uint64_t n = 0, row;
		if (gw_vec_reserve(&ahead->positions, (ends[b] - first) * sizeof(uint32_t)) != GW_OK)
			return GW_NO_MEMORY;
		uint32_t *positions = ahead->positions.data;
		for (uint32_t i = 0; i < ends[b] - first; i++) {
			positions[n] = i;
			n += !near || !gw_replica_find(near, (uint64_t)ids[i], &row);
		}
		((uint64_t *)ahead->fetched.data)[b * types + ntype] =
			gw_kept_count(kept, ids, positions, n, (uint32_t)b, ahead->lookahead);
	}
	return GW_OK;
}

gw_status gw_means_ahead_count(struct gw_means_ahead *ahead, const struct gw_means_batches *batches,
			       struct gw_replica_block *const *near, uint32_t lookahead)
{
	const struct gw_means_graph *graph = ahead->graph;
	const size_t fetched = batches->count * graph->hot.meta->num_ntypes * sizeof(uint64_t);
	ahead_end_counts(ahead);
	ahead->batches = batches->count;
	ahead->lookahead = lookahead;
	gw_status status = gw_vec_reserve(&ahead->fetched, fetched);
	if (status == GW_OK && fetched)
		memset(ahead->fetched.data, 0, fetched);
	for (uint32_t f = 0; f < graph->fetch_count && status == GW_OK; f++) {
		const uint32_t first = counting_fetch(graph, f), ntype = graph->fetches[f].ntype;
		if (first != f) {
			ahead->kept[f].seen = ahead->kept[first].seen;
			continue;
		}
		status = gw_kept_count_begin(&ahead->kept[f]);
		if (status == GW_OK)
			status = count_type(ahead, &ahead->kept[f], batches, near ? near[ntype] : NULL, ntype);
	}
	return status;
}

/* The most bytes that `lookahead` batches, one after the other, have fetched. */
static double window_bytes(const struct gw_means_ahead *ahead, uint32_t store)
{
	const struct gw_means_graph *graph = ahead->graph;
	const uint32_t types = graph->hot.meta->num_ntypes;
	uint64_t held = 0, most = 0;
	for (uint64_t b = 0; b < ahead->batches && ahead->lookahead > 1; b++) {
		const uint64_t *now = (const uint64_t *)ahead->fetched.data + b * types;
		const uint64_t *gone = b >= ahead->lookahead ? now - (uint64_t)ahead->lookahead * types : NULL;
		for (uint32_t f = 0; f < graph->fetch_count; f++) {
			const uint32_t t = graph->fetches[f].ntype;
			held += (now[t] - (gone ? gone[t] : 0)) * graph->fetches[f].row_bytes[store];
		}
		most = held > most ? held : most;
	}
	return (double)most;
}

gw_status gw_means_ahead_fetched(struct gw_means_ahead *ahead, uint32_t store, uint64_t cache_bytes,
				 struct gw_means_fetched *out)
{
	const struct gw_means_graph *graph = ahead->graph;
	struct gw_kept_sums sums = {0};
	*out = (struct gw_means_fetched){0};
	for (uint32_t f = 0; f < graph->fetch_count; f++)
		ahead->kept[f].row_bytes = graph->fetches[f].row_bytes[store];
	gw_status status = gw_kept_choose(ahead->all, graph->fetch_count, cache_bytes, &sums);
	if (status != GW_OK)
		return status;
	out->bytes = (double)(sums.without - sums.saved);
	out->window = window_bytes(ahead, store);
	for (uint32_t f = 0; f < graph->fetch_count && cache_bytes; f++)
		out->cache += (double)gw_kept_memory(&ahead->kept[f]);
	return GW_OK;
}
