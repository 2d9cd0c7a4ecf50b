/* Alias tables by Vose's method on exact integers.
 *
 *   weights of a list -> integers (weights.h) -> mass = weight * n, mean = sum of weights ->
 *   small columns topped up by large ones -> threshold = floor(mass * 2^32 / mean)
 *
 * Masses are integers whose sum is n * mean, so rounding leaves no remainder: a remaining column has exactly the mean.
 * Each threshold is rounded once, downward. The column's edge thereby loses a probability of less than 2^-32 / n, which
 * the column's alias gains. So each edge's probability is exact to within 2^-32.
 */
#include "core/graph/alias.h"

#include <inttypes.h>
#include <string.h>

#include "core/graph/weights.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"

#define GRAIN 4096u

typedef unsigned __int128 wide; /* weight < 2^63, n < 2^32: mass < 2^95, mass * 2^32 < 2^127 */

struct alias_scratch {
	wide *mass;
	uint32_t *stack; /* small columns from the start, large columns from the end */
	uint64_t room;
};

struct alias_build {
	const uint64_t *indptr;
	gw_dtype dtype;
	const void *weights;
	uint32_t *table;
	struct alias_scratch *scratch; /* one for each thread */
};

static gw_status scale_weights(const struct alias_build *build, uint64_t from, uint64_t n, wide *mass, wide *sum)
{
	/* The integers go to the second half of mass, where no element is overwritten before it is read. */
	uint64_t *scaled = (uint64_t *)mass + n;
	const uint8_t *weights = (const uint8_t *)build->weights + from * gw_dtype_bytes(build->dtype);
	gw_status status = gw_weights_scale(build->dtype, weights, n, from, scaled);
	if (status != GW_OK)
		return status;
	*sum = 0;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t weight = scaled[i];
		mass[i] = weight;
		*sum += weight;
	}
	return GW_OK;
}

/* Vose's method: each small column keeps its own mass, and a large column fills it up to the mean. */
static void pair_columns(wide *mass, uint32_t *stack, uint64_t n, wide mean, uint32_t *table)
{
	uint64_t small = 0, large = n; /* stack[0, small) and stack[large, n) */
	for (uint64_t i = 0; i < n; i++) {
		mass[i] *= n;
		if (mass[i] < mean)
			stack[small++] = (uint32_t)i;
		else
			stack[--large] = (uint32_t)i;
	}
	while (small > 0) { /* masses sum to n * mean, so a large column exists */
		uint32_t low = stack[--small], high = stack[large];
		table[2 * (uint64_t)low] = (uint32_t)((mass[low] << 32) / mean);
		table[2 * (uint64_t)low + 1] = high;
		mass[high] -= mean - mass[low];
		if (mass[high] < mean) {
			large++;
			stack[small++] = high;
		}
	}
	for (; large < n; large++) { /* mass is exactly the mean */
		table[2 * (uint64_t)stack[large]] = UINT32_MAX;
		table[2 * (uint64_t)stack[large] + 1] = stack[large];
	}
}

static gw_status alias_grow(struct alias_scratch *scratch, uint64_t n)
{
	if (n <= scratch->room)
		return GW_OK;
	uint64_t room = n + n / 2;
	gw_free(scratch->mass);
	gw_free(scratch->stack);
	scratch->mass = gw_calloc(room, sizeof(*scratch->mass));
	scratch->stack = gw_calloc(room, sizeof(*scratch->stack));
	scratch->room = scratch->mass && scratch->stack ? room : 0;
	return scratch->room ? GW_OK : GW_NO_MEMORY;
}

static gw_status build_list(const struct alias_build *build, uint64_t row, struct alias_scratch *scratch)
{
	uint64_t from = build->indptr[row], n = build->indptr[row + 1] - from;
	uint32_t *table = build->table + 2 * from;
	wide sum = 0;
	if (n == 0)
		return GW_OK;
	if (n >= UINT32_MAX)
		return gw_fail(GW_LIMIT, "list %" PRIu64 ": %" PRIu64 " edges are too many for an alias table", row, n);
	gw_status status = alias_grow(scratch, n);
	if (status == GW_OK)
		status = scale_weights(build, from, n, scratch->mass, &sum);
	if (status != GW_OK)
		return status;
	if (sum > 0) {
		pair_columns(scratch->mass, scratch->stack, n, sum, table);
		return GW_OK;
	}
	for (uint64_t i = 0; i < n; i++) {
		table[2 * i] = 0;
		table[2 * i + 1] = GW_ALIAS_NONE;
	}
	return GW_OK;
}

static gw_status build_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct alias_build *build = context;
	gw_status status = GW_OK;
	for (uint64_t row = begin; status == GW_OK && row < end; row++)
		status = build_list(build, row, &build->scratch[thread]);
	return status;
}

gw_status gw_alias_build(const uint64_t *indptr, uint64_t rows, gw_dtype dtype, const void *weights, unsigned threads,
			 uint32_t *table)
{
	struct alias_build build = {indptr, dtype, weights, table, NULL};
	gw_status status = gw_weights_check(dtype);
	if (status != GW_OK)
		return status;
	threads = threads ? threads : gw_processors();
	build.scratch = gw_calloc(threads, sizeof(*build.scratch));
	if (!build.scratch)
		return GW_NO_MEMORY;
	status = gw_parallel_for(threads, rows, GRAIN, build_body, &build);
	for (unsigned t = 0; t < threads; t++) {
		gw_free(build.scratch[t].mass);
		gw_free(build.scratch[t].stack);
	}
	gw_free(build.scratch);
	return status;
}
