/* The picks of one long list, drawn piece by piece: for a server that has others to serve meanwhile.
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
	GW_PICK_CLEAR,   /* the bitmap or the set */
	GW_PICK_DRAW,    /* into the bitmap, or into values */
	GW_PICK_COUNT,   /* values by digit */
	GW_PICK_SCATTER, /* into their order by that digit */
	GW_PICK_DONE
};

struct gw_pick_long {
	struct gw_draws draws;
	struct gw_pick_scratch *scratch; /* lent */
	uint32_t degree, fanout;
	bool whole, replace, bitmap; /* which of the ways: see pick.c */
	enum gw_pick_stage stage;
	uint64_t at;   /* how far the stage is; DONE: how far it was taken */
	uint64_t word; /* of the bitmap that is being taken: what is left of it */
	uint32_t slots, pass;
	uint32_t *values, *spare;
	uint32_t starts[1 << GW_PICK_RADIX_BITS];
};

/* A list of `degree` entries of which gw_pick_count() are picked. The scratch is used until the last is taken.
 * GW_NO_MEMORY; GW_RANGE as gw_pick. */
gw_status gw_pick_long_begin(struct gw_pick_long *pick, const struct gw_pick_rule *rule, uint64_t instance,
			     uint64_t degree, struct gw_pick_scratch *scratch);
/* Works on about `budget` entries; true when all are drawn. */
bool gw_pick_long_run(struct gw_pick_long *pick, uint64_t budget);
/* The next n positions; there must be so many left. */
void gw_pick_long_take(struct gw_pick_long *pick, uint64_t *out, uint64_t n);

#endif
