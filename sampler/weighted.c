/* The weighted kind: an edge is drawn in proportion to its weight. Its law, exactly:
 *
 * Weights are the integers of core/graph/weights.h. Words are the 32-bit words of the instance (key, vertex, group) in
 * core/numbers/rng.h. A list has n < 2^32 edges, and k is the fanout.
 *
 * All edges of positive weight, without a draw: fanout -1, or n <= k without replacement.
 *
 * A draw from the alias table: draw d takes w = word[2d] << 32 | word[2d + 1]. The upper 64 bits of the product w * n
 * are the column c, and the next 32 bits are u. The edge is c if u < threshold[c], else alias[c]. If the alias is
 * GW_ALIAS_NONE, the list has no weight and no picks.
 *   The law: the products that give column c and u < t are those in [c * 2^64, c * 2^64 + t * 2^32). They are multiples
 *   of n, so their number differs by less than 1 from t * 2^32 / n. The same holds for the alias's part of a column. So
 *   an edge's probability differs from the table's by less than n * 2^-64 < 2^-32, and the table's differs by less than
 *   2^-32 from the weight's share (core/graph/alias.h). An edge of weight 0 is never drawn.
 *
 * An exact draw below the sum W of the weights: as many bits b as W - 1 has. It takes ceil(b / 32) words, the most
 * significant first, keeps the lowest b bits as r, and takes as many words again while r >= W. The edge is the first
 * whose weight, together with all weights before it, exceeds r. W = 1 takes no word.
 *
 * With replacement: draws 0 to k - 1 from the table. Without a table: k exact draws from word 0 on. Repeats stay.
 *
 * Without replacement, the law is that of successive sampling: each draw is in proportion to the weights of the edges
 * that are not picked yet. Draws 0, 1, ... from the table; those of an edge that is picked already are skipped. After
 * 4k + 16 draws, exact draws pick the rest, each from the edges that are not picked yet, from word 8k + 32 on. Without
 * a table: exact draws from word 0 on. If no positive weight remains, the list has fewer picks than k.
 *
 * Rounds:
 *   0  weights of short lists, and of all lists without a table | table entries of the draws, or the complete table of
 *      a list that has at most as many edges as the draws
 *   1  picks | without replacement: entries of the remaining draws | weights for the exact draws
 *   2  picks | weights for the exact draws
 *   3  picks
 * Until a list's entries arrive, its slots hold its first k draws as column << 32 | u; then they hold its counts[i]
 * picks. If tables are at hand, round 0 reads them, and the next rounds handle weights. How many draws a round asks for
 * does not show in the picks.
 */
#include <string.h>

#include "core/graph/alias.h"
#include "core/graph/weights.h"
#include "core/numbers/rng.h"
#include "core/numbers/sort.h"
#include "sampler/draw.h"
#include "sampler/weighted_exact.h"
#include "sampler/wide_table.h"

#define ENTRY_BYTES  8
#define SORTED_PICKS 64 /* up to this many picks, insertion into sorted ones */
#define SLOTS_MIN    256
#define EMPTY        UINT32_MAX /* never a position, because degrees are below 2^32 */
#define MIN(a, b)    ((a) < (b) ? (a) : (b))

/* Blocks of draws whose columns are not known yet. */
struct weighted_ask {
	struct gw_table_lanes lanes;
	gw_table_row columns[2], words[2];
	uint32_t list[GW_WIDE_LANES], used;
	uint64_t end[GW_WIDE_LANES]; /* of the list's draws */
	bool entry[GW_WIDE_LANES];   /* asks for the entry of each draw */
};

/* Sixteen lists whose first k draws are resolved together. */
struct weighted_group {
	struct gw_table_lanes lanes;
	gw_table_row columns[GW_WIDE_PICKS], words[GW_WIDE_PICKS], picks[GW_WIDE_PICKS]; /* a row for each draw */
	uint32_t list[GW_WIDE_LANES], used;
	uint64_t need[GW_WIDE_LANES];         /* the list's first need; or: */
	const uint8_t *tables[GW_WIDE_LANES]; /* its table at hand */
} __attribute__((aligned(64)));

