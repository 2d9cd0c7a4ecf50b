/* Edge features as weights: the checks that import, generate and partition share before they make alias tables. */
#ifndef GW_TOOLS_WEIGHTS_H
#define GW_TOOLS_WEIGHTS_H

#include <stdbool.h>

#include "core/errors/status.h"
#include "core/numbers/dtype.h"

#define GW_WEIGHTS_MAX     64u /* --weight of one command line */
#define GW_WEIGHT_TEXT_MAX 32u
/* The rule, for error texts. */
#define GW_WEIGHT_RULE "weights are finite numbers, 0 or more"

/* Whether an array has one number for each edge: [edges] or [edges, 1] of a dtype that alias tables take. shape:
 * [ndim]. GW_UNSUPPORTED; the text has the dtype and the shape, and the caller adds the array's name. */
gw_status gw_weight_form_check(gw_dtype dtype, uint32_t ndim, const uint64_t *shape);

/* The first row whose value cannot be a weight, because it is negative, infinite or not a number; GW_NONE if all rows
 * can. values: [count] of a dtype that passed gw_weight_form_check. text: that value, for an error text. */
uint64_t gw_weight_first_fault(gw_dtype dtype, const void *values, uint64_t count, unsigned threads,
			       char text[GW_WEIGHT_TEXT_MAX]);

/* GW_INVALID if the name is too long: its table is the array NAME.alias, whose name has at most GW_NAME_MAX bytes. */
gw_status gw_weight_name_check(const char *name);

/* For an option "NAME" or "SRC:REL:DST:NAME": returns NAME if the text starts with this edge type, else NULL. etype:
 * "SRC:REL:DST". */
const char *gw_weight_name_in(const char *text, const char *etype);

/* Whether the text has the form SRC:REL:DST:NAME. */
bool gw_weight_is_typed(const char *text);

#endif
