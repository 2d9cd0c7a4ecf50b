/* Picks as arrays, for callers that read the neighbours themselves or send the picks to a peer.
 *
 *   vertices -> runs of GW_RUN_MAX -> offsets -> positions -> neighbours
 *
 * The arrays only grow. After an error their contents are undefined.
 */
#include "sampler/picks.h"

#include "sampler/draw_memory.h"
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

static gw_status picks_append(struct gw_picks *picks, const struct gw_picks_memory *memory, const struct gw_draw *draw,
			      struct gw_draw_run *run)
{
	const struct gw_adjacency *adjacency = memory->adjacency;
	const struct gw_lists *lists = &run->lists;
	gw_draw_run_begin(draw, run);
	gw_status status = gw_vec_reserve(&picks->positions,
					  (picks->edge_count + lists->starts[lists->n] + GW_SLACK) * sizeof(uint64_t));
	if (status != GW_OK)
		return status;
	const struct gw_draw_columns columns = {.all = memory->columns};
	uint64_t entries_max = memory->entries_max ? memory->entries_max : UINT64_MAX;
	uint64_t *positions = (uint64_t *)picks->positions.data + picks->edge_count;
	uint32_t too_long = 0;
	run->memory = (uintptr_t)adjacency->indices;
	run->element_bytes = adjacency->index_bytes;
	status = gw_draw_from_memory(draw, run, &columns, positions, entries_max, &too_long);
	if (status == GW_LIMIT)
		picks->dst_count += too_long;
	if (status != GW_OK)
		return status;
	uint32_t *counts = (uint32_t *)picks->counts.data + picks->dst_count;
	for (uint32_t i = 0; i < lists->n; i++)
		counts[i] = (uint32_t)(lists->starts[i + 1] - lists->starts[i]);
	picks->dst_count += lists->n;
	picks->edge_count += lists->starts[lists->n];
	picks->entry_count += run->entry_count;
	return GW_OK;
}

static gw_status read_neighbours(struct gw_picks *picks, const struct gw_adjacency *adjacency, uint64_t first)
{
	gw_status status = gw_vec_reserve(&picks->neighbours, picks->edge_count * sizeof(uint64_t));
	if (status != GW_OK)
		return status;
	const uint64_t *positions = picks->positions.data;
	uint64_t *neighbours = picks->neighbours.data;
	if (adjacency->index_bytes == 4) {
		for (uint64_t i = first; i < picks->edge_count; i++)
			neighbours[i] = gw_load_id(adjacency->indices, 4, positions[i]);
	} else {
		for (uint64_t i = first; i < picks->edge_count; i++)
			neighbours[i] = gw_load_id(adjacency->indices, 8, positions[i]);
	}
	return GW_OK;
}

gw_status gw_picks_from_memory(struct gw_picks *picks, const struct gw_picks_memory *memory, const struct gw_draw *draw,
			       const uint64_t *vertices, const uint32_t *groups, uint64_t n)
{
	picks->dst_count = picks->edge_count = picks->entry_count = 0;
	gw_status status = gw_draw_check_use(draw);
	if (status != GW_OK)
		return status;
	if (n > SIZE_MAX / 16)
		return gw_fail(GW_LIMIT, "%llu vertices at once are too many", (unsigned long long)n);
	status = gw_vec_reserve(&picks->counts, n * sizeof(uint32_t));
	struct gw_draw_run run;
	run.scratch = &picks->scratch;
	for (uint64_t at = 0; status == GW_OK && at < n; at += run.lists.n) {
		uint32_t lists = (uint32_t)MIN(n - at, GW_RUN_MAX);
		uint64_t first = picks->edge_count;
		status =
			gw_lists_read(&run.lists, memory->adjacency, &draw->rule, vertices + at, lists, n - at - lists);
		run.lists.groups = groups ? groups + at : NULL;
		if (status == GW_OK)
			status = picks_append(picks, memory, draw, &run);
		if (status == GW_OK)
			status = read_neighbours(picks, memory->adjacency, first);
	}
	return status;
}
