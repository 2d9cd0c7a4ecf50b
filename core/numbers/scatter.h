/* A fixed bijection of [0, n) under a key, which spreads numbers that lie close together. For the vertices of generated
 * R-MAT graphs: the hubs have low numbers, and get ids from the whole range.
 *
 * It is not an order to draw from. It has four rounds, so that not all orders are equally likely: two of five numbers
 * get a pair of ids 0.68 to 2.1 times as often as the law of a uniform order says; of 64 numbers, differences of
 * neighbours deviate too, and n = 4^k numbers get the even orders only. Shuffles, splits and partitions use
 * gw_permutation (rng.h). The bytes of this bijection never change, because published figures name graphs by it.
 */
#ifndef GW_NUMBERS_SCATTER_H
#define GW_NUMBERS_SCATTER_H

#include <stdint.h>

struct gw_scatter {
	uint64_t n, key;
	uint32_t half_bits;
};

struct gw_scatter gw_scatter_begin(uint64_t key, uint64_t n);              /* n <= 2^62 */
uint64_t gw_scatter_at(const struct gw_scatter *scatter, uint64_t number); /* number < n */

#endif
