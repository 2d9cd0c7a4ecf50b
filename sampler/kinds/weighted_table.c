/* Draws from alias tables: see weighted_table.h.
 *
 *   k draws of sixteen lists ─▶ resolved by their entries ─▶ sorted in lanes ─▶ picks
 *                                          └─▶ repeats, without replacement ─▶ more draws, list by list, in order
 *
 * Without a repeat, the order of the draws does not matter. Fails for a table with an edge past its list, and if memory
 * runs out.
 */
#include "sampler/kinds/weighted_table.h"

#include <string.h>

#include "core/graph/alias.h"
#include "sampler/pick.h"

#define ENTRY_BYTES  8
#define SORTED_PICKS 64 /* up to this many picks, insertion into sorted ones */
#define SLOTS_MIN    256
#define EMPTY        UINT32_MAX /* never a position, because degrees are below 2^32 */
#define MIN(a, b)    ((a) < (b) ? (a) : (b))

/* The positions picked from one list: sorted slots if they are few, else slots and a set of open addressing. */
struct picked {
	uint64_t *slots, count;
	uint32_t *set, mask; /* NULL: the slots are sorted */
};

/* False: the set has the position. */
static bool picked_set_add(struct picked *picked, uint32_t position)
{
	uint32_t slot = (uint32_t)(position * 0x9e3779b1u) & picked->mask;
	for (; picked->set[slot] != EMPTY; slot = (slot + 1) & picked->mask) {
		if (picked->set[slot] == position)
			return false;
	}
	picked->set[slot] = position;
	return true;
}

/* Begins with the first `count` slots, of up to fanout. */
static gw_status picked_begin(struct picked *picked, uint64_t *slots, uint64_t count, uint64_t fanout,
			      struct gw_pick_scratch *scratch)
{
	*picked = (struct picked){.slots = slots, .count = count};
	if (fanout <= SORTED_PICKS)
		return GW_OK;
	uint32_t room = SLOTS_MIN;
	while (room < 2 * fanout)
		room *= 2;
	if (gw_vec_reserve(&scratch->seen, room * sizeof(uint32_t)) != GW_OK)
		return GW_NO_MEMORY;
	picked->set = scratch->seen.data;
	picked->mask = room - 1;
	memset(picked->set, 0xff, room * sizeof(uint32_t));
	for (uint64_t i = 0; i < count; i++)
		picked_set_add(picked, (uint32_t)slots[i]);
	return GW_OK;
}

static void picked_add_once(struct picked *picked, uint32_t position)
{
	uint64_t *slots = picked->slots, at = picked->count;
	if (picked->set) {
		if (picked_set_add(picked, position))
			slots[picked->count++] = position;
		return;
	}
	while (at && slots[at - 1] > position)
		at--;
	if (at && slots[at - 1] == position)
		return;
	for (uint64_t to = picked->count++; to > at; to--)
		slots[to] = slots[to - 1];
	slots[at] = position;
}

struct alias_entry {
	uint32_t threshold, alias;
};

static inline uint32_t resolve_draw(uint64_t draw, const void *at)
{
	struct alias_entry entry;
	memcpy(&entry, at, sizeof(entry));
	return (uint32_t)draw < entry.threshold ? (uint32_t)(draw >> 32) : entry.alias;
}

/* The draws of one list, as column << 32 | u. */
struct list_draws {
	const uint64_t *slots; /* of draws below slots_end */
	const struct gw_weighted_group *group;
	uint64_t slots_end, rows_end; /* the group's rows have the draws below rows_end, in its lane */
	uint32_t lane;
	/* Others are computed when they are asked for. */
	uint64_t first, end; /* the draws in the rows below */
	struct gw_table_lanes lanes;
	gw_table_row columns[2], words[2];
};

