/* Picks from lists whose columns arrive from elsewhere: see picks_rounds.h. Each run's picks have a place in the
 * positions as large as its bounds; at the end they move together. */
#include "sampler/picks_rounds.h"

#include <string.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* A run, its place in the positions, and its needs among those of all runs. */
struct rounds_run {
	struct gw_draw_run run;
	uint64_t slot, first_need;
	bool complete;
};

void gw_picks_rounds_free(struct gw_picks_rounds *rounds)
{
	gw_vec_free(&rounds->runs);
	gw_vec_free(&rounds->needs);
	gw_vec_free(&rounds->next_needs);
	gw_vec_free(&rounds->reads_of);
	gw_vec_free(&rounds->gots);
}

gw_status gw_picks_rounds_begin(struct gw_picks_rounds *rounds, struct gw_picks *picks, const struct gw_draw *draw,
				const uint64_t *vertices, const uint32_t *groups, const uint64_t *begins,
				const uint64_t *ends, uint64_t n)
{
	picks->dst_count = picks->edge_count = 0;
	gw_status status = gw_draw_check_use(draw);
	uint64_t run_count = n / GW_RUN_MAX + (n % GW_RUN_MAX > 0), total = 0;
	if (status == GW_OK && run_count > UINT32_MAX)
		status = gw_fail(GW_LIMIT, "%llu vertices at once are too many", (unsigned long long)n);
	if (status == GW_OK)
		status = gw_vec_reserve(&rounds->runs, run_count * sizeof(struct rounds_run));
	if (status == GW_OK)
		status = gw_vec_reserve(&picks->counts, n * sizeof(uint32_t));
	struct rounds_run *runs = rounds->runs.data;
	for (uint64_t r = 0; status == GW_OK && r < run_count; r++) {
		struct gw_draw_run *run = &runs[r].run;
		uint64_t at = r * GW_RUN_MAX;
		run->lists.n = (uint32_t)MIN(n - at, GW_RUN_MAX);
		run->lists.vertices = vertices + at;
		run->lists.groups = groups ? groups + at : NULL;
		memcpy(run->lists.begins, begins + at, run->lists.n * sizeof(uint64_t));
		run->scratch = &picks->scratch;
		run->element_bytes = 0;
		run->at_hand = NULL;
		run->next = &rounds->next_needs;
		status = gw_lists_count(&run->lists, &draw->rule, ends + at, UINT64_MAX);
		if (status != GW_OK)
			return status;
		gw_draw_run_begin(draw, run);
		runs[r].slot = total;
		runs[r].complete = false;
		/* A run may write past its last pick after the next run is complete. */
		total += run->lists.starts[run->lists.n] + (gw_draw_is_uniform(draw) ? 0 : GW_SLACK);
	}
	rounds->draw = *draw;
	rounds->picks = picks;
	rounds->run_count = (uint32_t)run_count;
	rounds->round = 0;
	rounds->read_count = 0;
	return status != GW_OK ? status : gw_vec_reserve(&picks->positions, (total + GW_SLACK) * sizeof(uint64_t));
}

/* The picks of all runs, without the gaps between their places. */
static gw_status rounds_end(struct gw_picks_rounds *rounds)
{
	struct gw_picks *picks = rounds->picks;
	uint64_t *positions = picks->positions.data;
	for (uint32_t r = 0; r < rounds->run_count; r++) {
		const struct rounds_run *of = (const struct rounds_run *)rounds->runs.data + r;
		const struct gw_lists *lists = &of->run.lists;
		uint32_t *counts = (uint32_t *)picks->counts.data + picks->dst_count;
		for (uint32_t i = 0; i < lists->n; i++)
			counts[i] = (uint32_t)(lists->starts[i + 1] - lists->starts[i]);
		if (of->slot != picks->edge_count)
			memmove(positions + picks->edge_count, positions + of->slot,
				lists->starts[lists->n] * sizeof(*positions));
		picks->dst_count += lists->n;
		picks->edge_count += lists->starts[lists->n];
	}
	return GW_OK;
}

static gw_status rounds_ask(struct gw_picks_rounds *rounds, uint64_t need_count)
{
	struct gw_vec asked = rounds->next_needs;
	rounds->next_needs = rounds->needs;
	rounds->needs = asked;
	/* Without needs, too, the arrays exist. */
	if (gw_vec_reserve(&rounds->needs, (need_count + 1) * sizeof(struct gw_need)) != GW_OK ||
	    gw_vec_reserve(&rounds->reads_of, (need_count + 1) * sizeof(struct gw_column_read)) != GW_OK ||
	    gw_vec_reserve(&rounds->gots, (need_count + 1) * sizeof(void *)) != GW_OK)
		return GW_NO_MEMORY;
	struct gw_column_read *reads = rounds->reads_of.data;
	rounds->got = rounds->gots.data;
	for (uint32_t r = 0; r < rounds->run_count; r++) {
		struct rounds_run *of = (struct rounds_run *)rounds->runs.data + r;
		if (of->complete)
			continue;
		const struct gw_need *needs = (const struct gw_need *)rounds->needs.data + of->first_need;
		of->run.needs = needs;
		of->run.got = rounds->got + of->first_need;
		for (uint64_t i = 0; i < of->run.need_count; i++)
			reads[of->first_need + i] = (struct gw_column_read){
				.column = needs[i].column,
				.first = gw_column_entry(needs[i].column, of->run.lists.begins[needs[i].list]) +
					 needs[i].first,
				.count = needs[i].count};
	}
	rounds->reads = reads;
	rounds->read_count = need_count;
	return GW_AGAIN;
}

gw_status gw_picks_rounds_next(struct gw_picks_rounds *rounds)
{
	uint64_t needed = 0;
	bool complete = true;
	for (uint32_t r = 0; r < rounds->run_count; r++) {
		struct rounds_run *of = (struct rounds_run *)rounds->runs.data + r;
		if (of->complete)
			continue;
		uint64_t *positions = (uint64_t *)rounds->picks->positions.data + of->slot;
		of->run.next_count = needed;
		gw_status status = rounds->draw.kind->round(&rounds->draw, &of->run, rounds->round, positions);
		if (status != GW_OK && status != GW_AGAIN)
			return status;
		of->first_need = needed;
		of->run.need_count = of->run.next_count - needed;
		needed = of->run.next_count;
		of->complete = status == GW_OK;
		if (of->complete)
			gw_draw_run_end(&rounds->draw, &of->run, positions);
		complete = complete && of->complete;
	}
	rounds->round++;
	return complete ? rounds_end(rounds) : rounds_ask(rounds, needed);
}
