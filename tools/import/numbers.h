/* Columns of numbers of text: which dtype they get, and how they become arrays. The table in docs/PYTHON.md, "Numbers
 * of tables", has the rules. */
#ifndef GW_TOOLS_IMPORT_NUMBERS_H
#define GW_TOOLS_IMPORT_NUMBERS_H

#include "core/numbers/dtype.h"
#include "tools/import/table.h"

/* Which numbers become int64 rather than float32. */
enum gw_numbers_rule {
	GW_NUMBERS_FLOAT,  /* only if float32 does not hold them all, and all are whole */
	GW_NUMBERS_DIGITS, /* also if all are written as whole numbers */
	GW_NUMBERS_WHOLE,  /* also if all are whole, in any form */
};

/* Reads all of the columns of one array as GW_COLUMN_INT, _WHOLE or _FLOAT. */
typedef gw_status (*gw_numbers_read)(void *context, enum gw_column_kind kind);

/* Calls `read` with one kind after another until all values fit; *kind is the last one. Returns that call's error. */
gw_status gw_numbers_choose(enum gw_numbers_rule rule, gw_numbers_read read, void *context, enum gw_column_kind *kind);

/* Turns values that were read as this kind into an array, in place. Returns its dtype: GW_FLOAT32 or GW_INT64. */
gw_dtype gw_numbers_pack(enum gw_column_kind kind, void *values, uint64_t count);

/* Whether a field among numbers says that a number is missing: NA, NaN, NULL, None, \N and others in any case, or
 * nothing. */
bool gw_numbers_is_missing(struct gw_text_span field);

#endif
