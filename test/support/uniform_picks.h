/* Uniform picks by each driver, for tests that are not about kinds. */
#ifndef GW_TEST_UNIFORM_PICKS_H
#define GW_TEST_UNIFORM_PICKS_H

#include "sampler/picks.h"
#include "sampler/picks_rounds.h"

static inline gw_status uniform_from_memory(struct gw_picks *picks, const struct gw_adjacency *adjacency,
					    const struct gw_pick_rule *rule, const uint64_t *vertices, uint64_t n)
{
	const struct gw_draw draw = {.rule = *rule, .kind = &gw_sample_uniform};
	const struct gw_picks_memory memory = {.adjacency = adjacency};
	return gw_picks_from_memory(picks, &memory, &draw, vertices, NULL, n);
}

/* By rounds, from degree records: counts and positions only. */
static inline gw_status uniform_from_records(struct gw_picks *picks, const struct gw_pick_rule *rule,
					     const uint64_t *vertices, const uint64_t *begins, const uint64_t *ends,
					     uint64_t n)
{
	const struct gw_draw draw = {.rule = *rule, .kind = &gw_sample_uniform};
	struct gw_picks_rounds rounds = {0};
	gw_status status = gw_picks_rounds_begin(&rounds, picks, &draw, vertices, NULL, begins, ends, n);
	if (status == GW_OK)
		status = gw_picks_rounds_next(&rounds);
	gw_picks_rounds_free(&rounds);
	return status;
}

#endif
