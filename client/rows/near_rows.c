/* Builds the bits and counts of a set of rows: see near_rows.h. */
#include "client/rows/near_rows.h"

#include <assert.h>
#include <string.h>

gw_status gw_near_rows_set(struct gw_near_rows *near, uint64_t ids, const uint64_t *list, uint64_t count)
{
	const uint64_t blocks = (ids + 255) / 256;
	near->ids = near->count = 0;
	if (count > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%llu copies of rows: at most 2^32 - 1", (unsigned long long)count);
	if (gw_vec_reserve(&near->bits, blocks * 32) != GW_OK ||
	    gw_vec_reserve(&near->counts, blocks * sizeof(uint32_t)) != GW_OK)
		return GW_NO_MEMORY;
	uint64_t *bits = near->bits.data;
	uint32_t *counts = near->counts.data;
	if (blocks)
		memset(bits, 0, blocks * 32);
	uint64_t i = 0;
	for (uint64_t b = 0; b < blocks; b++) {
		counts[b] = (uint32_t)i;
		for (; i < count && list[i] / 256 == b; i++)
			bits[list[i] / 64] |= 1ull << list[i] % 64;
	}
	assert(i == count); /* the ids ascend */
	near->ids = ids;
	near->count = count;
	return GW_OK;
}

void gw_near_rows_free(struct gw_near_rows *near)
{
	gw_vec_free(&near->bits);
	gw_vec_free(&near->counts);
	*near = (struct gw_near_rows){0};
}
