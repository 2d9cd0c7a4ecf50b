/* The arrays of a part that draws by weight read: see weight_keys.h. */
#include "sampler/weight_keys.h"

#include <stdio.h>

void gw_weight_keys_print(const struct gw_edge_type *type, const char *name, struct gw_weight_keys *keys)
{
	snprintf(keys->weight, sizeof(keys->weight), "edge/%s/%s", type->folder, name);
	snprintf(keys->alias, sizeof(keys->alias), "edge/%s/%s.alias", type->folder, name);
}

gw_status gw_weight_form(const struct gw_edge_type *type, const char *name, const struct gw_array_meta *array,
			 struct gw_column_form *form)
{
	if (!array)
		return gw_fail(GW_NOT_FOUND, "edge type %s has no feature \"%s\" to draw its edges by", type->folder,
			       name);
	if (array->dtype == GW_BOOL || array->dtype == GW_INT8_ROW ||
	    gw_array_meta_row_bytes(array) != gw_dtype_bytes(array->dtype))
		return gw_fail(
			GW_UNSUPPORTED,
			"edge type %s: \"%s\" does not hold one number for each edge, so edges cannot be drawn by it",
			type->folder, name);
	*form = (struct gw_column_form){.entry_bytes = gw_dtype_bytes(array->dtype), .dtype = array->dtype};
	return GW_OK;
}

struct gw_column_form gw_alias_form(const struct gw_array_meta *array)
{
	return (struct gw_column_form){.entry_bytes = (uint32_t)gw_array_meta_row_bytes(array), .dtype = array->dtype};
}