/* A round. */
struct weighted {
	const struct gw_draw *draw;
	struct gw_draw_run *run;
	uint64_t *positions;
	const struct gw_table_functions *functions;
	uint64_t key, fanout; /* fanout: UINT64_MAX for all */
	uint32_t number;
	bool replace, table, at_hand; /* table: lists have tables; at_hand: in memory */
	struct weighted_ask ask;
	struct weighted_group groups[2];
	struct gw_network network;
};

static uint64_t draws_max(uint64_t fanout)
{
	return 4 * fanout + 16;
}

/* How many draws without replacement round 0 asks for: even, so that round 1 begins with a block. */
static uint64_t draws_first(uint64_t fanout)
{
	return (fanout + fanout / 4 + 5) & ~1ull;
}

static uint64_t *slots_of(const struct weighted *w, uint32_t list)
{
	return w->positions + w->run->lists.starts[list];
}

static uint32_t group_of(const struct weighted *w, uint32_t list)
{
	return w->run->lists.groups ? w->run->lists.groups[list] : 0;
}

/* All positive edges of the list, without a draw. */
static bool takes_all(const struct weighted *w, uint64_t degree)
{
	return w->fanout == UINT64_MAX || (!w->replace && degree <= w->fanout);
}

static void set_lane(const struct weighted *w, struct gw_table_lanes *lanes, uint32_t lane, uint32_t list,
		     uint32_t block)
{
	uint64_t vertex = w->run->lists.vertices[list];
	lanes->block[lane] = block;
	lanes->instance_low[lane] = (uint32_t)vertex;
	lanes->instance_high[lane] = (uint32_t)(vertex >> 32);
	lanes->group[lane] = group_of(w, list);
	lanes->degree[lane] = (uint32_t)w->run->lists.degrees[list];
}

/* ---- draws whose entries are needed ---- */

