/* The draws of sixteen lists side by side, one per lane; inside the sampler only.
 *
 * The common case has no rejected draw and no position twice: then Floyd's picks are simply the draws, sorted. A lane
 * where either happened is left to gw_pick(). So the result is gw_pick()'s by construction, whatever the vectors'
 * width.
 */
#ifndef GW_SAMPLER_WIDE_H
#define GW_SAMPLER_WIDE_H

#include <stdbool.h>
#include <stdint.h>

#define GW_WIDE_LANES 16
#define GW_WIDE_PICKS 32 /* the largest fanout that is drawn so */

struct gw_wide {
	/* in, a lane per list: the instance's halves, and a degree of at least fanout, 1 and below 2^32 */
	uint32_t instance_low[GW_WIDE_LANES], instance_high[GW_WIDE_LANES], degree[GW_WIDE_LANES];
	/* out: a lane's picks, ascending */
	uint32_t picks[GW_WIDE_PICKS][GW_WIDE_LANES];
} __attribute__((aligned(64)));

/* The exchanges that sort n values whatever they are. */
struct gw_network {
	uint32_t n, count;
	struct {
		uint8_t low, high;
	} pairs[191]; /* what 32 values need */
};

void gw_network_make(struct gw_network *network, uint32_t n); /* n <= GW_WIDE_PICKS */

/* Which vectors draw. OFF: none, every list by gw_pick(). FOUR: the four lanes that every processor has (SSE4.1, NEON).
 * AUTO: the widest that this processor has, unless the environment names one: GRAPHWIRE_VECTORS=off, four, avx2 or
 * avx512 (a name that is none, or that this processor lacks, is as good as unset). */
enum gw_vectors { GW_VECTORS_AUTO, GW_VECTORS_OFF, GW_VECTORS_FOUR, GW_VECTORS_AVX2, GW_VECTORS_AVX512 };
#define GW_VECTORS_COUNT 5

/* For tests and benchmarks. Returns false, changing nothing, where the processor lacks them. Any thread, any time: the
 * picks are the same. */
bool gw_vectors_set(enum gw_vectors vectors);
enum gw_vectors gw_vectors_used(void); /* never AUTO */

/* Draws fanout (1 to GW_WIDE_PICKS) picks in each lane; the network sorts fanout values. Returns a bit for each lane
 * that must be drawn by gw_pick() instead. */
typedef uint32_t (*gw_wide_draw)(struct gw_wide *wide, uint64_t key, uint32_t fanout, bool replace,
				 const struct gw_network *network);
gw_wide_draw gw_wide_function(void); /* NULL: every list is gw_pick()'s */

const char *gw_vectors_name(enum gw_vectors vectors); /* "off" and so on */

uint32_t gw_wide_four(struct gw_wide *wide, uint64_t key, uint32_t fanout, bool replace,
		      const struct gw_network *network);
uint32_t gw_wide_avx2(struct gw_wide *wide, uint64_t key, uint32_t fanout, bool replace,
		      const struct gw_network *network);
uint32_t gw_wide_avx512(struct gw_wide *wide, uint64_t key, uint32_t fanout, bool replace,
			const struct gw_network *network);

#endif
