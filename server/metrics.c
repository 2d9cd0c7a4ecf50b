/* The server's exporter. It runs while the part loads, so that a probe distinguishes a server that loads from a dead
 * one; the figures of what does not exist yet are 0. */
#include "core/errors/log.h"
#include "metrics/exporter.h"
#include "server/figures.h"

static void server_expose(void *context, struct gw_exposition *out)
{
	gw_server_expose(context, out);
}

static const char *server_waits_for(void *context)
{
	struct gw_server *server = context;
	if (atomic_load(&server->stop_accepting))
		return "draining";
	return atomic_load(&server->serving) ? NULL : "loading";
}

gw_status gw_server_metrics_start(struct gw_server *server)
{
	const struct gw_exporter_source source = {
		.expose = server_expose, .waits_for = server_waits_for, .context = server};
	char text[GW_ADDRESS_MAX];
	if (!server->options.metrics)
		return GW_OK;
	gw_status status = gw_exporter_start(&server->options.metrics_at, &source, &server->exporter);
	if (status != GW_OK)
		return gw_context(status, "--metrics");
	gw_log(GW_LOG_INFO, "metrics at http://%s/metrics", gw_address_text(&server->options.metrics_at, text));
	return GW_OK;
}