static gw_status ask_flush(struct weighted *w)
{
	struct weighted_ask *ask = &w->ask;
	struct gw_draw_run *run = w->run;
	uint64_t room = run->next_count + 2 * GW_WIDE_LANES;
	if (ask->used == 0)
		return GW_OK;
	if (gw_vec_reserve(run->next, room * sizeof(struct gw_need)) != GW_OK)
		return GW_NO_MEMORY;
	w->functions->draw(&ask->lanes, w->key, 1, ask->columns, ask->words);
	struct gw_need *needs = (struct gw_need *)run->next->data + run->next_count;
	for (uint32_t lane = 0; lane < ask->used; lane++) {
		uint64_t draw = 2 * (uint64_t)ask->lanes.block[lane], *slots = slots_of(w, ask->list[lane]);
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

/* Asks for draws [from, end) of a list; from is even. entry: also for the entry of each draw. */
static gw_status ask_draws(struct weighted *w, uint32_t list, uint64_t from, uint64_t end, bool entry)
{
	struct weighted_ask *ask = &w->ask;
	for (uint64_t draw = from; draw < end; draw += 2) {
		uint32_t lane = ask->used++;
		set_lane(w, &ask->lanes, lane, list, (uint32_t)(draw / 2));
		ask->list[lane] = list;
		ask->end[lane] = end;
		ask->entry[lane] = entry;
		if (ask->used == GW_WIDE_LANES && ask_flush(w) != GW_OK)
			return GW_NO_MEMORY;
	}
	return GW_OK;
}

/* Asks for a column of the complete list. A list's needs must lie together, so asked draws come first. */
static gw_status ask_whole(struct weighted *w, uint32_t list, enum gw_column column)
{
	gw_status status = ask_flush(w);
	return status != GW_OK ? status : gw_draw_need(w->run, list, column, 0, w->run->lists.degrees[list]);
}

/* A list without replacement that has at most as many edges as draws: one span instead of an entry for each draw. */
static bool needs_whole_table(const struct weighted *w, uint64_t degree)
{
	return !w->replace && degree <= draws_max(w->fanout);
}

/* ---- picks ---- */

static void prefetch_neighbour(const struct gw_draw_run *run, uint64_t position)
{
	if (run->element_bytes)
		__builtin_prefetch((const void *)(run->memory + position * run->element_bytes));
}

/* The first `count` slots of a list, positions within it, are its picks. */
static void weighted_finish(struct weighted *w, uint32_t list, uint64_t count)
{
	uint64_t *slots = slots_of(w, list), begin = w->run->lists.begins[list];
	for (uint64_t i = 0; i < count; i++) {
		slots[i] += begin;
		prefetch_neighbour(w->run, slots[i]);
	}
	w->run->counts[list] = (uint32_t)count;
	w->run->done[list] = true;
}

static gw_status sort_slots(uint64_t *slots, uint64_t n, struct gw_pick_scratch *scratch)
{
	if (n > SORTED_PICKS)
		return gw_sort_rows(slots, NULL, n, &scratch->sorted);
	for (uint64_t i = 1; i < n; i++) {
		uint64_t slot = slots[i], at = i;
		for (; at && slots[at - 1] > slot; at--)
			slots[at] = slots[at - 1];
		slots[at] = slot;
	}
	return GW_OK;
}

/* The positions picked from one list: sorted slots if they are few, else slots and a set of open addressing. */
struct picked {
	uint64_t *slots, count;
	uint32_t *set, mask; /* NULL: the slots are sorted */
};

static bool set_has_added(struct picked *picked, uint32_t position)
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
		set_has_added(picked, (uint32_t)slots[i]);
	return GW_OK;
}

/* Adds a position unless it was picked before. */
static void picked_add(struct picked *picked, uint32_t position)
{
	uint64_t *slots = picked->slots, at = picked->count;
	if (picked->set) {
		if (set_has_added(picked, position))
			slots[picked->count++] = position;
		return;
	}
	while (at && slots[at - 1] > position)
		at--;
	if (at && slots[at - 1] == position)
		return;
	memmove(slots + at + 1, slots + at, (picked->count - at) * sizeof(*slots));
	slots[at] = position;
	picked->count++;
}

/* ---- exact draws ---- */

static gw_status pick_by_weight(struct weighted *w, uint32_t list, const void *weights)
{
	const struct gw_lists *lists = &w->run->lists;
	struct gw_pick_scratch *scratch = w->run->scratch;
	uint64_t *slots = slots_of(w, list), n = lists->degrees[list], count = w->run->counts[list];
	struct gw_exact exact;
	gw_status status = gw_exact_begin(&exact, w->draw->forms[GW_COLUMN_WEIGHT].dtype, weights, n,
					  lists->begins[list], scratch);
	if (status != GW_OK)
		return gw_context(status, "vertex %llu", (unsigned long long)lists->vertices[list]);
	if (takes_all(w, n)) {
		for (uint64_t i = 0; i < n; i++) {
			if (exact.weights[i])
				slots[count++] = i;
		}
		weighted_finish(w, list, count);
		return GW_OK;
	}
	for (uint64_t i = 0; i < count; i++)
		gw_exact_drop(&exact, slots[i]);
	status = gw_exact_sum(&exact, scratch);
	if (status != GW_OK)
		return status;
	uint32_t block = w->table ? (uint32_t)(draws_max(w->fanout) / 2) : 0;
	struct gw_draws draws = gw_draws_begin_in(w->key, lists->vertices[list], group_of(w, list), block);
	while (count < w->fanout && exact.positive) {
		slots[count] = gw_exact_draw(&exact, &draws);
		if (!w->replace)
			gw_exact_take(&exact, slots[count]);
		count++;
	}
	status = sort_slots(slots, count, scratch);
	if (status == GW_OK)
		weighted_finish(w, list, count);
	return status;
}

/* ---- draws from tables ---- */

struct alias_entry {
	uint32_t threshold, alias;
};

static inline uint32_t resolve_draw(uint64_t draw, const void *at)
{
	struct alias_entry entry;
	memcpy(&entry, at, sizeof(entry));
	return (uint32_t)draw < entry.threshold ? (uint32_t)(draw >> 32) : entry.alias;
}

/* Draws of one list, computed when they are asked for. */
struct later_draws {
	struct gw_table_lanes lanes;
	gw_table_row columns[2], words[2];
	uint64_t first, end; /* the draws in the rows */
};

/* table: at hand, or NULL; its entries are prefetched. */
static uint64_t later_draw(const struct weighted *w, struct later_draws *later, uint32_t list, uint64_t draw,
			   const uint8_t *table)
{
	if (draw >= later->end) {
		later->first = draw & ~1ull;
		later->end = later->first + 2 * GW_WIDE_LANES;
		for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane++)
			set_lane(w, &later->lanes, lane, list, (uint32_t)(later->first / 2) + lane);
		w->functions->draw(&later->lanes, w->key, 1, later->columns, later->words);
		for (uint32_t lane = 0; table && lane < GW_WIDE_LANES; lane++) {
			__builtin_prefetch(table + (uint64_t)later->columns[0][lane] * ENTRY_BYTES);
			__builtin_prefetch(table + (uint64_t)later->columns[1][lane] * ENTRY_BYTES);
		}
	}
	uint64_t lane = (draw - later->first) / 2;
	return (uint64_t)later->columns[draw & 1][lane] << 32 | later->words[draw & 1][lane];
}

