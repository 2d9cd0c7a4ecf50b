/* Rows that this process can address although another part owns them: copies of a few rows of a tensor.
 *
 *   id -> bit -> [0] not here
 *             -> [1] the count of the bits before it: the row's number -> address
 *
 * The rows are numbered in the order of their ids. A look-up reads one or two cache lines and takes the same time for
 * any number of rows. The bits take an eighth of a byte for each row of the tensor, the counts a sixty-fourth.
 */
#ifndef GW_CLIENT_ROWS_NEAR_ROWS_H
#define GW_CLIENT_ROWS_NEAR_ROWS_H

#include "core/memory/vec.h"

#define GW_NEAR_NONE UINT64_MAX

struct gw_near_rows {
	struct gw_vec bits, counts; /* uint64_t, of 64 ids; uint32_t, of the rows before each 256 ids */
	uint64_t ids;               /* of the tensor; no id at or above it is looked up */
	uint64_t count;             /* of the rows */
	/* Row number r is at rows + r * step; with slots, at rows + slots[r] * step. The owner of the set sets them. */
	const uint8_t *rows;
	uint64_t step;
	const uint32_t *slots;
};

/* Makes the set of the listed ids, which ascend and are below `ids`. Its memory is reused. GW_NO_MEMORY leaves an empty
 * set. GW_LIMIT: 2^32 rows or more. */
gw_status gw_near_rows_set(struct gw_near_rows *near, uint64_t ids, const uint64_t *list, uint64_t count);
void gw_near_rows_free(struct gw_near_rows *near);

/* The number of a row; GW_NEAR_NONE: it is not here. */
static inline uint64_t gw_near_rows_find(const struct gw_near_rows *near, uint64_t id)
{
	const uint64_t *bits = near->bits.data;
	const uint64_t word = bits[id / 64], below = word & ((1ull << id % 64) - 1);
	if (!(word >> id % 64 & 1))
		return GW_NEAR_NONE;
	uint64_t number = ((const uint32_t *)near->counts.data)[id / 256] + (uint64_t)__builtin_popcountll(below);
	for (uint64_t w = id / 256 * 4; w < id / 64; w++)
		number += (uint64_t)__builtin_popcountll(bits[w]);
	return number;
}

static inline const uint8_t *gw_near_rows_at(const struct gw_near_rows *near, uint64_t number)
{
	return near->rows + (near->slots ? near->slots[number] : number) * near->step;
}

#endif
