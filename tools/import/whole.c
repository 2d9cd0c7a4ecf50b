/* Widens the whole numbers of an array of any integer type. Fails on a dtype that is not an integer type, on a
 * negative number and on a number too large for an id; the error names the element. */
#include <string.h>

#include "core/system/parallel.h"
#include "tools/import/import.h"

#define GRAIN (64u << 10)

struct widening {
	const void *data;
	gw_dtype dtype;
	uint64_t first, stride;
	const char *what;
	uint64_t *out;
};

#define WIDEN(type)                                                                                                    \
	for (uint64_t i = begin; i < end; i++) {                                                                       \
		type value;                                                                                            \
		memcpy(&value, (const type *)w->data + w->first + i * w->stride, sizeof(value));                       \
		w->out[i] = (uint64_t)(int64_t)value;                                                                  \
	}                                                                                                              \
	break

static gw_status import_widen(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct widening *w = context;
	switch (w->dtype) {
	case GW_UINT8:
	case GW_BOOL:
		WIDEN(uint8_t);
	case GW_INT8:
		WIDEN(int8_t);
	case GW_UINT16:
		WIDEN(uint16_t);
	case GW_INT16:
		WIDEN(int16_t);
	case GW_INT32:
		WIDEN(int32_t);
	case GW_UINT32:
		WIDEN(uint32_t);
	case GW_INT64:
	case GW_UINT64:
		WIDEN(int64_t);
	default:
		return gw_fail(GW_FORMAT, "%s: dtype %s is not an integer type", w->what, gw_dtype_name(w->dtype));
	}
	bool negative = w->dtype != GW_UINT64;
	for (uint64_t i = begin; i < end; i++) {
		if (w->out[i] < GW_NONE)
			continue;
		if (negative && (int64_t)w->out[i] < 0)
			return gw_fail(GW_RANGE, "%s: element %llu is %lld: it is negative", w->what,
				       (unsigned long long)i, (long long)w->out[i]);
		return gw_fail(GW_RANGE, "%s: element %llu is %llu: it is too large, ids are below 2^63 - 1", w->what,
			       (unsigned long long)i, (unsigned long long)w->out[i]);
	}
	return GW_OK;
}

gw_status gw_import_whole(const struct gw_npy *npy, const void *data, uint64_t first, uint64_t stride, uint64_t count,
			  const char *what, unsigned threads, uint64_t *out)
{
	if (npy->unit != GW_UNIT_NONE)
		return gw_fail(GW_UNSUPPORTED, "%s: times of datetime64, not whole numbers", what);
	struct widening w = {
		.data = data, .dtype = npy->dtype, .first = first, .stride = stride, .what = what, .out = out};
	return gw_parallel_for(threads, count, GRAIN, import_widen, &w);
}