/* What follows draws without replacement that gave too few picks. */
static gw_status ask_more(struct weighted *w, uint32_t list, uint64_t draws)
{
	if (draws < draws_max(w->fanout))
		return ask_draws(w, list, draws, draws_max(w->fanout), true);
	return ask_whole(w, list, GW_COLUMN_WEIGHT);
}

/* Resolves the draws of one list in order. need: the list's first need. table: its complete table, or NULL. drawn: how
 * many draws its slots hold. */
static gw_status pick_by_table(struct weighted *w, uint32_t list, uint64_t need, const uint8_t *table, uint64_t drawn)
{
	struct gw_draw_run *run = w->run;
	uint64_t *slots = slots_of(w, list), degree = run->lists.degrees[list];
	uint64_t first = w->number < 2 ? 0 : draws_first(w->fanout), draw = first;
	uint64_t end = table || w->number == 2 ? draws_max(w->fanout) : draws_first(w->fanout);
	struct later_draws later;
	struct picked picked;
	later.end = 0;
	gw_status status = picked_begin(&picked, slots, run->counts[list], w->replace ? 0 : w->fanout, run->scratch);
	if (status != GW_OK)
		return status;
	for (; draw < end && picked.count < w->fanout; draw++) {
		uint64_t split = draw < drawn ? slots[draw] : later_draw(w, &later, list, draw, table);
		uint32_t pick = resolve_draw(split, table ? table + (split >> 32) * ENTRY_BYTES
							  : run->got[need + draw - first]);
		if (pick == GW_ALIAS_NONE) {
			weighted_finish(w, list, 0);
			return GW_OK;
		}
		if (pick >= degree)
			return gw_fail(GW_RANGE, "vertex %llu: edge %u in the alias table of a list of %llu",
				       (unsigned long long)run->lists.vertices[list], pick, (unsigned long long)degree);
		if (w->replace)
			slots[picked.count++] = pick;
		else
			picked_add(&picked, pick);
	}
	run->counts[list] = (uint32_t)picked.count;
	if (picked.count < w->fanout)
		return ask_more(w, list, end);
	if (w->replace || picked.set)
		status = sort_slots(slots, picked.count, run->scratch);
	if (status == GW_OK)
		weighted_finish(w, list, picked.count);
	return status;
}

/* ---- sixteen lists at once ---- */

/* Resolves the draws of lists whose tables are at hand. */
static void group_resolve(struct weighted_group *group, uint32_t fanout)
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
static void lane_resolve(const struct weighted *w, struct weighted_group *group, uint32_t lane)
{
	uint32_t fanout = (uint32_t)w->fanout;
	const uint64_t *slots = slots_of(w, group->list[lane]);
	const void *const *got = w->run->got + group->need[lane];
	const uint8_t *table = group->tables[lane];
	for (uint32_t j = 0; j < fanout && table; j++)
		group->picks[j][lane] = resolve_draw(slots[j], table + (slots[j] >> 32) * ENTRY_BYTES);
	for (uint32_t j = 0; j < fanout && !table; j++)
		group->picks[j][lane] = resolve_draw(slots[j], got[j]);
}

