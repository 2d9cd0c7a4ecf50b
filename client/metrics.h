/* What a client has done, summed (stats.c), and scraped (metrics.c). */
#ifndef GW_CLIENT_METRICS_H
#define GW_CLIENT_METRICS_H

#include "client/state/client.h"
#include "client/state/link_counts.h"

struct gw_link_sums {
	struct gw_link_stats stats;
	struct gw_latency waits;
};

/* One for each transport that was used with the part's server, at least one. Returns their number. */
uint32_t gw_client_sum_part(const struct gw_client *client, uint32_t part, struct gw_link_sums out[GW_SCHEMES]);
void gw_client_sum(const struct gw_client *client, struct gw_client_stats *out, struct gw_latency *batch_waits);

/* The process's exporter runs at the address of GRAPHWIRE_METRICS while at least one client is open. A failure is a
 * warning in the log. */
void gw_client_metrics_begin(struct gw_client *client);
/* The client is scraped no more. Call it before anything of the client ends. */
void gw_client_metrics_end(struct gw_client *client);

#endif
