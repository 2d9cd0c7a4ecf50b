/* Which positions of a list are picked: pure functions of (key, instance, degree, fanout).
 *
 * Uniform without replacement: Floyd's algorithm (Bentley and Floyd, "Programming pearls: a sample of brilliance", CACM
 * 30(9), 1987) over draws 0, 1, ... of the instance, the picked positions put in ascending order. Degree <= fanout, or
 * fanout GW_FANOUT_ALL: the whole list. With replacement: fanout draws below the degree, ascending, repeats kept; an
 * empty list gives none. Nothing else enters: not the thread, the time, the transport, the width of a vector.
 */
#ifndef GW_SAMPLER_PICK_H
#define GW_SAMPLER_PICK_H

#include <stdbool.h>

#include "core/errors/status.h"
#include "core/graph/part.h"
#include "core/memory/vec.h"
#include "core/numbers/rng.h"

#define GW_FANOUT_ALL (-1)
#define GW_FANOUT_MAX (1 << 20)

/* How one edge type is sampled in one hop. */
struct gw_pick_rule {
	uint64_t key;   /* gw_draw_key(seed, stream, GW_DRAW_NEIGHBOURS, hop, edge type) */
	int32_t fanout; /* GW_FANOUT_ALL or 0 to GW_FANOUT_MAX */
	bool replace;
};

/* How many positions the rule picks from a list of this degree. */
static inline uint64_t gw_pick_count(const struct gw_pick_rule *rule, uint64_t degree)
{
	if (rule->fanout == GW_FANOUT_ALL)
		return degree;
	uint64_t fanout = (uint64_t)rule->fanout;
	if (rule->replace)
		return degree ? fanout : 0;
	return degree < fanout ? degree : fanout;
}

/* Working memory of one thread. Zero-initialized is empty. */
struct gw_pick_scratch {
	struct gw_vec seen, sorted, wide;
};
void gw_pick_scratch_free(struct gw_pick_scratch *scratch);

/* Writes gw_pick_count() positions in [0, degree), ascending, to out. GW_NO_MEMORY only for fanouts in the thousands;
 * GW_RANGE if degree >= 2^32 and it is not the whole list. */
gw_status gw_pick(const struct gw_pick_rule *rule, uint64_t instance, uint64_t degree, struct gw_pick_scratch *scratch,
		  uint64_t *out);

/* The picks of a run of destinations, in their order. The arrays are vectors of the owner, reused. */
struct gw_picks {
	uint64_t dst_count, edge_count;
	struct gw_vec counts;     /* uint32_t [dst_count]: picks of each destination */
	struct gw_vec positions;  /* uint64_t [edge_count]: CSC positions in the part that owns the destination */
	struct gw_vec neighbours; /* uint64_t [edge_count]: global source ids */
	struct gw_pick_scratch scratch;
};
void gw_picks_free(struct gw_picks *picks);

/* Picks from lists in memory. vertices: global destination ids, all owned by this part (GW_RANGE names the first that
 * is not; they may come from a peer). The fast path of sampling: offsets prefetched ahead, neighbours prefetched as
 * positions are drawn. n should be a few hundred, so that what was prefetched is still in the cache when it is used. */
gw_status gw_picks_from_memory(struct gw_picks *picks, const struct gw_adjacency *adjacency,
			       const struct gw_pick_rule *rule, const uint64_t *vertices, uint64_t n);

/* Positions alone, from degree records that were read elsewhere: begins and ends are CSC positions [n]; fills counts
 * and positions; the caller then reads the neighbours. */
gw_status gw_picks_from_records(struct gw_picks *picks, const struct gw_pick_rule *rule, const uint64_t *vertices,
				const uint64_t *begins, const uint64_t *ends, uint64_t n);

#endif