/* table: at hand, or NULL; its entries are prefetched. */
static uint64_t list_draw(const struct gw_weighted *w, struct list_draws *draws, uint32_t list, uint64_t draw,
			  const uint8_t *table)
{
	if (draw < draws->slots_end)
		return draws->slots[draw];
	if (draw < draws->rows_end)
		return (uint64_t)draws->group->columns[draw][draws->lane] << 32 |
		       draws->group->words[draw][draws->lane];
	if (draw >= draws->end) {
		draws->first = draw & ~1ull;
		draws->end = draws->first + 2ull * GW_WIDE_LANES;
		for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane++)
			gw_weighted_set_lane(w, &draws->lanes, lane, list, (uint32_t)(draws->first / 2) + lane);
		w->functions->draw(&draws->lanes, w->key, 1, draws->columns, draws->words);
		for (uint32_t lane = 0; table && lane < GW_WIDE_LANES; lane++) {
			__builtin_prefetch(table + (uint64_t)draws->columns[0][lane] * ENTRY_BYTES);
			__builtin_prefetch(table + (uint64_t)draws->columns[1][lane] * ENTRY_BYTES);
		}
	}
	uint64_t lane = (draw - draws->first) / 2;
	return (uint64_t)draws->columns[draw & 1][lane] << 32 | draws->words[draw & 1][lane];
}

/* What follows draws without replacement that gave too few picks. */
static gw_status ask_more(struct gw_weighted *w, uint32_t list, uint64_t draws)
{
	if (draws < gw_weighted_draws_max(w))
		return gw_weighted_ask_draws(w, list, draws, gw_weighted_draws_max(w), true);
	return gw_weighted_ask_whole(w, list, GW_COLUMN_WEIGHT);
}

static gw_status bad_alias(const struct gw_weighted *w, uint32_t list, uint32_t pick)
{
	return gw_fail(GW_RANGE, "vertex %llu: edge %u in the alias table of a list of %llu",
		       (unsigned long long)w->run->lists.vertices[list], pick,
		       (unsigned long long)w->run->lists.degrees[list]);
}

/* Resolves the draws of one list in order, from draw `draw` on; its counts[list] picks so far are in its slots. need:
 * the need of the round's first draw. table: the list's complete table, or NULL. */
static gw_status pick_by_table(struct gw_weighted *w, uint32_t list, uint64_t draw, uint64_t need, const uint8_t *table,
			       struct list_draws *draws)
{
	struct gw_draw_run *run = w->run;
	uint64_t *slots = gw_weighted_slots(w, list), degree = run->lists.degrees[list];
	uint64_t first = w->number < 2 ? 0 : gw_weighted_draws_first(w);
	uint64_t end = table || w->number == 2 ? gw_weighted_draws_max(w) : gw_weighted_draws_first(w);
	struct picked picked;
	draws->end = 0;
	gw_status status = picked_begin(&picked, slots, run->counts[list], w->replace ? 0 : w->fanout, run->scratch);
	if (status != GW_OK)
		return status;
	for (; draw < end && picked.count < w->fanout; draw++) {
		uint64_t drawn = list_draw(w, draws, list, draw, table);
		uint32_t pick = resolve_draw(drawn, table ? table + (drawn >> 32) * ENTRY_BYTES
							  : run->got[need + draw - first]);
		if (pick == GW_ALIAS_NONE) {
			gw_weighted_finish(w, list, 0);
			return GW_OK;
		}
		if (pick >= degree)
			return bad_alias(w, list, pick);
		if (w->replace)
			slots[picked.count++] = pick;
		else
			picked_add_once(&picked, pick);
	}
	run->counts[list] = (uint32_t)picked.count;
	if (picked.count < w->fanout)
		return ask_more(w, list, end);
	if (w->replace || picked.set)
		status = gw_pick_sort(slots, picked.count, run->scratch);
	if (status == GW_OK)
		gw_weighted_finish(w, list, picked.count);
	return status;
}

/* ---- sixteen lists at once ---- */

/* Resolves the draws of lists whose tables are at hand. */
static void group_resolve(struct gw_weighted_group *group, uint32_t fanout)
{
	for (uint32_t j = 0; j < fanout; j++) {
		for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane++) {
			uint64_t column = group->columns[j][lane];
			group->picks[j][lane] = resolve_draw(column << 32 | group->words[j][lane],
							     group->tables[lane] + column * ENTRY_BYTES);
		}
	}
}

