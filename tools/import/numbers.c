/* Chooses the dtype of columns of numbers: tries kinds in turn, so that no value is changed in silence.
 *
 *   whole numbers, if the rule prefers them -> float32 -> whole numbers -> float32 again, for its error
 */
#include "tools/import/numbers.h"

#include <string.h>

gw_status gw_numbers_choose(enum gw_numbers_rule rule, gw_numbers_read read, void *context, enum gw_column_kind *kind)
{
	gw_status status;
	if (rule != GW_NUMBERS_FLOAT) {
		*kind = rule == GW_NUMBERS_DIGITS ? GW_COLUMN_INT : GW_COLUMN_WHOLE;
		status = read(context, *kind);
		if (status != GW_FORMAT)
			return status;
	}
	*kind = GW_COLUMN_FLOAT;
	status = read(context, *kind);
	if (status != GW_RANGE)
		return status;
	*kind = GW_COLUMN_WHOLE;
	if (read(context, *kind) == GW_OK)
		return GW_OK;
	*kind = GW_COLUMN_FLOAT;
	return read(context, *kind);
}

gw_dtype gw_numbers_pack(enum gw_column_kind kind, void *values, uint64_t count)
{
	if (kind != GW_COLUMN_FLOAT)
		return GW_INT64;
	const double *wide = values;
	float *narrow = values;
	for (uint64_t i = 0; i < count; i++) {
		float value = (float)wide[i];
		memcpy(&narrow[i], &value, sizeof(value));
	}
	return GW_FLOAT32;
}

bool gw_numbers_is_missing(struct gw_text_span field)
{
	return field.bytes == 0 || gw_text_span_is_missing(field, true);
}
