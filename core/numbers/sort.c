/* Radix sort from the least significant digit, between the arrays and a scratch copy. Digits that all keys share are
 * skipped. */
#include "core/numbers/sort.h"

#include <string.h>

#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)

static void sort_digit(const uint64_t *keys, const uint32_t *rows, uint64_t n, unsigned shift, uint64_t *keys_out,
		       uint32_t *rows_out)
{
	uint64_t starts[DIGITS] = {0}, at = 0;
	for (uint64_t i = 0; i < n; i++)
		starts[keys[i] >> shift & (DIGITS - 1)]++;
	for (uint32_t d = 0; d < DIGITS; d++) {
		uint64_t count = starts[d];
		starts[d] = at;
		at += count;
	}
	for (uint64_t i = 0; i < n; i++) {
		uint64_t to = starts[keys[i] >> shift & (DIGITS - 1)]++;
		keys_out[to] = keys[i];
		if (rows)
			rows_out[to] = rows[i];
	}
}

gw_status gw_sort_rows(uint64_t *keys, uint32_t *rows, uint64_t n, struct gw_vec *scratch)
{
	gw_status status = gw_vec_reserve(scratch, n * (sizeof(*keys) + (rows ? sizeof(*rows) : 0)));
	if (status != GW_OK || n < 2)
		return status;
	uint64_t differ = 0;
	for (uint64_t i = 1; i < n; i++)
		differ |= keys[i] ^ keys[0];

	uint64_t *from_keys = keys, *to_keys = scratch->data;
	uint32_t *from_rows = rows, *to_rows = rows ? (uint32_t *)(to_keys + n) : NULL;
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		if (!(differ >> shift & (DIGITS - 1)))
			continue;
		sort_digit(from_keys, from_rows, n, shift, to_keys, to_rows);
		uint64_t *old_keys = from_keys;
		uint32_t *old_rows = from_rows;
		from_keys = to_keys;
		from_rows = to_rows;
		to_keys = old_keys;
		to_rows = old_rows;
	}
	if (from_keys != keys) {
		memcpy(keys, from_keys, n * sizeof(*keys));
		if (rows)
			memcpy(rows, from_rows, n * sizeof(*rows));
	}
	return GW_OK;
}
