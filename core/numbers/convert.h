/* Converts rows of numbers from one type to another: rows that are stored narrow are returned wide, and wide rows are
 * stored narrow. Every machine and every width of vectors gives the same bits.
 *
 *   from                                                    to
 *   float32, float16, bfloat16, float64, int8_row           float32, float16, bfloat16, float64
 *   float32, float16, bfloat16, float64                     int8_row
 *   uint32                                                  int64
 *
 * Rounding: to nearest, ties to even, once: float64 becomes float16 or bfloat16 without a float32 between them.
 *   Numbers that are too large become infinite. Denormal numbers keep their values.
 * NaN: stays NaN and becomes quiet, with its sign and the upper bits of its payload, as processors do it. bfloat16 has
 *   the upper half of a float32's bits, and all of them become the upper half of the float32, quiet or not.
 * int8_row: {float32 scale, float32 offset, int8[numbers]}, padded with zeros to a multiple of 4 bytes. Number i is
 *   scale * int8[i] + offset, each operation rounded to float32; for another type, this float32 is then rounded.
 *   - A row of equal numbers has the scale 0, and the number as its offset.
 *   - Others have the scale (max - min) / 255 and the offset min + 128 * scale, rounded to float32. If that moves a
 *     number of the row by more than scale / 2, all sums are made exact: scale and offset are multiples of a power of
 *     two that is at least twice the distance of the largest number of the row to the next float32, and the scale has
 *     at most 16 significant bits.
 *   - No number is further than scale / 2 from the number that was stored. NaN, infinite numbers and numbers that
 *     float32 does not hold cannot be stored.
 */
#ifndef GW_NUMBERS_CONVERT_H
#define GW_NUMBERS_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include <graphwire/types.h>

typedef void (*gw_convert_numbers)(const void *from, void *to, uint64_t n);

struct gw_conversion {
	gw_dtype from, to;
	uint64_t numbers;                   /* of a row */
	uint64_t from_bytes, to_bytes;      /* of a row */
	gw_convert_numbers to_float, final; /* private: the steps; NULL: none */
};

/* Whether the table above has this conversion. A type is also converted to itself. */
bool gw_convert_is_possible(gw_dtype from, gw_dtype to);

#define GW_INT8_ROW_HEAD 8u /* bytes of an int8_row's scale and offset */

/* Bytes of an int8_row of so many numbers. */
uint64_t gw_int8_row_bytes(uint64_t numbers);

/* The conversion must be possible. */
struct gw_conversion gw_conversion_of(gw_dtype from, gw_dtype to, uint64_t numbers);

/* Converts rows. The memory may be the same: wider rows may be made of rows that end where the output ends, and
 * narrower rows of rows that begin where the output begins. Rows for int8_row have passed gw_convert_first_fault. */
void gw_convert_rows(const struct gw_conversion *conversion, const void *from, void *to, uint64_t rows);

/* Where the rows for gw_convert_rows begin, if they share the memory of the output: bytes from its start. */
static inline uint64_t gw_conversion_start(const struct gw_conversion *conversion, uint64_t rows)
{
	return conversion->to_bytes > conversion->from_bytes ? rows * (conversion->to_bytes - conversion->from_bytes)
							     : 0;
}

/* Bytes of memory that has room for the rows before and after. */
static inline uint64_t gw_conversion_room(const struct gw_conversion *conversion, uint64_t rows)
{
	return rows * (conversion->to_bytes > conversion->from_bytes ? conversion->to_bytes : conversion->from_bytes);
}

/* The rule for error texts. */
#define GW_INT8_ROW_RULE "an int8_row holds finite numbers that float32 holds"

/* The first of n numbers that an int8_row cannot hold; n: it can hold all of them. */
uint64_t gw_convert_first_fault(gw_dtype dtype, const void *numbers, uint64_t n);

/* A number as a double, for error texts. dtype: one that an int8_row is made of. */
double gw_convert_number(gw_dtype dtype, const void *numbers, uint64_t i);

#endif
