/* Which row a byte offset begins, without a division for each: an offset is a multiple of the stride if its product
 * with the stride's inverse modulo 2^64 is small, and then the product is the row's number. */
#ifndef GW_TRANSPORT_ROW_RANGES_H
#define GW_TRANSPORT_ROW_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct gw_row_divider {
	uint64_t inverse, most; /* of the stride's odd factor; the largest number of a row */
	uint32_t shift;         /* of its power of two */
};

/* stride > 0. */
static inline struct gw_row_divider gw_row_divider(uint32_t stride)
{
	struct gw_row_divider divider = {.most = UINT64_MAX / stride, .shift = (uint32_t)__builtin_ctz(stride)};
	uint64_t odd = stride >> divider.shift;
	divider.inverse = odd; /* right in 3 bits; each step doubles them */
	for (int bits = 3; bits < 64; bits *= 2)
		divider.inverse *= 2 - odd * divider.inverse;
	return divider;
}

/* Whether a row begins at the offset; its number. */
static inline bool gw_row_at(const struct gw_row_divider *divider, uint64_t offset, uint64_t *number)
{
	uint64_t product = offset * divider->inverse;
	*number = divider->shift ? product >> divider->shift | product << (64 - divider->shift) : product;
	return *number <= divider->most;
}

#endif
