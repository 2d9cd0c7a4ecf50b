/* See part_lists.h. What a rule may name is decided by the array's key and shape, since each edge loader has rules of
 * its own. */
#include "core/graph/part_lists.h"

#include <string.h>

static bool is_list_column(const char *name, const struct gw_array_meta *array)
{
	if (gw_name_ends_in(name, ".alias") || gw_name_is_of_times(true, name))
		return true;
	return array->ndim == 1 && !gw_name_is_taken(true, name);
}

static bool is_offsets(const struct gw_array_key *key)
{
	return !key->edge && (strcmp(key->name, "indptr") == 0 || strcmp(key->name, "out_indptr") == 0);
}

bool gw_array_is_of_lists(const struct gw_graph_meta *meta, const struct gw_array_meta *array)
{
	struct gw_array_key key;
	if (gw_array_key_parse(meta, array->key, &key) != GW_OK)
		return false;
	if (!key.edge)
		return is_offsets(&key);
	return key.out || strcmp(key.name, "indices") == 0 || is_list_column(key.name, array);
}

bool gw_array_is_of_edges(const struct gw_graph_meta *meta, const struct gw_array_meta *array)
{
	struct gw_array_key key;
	if (gw_array_key_parse(meta, array->key, &key) != GW_OK || !key.edge || gw_name_ends_in(key.name, ".offsets") ||
	    gw_name_ends_in(key.name, ".bytes") || gw_name_ends_in(key.name, GW_TIME_FENCE_TAIL))
		return false;
	return array->ndim == 1 || gw_name_ends_in(key.name, ".alias");
}

bool gw_array_is_of_ranges(const struct gw_graph_meta *meta, const struct gw_array_meta *array)
{
	struct gw_array_key key;
	return gw_array_key_parse(meta, array->key, &key) == GW_OK &&
	       (is_offsets(&key) || (!key.edge && strcmp(key.name, GW_ID_BUCKETS_NAME) == 0));
}

bool gw_array_is_of_offsets(const struct gw_graph_meta *meta, const struct gw_array_meta *array)
{
	struct gw_array_key key;
	if (gw_array_key_parse(meta, array->key, &key) != GW_OK)
		return false;
	return is_offsets(&key) || (key.edge && gw_name_ends_in(key.name, GW_TIME_FENCE_TAIL));
}

uint64_t gw_part_lists_bytes(const struct gw_graph_meta *meta, uint32_t part,
			     enum gw_array_apart (*leave_out)(const void *context, const char *key),
			     const void *context)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < meta->parts[part].count; i++) {
		const struct gw_array_meta *array = &meta->parts[part].arrays[i];
		if (gw_array_is_of_lists(meta, array) && !(leave_out && leave_out(context, array->key)))
			bytes += (gw_array_meta_bytes(array) + GW_ARENA_ALIGN - 1) & ~(GW_ARENA_ALIGN - 1);
	}
	return bytes;
}
