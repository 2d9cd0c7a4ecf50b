/* Which positions of a list are picked: pure functions of (key, instance, degree, fanout).
 *
 * Uniform without replacement: Floyd's algorithm (Bentley and Floyd, "Programming pearls: a sample of brilliance", CACM
 * 30(9), 1987) over draws 0, 1, ... of the instance, the picked positions put in ascending order. Degree <= fanout, or
 * fanout GW_FANOUT_ALL: the whole list. With replacement: fanout draws below the degree, ascending, repeats kept; an
 * empty list gives none. Nothing else enters: not the thread, the time, the transport, the width of a vector.
 */
#ifndef GW_SAMPLER_PICK_H
#define GW_SAMPLER_PICK_H

#include "core/errors/status.h"
#include "core/numbers/rng.h"
#include "sampler/rule.h"

/* GW_INVALID for a fanout that is none. */
gw_status gw_pick_rule_check(const struct gw_pick_rule *rule);

void gw_pick_scratch_free(struct gw_pick_scratch *scratch);

/* Writes gw_pick_count() positions in [0, degree), ascending, to out. GW_NO_MEMORY only for fanouts in the thousands;
 * GW_RANGE if degree >= 2^32 and it is not the whole list. */
gw_status gw_pick(const struct gw_pick_rule *rule, uint64_t instance, uint64_t degree, struct gw_pick_scratch *scratch,
		  uint64_t *out);

#endif
