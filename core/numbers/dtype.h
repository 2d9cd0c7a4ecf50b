/* Element types: their names in the JSON, sizes, and NumPy's descriptor strings. */
#ifndef GW_NUMBERS_DTYPE_H
#define GW_NUMBERS_DTYPE_H

#include <graphwire/types.h>

/* Bytes of one element; 0 for a value out of range. */
uint32_t gw_dtype_bytes(gw_dtype dtype);

/* "float32" and so on; "?" for a value out of range. */
const char *gw_dtype_name(gw_dtype dtype);

/* The dtype of a JSON name. GW_NOT_FOUND names the text. */
gw_status gw_dtype_parse(const char *name, gw_dtype *out);

/* NumPy's descriptor ("<f4"); bfloat16 is stored as "<u2", int8_row as "|u1". */
const char *gw_dtype_numpy(gw_dtype dtype);

/* The dtype of a descriptor, of either byte order mark where one byte needs none. Big-endian data is refused with
 * GW_UNSUPPORTED. "<u2" gives GW_UINT16 and "|u1" GW_UINT8: only the JSON knows better. */
gw_status gw_dtype_from_numpy(const char *descriptor, gw_dtype *out);

#endif
