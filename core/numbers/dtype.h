/* Element types: their names in the JSON, sizes, and NumPy's descriptor strings. */
#ifndef GW_NUMBERS_DTYPE_H
#define GW_NUMBERS_DTYPE_H

#include <graphwire/types.h>

/* Bytes of one element; 0 for an invalid value. */
uint32_t gw_dtype_bytes(gw_dtype dtype);

/* "float32" and so on; "?" for an invalid value. */
const char *gw_dtype_name(gw_dtype dtype);

/* Finds the dtype of a JSON name. GW_NOT_FOUND names the text. */
gw_status gw_dtype_parse(const char *name, gw_dtype *out);

/* NumPy's descriptor ("<f4"); bfloat16 is stored as "<u2", int8_row as "|u1". */
const char *gw_dtype_numpy(gw_dtype dtype);

/* Finds the dtype of a descriptor. One-byte types may have either byte order mark. Big-endian data is GW_UNSUPPORTED.
 * "<u2" gives GW_UINT16 and "|u1" gives GW_UINT8: only the JSON distinguishes bfloat16 and int8_row. Two bytes without
 * a type ("<V2"), as NumPy writes arrays of ml_dtypes.bfloat16, give GW_BFLOAT16. */
gw_status gw_dtype_from_numpy(const char *descriptor, gw_dtype *out);

#endif
