/* Exact draws by weight: see weighted_exact.h.
 *
 * A draw takes a number below the sum of the weights. A Fenwick tree (Fenwick, "A new data structure for cumulative
 * frequency tables", Software: Practice and Experience 24(3), 1994) over blocks of 64 weights finds the block, and a
 * scan finds the edge. Sums are below 2^95, because a list has fewer than 2^32 weights below 2^63.
 */
#include "sampler/kinds/weighted_exact.h"

#include "core/graph/weights.h"

#define BLOCK 64u

typedef unsigned __int128 wide;

gw_status gw_exact_begin(struct gw_exact *exact, gw_dtype dtype, const void *weights, uint64_t n,
			 struct gw_pick_scratch *scratch)
{
	*exact = (struct gw_exact){.n = n, .blocks = n / BLOCK + (n % BLOCK > 0)};
	gw_status status = gw_vec_reserve(&scratch->weights, n * sizeof(uint64_t));
	if (status != GW_OK)
		return status;
	exact->weights = scratch->weights.data;
	status = gw_weights_scale(dtype, weights, n, 0, exact->weights);
	for (uint64_t i = 0; status == GW_OK && i < n; i++)
		exact->positive += exact->weights[i] > 0;
	return status;
}

void gw_exact_drop(struct gw_exact *exact, uint64_t position)
{
	exact->positive -= exact->weights[position] > 0;
	exact->weights[position] = 0;
}

gw_status gw_exact_sum(struct gw_exact *exact, struct gw_pick_scratch *scratch)
{
	gw_status status = gw_vec_reserve(&scratch->sums, (exact->blocks + 1) * sizeof(wide));
	if (status != GW_OK)
		return status;
	exact->sums = scratch->sums.data;
	exact->total = 0;
	for (uint64_t block = 0; block < exact->blocks; block++) {
		uint64_t end = block + 1 < exact->blocks ? (block + 1) * BLOCK : exact->n;
		wide sum = 0;
		for (uint64_t i = block * BLOCK; i < end; i++)
			sum += exact->weights[i];
		exact->sums[block + 1] = sum;
		exact->total += sum;
	}
	for (uint64_t i = 1; i <= exact->blocks; i++) {
		uint64_t above = i + (i & -i);
		if (above <= exact->blocks)
			exact->sums[above] += exact->sums[i];
	}
	return GW_OK;
}

/* Uniform below `bound` > 0: as many bits as bound - 1 has, drawn again while they are not below it. */
static wide exact_below(struct gw_draws *draws, wide bound)
{
	wide last = bound - 1;
	uint64_t high = (uint64_t)(last >> 64), low = (uint64_t)last;
	int bits = high ? 128 - __builtin_clzll(high) : low ? 64 - __builtin_clzll(low) : 0;
	wide mask = bits ? ~(wide)0 >> (128 - bits) : 0, value;
	do {
		value = 0;
		for (int at = 0; at < bits; at += 32)
			value = value << 32 | gw_draw32(draws);
		value &= mask;
	} while (value > last);
	return value;
}

uint64_t gw_exact_draw(const struct gw_exact *exact, struct gw_draws *draws)
{
	wide rest = exact_below(draws, exact->total);
	uint64_t block = 0, step = 1;
	while (step * 2 <= exact->blocks)
		step *= 2;
	for (; step; step /= 2) {
		if (block + step <= exact->blocks && exact->sums[block + step] <= rest) {
			block += step;
			rest -= exact->sums[block];
		}
	}
	uint64_t position = block * BLOCK;
	while (exact->weights[position] <= rest)
		rest -= exact->weights[position++];
	return position;
}

void gw_exact_take(struct gw_exact *exact, uint64_t position)
{
	wide weight = exact->weights[position];
	gw_exact_drop(exact, position);
	exact->total -= weight;
	for (uint64_t i = position / BLOCK + 1; i <= exact->blocks; i += i & -i)
		exact->sums[i] -= weight;
}
