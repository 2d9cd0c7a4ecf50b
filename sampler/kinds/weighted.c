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
#include "core/graph/weights.h"
#include "core/numbers/rng.h"
#include "sampler/columns.h"
#include "sampler/kinds/weighted_exact.h"
#include "sampler/kinds/weighted_run.h"
#include "sampler/kinds/weighted_table.h"
#include "sampler/pick.h"

#define TABLE_ENTRY_BYTES 8

/* The error text has its position in the list. */
static gw_status fail_list(const struct gw_weighted *w, uint32_t list, gw_status status)
{
	return gw_column_context(status, w->draw, GW_COLUMN_WEIGHT, w->run->lists.vertices[list]);
}

static gw_status pick_all_positive(struct gw_weighted *w, uint32_t list, const void *weights)
{
	const struct gw_lists *lists = &w->run->lists;
	uint64_t count;
	gw_status status = gw_weights_positive(w->draw->forms[GW_COLUMN_WEIGHT].dtype, weights, lists->degrees[list], 0,
					       gw_weighted_slots(w, list), &count);
	if (status != GW_OK)
		return fail_list(w, list, status);
	gw_weighted_finish(w, list, count);
	return GW_OK;
}

/* Exact draws, of all picks or of those that the table's draws have not given. */
static gw_status pick_by_weight(struct gw_weighted *w, uint32_t list, const void *weights)
{
	const struct gw_lists *lists = &w->run->lists;
	struct gw_pick_scratch *scratch = w->run->scratch;
	uint64_t *slots = gw_weighted_slots(w, list), n = lists->degrees[list], count = w->run->counts[list];
	struct gw_exact exact;
	if (gw_weighted_takes_all(w, n))
		return pick_all_positive(w, list, weights);
	gw_status status = gw_exact_begin(&exact, w->draw->forms[GW_COLUMN_WEIGHT].dtype, weights, n, scratch);
	if (status != GW_OK)
		return fail_list(w, list, status);
	for (uint64_t i = 0; i < count; i++)
		gw_exact_drop(&exact, slots[i]);
	status = gw_exact_sum(&exact, scratch);
	if (status != GW_OK)
		return status;
	uint32_t block = w->table ? (uint32_t)(gw_weighted_draws_max(w) / 2) : 0;
	struct gw_draws draws = gw_draws_begin_in(w->key, lists->vertices[list], gw_weighted_group(w, list), block);
	while (count < w->fanout && exact.positive) {
		slots[count] = gw_exact_draw(&exact, &draws);
		if (!w->replace)
			gw_exact_take(&exact, slots[count]);
		count++;
	}
	status = gw_pick_sort(slots, count, w->run->scratch);
	if (status == GW_OK)
		gw_weighted_finish(w, list, count);
	return status;
}

/* Draws from the tables of the lists whose numbers are in `drawn`, or asks for their entries. */
static gw_status begin_drawn(struct gw_weighted *w, const uint16_t *drawn, uint32_t count)
{
	gw_status status = GW_OK;
	if (w->at_hand)
		return gw_weighted_pick_at_hand(w, drawn, count);
	for (uint32_t i = 0; status == GW_OK && i < count; i++) {
		if (w->replace || gw_weighted_whole_table(w, w->run->lists.degrees[drawn[i]]))
			status = gw_weighted_ask_draws(w, drawn[i], 0, w->fanout, w->replace);
		else
			status = gw_weighted_ask_draws(w, drawn[i], 0, gw_weighted_draws_first(w), true);
	}
	return status;
}

static gw_status weighted_begin(struct gw_weighted *w)
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
		if (!w->table || gw_weighted_takes_all(w, degree)) {
			status = gw_weighted_ask_whole(w, i, GW_COLUMN_WEIGHT);
			continue;
		}
		drawn[count++] = (uint16_t)i;
		if (!w->at_hand && gw_weighted_whole_table(w, degree))
			status = gw_weighted_ask_whole(w, i, GW_COLUMN_ALIAS);
	}
	return status != GW_OK ? status : begin_drawn(w, drawn, count);
}

/* How many entries of a list's table, one by one, the previous round asked for. */
static uint64_t entries_asked(const struct gw_weighted *w)
{
	uint64_t first = gw_weighted_draws_first(w);
	if (w->replace)
		return w->fanout;
	return w->number == 1 ? first : gw_weighted_draws_max(w) - first;
}

static gw_status weighted_continue(struct gw_weighted *w)
{
	const struct gw_draw_run *run = w->run;
	struct gw_weighted_groups groups;
	gw_status status = GW_OK;
	gw_weighted_groups_begin(w, &groups);
	for (uint64_t need = 0, count = 1; status == GW_OK && need < run->need_count; need += count) {
		uint32_t list = run->needs[need].list;
		bool weights = run->needs[need].column == GW_COLUMN_WEIGHT;
		if (weights)
			status = pick_by_weight(w, list, run->got[need]);
		else
			status = gw_weighted_groups_add(w, &groups, list, need);
		count = weights || gw_weighted_whole_table(w, run->lists.degrees[list]) ? 1 : entries_asked(w);
	}
	return status == GW_OK ? gw_weighted_groups_end(w, &groups) : status;
}

static gw_status weighted_round(const struct gw_draw *draw, struct gw_draw_run *run, uint32_t number,
				uint64_t *positions)
{
	struct gw_weighted w;
	w.draw = draw;
	w.run = run;
	w.positions = positions;
	w.functions = gw_table_functions();
	w.key = draw->rule.key;
	w.fanout = draw->rule.fanout == GW_FANOUT_ALL ? UINT64_MAX : (uint64_t)draw->rule.fanout;
	w.number = number;
	w.replace = draw->rule.replace && draw->rule.fanout != GW_FANOUT_ALL;
	w.table = draw->forms[GW_COLUMN_ALIAS].entry_bytes == TABLE_ENTRY_BYTES;
	w.at_hand = w.table && run->at_hand;
	w.ask.used = 0;
	uint64_t asked = run->next_count;
	gw_status status = number == 0 ? weighted_begin(&w) : weighted_continue(&w);
	if (status == GW_OK)
		status = gw_weighted_ask_flush(&w);
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
	.how = "by weight",
	.number = GW_KIND_WEIGHTED,
	.columns = GW_COLUMN_BIT(GW_COLUMN_ALIAS) | GW_COLUMN_BIT(GW_COLUMN_WEIGHT),
	.check = weighted_check,
	.round = weighted_round,
};
