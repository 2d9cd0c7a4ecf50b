/* Picks from one long list piece by piece, for a server that must serve other requests meanwhile.
 *
 *   begin ─▶ run (budget), until it is done ─▶ take, take … : positions, ascending
 */
#ifndef GW_SAMPLER_PICK_LONG_H
#define GW_SAMPLER_PICK_LONG_H

#include "core/errors/status.h"
#include "core/numbers/rng.h"
#include "sampler/rule.h"

#define GW_PICK_RADIX_BITS 11

enum gw_pick_stage {
	GW_PICK_CLEAR,   /* clear the bitmap or the set */
	GW_PICK_DRAW,    /* draw into the bitmap, or into values */
	GW_PICK_COUNT,   /* count values by digit */
	GW_PICK_SCATTER, /* scatter values into the order of the digit */
	GW_PICK_DONE
};

struct gw_pick_long {
	struct gw_draws draws;
	struct gw_pick_scratch *scratch; /* borrowed from the caller */
	uint32_t degree, fanout;
	bool whole, replace, bitmap; /* the kind of pick: see the table in pick_long.c */
	enum gw_pick_stage stage;
	uint64_t at;   /* progress in the stage; in DONE: positions taken */
	uint64_t word; /* remaining bits of the bitmap's current word */
	uint32_t slots, pass;
	uint32_t *values, *spare;
	uint32_t starts[1 << GW_PICK_RADIX_BITS];
};

/* Begins a pick of gw_pick_count() positions from a list of `degree` entries. Uses the scratch until the last position
 * is taken. GW_NO_MEMORY; GW_RANGE as gw_pick. */
gw_status gw_pick_long_begin(struct gw_pick_long *pick, const struct gw_pick_rule *rule, uint64_t instance,
			     uint32_t group, uint64_t degree, struct gw_pick_scratch *scratch);
/* Works on about `budget` entries; returns true when all draws are done. */
bool gw_pick_long_run(struct gw_pick_long *pick, uint64_t budget);
/* Takes the next n positions; at least n must remain. */
void gw_pick_long_take(struct gw_pick_long *pick, uint64_t *out, uint64_t n);

#endif
