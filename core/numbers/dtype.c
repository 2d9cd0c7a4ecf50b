/* Tables of element types, generated from the one list in graphwire/types.h. */
#include "core/numbers/dtype.h"

#include <string.h>

#include "core/errors/status.h"

static const struct {
	const char *name;
	uint32_t bytes;
} dtypes[GW_DTYPE_COUNT] = {
#define ENTRY(id, text, size) [id] = {.name = text, .bytes = size},
	GW_DTYPE_LIST(ENTRY)
#undef ENTRY
};

static const char *const descriptors[GW_DTYPE_COUNT] = {
	[GW_UINT8] = "|u1",    [GW_INT8] = "|i1",    [GW_BOOL] = "|b1",     [GW_UINT16] = "<u2",  [GW_FLOAT16] = "<f2",
	[GW_BFLOAT16] = "<u2", [GW_INT32] = "<i4",   [GW_UINT32] = "<u4",   [GW_FLOAT32] = "<f4", [GW_INT64] = "<i8",
	[GW_UINT64] = "<u8",   [GW_FLOAT64] = "<f8", [GW_INT8_ROW] = "|u1", [GW_INT16] = "<i2",
};

uint32_t gw_dtype_bytes(gw_dtype dtype)
{
	return (unsigned)dtype < GW_DTYPE_COUNT ? dtypes[dtype].bytes : 0;
}

const char *gw_dtype_name(gw_dtype dtype)
{
	return (unsigned)dtype < GW_DTYPE_COUNT ? dtypes[dtype].name : "?";
}

const char *gw_dtype_numpy(gw_dtype dtype)
{
	return (unsigned)dtype < GW_DTYPE_COUNT ? descriptors[dtype] : "?";
}

gw_status gw_dtype_parse(const char *name, gw_dtype *out)
{
	for (int i = 0; i < GW_DTYPE_COUNT; i++) {
		if (strcmp(dtypes[i].name, name) == 0) {
			*out = (gw_dtype)i;
			return GW_OK;
		}
	}
	return gw_fail(GW_NOT_FOUND, "no dtype is called \"%.32s\"", name);
}

gw_status gw_dtype_from_numpy(const char *descriptor, gw_dtype *out)
{
	char order = descriptor[0];
	if (order == '>')
		return gw_fail(GW_UNSUPPORTED, "big-endian dtype \"%.16s\": convert with .astype('%.8s')", descriptor,
			       descriptor + 1);
	const char *kind = strchr("<|=", order) && order ? descriptor + 1 : descriptor;
	if (strcmp(kind, "V2") == 0) {
		*out = GW_BFLOAT16;
		return GW_OK;
	}
	for (int i = 0; i < GW_DTYPE_COUNT; i++) {
		if (i != GW_BFLOAT16 && i != GW_INT8_ROW && strcmp(descriptors[i] + 1, kind) == 0) {
			*out = (gw_dtype)i;
			return GW_OK;
		}
	}
	return gw_fail(GW_UNSUPPORTED, "dtype \"%.16s\" is not one that Graphwire stores", descriptor);
}
