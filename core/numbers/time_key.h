/* Times as 64-bit keys of the same order, so that times of every type are compared exactly, as integers.
 *
 *   a column's times (int32, int64, float32, float64) ─▶ keys            a key for each time
 *   a seed's time, and the start of its window        ─▶ a range of keys for whole or real columns, both ends included
 *
 * An integer is its own key. The key of a real number is made of the bits of its float64, so that keys have the order
 * of the numbers; 0.0 and -0.0 have one key. NaN has the highest key, which no range contains.
 */
#ifndef GW_NUMBERS_TIME_KEY_H
#define GW_NUMBERS_TIME_KEY_H

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "core/numbers/dtype.h"

#define GW_TIME_KEY_NAN INT64_MAX

/* Whether a column of this type can have times. */
static inline bool gw_time_is_possible(gw_dtype dtype)
{
	return dtype == GW_INT32 || dtype == GW_INT64 || dtype == GW_FLOAT32 || dtype == GW_FLOAT64;
}

/* Whether the times of a column are real numbers; false: whole numbers. */
static inline bool gw_time_is_real(gw_dtype dtype)
{
	return dtype == GW_FLOAT32 || dtype == GW_FLOAT64;
}

static inline int64_t gw_time_key_real(double time)
{
	int64_t bits;
	double sum = time + 0.0; /* -0.0 becomes 0.0 */
	if (time != time)
		return GW_TIME_KEY_NAN;
	memcpy(&bits, &sum, sizeof(bits));
	return bits < 0 ? bits ^ INT64_MAX : bits;
}

/* The key of a column's entry, at any alignment. dtype: one that gw_time_is_possible() accepts. */
static inline int64_t gw_time_key(gw_dtype dtype, const void *entry)
{
	int32_t whole;
	int64_t wide;
	float narrow;
	double real;
	switch (dtype) {
	case GW_INT32:
		memcpy(&whole, entry, sizeof(whole));
		return whole;
	case GW_FLOAT32:
		memcpy(&narrow, entry, sizeof(narrow));
		return gw_time_key_real(narrow);
	case GW_FLOAT64:
		memcpy(&real, entry, sizeof(real));
		return gw_time_key_real(real);
	default:
		memcpy(&wide, entry, sizeof(wide));
		return wide;
	}
}

/* A time that a user gives: a whole number, or a real one. */
struct gw_time {
	bool is_real;
	union {
		int64_t whole;
		double real; /* not NaN */
	} value;
};

/* Time i of an array of int64_t or double (real). */
static inline struct gw_time gw_time_at(bool real, const void *times, uint64_t i)
{
	struct gw_time time = {.is_real = real};
	assert(times);
	memcpy(&time.value, (const uint8_t *)times + i * sizeof(time.value), sizeof(time.value));
	return time;
}

/* The keys of the times that a seed sees. from > until: none. */
struct gw_time_range {
	int64_t from, until;
};

/* The range of the times that are not later than `until`, and not earlier than `from` (NULL: no bound). strict: earlier
 * than `until`. real: of a column of real numbers. The comparison is exact, also of a whole number with real ones. */
struct gw_time_range gw_time_range_of(bool real, const struct gw_time *from, const struct gw_time *until, bool strict);

/* Whether a column of this kind can have exactly this time. */
bool gw_time_is_exact(bool real, const struct gw_time *time);

#endif
