/* Whether two descriptions are of one graph. Compares every value that readers of arrays use, instead of a digest,
 * which a peer could forge. */
#include <string.h>

#include "core/graph/meta.h"

static bool same_ntype(const struct gw_node_type *a, const struct gw_node_type *b, uint32_t parts)
{
	return strcmp(a->name, b->name) == 0 && a->count == b->count && a->columns == b->columns &&
	       a->out_columns == b->out_columns &&
	       memcmp(a->starts, b->starts, ((size_t)parts + 1) * sizeof(*a->starts)) == 0;
}

static bool same_etype(const struct gw_edge_type *a, const struct gw_edge_type *b, uint32_t parts)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->folder, b->folder) == 0 && a->src == b->src &&
	       a->dst == b->dst && a->count == b->count && a->column == b->column && a->out_column == b->out_column &&
	       a->relations == b->relations && a->order == b->order && strcmp(a->time_name, b->time_name) == 0 &&
	       memcmp(a->starts, b->starts, ((size_t)parts + 1) * sizeof(*a->starts)) == 0;
}

bool gw_array_meta_same(const struct gw_array_meta *a, const struct gw_array_meta *b)
{
	return strcmp(a->key, b->key) == 0 && a->dtype == b->dtype && a->ndim == b->ndim && a->digest == b->digest &&
	       memcmp(a->shape, b->shape, sizeof(a->shape)) == 0;
}

bool gw_meta_same(const struct gw_graph_meta *a, const struct gw_graph_meta *b)
{
	if (a == b)
		return true;
	if (a->graph_id != b->graph_id || a->num_parts != b->num_parts || a->num_ntypes != b->num_ntypes ||
	    a->num_etypes != b->num_etypes)
		return false;
	for (uint32_t t = 0; t < a->num_ntypes; t++) {
		if (!same_ntype(&a->ntypes[t], &b->ntypes[t], a->num_parts))
			return false;
	}
	for (uint32_t t = 0; t < a->num_etypes; t++) {
		if (!same_etype(&a->etypes[t], &b->etypes[t], a->num_parts))
			return false;
	}
	for (uint32_t p = 0; p < a->num_parts; p++) {
		if (a->parts[p].count != b->parts[p].count)
			return false;
		for (uint32_t i = 0; i < a->parts[p].count; i++) {
			if (!gw_array_meta_same(&a->parts[p].arrays[i], &b->parts[p].arrays[i]))
				return false;
		}
	}
	return true;
}