/* Sorts the resolved draws. They are a list's picks, unless repeats must be drawn again or an entry is no position. */
static gw_status group_finish(struct weighted *w, struct weighted_group *group)
{
	struct gw_draw_run *run = w->run;
	uint32_t fanout = (uint32_t)w->fanout, repeats = w->functions->sort(group->picks, &w->network);
	for (uint32_t lane = 0; lane < group->used; lane++) {
		uint32_t list = group->list[lane];
		uint64_t *slots = slots_of(w, list), begin = run->lists.begins[list];
		if ((!w->replace && repeats >> lane & 1) ||
		    group->picks[fanout - 1][lane] >= run->lists.degrees[list]) {
			for (uint32_t j = 0; j < fanout && w->number == 0; j++)
				slots[j] = (uint64_t)group->columns[j][lane] << 32 | group->words[j][lane];
			gw_status status = pick_by_table(w, list, group->need[lane], group->tables[lane], fanout);
			if (status != GW_OK)
				return status;
			continue;
		}
		for (uint32_t j = 0; j < fanout; j++) {
			slots[j] = begin + group->picks[j][lane];
			prefetch_neighbour(run, slots[j]);
		}
		run->counts[list] = fanout;
		run->done[list] = true;
	}
	group->used = 0;
	return GW_OK;
}

/* Draws for the lists whose numbers are in `drawn`, whose tables are at hand: while the entries of sixteen lists
 * arrive, it draws for the next sixteen. */
static gw_status pick_at_hand(struct weighted *w, const uint16_t *drawn, uint32_t count)
{
	uint32_t fanout = (uint32_t)w->fanout;
	struct weighted_group *before = NULL;
	for (uint32_t at = 0; at < count; at += GW_WIDE_LANES) {
		struct weighted_group *group = &w->groups[at / GW_WIDE_LANES % 2];
		group->used = MIN(count - at, GW_WIDE_LANES);
		for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane++) {
			uint32_t list = drawn[at + (lane < group->used ? lane : 0)];
			group->list[lane] = list;
			group->need[lane] = 0;
			group->tables[lane] = gw_draw_at_hand(w->draw, w->run, list, GW_COLUMN_ALIAS);
			set_lane(w, &group->lanes, lane, list, 0);
		}
		w->functions->draw(&group->lanes, w->key, (fanout + 1) / 2, group->columns, group->words);
		for (uint32_t j = 0; j < fanout; j++) {
			for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane++)
				__builtin_prefetch(group->tables[lane] +
						   (uint64_t)group->columns[j][lane] * ENTRY_BYTES);
		}
		if (before) {
			group_resolve(before, fanout);
			gw_status status = group_finish(w, before);
			if (status != GW_OK)
				return status;
		}
		before = group;
	}
	if (!before)
		return GW_OK;
	group_resolve(before, fanout);
	return group_finish(w, before);
}

/* ---- rounds ---- */

/* Draws from the tables of the lists whose numbers are in `drawn`, or asks for their entries. */
static gw_status begin_drawn(struct weighted *w, const uint16_t *drawn, uint32_t count)
{
	gw_status status = GW_OK;
	if (w->at_hand && w->fanout <= GW_WIDE_PICKS)
		return pick_at_hand(w, drawn, count);
	for (uint32_t i = 0; status == GW_OK && i < count; i++) {
		uint32_t list = drawn[i];
		if (w->at_hand)
			status = pick_by_table(w, list, 0, gw_draw_at_hand(w->draw, w->run, list, GW_COLUMN_ALIAS), 0);
		else if (w->replace || needs_whole_table(w, w->run->lists.degrees[list]))
			status = ask_draws(w, list, 0, w->fanout, w->replace);
		else
			status = ask_draws(w, list, 0, draws_first(w->fanout), true);
	}
	return status;
}

static gw_status weighted_begin(struct weighted *w)
{
	struct gw_draw_run *run = w->run;
	uint16_t drawn[GW_RUN_MAX];
	uint32_t count = 0;
	gw_status status = GW_OK;
	for (uint32_t i = 0; status == GW_OK && i < run->lists.n; i++) {
		uint64_t degree = run->lists.degrees[i];
		run->done[i] = degree == 0 || w->fanout == 0;
		if (run->done[i])
			continue;
		if (degree > UINT32_MAX)
			return gw_fail(GW_RANGE,
				       "vertex %llu: a list of %llu entries: at most 2^32 - 1 can be drawn from",
				       (unsigned long long)run->lists.vertices[i], (unsigned long long)degree);
		if (!w->table || takes_all(w, degree)) {
			status = ask_whole(w, i, GW_COLUMN_WEIGHT);
			continue;
		}
		drawn[count++] = (uint16_t)i;
		if (!w->at_hand && needs_whole_table(w, degree))
			status = ask_whole(w, i, GW_COLUMN_ALIAS);
	}
	return status != GW_OK ? status : begin_drawn(w, drawn, count);
}

