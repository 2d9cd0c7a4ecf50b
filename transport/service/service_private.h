/* What the files of a service use of each other. */
#ifndef GW_TRANSPORT_SERVICE_SERVICE_PRIVATE_H
#define GW_TRANSPORT_SERVICE_SERVICE_PRIVATE_H

#include "transport/service/service_backend.h"

/* --- service.c --- */
/* GW_INVALID: the memory cannot be a region. */
gw_status gw_service_region_check(const uint8_t *base, uint64_t bytes, uint64_t slice_bytes,
				  const struct gw_region_rows *rows);

/* --- service_dynamic.c --- */
void gw_service_dynamic_begin(struct gw_service *service);
void gw_service_dynamic_end(struct gw_service *service); /* call it after the listeners have ended */

/* --- service_peers.c --- */
/* Adds the reads of all connections, ended ones included, to the counters. */
void gw_service_peers_sum(struct gw_service *service, struct gw_service_counters *out,
			  struct gw_service_calls reads[GW_SERVICE_SCHEMES]);

#endif