/* Resolves the draws in a list's slots with the entries that were asked for. */
static void lane_resolve(const struct gw_weighted *w, struct gw_weighted_group *group, uint32_t lane)
{
	uint32_t fanout = (uint32_t)w->fanout;
	const uint64_t *slots = gw_weighted_slots(w, group->list[lane]);
	const void *const *got = w->run->got + group->need[lane];
	const uint8_t *table = group->tables[lane];
	for (uint32_t j = 0; j < fanout && table; j++)
		group->picks[j][lane] = resolve_draw(slots[j], table + (slots[j] >> 32) * ENTRY_BYTES);
	for (uint32_t j = 0; j < fanout && !table; j++)
		group->picks[j][lane] = resolve_draw(slots[j], got[j]);
}

/* Leaves each position of a lane once in the list's slots. The next draws are resolved later. */
static void lane_repeats(struct gw_weighted *w, struct gw_weighted_group *group, uint32_t lane)
{
	uint64_t *slots = gw_weighted_slots(w, group->list[lane]), count = 0;
	for (uint32_t j = 0; j < w->fanout; j++) {
		slots[count] = group->picks[j][lane];
		count += j + 1 == w->fanout || group->picks[j][lane] != group->picks[j + 1][lane];
	}
	w->run->counts[group->list[lane]] = (uint32_t)count;
	group->repeats |= 1u << lane;
	for (uint64_t draw = w->fanout; w->number == 0 && draw < w->fanout + w->fanout - count; draw++) {
		if (draw < gw_weighted_draws_first(w))
			__builtin_prefetch(group->tables[lane] + (uint64_t)group->columns[draw][lane] * ENTRY_BYTES);
	}
}

/* Sorts the resolved draws. They are a list's picks, unless repeats must be drawn again. */
static gw_status group_sort(struct gw_weighted *w, struct gw_weighted_group *group, const struct gw_network *network)
{
	struct gw_draw_run *run = w->run;
	uint32_t fanout = (uint32_t)w->fanout, repeats = w->functions->sort(group->picks, network);
	group->repeats = 0;
	for (uint32_t lane = 0; lane < group->used; lane++) {
		uint32_t list = group->list[lane], greatest = group->picks[fanout - 1][lane];
		uint64_t *slots = gw_weighted_slots(w, list), begin = run->lists.begins[list];
		if (greatest == GW_ALIAS_NONE) {
			gw_weighted_finish(w, list, 0);
			continue;
		}
		if (greatest >= run->lists.degrees[list])
			return bad_alias(w, list, greatest);
		if (!w->replace && repeats >> lane & 1) {
			lane_repeats(w, group, lane);
			continue;
		}
		for (uint32_t j = 0; j < fanout; j++) {
			slots[j] = begin + group->picks[j][lane];
			gw_weighted_prefetch(run, slots[j]);
		}
		run->counts[list] = fanout;
		run->done[list] = true;
	}
	return GW_OK;
}

static gw_status group_draw_more(struct gw_weighted *w, struct gw_weighted_group *group)
{
	struct list_draws draws;
	gw_status status = GW_OK;
	draws.slots_end = 0;
	draws.group = group;
	draws.rows_end = w->number == 0 ? gw_weighted_draws_first(w) : 0;
	for (; status == GW_OK && group->repeats; group->repeats &= group->repeats - 1) {
		uint32_t lane = draws.lane = (uint32_t)__builtin_ctz(group->repeats);
		status = pick_by_table(w, group->list[lane], w->fanout, group->need[lane], group->tables[lane], &draws);
	}
	group->used = 0;
	return status;
}

/* Draws for sixteen lists, or fewer, whose tables are at hand, and prefetches the entries. */
static void group_draw(struct gw_weighted *w, struct gw_weighted_group *group, const uint16_t *drawn, uint32_t count)
{
	uint32_t fanout = (uint32_t)w->fanout;
	group->used = count;
	for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane++) {
		uint32_t list = drawn[lane < count ? lane : 0];
		group->list[lane] = list;
		group->need[lane] = 0;
		group->tables[lane] = gw_draw_at_hand(w->draw, w->run, list, GW_COLUMN_ALIAS);
		gw_weighted_set_lane(w, &group->lanes, lane, list, 0);
	}
	uint32_t blocks = w->replace ? (fanout + 1) / 2 : (uint32_t)gw_weighted_draws_first(w) / 2;
	w->functions->draw(&group->lanes, w->key, blocks, group->columns, group->words);
	for (uint32_t j = 0; j < fanout; j++) {
		for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane++)
			__builtin_prefetch(group->tables[lane] + (uint64_t)group->columns[j][lane] * ENTRY_BYTES);
	}
}

