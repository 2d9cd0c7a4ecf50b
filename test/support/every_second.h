/* A kind of sampling for tests: every second neighbour. It uses all that a kind may use: entries of two columns in
 * several rounds, one of them without entries; lists in pieces and single entries; a bound above the number of picks;
 * and the group.
 *
 *   The neighbours of a list, in its order, without those that equal the one before them, are numbered from 0. The
 *   picks are the edges of the even numbers; in an odd group, of the odd ones. At most `fanout` of them are
 *   candidates; with replacement, each candidate is taken twice, and at most `fanout` picks are candidates. If the
 *   draw has weights, candidates of weight 0 (all bytes 0) are dropped.
 */
#ifndef GW_TEST_EVERY_SECOND_H
#define GW_TEST_EVERY_SECOND_H

#include "sampler/draw.h"

#define KIND_EVERY_SECOND 1000u

extern const struct gw_sampling_kind sample_every_second;

/* A list, as plain arrays. weights: bytes of the list's first weight, or NULL. */
struct every_second_list {
	uint64_t degree;
	const uint64_t *neighbours;
	const uint8_t *weights;
	uint32_t weight_bytes;
};

/* The picks by the definition above; out has room for 2 * degree. Returns how many. */
uint64_t every_second_plain(const struct gw_pick_rule *rule, uint32_t group, const struct every_second_list *list,
			    uint64_t *out);

#endif
