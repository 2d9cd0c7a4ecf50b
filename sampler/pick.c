/* The picks of one list, by definition: draws in order, each mapped by Floyd's rule, the result ascending.
 *
 * Floyd's step j draws t in [0, degree - fanout + j]. If t was picked before, degree - fanout + j replaces it, which
 * exceeds all earlier picks. So a small pick is an insertion into a sorted array, where a duplicate appends. A large
 * pick marks a bitmap, which is in order by itself. For a huge list it fills a hash set and sorts (pick_long.c, which
 * can also pause). All three give the same positions. The wide path (wide.h) must agree with this file byte by byte.
 * Fails if memory for large fanouts runs out, and for a list that is too long for 32-bit draws.
 */
#include "sampler/pick.h"

#include <string.h>

#include "core/numbers/sort.h"
#include "sampler/pick_long.h"

#define SMALL_PICKS 64 /* up to this many picks, insertion sort */

void gw_pick_scratch_free(struct gw_pick_scratch *scratch)
{
	gw_vec_free(&scratch->seen);
	gw_vec_free(&scratch->sorted);
	gw_vec_free(&scratch->wide);
	gw_vec_free(&scratch->needs);
	gw_vec_free(&scratch->next_needs);
	gw_vec_free(&scratch->got);
	gw_vec_free(&scratch->weights);
	gw_vec_free(&scratch->sums);
	gw_vec_free(&scratch->eligible);
}

gw_status gw_pick_rule_check(const struct gw_pick_rule *rule)
{
	if (rule->fanout < GW_FANOUT_ALL || rule->fanout > GW_FANOUT_MAX)
		return gw_fail(GW_INVALID, "fanout %d: give -1 for all or 0 to %d", rule->fanout, GW_FANOUT_MAX);
	return GW_OK;
}

gw_status gw_pick_sort(uint64_t *positions, uint64_t n, struct gw_pick_scratch *scratch)
{
	if (n > SMALL_PICKS)
		return gw_sort_rows(positions, NULL, n, &scratch->sorted);
	for (uint64_t i = 1; i < n; i++) {
		uint64_t position = positions[i], at = i;
		for (; at && positions[at - 1] > position; at--)
			positions[at] = positions[at - 1];
		positions[at] = position;
	}
	return GW_OK;
}

static void floyd_by_insertion(struct gw_draws *draws, uint32_t degree, uint32_t fanout, uint64_t *out)
{
	for (uint32_t j = 0; j < fanout; j++) {
		uint32_t last = degree - fanout + j;
		uint32_t pick = gw_draw_below(draws, last + 1);
		uint32_t at = j;
		while (at && out[at - 1] > pick)
			at--;
		if (at && out[at - 1] == pick) {
			out[j] = last;
			continue;
		}
		memmove(out + at + 1, out + at, (j - at) * sizeof(*out));
		out[at] = pick;
	}
}

static void repeats_by_insertion(struct gw_draws *draws, uint32_t degree, uint32_t fanout, uint64_t *out)
{
	for (uint32_t j = 0; j < fanout; j++) {
		uint32_t pick = gw_draw_below(draws, degree);
		uint32_t at = j;
		for (; at && out[at - 1] > pick; at--)
			out[at] = out[at - 1];
		out[at] = pick;
	}
}

static gw_status at_one_go(const struct gw_pick_rule *rule, uint64_t instance, uint32_t group, uint64_t degree,
			   struct gw_pick_scratch *scratch, uint64_t *out)
{
	struct gw_pick_long pick;
	gw_status status = gw_pick_long_begin(&pick, rule, instance, group, degree, scratch);
	if (status != GW_OK)
		return status;
	gw_pick_long_run(&pick, UINT64_MAX / 2);
	gw_pick_long_take(&pick, out, gw_pick_count(rule, degree));
	return GW_OK;
}

gw_status gw_pick_in(const struct gw_pick_rule *rule, uint64_t instance, uint32_t group, uint64_t degree,
		     struct gw_pick_scratch *scratch, uint64_t *out)
{
	uint64_t count = gw_pick_count(rule, degree);
	if (count == degree && !(rule->replace && rule->fanout != GW_FANOUT_ALL)) {
		for (uint64_t i = 0; i < count; i++)
			out[i] = i;
		return GW_OK;
	}
	if (count == 0)
		return GW_OK;
	if (degree > UINT32_MAX || count > SMALL_PICKS)
		return at_one_go(rule, instance, group, degree, scratch, out);
	struct gw_draws draws = gw_draws_begin_in(rule->key, instance, group, 0);
	if (rule->replace)
		repeats_by_insertion(&draws, (uint32_t)degree, (uint32_t)count, out);
	else
		floyd_by_insertion(&draws, (uint32_t)degree, (uint32_t)count, out);
	return GW_OK;
}
