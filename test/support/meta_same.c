/* See meta_same.h. */
#include "test/support/meta_same.h"

#include <string.h>

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

bool meta_same(const struct gw_graph_meta *a, const struct gw_graph_meta *b)
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
