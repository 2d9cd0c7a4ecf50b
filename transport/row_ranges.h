/* Finds the row that begins at a byte offset, without a division for each offset. The offset is multiplied by the
 * inverse of the stride modulo 2^64. If the product is at most the largest row number, the offset is a multiple of the
 * stride, and the product is the row's number. */
#ifndef GW_TRANSPORT_ROW_RANGES_H
#define GW_TRANSPORT_ROW_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct gw_row_divider {
	uint64_t inverse; /* of the stride's odd factor */
	uint64_t most;    /* the largest row number */
	uint32_t shift;   /* the exponent of the stride's power of two */
};

/* stride > 0. */
static inline struct gw_row_divider gw_row_divider(uint32_t stride)
{
	struct gw_row_divider divider = {.most = UINT64_MAX / stride, .shift = (uint32_t)__builtin_ctz(stride)};
	uint64_t odd = stride >> divider.shift;
	divider.inverse = odd; /* correct in 3 bits; each step doubles the correct bits */
	for (int bits = 3; bits < 64; bits *= 2)
		divider.inverse *= 2 - odd * divider.inverse;
	return divider;
}

/* Whether a row begins at the offset; *number: which row. */
static inline bool gw_row_at(const struct gw_row_divider *divider, uint64_t offset, uint64_t *number)
{
	uint64_t product = offset * divider->inverse;
	*number = divider->shift ? product >> divider->shift | product << (64 - divider->shift) : product;
	return *number <= divider->most;
}

#endif
