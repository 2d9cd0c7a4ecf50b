/* Keys of times: the order of keys is the order of the times, and a range contains exactly the times that the bounds
 * allow. Long doubles, which have every int64 and every float64 exactly, are the reference. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/numbers/time_key.h"

static_assert(LDBL_MANT_DIG >= 64, "the reference has every int64 exactly");

static const int64_t wholes[] = {INT64_MIN,
				 INT64_MIN + 1,
				 -(1ll << 53) - 1,
				 -(1ll << 53),
				 -1,
				 0,
				 1,
				 2,
				 (1ll << 53) - 1,
				 (1ll << 53) + 1,
				 (1ll << 60) + 1,
				 INT64_MAX - 1,
				 INT64_MAX,
				 INT64_MAX - 511,
				 INT64_MAX - 512,
				 INT64_MAX - 1023};
static const double reals[] = {-INFINITY,
			       -DBL_MAX,
			       -0x1p63,
			       -0x1.0000000000001p63,
			       -1.5,
			       -1.0,
			       -DBL_TRUE_MIN,
			       -0.0,
			       0.0,
			       DBL_TRUE_MIN,
			       0.5,
			       1.0,
			       1.5,
			       0x1p53,
			       0x1p60,
			       0x1p63,
			       0x1.fffffffffffffp62,
			       DBL_MAX,
			       INFINITY};
#define WHOLES (sizeof(wholes) / sizeof(wholes[0]))
#define REALS  (sizeof(reals) / sizeof(reals[0]))

struct number {
	long double exact;
	struct gw_time time;
};

static struct number whole_of(int64_t value)
{
	return (struct number){(long double)value, {.is_real = false, .value.whole = value}};
}

static struct number real_of(double value)
{
	return (struct number){(long double)value, {.is_real = true, .value.real = value}};
}

/* Numbers at the borders, and random ones of all sizes. */
static struct number number_at(uint32_t i, bool real)
{
	uint64_t word = gw_mix64(i);
	if (real && i < REALS)
		return real_of(reals[i]);
	if (!real && i < WHOLES)
		return whole_of(wholes[i]);
	if (real)
		return real_of(ldexp((double)(int64_t)word, -(int)(i % 90)));
	return whole_of((int64_t)word >> i % 60);
}

#define NUMBERS 60u

static int64_t key_of(const struct number *number)
{
	return number->time.is_real ? gw_time_key(GW_FLOAT64, &number->time.value.real)
				    : gw_time_key(GW_INT64, &number->time.value.whole);
}

static void keys_have_the_order_of_times(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2 * NUMBERS * NUMBERS; i++) {
		bool real = i & 1;
		struct number a = number_at(i / 2 % NUMBERS, real), b = number_at(i / 2 / NUMBERS, real);
		assert_int_equal(key_of(&a) < key_of(&b), a.exact < b.exact);
		assert_int_equal(key_of(&a) == key_of(&b), a.exact == b.exact);
	}
	float narrow = 0.1f;
	double same = narrow;
	int32_t small = -7;
	assert_int_equal(gw_time_key(GW_FLOAT32, &narrow), gw_time_key(GW_FLOAT64, &same));
	assert_int_equal(gw_time_key(GW_INT32, &small), -7);
}

static void a_range_has_the_times_that_its_bounds_allow(void **state)
{
	(void)state;
	for (uint32_t kinds = 0; kinds < 16; kinds++) {
		bool real = kinds & 1, strict = kinds & 8;
		for (uint32_t i = 0; i < NUMBERS * NUMBERS; i++) {
			struct number until = number_at(i % NUMBERS, kinds & 2);
			struct number from = number_at(i / NUMBERS, kinds & 4);
			struct gw_time_range range = gw_time_range_of(real, &from.time, &until.time, strict);
			struct gw_time_range open = gw_time_range_of(real, NULL, &until.time, strict);
			for (uint32_t j = 0; j < NUMBERS; j++) {
				struct number time = number_at(j, real);
				bool before = strict ? time.exact < until.exact : time.exact <= until.exact;
				int64_t key = key_of(&time);
				assert_int_equal(key >= open.from && key <= open.until, before);
				assert_int_equal(key >= range.from && key <= range.until,
						 before && time.exact >= from.exact);
			}
		}
	}
}

static void exact_times_are_those_that_a_column_can_have(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < NUMBERS; i++) {
		struct number whole = number_at(i, false), real = number_at(i, true);
		assert_int_equal(gw_time_is_exact(true, &whole.time), (long double)(double)whole.exact == whole.exact);
		assert_int_equal(gw_time_is_exact(false, &real.time), floorl(real.exact) == real.exact &&
									      real.exact >= (long double)INT64_MIN &&
									      real.exact <= (long double)INT64_MAX);
		assert_true(gw_time_is_exact(false, &whole.time) && gw_time_is_exact(true, &real.time));
	}
}

static void no_range_has_nan(void **state)
{
	(void)state;
	double nan = NAN, minus = -NAN;
	struct number last = real_of(INFINITY);
	struct gw_time_range all = gw_time_range_of(true, NULL, &last.time, false);
	assert_true(gw_time_key(GW_FLOAT64, &nan) > all.until && gw_time_key(GW_FLOAT64, &minus) > all.until);
}

static void types_of_times(void **state)
{
	(void)state;
	for (int i = 0; i < GW_DTYPE_COUNT; i++) {
		gw_dtype dtype = (gw_dtype)i;
		bool whole = dtype == GW_INT32 || dtype == GW_INT64, real = dtype == GW_FLOAT32 || dtype == GW_FLOAT64;
		assert_int_equal(gw_time_is_possible(dtype), whole || real);
		assert_int_equal(gw_time_is_real(dtype), real);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_have_the_order_of_times),
		cmocka_unit_test(a_range_has_the_times_that_its_bounds_allow),
		cmocka_unit_test(exact_times_are_those_that_a_column_can_have),
		cmocka_unit_test(no_range_has_nan),
		cmocka_unit_test(types_of_times),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
