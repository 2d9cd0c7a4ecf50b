/* The arrays of a part that draws by weight read, by their keys. The client and the server use the same rules. */
#ifndef GW_SAMPLER_WEIGHT_KEYS_H
#define GW_SAMPLER_WEIGHT_KEYS_H

#include "core/graph/meta.h"
#include "sampler/draw.h"

#define GW_WEIGHT_KEY_MAX (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32)

struct gw_weight_keys {
	char weight[GW_WEIGHT_KEY_MAX], alias[GW_WEIGHT_KEY_MAX];
};

/* The keys of a feature of an edge type, and of its alias table. name: not longer than GW_NAME_MAX. */
struct gw_weight_keys gw_weight_keys_of(const struct gw_edge_type *type, const char *name);

/* The forms of the columns in which a part stores a weight and its alias table. weight: NULL if the edge type has no
 * such feature; alias: NULL if it has no table. GW_NOT_FOUND; GW_UNSUPPORTED: the feature does not hold one number for
 * each edge. */
gw_status gw_weight_forms(const struct gw_graph_meta *meta, uint32_t etype, const char *name,
			  const struct gw_sampling_kind *kind, const struct gw_array_meta *weight,
			  const struct gw_array_meta *alias, struct gw_column_form forms[GW_COLUMN_COUNT]);

/* The feature and its edge type, for error texts: weight "w" of a:likes:b. */
#define GW_WEIGHT_NAMES_MAX (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16)
void gw_weight_text(const struct gw_graph_meta *meta, uint32_t etype, const char *name, char text[GW_WEIGHT_NAMES_MAX]);

#endif
