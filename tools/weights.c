/* Checks weights: dtype and shape first, then values.
 *
 * Values are checked by their bits, several chunks at a time. The lowest chunk with a fault decides, so the reported
 * row does not depend on the number of threads.
 */
#include "tools/weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/graph/meta.h"
#include "core/system/parallel.h"

#define GRAIN (256u << 10)

struct scanning {
	gw_dtype dtype;
	const uint8_t *values;
	uint64_t first; /* the lowest row with a fault so far */
};

gw_status gw_weight_form_check(gw_dtype dtype, uint32_t ndim, const uint64_t *shape)
{
	bool number = (unsigned)dtype < GW_DTYPE_COUNT && dtype != GW_INT8_ROW;
	if (number && (ndim == 1 || (ndim == 2 && shape[1] == 1)))
		return GW_OK;
	char text[GW_DIMS_MAX * 24] = "";
	size_t used = 0;
	for (uint32_t i = 0; i < ndim; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%" PRIu64, i ? ", " : "", shape[i]);
	return gw_fail(GW_UNSUPPORTED, "%s [%s] cannot be a weight: a weight is one number for each edge",
		       gw_dtype_name(dtype), text);
}

gw_status gw_weight_name_check(const char *name)
{
	size_t most = GW_NAME_MAX - strlen(".alias");
	if (strlen(name) > most)
		return gw_fail(GW_INVALID, "\"%.80s\": the name of a weight has at most %zu characters", name, most);
	return GW_OK;
}

/* Whether a float's bits are a number below 0, an infinity or no number. -0 counts as 0. */
static bool is_faulty_float(uint64_t bits, uint32_t mantissa_bits, uint32_t exponent_bits)
{
	uint64_t exponent = (1ull << exponent_bits) - 1, sign = 1ull << (mantissa_bits + exponent_bits);
	return (bits >> mantissa_bits & exponent) == exponent || ((bits & sign) && (bits & ~sign));
}

static bool is_fault(gw_dtype dtype, const uint8_t *values, uint64_t i)
{
	switch (dtype) {
	case GW_INT8:
		return ((const int8_t *)values)[i] < 0;
	case GW_INT16:
		return ((const int16_t *)values)[i] < 0;
	case GW_INT32:
		return ((const int32_t *)values)[i] < 0;
	case GW_INT64:
		return ((const int64_t *)values)[i] < 0;
	case GW_FLOAT16:
		return is_faulty_float(((const uint16_t *)values)[i], 10, 5);
	case GW_BFLOAT16:
		return is_faulty_float(((const uint16_t *)values)[i], 7, 8);
	case GW_FLOAT32:
		return is_faulty_float(((const uint32_t *)values)[i], 23, 8);
	case GW_FLOAT64:
		return is_faulty_float(((const uint64_t *)values)[i], 52, 11);
	default:
		return false; /* unsigned */
	}
}

static double half_value(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double size = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
				     : ldexp(exponent ? fraction | 1024 : fraction, (exponent ? exponent : 1) - 25);
	return bits >> 15 ? -size : size;
}

static void print_value(gw_dtype dtype, const uint8_t *values, uint64_t i, char text[GW_WEIGHT_TEXT_MAX])
{
	double value = 0;
	int64_t whole = 0;
	float narrow;
	bool real = true;
	if (dtype == GW_FLOAT64) {
		memcpy(&value, values + i * sizeof(value), sizeof(value));
	} else if (dtype == GW_FLOAT32) {
		memcpy(&narrow, values + i * sizeof(narrow), sizeof(narrow));
		value = (double)narrow;
	} else if (dtype == GW_FLOAT16) {
		value = half_value(((const uint16_t *)values)[i]);
	} else if (dtype == GW_BFLOAT16) {
		uint32_t bits = (uint32_t)((const uint16_t *)values)[i] << 16;
		memcpy(&narrow, &bits, sizeof(narrow));
		value = (double)narrow;
	} else {
		real = false;
		whole = dtype == GW_INT8    ? ((const int8_t *)values)[i]
			: dtype == GW_INT16 ? ((const int16_t *)values)[i]
			: dtype == GW_INT32 ? ((const int32_t *)values)[i]
					    : ((const int64_t *)values)[i];
	}
	if (!real)
		snprintf(text, GW_WEIGHT_TEXT_MAX, "%" PRId64, whole);
	else if (isnan(value))
		snprintf(text, GW_WEIGHT_TEXT_MAX, "nan"); /* printf shows its sign, which means nothing */
	else
		snprintf(text, GW_WEIGHT_TEXT_MAX, "%g", value);
}

static gw_status scan_weights(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct scanning *s = context;
	for (uint64_t i = begin; i < end; i++) {
		if (!is_fault(s->dtype, s->values, i))
			continue;
		gw_parallel_least(&s->first, i);
		return GW_RANGE; /* ends the loop; chunks before this one still run */
	}
	return GW_OK;
}

uint64_t gw_weight_first_fault(gw_dtype dtype, const void *values, uint64_t count, unsigned threads,
			       char text[GW_WEIGHT_TEXT_MAX])
{
	struct scanning scanning = {.dtype = dtype, .values = values, .first = GW_NONE};
	if (gw_parallel_for(threads, count, GRAIN, scan_weights, &scanning) != GW_OK && scanning.first != GW_NONE)
		print_value(dtype, values, scanning.first, text);
	return scanning.first;
}

const char *gw_weight_name_in(const char *text, const char *etype)
{
	size_t length = strlen(etype);
	return strncmp(text, etype, length) == 0 && text[length] == ':' ? text + length + 1 : NULL;
}

bool gw_weight_is_typed(const char *text)
{
	uint32_t colons = 0;
	for (const char *at = text; *at; at++)
		colons += *at == ':';
	return colons == 3;
}
