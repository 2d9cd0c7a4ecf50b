/* The law of the weighted kind, with the simplest means: linear scans, flags for each edge, qsort. A long double holds
 * every weight exactly, since it has 64 bits of mantissa or more. */
#include "test/support/slow_weighted.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/dtype.h"
#include "core/numbers/rng.h"

typedef unsigned __int128 wide;

static float float_of(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint32_t bits_of(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static long double half_value(uint16_t bits)
{
	int exponent = bits >> 10 & 31;
	long double fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;
	if (exponent == 31)
		return fraction != 0 ? NAN : sign * INFINITY;
	return sign * (exponent ? ldexpl(fraction + 1024, exponent - 25) : ldexpl(fraction, -24));
}

long double slow_weight(gw_dtype dtype, const void *weights, uint64_t i)
{
	switch (dtype) {
	case GW_UINT8:
		return ((const uint8_t *)weights)[i];
	case GW_UINT16:
		return ((const uint16_t *)weights)[i];
	case GW_UINT32:
		return ((const uint32_t *)weights)[i];
	case GW_UINT64:
		return ((const uint64_t *)weights)[i];
	case GW_INT8:
		return ((const int8_t *)weights)[i];
	case GW_INT16:
		return ((const int16_t *)weights)[i];
	case GW_INT32:
		return ((const int32_t *)weights)[i];
	case GW_INT64:
		return ((const int64_t *)weights)[i];
	case GW_FLOAT16:
		return half_value(((const uint16_t *)weights)[i]);
	case GW_BFLOAT16:
		return float_of((uint32_t)((const uint16_t *)weights)[i] << 16);
	case GW_FLOAT32:
		return ((const float *)weights)[i];
	default:
		return ((const double *)weights)[i];
	}
}

/* The greatest half that does not exceed the value, by trial: halves ascend with their bits. */
static uint16_t half_below(double value)
{
	uint16_t low = 0;
	for (uint16_t bit = 1 << 14; bit; bit /= 2) {
		if (half_value(low | bit) <= value)
			low |= bit;
	}
	return low;
}

void slow_weight_set(gw_dtype dtype, void *weights, uint64_t i, double value)
{
	static const double most[GW_DTYPE_COUNT] = {
		[GW_UINT8] = UINT8_MAX, [GW_UINT16] = UINT16_MAX, [GW_UINT32] = UINT32_MAX, [GW_UINT64] = 0x1.8p63,
		[GW_INT8] = INT8_MAX,   [GW_INT16] = INT16_MAX,   [GW_INT32] = INT32_MAX,   [GW_INT64] = 0x1.8p62,
		[GW_FLOAT16] = 65504,   [GW_BFLOAT16] = 1e38,     [GW_FLOAT32] = 1e38,      [GW_FLOAT64] = 1e308};
	if (value > most[dtype])
		value = most[dtype];
	uint64_t whole = value < 0x1p64 ? (uint64_t)value : 0;
	uint16_t brain = (uint16_t)(bits_of((float)(value > 1e38 ? 1e38 : value)) >> 16), half = half_below(value);
	float single = (float)(value > 1e38 ? 1e38 : value);
	const void *from = &whole; /* little-endian: the low bytes come first */
	if (dtype == GW_FLOAT16)
		from = &half;
	else if (dtype == GW_BFLOAT16)
		from = &brain;
	else if (dtype == GW_FLOAT32)
		from = &single;
	else if (dtype == GW_FLOAT64)
		from = &value;
	memcpy((uint8_t *)weights + i * gw_dtype_bytes(dtype), from, gw_dtype_bytes(dtype));
}

void slow_weights(gw_dtype dtype, const void *weights, uint64_t n, uint64_t *out)
{
	long double greatest = 0;
	int exponent = 0;
	for (uint64_t i = 0; i < n; i++)
		greatest = fmaxl(greatest, slow_weight(dtype, weights, i));
	frexpl(greatest, &exponent); /* greatest < 2^exponent */
	for (uint64_t i = 0; i < n; i++) {
		long double weight = slow_weight(dtype, weights, i), scaled = ldexpl(weight, 63 - exponent);
		out[i] = weight > 0 && scaled < 1 ? 1 : (uint64_t)scaled;
	}
}

/* The words of an instance. */
struct slow_words {
	uint64_t key, vertex, next;
	uint32_t group;
};

static uint32_t word_at(const struct slow_words *words, uint64_t at)
{
	return gw_philox_in(words->key, words->vertex, words->group, (uint32_t)(at / 4)).word[at % 4];
}

static wide slow_below(struct slow_words *words, wide bound)
{
	int bits = 0;
	while (bits < 127 && (wide)1 << bits < bound)
		bits++;
	for (;;) {
		wide value = 0;
		for (int at = 0; at < (bits + 31) / 32; at++)
			value = value << 32 | word_at(words, words->next++);
		value &= ((wide)1 << bits) - 1;
		if (value < bound)
			return value;
	}
}

/* n if no weight is left. */
static uint64_t slow_exact(struct slow_words *words, const uint64_t *scaled, uint64_t n)
{
	wide total = 0, sum = 0;
	for (uint64_t i = 0; i < n; i++)
		total += scaled[i];
	if (total == 0)
		return n;
	wide drawn = slow_below(words, total);
	for (uint64_t i = 0;; i++) {
		sum += scaled[i];
		if (sum > drawn)
			return i;
	}
}

static uint64_t slow_table(const struct slow_words *words, const struct slow_list *list, uint64_t draw)
{
	wide w = (uint64_t)word_at(words, 2 * draw) << 32 | word_at(words, 2 * draw + 1), product = w * list->n;
	uint64_t column = (uint64_t)(product >> 64);
	uint32_t word = (uint32_t)((uint64_t)product >> 32);
	return word < list->table[2 * column] ? column : list->table[2 * column + 1];
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void take(const struct gw_pick_rule *rule, uint64_t *scaled, uint64_t pick, uint64_t *out, uint64_t *count)
{
	out[(*count)++] = pick;
	if (!rule->replace)
		scaled[pick] = 0;
}

uint64_t slow_weighted(const struct gw_pick_rule *rule, uint64_t vertex, uint32_t group, const struct slow_list *list,
		       uint64_t *out)
{
	uint64_t n = list->n, k = (uint64_t)rule->fanout, count = 0;
	uint64_t *scaled = calloc(n + 1, sizeof(*scaled));
	bool *picked = calloc(n + 1, sizeof(*picked)), all = rule->fanout == GW_FANOUT_ALL;
	struct slow_words words = {.key = rule->key, .vertex = vertex, .group = group};
	assert_true(scaled && picked);
	slow_weights(list->dtype, list->weights, n, scaled);
	if (all || (!rule->replace && n <= k)) {
		for (uint64_t i = 0; i < n; i++) {
			if (scaled[i])
				out[count++] = i;
		}
		k = count;
	}
	uint64_t draws = rule->replace ? k : 4 * k + 16;
	for (uint64_t draw = 0; list->table && n && draw < draws && count < k; draw++) {
		uint64_t pick = slow_table(&words, list, draw);
		if (pick == UINT32_MAX)
			break;
		if (!picked[pick])
			take(rule, scaled, pick, out, &count);
		picked[pick] = !rule->replace;
	}
	words.next = list->table ? 8 * k + 32 : 0;
	while (count < k) {
		uint64_t pick = slow_exact(&words, scaled, n);
		if (pick == n)
			break;
		take(rule, scaled, pick, out, &count);
	}
	qsort(out, count, sizeof(*out), by_number);
	free(scaled);
	free(picked);
	return count;
}
