/* Picks as arrays, for callers that read the neighbours themselves or send the picks to a peer.
 *
 *   vertices -> runs of GW_RUN_MAX -> offsets (memory or records) -> positions -> neighbours (memory only)
 *
 * The arrays only grow. After an error their contents are undefined.
 */
#include "sampler/picks.h"

#include "sampler/lists.h"
#include "sampler/pick.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))

void gw_picks_free(struct gw_picks *picks)
{
	gw_vec_free(&picks->counts);
	gw_vec_free(&picks->positions);
	gw_vec_free(&picks->neighbours);
	gw_pick_scratch_free(&picks->scratch);
	picks->dst_count = picks->edge_count = 0;
}

static gw_status picks_begin(struct gw_picks *picks, const struct gw_pick_rule *rule, uint64_t n)
{
	picks->dst_count = picks->edge_count = 0;
	gw_status status = gw_pick_rule_check(rule);
	if (status != GW_OK)
		return status;
	if (n > SIZE_MAX / 16)
		return gw_fail(GW_LIMIT, "%llu vertices at once are too many", (unsigned long long)n);
	return gw_vec_reserve(&picks->counts, n * sizeof(uint32_t));
}

/* Appends the positions of a run that is already counted. */
static gw_status picks_append(struct gw_picks *picks, const struct gw_lists *lists, const struct gw_pick_rule *rule,
			      const struct gw_adjacency *adjacency)
{
	uint64_t total = lists->starts[lists->n];
	gw_status status = gw_vec_reserve(&picks->positions, (picks->edge_count + total + GW_SLACK) * sizeof(uint64_t));
	if (status != GW_OK)
		return status;
	uint32_t *counts = (uint32_t *)picks->counts.data + picks->dst_count;
	for (uint32_t i = 0; i < lists->n; i++)
		counts[i] = (uint32_t)(lists->starts[i + 1] - lists->starts[i]);
	uint64_t *positions = (uint64_t *)picks->positions.data + picks->edge_count;
	status = gw_lists_pick(lists, rule, &picks->scratch, positions, adjacency ? (uintptr_t)adjacency->indices : 0,
			       adjacency ? adjacency->index_bytes : 0);
	if (status != GW_OK)
		return status;
	picks->dst_count += lists->n;
	picks->edge_count += total;
	return GW_OK;
}

gw_status gw_picks_from_memory(struct gw_picks *picks, const struct gw_adjacency *adjacency,
			       const struct gw_pick_rule *rule, const uint64_t *vertices, uint64_t n)
{
	gw_status status = picks_begin(picks, rule, n);
	struct gw_lists lists;
	for (uint64_t at = 0; status == GW_OK && at < n; at += lists.n) {
		uint32_t run = (uint32_t)MIN(n - at, GW_RUN_MAX);
		status = gw_lists_read(&lists, adjacency, rule, vertices + at, run, n - at - run);
		if (status != GW_OK)
			break;
		uint64_t first = picks->edge_count, last = first + lists.starts[run];
		status = gw_vec_reserve(&picks->neighbours, last * sizeof(uint64_t));
		if (status != GW_OK)
			break;
		status = picks_append(picks, &lists, rule, adjacency);
		if (status != GW_OK)
			break;
		const uint64_t *positions = picks->positions.data;
		uint64_t *neighbours = picks->neighbours.data;
		if (adjacency->index_bytes == 4) {
			for (uint64_t i = first; i < last; i++)
				neighbours[i] = gw_load_id(adjacency->indices, 4, positions[i]);
		} else {
			for (uint64_t i = first; i < last; i++)
				neighbours[i] = gw_load_id(adjacency->indices, 8, positions[i]);
		}
	}
	return status;
}

gw_status gw_picks_from_records(struct gw_picks *picks, const struct gw_pick_rule *rule, const uint64_t *vertices,
				const uint64_t *begins, const uint64_t *ends, uint64_t n)
{
	gw_status status = picks_begin(picks, rule, n);
	struct gw_lists lists;
	for (uint64_t at = 0; status == GW_OK && at < n; at += lists.n) {
		lists.n = (uint32_t)MIN(n - at, GW_RUN_MAX);
		lists.vertices = vertices + at;
		for (uint32_t i = 0; i < lists.n; i++)
			lists.begins[i] = begins[at + i];
		status = gw_lists_count(&lists, rule, ends + at, UINT64_MAX);
		if (status == GW_OK)
			status = picks_append(picks, &lists, rule, NULL);
	}
	return status;
}