/* How many entries of a list's table, one by one, the previous round asked for. */
static uint64_t entries_asked(const struct weighted *w)
{
	uint64_t first = draws_first(w->fanout);
	if (w->replace)
		return w->fanout;
	return w->number == 1 ? first : draws_max(w->fanout) - first;
}

/* Handles what the previous round needed, list by list. */
static gw_status weighted_continue(struct weighted *w)
{
	const struct gw_draw_run *run = w->run;
	struct weighted_group *group = w->groups;
	bool grouped = w->number == 1 && w->fanout <= GW_WIDE_PICKS;
	gw_status status = GW_OK;
	if (grouped)
		memset(group->picks, 0, w->fanout * sizeof(group->picks[0])); /* for lanes without a list */
	for (uint64_t need = 0, count; status == GW_OK && need < run->need_count; need += count) {
		uint32_t list = run->needs[need].list;
		bool whole = needs_whole_table(w, run->lists.degrees[list]);
		count = 1;
		if (run->needs[need].column == GW_COLUMN_WEIGHT) {
			status = pick_by_weight(w, list, run->got[need]);
			continue;
		}
		const uint8_t *table = whole ? run->got[need] : NULL;
		count = whole ? 1 : entries_asked(w);
		if (!grouped) {
			status = pick_by_table(w, list, need, table, w->number == 1 ? w->fanout : 0);
			continue;
		}
		group->list[group->used] = list;
		group->need[group->used] = need;
		group->tables[group->used] = table;
		lane_resolve(w, group, group->used++);
		status = group->used == GW_WIDE_LANES ? group_finish(w, group) : GW_OK;
	}
	return status == GW_OK && group->used ? group_finish(w, group) : status;
}

static gw_status weighted_round(const struct gw_draw *draw, struct gw_draw_run *run, uint32_t number,
				uint64_t *positions)
{
	struct weighted w;
	w.draw = draw;
	w.run = run;
	w.positions = positions;
	w.functions = gw_table_functions();
	w.key = draw->rule.key;
	w.fanout = draw->rule.fanout == GW_FANOUT_ALL ? UINT64_MAX : (uint64_t)draw->rule.fanout;
	w.number = number;
	w.replace = draw->rule.replace && draw->rule.fanout != GW_FANOUT_ALL;
	w.table = draw->forms[GW_COLUMN_ALIAS].entry_bytes == ENTRY_BYTES;
	w.at_hand = w.table && run->at_hand;
	w.ask.used = w.groups[0].used = 0;
	if (w.fanout <= GW_WIDE_PICKS)
		gw_network_make(&w.network, (uint32_t)w.fanout);
	uint64_t asked = run->next_count;
	gw_status status = number == 0 ? weighted_begin(&w) : weighted_continue(&w);
	if (status == GW_OK)
		status = ask_flush(&w);
	if (status != GW_OK)
		return status;
	return run->next_count > asked ? GW_AGAIN : GW_OK;
}

static gw_status weighted_check(const struct gw_draw *draw)
{
	const struct gw_column_form *weight = &draw->forms[GW_COLUMN_WEIGHT];
	if (weight->entry_bytes == 0)
		return gw_fail(GW_UNSUPPORTED, "a draw by weight needs a weight for each edge");
	gw_status status = gw_weights_check(weight->dtype);
	if (status == GW_OK && weight->entry_bytes != gw_dtype_bytes(weight->dtype))
		status = gw_fail(GW_UNSUPPORTED, "a draw by weight needs one number for each edge, not %u",
				 weight->entry_bytes / gw_dtype_bytes(weight->dtype));
	return status;
}

const struct gw_sampling_kind gw_sample_weighted = {
	.name = "weighted",
	.number = 2,
	.columns = GW_COLUMN_BIT(GW_COLUMN_ALIAS) | GW_COLUMN_BIT(GW_COLUMN_WEIGHT),
	.check = weighted_check,
	.round = weighted_round,
};
