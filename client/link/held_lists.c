/* See held_lists.h. Whether the arrays are those of the graph is checked when they are first used, since the graph is
 * not yet known while the client opens. */
#include "client/link/held_lists.h"

#include "client/link/catalog.h"
#include "core/memory/alloc.h"

static gw_status held_lists_fill(struct gw_held_lists *held, const struct gw_endpoint *endpoint)
{
	held->num_parts = endpoint->peer.parts;
	held->parts = gw_calloc(held->num_parts, sizeof(*held->parts));
	if (!held->parts)
		return GW_NO_MEMORY;
	for (uint32_t i = 0; i < held->catalogs.count; i++) {
		const struct gw_catalog *catalog = &held->catalogs.parts[i];
		gw_status status = gw_places_check(catalog, endpoint);
		if (status != GW_OK)
			return status;
		held->parts[catalog->part].catalog = catalog;
	}
	return GW_OK;
}

gw_status gw_held_lists_parse(const struct gw_endpoint *endpoint, const void *reply, uint32_t reply_bytes,
			      struct gw_held_lists **out)
{
	*out = NULL;
	struct gw_held_lists *held = gw_calloc(1, sizeof(*held));
	if (!held)
		return GW_NO_MEMORY;
	gw_status status =
		gw_catalog_lists_parse(reply, reply_bytes, endpoint->peer.parts, endpoint->peer.part, &held->catalogs);
	if (status == GW_OK)
		status = held_lists_fill(held, endpoint);
	if (status != GW_OK) {
		gw_held_lists_free(held);
		return status;
	}
	*out = held;
	return GW_OK;
}

void gw_held_lists_free(struct gw_held_lists *held)
{
	if (!held)
		return;
	for (uint32_t p = 0; held->parts && p < held->num_parts; p++) {
		gw_free(held->parts[p].lists[0]);
		gw_free(held->parts[p].lists[1]);
	}
	gw_free(held->parts);
	gw_catalog_lists_free(&held->catalogs);
	gw_free(held);
}
