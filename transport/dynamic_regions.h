/* Regions that an endpoint asked for after its hello: a table by the place in the server's, and so no larger. One
 * thread's, as the endpoint is. */
#ifndef GW_TRANSPORT_LATE_REGIONS_H
#define GW_TRANSPORT_LATE_REGIONS_H

#include "transport/transport.h"

/* One of them. */
struct gw_dynamic_region_entry {
	struct gw_region region;
	bool open;           /* may be read */
	bool refused;        /* verbs: not to be had that way */
	bool owed;           /* the server waits to hear that it was let go, and has not been told for want of room */
	const uint8_t *base; /* shm: where it is mapped */
	void *mapping;       /* shm: what holds it; verbs: its keys */
	uint64_t reads;      /* verbs: in flight */
};

/* Puts a region in its place; what was there before is gone from the server, and *before is what is left of it, or
 * zero. GW_NO_MEMORY; GW_PROTOCOL: no place that a server has. */
gw_status gw_dynamic_region_add(struct gw_endpoint *endpoint, const struct gw_region *region,
				struct gw_dynamic_region_entry **out, struct gw_dynamic_region_entry *before);
/* NULL: it was never opened, or another one is in its place. */
struct gw_dynamic_region_entry *gw_dynamic_region_find(const struct gw_endpoint *endpoint, uint32_t id,
						       uint32_t generation);
void gw_dynamic_region_free(struct gw_endpoint *endpoint);

#endif