/* Any fanout, list by list. */
static gw_status pick_each_at_hand(struct gw_weighted *w, const uint16_t *drawn, uint32_t count)
{
	struct list_draws draws;
	gw_status status = GW_OK;
	draws.slots_end = draws.rows_end = 0;
	for (uint32_t i = 0; status == GW_OK && i < count; i++) {
		const uint8_t *table = gw_draw_at_hand(w->draw, w->run, drawn[i], GW_COLUMN_ALIAS);
		status = pick_by_table(w, drawn[i], 0, 0, table, &draws);
	}
	return status;
}

/* While the entries of sixteen lists arrive, it draws for the next sixteen; the entries that repeats need arrive
 * meanwhile, too. */
gw_status gw_weighted_pick_at_hand(struct gw_weighted *w, const uint16_t *drawn, uint32_t count)
{
	struct gw_weighted_groups groups;
	gw_status status = GW_OK;
	if (w->fanout > GW_WIDE_PICKS)
		return pick_each_at_hand(w, drawn, count);
	gw_weighted_groups_begin(w, &groups);
	for (uint32_t at = 0, step = 0; status == GW_OK && at < count + 2 * GW_WIDE_LANES;
	     at += GW_WIDE_LANES, step++) {
		struct gw_weighted_group *group = &groups.groups[step % 2], *before = &groups.groups[(step + 1) % 2];
		if (group->used)
			status = group_draw_more(w, group);
		if (status == GW_OK && at < count)
			group_draw(w, group, drawn + at, MIN(count - at, GW_WIDE_LANES));
		if (status == GW_OK && before->used && at < count + GW_WIDE_LANES) {
			group_resolve(before, (uint32_t)w->fanout);
			status = group_sort(w, before, &groups.network);
		}
	}
	return status;
}

void gw_weighted_groups_begin(const struct gw_weighted *w, struct gw_weighted_groups *groups)
{
	groups->groups[0].used = groups->groups[1].used = 0;
	if (w->fanout > GW_WIDE_PICKS)
		return;
	gw_network_make(&groups->network, (uint32_t)w->fanout);
	/* Lanes without a list are sorted, too. */
	memset(groups->groups[0].picks, 0, w->fanout * sizeof(groups->groups[0].picks[0]));
}

gw_status gw_weighted_groups_add(struct gw_weighted *w, struct gw_weighted_groups *groups, uint32_t list, uint64_t need)
{
	struct gw_weighted_group *group = &groups->groups[0];
	const uint8_t *table = NULL;
	if (gw_weighted_whole_table(w, w->run->lists.degrees[list]))
		table = w->run->got[need];
	if (w->number > 1 || w->fanout > GW_WIDE_PICKS) {
		struct list_draws draws;
		draws.slots = gw_weighted_slots(w, list);
		draws.slots_end = w->number == 1 ? w->fanout : 0;
		draws.rows_end = 0;
		return pick_by_table(w, list, w->number == 1 ? 0 : gw_weighted_draws_first(w), need, table, &draws);
	}
	group->list[group->used] = list;
	group->need[group->used] = need;
	group->tables[group->used] = table;
	lane_resolve(w, group, group->used++);
	return group->used == GW_WIDE_LANES ? gw_weighted_groups_end(w, groups) : GW_OK;
}

gw_status gw_weighted_groups_end(struct gw_weighted *w, struct gw_weighted_groups *groups)
{
	struct gw_weighted_group *group = &groups->groups[0];
	if (group->used == 0)
		return GW_OK;
	gw_status status = group_sort(w, group, &groups->network);
	return status == GW_OK ? group_draw_more(w, group) : status;
}
