/* Needs and picks of a round: see weighted_run.h. Fails if memory runs out. */
#include "sampler/kinds/weighted_run.h"

gw_status gw_weighted_ask_flush(struct gw_weighted *w)
{
	struct gw_weighted_ask *ask = &w->ask;
	struct gw_draw_run *run = w->run;
	uint64_t room = run->next_count + 2ull * GW_WIDE_LANES;
	if (ask->used == 0)
		return GW_OK;
	if (gw_vec_reserve(run->next, room * sizeof(struct gw_need)) != GW_OK)
		return GW_NO_MEMORY;
	w->functions->draw(&ask->lanes, w->key, 1, ask->columns, ask->words);
	struct gw_need *needs = (struct gw_need *)run->next->data + run->next_count;
	for (uint32_t lane = 0; lane < ask->used; lane++) {
		uint64_t draw = 2 * (uint64_t)ask->lanes.block[lane], *slots = gw_weighted_slots(w, ask->list[lane]);
		for (uint32_t second = 0; second < 2 && draw < ask->end[lane]; second++, draw++) {
			uint64_t column = ask->columns[second][lane];
			if (draw < w->fanout)
				slots[draw] = column << 32 | ask->words[second][lane];
			if (ask->entry[lane])
				*needs++ = (struct gw_need){ask->list[lane], GW_COLUMN_ALIAS, column, 1};
		}
	}
	run->next_count = (uint64_t)(needs - (struct gw_need *)run->next->data);
	ask->used = 0;
	return GW_OK;
}

gw_status gw_weighted_ask_draws(struct gw_weighted *w, uint32_t list, uint64_t from, uint64_t end, bool entry)
{
	struct gw_weighted_ask *ask = &w->ask;
	for (uint64_t draw = from; draw < end; draw += 2) {
		uint32_t lane = ask->used++;
		gw_weighted_set_lane(w, &ask->lanes, lane, list, (uint32_t)(draw / 2));
		ask->list[lane] = list;
		ask->end[lane] = end;
		ask->entry[lane] = entry;
		if (ask->used == GW_WIDE_LANES && gw_weighted_ask_flush(w) != GW_OK)
			return GW_NO_MEMORY;
	}
	return GW_OK;
}

gw_status gw_weighted_ask_whole(struct gw_weighted *w, uint32_t list, enum gw_column column)
{
	gw_status status = gw_weighted_ask_flush(w); /* a list's needs lie together */
	return status != GW_OK ? status : gw_draw_need(w->run, list, column, 0, w->run->lists.degrees[list]);
}

void gw_weighted_finish(struct gw_weighted *w, uint32_t list, uint64_t count)
{
	uint64_t *slots = gw_weighted_slots(w, list), begin = w->run->lists.begins[list];
	for (uint64_t i = 0; i < count; i++) {
		slots[i] += begin;
		gw_weighted_prefetch(w->run, slots[i]);
	}
	w->run->counts[list] = (uint32_t)count;
	w->run->done[list] = true;
}
