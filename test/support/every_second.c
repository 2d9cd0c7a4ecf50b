/* Round 0 asks for nothing, round 1 for the neighbours. Round 2 finds the candidates and asks for their weights, and
 * round 3 drops those of weight 0. See every_second.h. */
#include "test/support/every_second.h"

#include <string.h>

#define PIECE 50 /* neighbours of a need: long lists have several */

uint64_t every_second_plain(const struct gw_pick_rule *rule, uint32_t group, const struct every_second_list *list,
			    uint64_t *out)
{
	uint64_t most = rule->fanout == GW_FANOUT_ALL ? UINT64_MAX : (uint64_t)rule->fanout;
	uint64_t copies = rule->replace && rule->fanout != GW_FANOUT_ALL ? 2 : 1, number = 0, candidates = 0, count = 0;
	for (uint64_t i = 0; i < list->degree; i++) {
		if (i > 0 && list->neighbours[i] == list->neighbours[i - 1])
			continue;
		if (number++ % 2 != group % 2)
			continue;
		bool heavy = !list->weights;
		for (uint32_t b = 0; b < list->weight_bytes; b++)
			heavy = heavy || list->weights[i * list->weight_bytes + b];
		for (uint64_t c = 0; c < copies && candidates < most; c++, candidates++) {
			if (heavy)
				out[count++] = i;
		}
	}
	return count;
}

static uint64_t bound(const struct gw_pick_rule *rule, uint64_t degree)
{
	if (rule->fanout == GW_FANOUT_ALL)
		return degree;
	uint64_t most = rule->replace ? 2 * degree : degree, fanout = (uint64_t)rule->fanout;
	return most < fanout ? most : fanout;
}

static gw_status ask_neighbours(struct gw_draw_run *run, uint32_t list)
{
	uint64_t degree = run->lists.degrees[list], piece = degree > 2 * PIECE ? PIECE : degree;
	gw_status status = GW_OK;
	for (uint64_t at = 0; at < degree && status == GW_OK; at += piece)
		status = gw_draw_need(run, list, GW_COLUMN_IDS, at, degree - at < piece ? degree - at : piece);
	return status;
}

static gw_status round_begin(const struct gw_draw *draw, struct gw_draw_run *run)
{
	gw_status status = GW_OK;
	bool any = false;
	for (uint32_t i = 0; i < run->lists.n && status == GW_OK; i++) {
		run->done[i] = run->lists.degrees[i] == 0 || draw->rule.fanout == 0;
		if (run->done[i])
			continue;
		any = true;
		status = ask_neighbours(run, i);
	}
	return status == GW_OK && any ? GW_AGAIN : status;
}

static uint64_t entry_id(const struct gw_draw *draw, const uint8_t *entries, uint64_t at)
{
	uint32_t width = draw->forms[GW_COLUMN_IDS].entry_bytes;
	uint64_t id = 0;
	memcpy(&id, entries + at * width, width);
	return id;
}

/* The candidates go to the list's slots. */
static gw_status round_candidates(const struct gw_draw *draw, struct gw_draw_run *run, uint64_t *positions)
{
	bool weighs = draw->forms[GW_COLUMN_WEIGHT].entry_bytes != 0, any = false;
	gw_status status = GW_OK;
	uint64_t last = UINT64_MAX, number = 0;
	for (uint64_t n = 0; n < run->need_count && status == GW_OK; n++) {
		const struct gw_need *need = &run->needs[n];
		uint32_t list = need->list;
		uint64_t *slots = positions + run->lists.starts[list], most = bound(&draw->rule, UINT32_MAX);
		uint32_t group = run->lists.groups ? run->lists.groups[list] : 0;
		if (need->first == 0) {
			last = UINT64_MAX;
			number = 0;
		}
		for (uint64_t i = 0; i < need->count && status == GW_OK; i++) {
			uint64_t id = entry_id(draw, run->got[n], i), at = need->first + i;
			bool counts = id != last && number++ % 2 == group % 2;
			last = id;
			if (!counts)
				continue;
			uint32_t copies = draw->rule.replace && draw->rule.fanout != GW_FANOUT_ALL ? 2 : 1;
			for (uint32_t c = 0; c < copies && run->counts[list] < most && status == GW_OK; c++) {
				slots[run->counts[list]++] = run->lists.begins[list] + at;
				if (weighs)
					status = gw_draw_need(run, list, GW_COLUMN_WEIGHT, at, 1);
				any = any || weighs;
			}
		}
		run->done[list] = !weighs || run->counts[list] == 0;
	}
	return status == GW_OK && any ? GW_AGAIN : status;
}

static void round_weights(const struct gw_draw *draw, struct gw_draw_run *run, uint64_t *positions)
{
	uint32_t width = draw->forms[GW_COLUMN_WEIGHT].entry_bytes;
	for (uint32_t i = 0; i < run->lists.n; i++)
		run->counts[i] = 0;
	for (uint64_t n = 0; n < run->need_count; n++) {
		const struct gw_need *need = &run->needs[n];
		const uint8_t *weight = run->got[n];
		bool heavy = false;
		for (uint32_t b = 0; b < width; b++)
			heavy = heavy || weight[b];
		uint32_t list = need->list;
		if (heavy)
			positions[run->lists.starts[list] + run->counts[list]++] =
				run->lists.begins[list] + need->first;
		run->done[list] = true;
	}
}

static gw_status every_second_round(const struct gw_draw *draw, struct gw_draw_run *run, uint32_t number,
				    uint64_t *positions)
{
	if (number == 0)
		return GW_AGAIN;
	if (number == 1)
		return round_begin(draw, run);
	if (number == 2)
		return round_candidates(draw, run, positions);
	round_weights(draw, run, positions);
	return GW_OK;
}

const struct gw_sampling_kind sample_every_second = {
	.name = "every second",
	.number = KIND_EVERY_SECOND,
	.columns = GW_COLUMN_BIT(GW_COLUMN_IDS) | GW_COLUMN_BIT(GW_COLUMN_WEIGHT),
	.bound = bound,
	.round = every_second_round,
};
