/* An endpoint's table of dynamic regions. The table grows to the highest place that was opened. Fails if memory runs
 * out, and on ids that no server assigns. */
#include "transport/dynamic_regions.h"

#include "core/memory/alloc.h"

static gw_status dynamic_grow(struct gw_dynamic_region_table *table, uint32_t count)
{
	if (count <= table->count)
		return GW_OK;
	uint32_t capacity = table->count ? table->count : 8;
	while (capacity < count)
		capacity *= 2;
	struct gw_dynamic_region_entry **entries =
		gw_realloc(table->entries, capacity, sizeof(struct gw_dynamic_region_entry *));
	if (!entries)
		return GW_NO_MEMORY;
	table->entries = entries;
	while (table->count < capacity)
		entries[table->count++] = NULL;
	return GW_OK;
}

gw_status gw_dynamic_region_add(struct gw_endpoint *endpoint, const struct gw_region *region,
				struct gw_dynamic_region_entry **out, struct gw_dynamic_region_entry *before)
{
	*out = NULL;
	*before = (struct gw_dynamic_region_entry){0};
	uint32_t at = region->id - GW_REGIONS_MAX;
	if (region->id < GW_REGIONS_MAX || at >= GW_DYNAMIC_REGIONS_MAX)
		return gw_fail(GW_PROTOCOL, "region %u is not a dynamic region that a server assigns", region->id);
	gw_status status = dynamic_grow(&endpoint->dynamic, at + 1);
	if (status != GW_OK)
		return status;
	struct gw_dynamic_region_entry **entry = &endpoint->dynamic.entries[at];
	if (!*entry)
		*entry = gw_calloc(1, sizeof(**entry));
	if (!*entry)
		return GW_NO_MEMORY;
	*before = **entry;
	**entry = (struct gw_dynamic_region_entry){.region = *region, .open = true};
	*out = *entry;
	return GW_OK;
}

struct gw_dynamic_region_entry *gw_dynamic_region_find(const struct gw_endpoint *endpoint, uint32_t id,
						       uint32_t generation)
{
	uint32_t at = id - GW_REGIONS_MAX;
	if (id < GW_REGIONS_MAX || at >= endpoint->dynamic.count)
		return NULL;
	struct gw_dynamic_region_entry *entry = endpoint->dynamic.entries[at];
	return entry && entry->region.generation == generation ? entry : NULL;
}

void gw_dynamic_region_free(struct gw_endpoint *endpoint)
{
	for (uint32_t i = 0; i < endpoint->dynamic.count; i++)
		gw_free(endpoint->dynamic.entries[i]);
	gw_free(endpoint->dynamic.entries);
	endpoint->dynamic = (struct gw_dynamic_region_table){0};
}

const struct gw_region *gw_endpoint_region(const struct gw_endpoint *endpoint, uint32_t id, uint32_t generation)
{
	if (id < endpoint->peer.region_count)
		return endpoint->peer.regions[id].generation == generation ? &endpoint->peer.regions[id] : NULL;
	const struct gw_dynamic_region_entry *entry = gw_dynamic_region_find(endpoint, id, generation);
	return entry && entry->open ? &entry->region : NULL;
}
