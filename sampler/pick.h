/* Picks positions of a list: pure functions of (key, instance, group, degree, fanout).
 *
 * Uniform without replacement: Floyd's algorithm (Bentley and Floyd, "Programming pearls: a sample of brilliance", CACM
 * 30(9), 1987) over draws 0, 1, ... of the instance; the picked positions are then sorted. If degree <= fanout, or
 * fanout is GW_FANOUT_ALL: the complete list. With replacement: fanout draws below the degree, ascending, repeats kept;
 * an empty list gives no picks. The result does not depend on the thread, the time, the transport or the width of
 * vectors.
 */
#ifndef GW_SAMPLER_PICK_H
#define GW_SAMPLER_PICK_H

#include "core/errors/status.h"
#include "core/numbers/rng.h"
#include "sampler/rule.h"

/* GW_INVALID: the fanout is out of range. */
gw_status gw_pick_rule_check(const struct gw_pick_rule *rule);

void gw_pick_scratch_free(struct gw_pick_scratch *scratch);

/* Writes gw_pick_count() positions in [0, degree) to out, ascending. GW_NO_MEMORY is possible only for fanouts in the
 * thousands. GW_RANGE: degree >= 2^32, and the pick is not the complete list. */
gw_status gw_pick_in(const struct gw_pick_rule *rule, uint64_t instance, uint32_t group, uint64_t degree,
		     struct gw_pick_scratch *scratch, uint64_t *out);

/* Sorts n positions. GW_NO_MEMORY. */
gw_status gw_pick_sort(uint64_t *positions, uint64_t n, struct gw_pick_scratch *scratch);

/* In group 0. */
static inline gw_status gw_pick(const struct gw_pick_rule *rule, uint64_t instance, uint64_t degree,
				struct gw_pick_scratch *scratch, uint64_t *out)
{
	return gw_pick_in(rule, instance, 0, degree, scratch, out);
}

#endif
