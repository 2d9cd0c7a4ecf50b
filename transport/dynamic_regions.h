/* Dynamic regions that an endpoint opened. A region has the same index here as in the server's table, so the size of
 * the server's table bounds this one. For the endpoint's thread alone. */
#ifndef GW_TRANSPORT_DYNAMIC_REGIONS_H
#define GW_TRANSPORT_DYNAMIC_REGIONS_H

#include "transport/transport.h"

/* One opened region. */
struct gw_dynamic_region_entry {
	struct gw_region region;
	bool open;           /* reads are allowed */
	bool refused;        /* verbs: the server cannot register it */
	bool owed;           /* the release has not been sent to the server yet: no room */
	const uint8_t *base; /* shm: its mapped address */
	void *mapping;       /* shm: the mapping; verbs: the keys */
	uint64_t reads;      /* verbs: reads in flight */
};

/* Puts a region in its place. If an earlier region had that place, the server has freed it; *before is then the earlier
 * region's entry, else zero. GW_NO_MEMORY; GW_PROTOCOL: the id is not a dynamic region's. */
gw_status gw_dynamic_region_add(struct gw_endpoint *endpoint, const struct gw_region *region,
				struct gw_dynamic_region_entry **out, struct gw_dynamic_region_entry *before);
/* NULL: the region was never opened, or another region is in its place. */
struct gw_dynamic_region_entry *gw_dynamic_region_find(const struct gw_endpoint *endpoint, uint32_t id,
						       uint32_t generation);
void gw_dynamic_region_free(struct gw_endpoint *endpoint);

#endif
