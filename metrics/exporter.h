/* What a process offers to scrapers and probes over HTTP, server or trainer:
 *
 *   /metrics   the source's figures, and those of the process
 *   /healthz   200: the process answers
 *   /readyz    200, or 503 and the reason: what the process is for is not possible now
 *
 * Nothing here is secret, and nothing can be changed. */
#ifndef GW_METRICS_EXPORTER_H
#define GW_METRICS_EXPORTER_H

#include "metrics/exposition.h"
#include "transport/address.h"

struct gw_exporter;

/* Both run in the exporter's thread, from gw_exporter_start until gw_exporter_stop returns. */
struct gw_exporter_source {
	void (*expose)(void *context, struct gw_exposition *out);
	const char *(*waits_for)(void *context); /* why the process is not ready, a static text; NULL: it is ready */
	void *context;
};

/* "127.0.0.1:9100", "[::]:9100", "host:9100"; ":9100" and "9100" mean the loopback address. GW_INVALID. */
gw_status gw_exporter_address(const char *text, struct gw_address *out);

/* Port 0 becomes the actual port. Fails as gw_http_start does. */
gw_status gw_exporter_start(struct gw_address *address, const struct gw_exporter_source *source,
			    struct gw_exporter **out);
void gw_exporter_stop(struct gw_exporter *exporter); /* NULL is allowed */
/* In a forked child, which does not have the thread: closes the child's copies of the sockets. NULL is allowed. */
void gw_exporter_forget(const struct gw_exporter *exporter);

#endif
