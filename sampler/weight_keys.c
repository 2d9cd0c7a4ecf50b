/* The arrays of a part that draws by weight read: see weight_keys.h. */
#include "sampler/weight_keys.h"

#include <stdio.h>

struct gw_weight_keys gw_weight_keys_of(const struct gw_edge_type *type, const char *name)
{
	struct gw_weight_keys keys;
	snprintf(keys.weight, sizeof(keys.weight), "edge/%s/%s", type->folder, name);
	snprintf(keys.alias, sizeof(keys.alias), "edge/%s/%s.alias", type->folder, name);
	return keys;
}

static struct gw_column_form form_of(const struct gw_array_meta *array)
{
	return (struct gw_column_form){.entry_bytes = (uint32_t)gw_array_meta_row_bytes(array), .dtype = array->dtype};
}

gw_status gw_weight_forms(const struct gw_graph_meta *meta, uint32_t etype, const char *name,
			  const struct gw_sampling_kind *kind, const struct gw_array_meta *weight,
			  const struct gw_array_meta *alias, struct gw_column_form forms[GW_COLUMN_COUNT])
{
	char text[GW_EDGE_FOLDER_MAX + 1];
	gw_meta_etype_text(meta, etype, text);
	if (!weight)
		return gw_fail(GW_NOT_FOUND, "edge type %s has no feature \"%s\" to draw its edges by", text, name);
	struct gw_draw draw = {.kind = kind};
	forms[GW_COLUMN_WEIGHT] = draw.forms[GW_COLUMN_WEIGHT] = form_of(weight);
	if (alias)
		forms[GW_COLUMN_ALIAS] = draw.forms[GW_COLUMN_ALIAS] = form_of(alias);
	gw_status status = gw_draw_check(&draw);
	return status == GW_OK ? GW_OK : gw_context(status, "edge type %s, feature \"%s\"", text, name);
}

void gw_weight_text(const struct gw_graph_meta *meta, uint32_t etype, const char *name, char text[GW_WEIGHT_NAMES_MAX])
{
	char type[GW_EDGE_FOLDER_MAX + 1];
	snprintf(text, GW_WEIGHT_NAMES_MAX, "weight \"%s\" of %s", name, gw_meta_etype_text(meta, etype, type));
}
