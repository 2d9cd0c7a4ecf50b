/* Paths to answers: see exporter.h. */
#include "metrics/exporter.h"

#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "metrics/http.h"
#include "metrics/process.h"
#include "transport/scheme.h"

struct gw_exporter {
	struct gw_http *http;
	struct gw_exporter_source source;
	struct gw_process_look look;
};

gw_status gw_exporter_address(const char *text, struct gw_address *out)
{
	char whole[GW_ADDRESS_MAX];
	const char *port = strrchr(text, ':') ? strrchr(text, ':') + 1 : text;
	const size_t digits = strspn(port, "0123456789");
	if (!digits || port[digits])
		return gw_fail(GW_INVALID, "\"%.64s\": give ADDR:PORT, :PORT or PORT", text);
	snprintf(whole, sizeof(whole), "%s%.256s",
		 port == text       ? "127.0.0.1:"
		 : port == text + 1 ? "127.0.0.1"
				    : "",
		 text);
	gw_status status = gw_address_parse(whole, out);
	if (status == GW_OK && gw_scheme_find(out->scheme)->rank != GW_RANK_FIRST)
		return gw_fail(GW_INVALID, "\"%.64s\": metrics are served over TCP: give ADDR:PORT, :PORT or PORT",
			       text);
	return status;
}

static void answer_metrics(struct gw_exporter *exporter, const struct gw_http_request *request,
			   struct gw_http_response *response)
{
	struct gw_exposition exposition;
	bool open = gw_http_wants_openmetrics(request->accept);
	gw_exposition_begin(&exposition, open ? GW_EXPOSITION_OPENMETRICS : GW_EXPOSITION_PROMETHEUS);
	exporter->source.expose(exporter->source.context, &exposition);
	gw_process_expose(&exporter->look, &exposition);
	if (gw_exposition_end(&exposition) != GW_OK) {
		gw_exposition_free(&exposition);
		gw_http_respond(response, 500, "no memory for the metrics\n");
		return;
	}
	response->status = 200;
	response->content_type = gw_exposition_types[exposition.format];
	response->body = exposition.text;
	response->body_bytes = exposition.bytes;
}

static void answer_ready(struct gw_exporter *exporter, struct gw_http_response *response)
{
	char text[128];
	const char *reason = exporter->source.waits_for(exporter->source.context);
	snprintf(text, sizeof(text), "%s\n", reason ? reason : "ready");
	gw_http_respond(response, reason ? 503 : 200, text);
}

static void exporter_answer(void *context, const struct gw_http_request *request, struct gw_http_response *response)
{
	struct gw_exporter *exporter = context;
	const bool metrics = gw_http_text_is(request->path, "/metrics");
	const bool health = gw_http_text_is(request->path, "/healthz");
	if (!metrics && !health && !gw_http_text_is(request->path, "/readyz"))
		gw_http_respond(response, 404, "the paths are /metrics, /healthz and /readyz\n");
	else if (!request->head && !gw_http_text_is(request->method, "GET"))
		gw_http_respond(response, 405, "the methods are GET and HEAD\n");
	else if (metrics)
		answer_metrics(exporter, request, response);
	else if (health)
		gw_http_respond(response, 200, "alive\n");
	else
		answer_ready(exporter, response);
}

gw_status gw_exporter_start(struct gw_address *address, const struct gw_exporter_source *source,
			    struct gw_exporter **out)
{
	*out = NULL;
	struct gw_exporter *exporter = gw_calloc(1, sizeof(*exporter));
	if (!exporter)
		return GW_NO_MEMORY;
	exporter->source = *source;
	gw_process_look_begin(&exporter->look);
	gw_status status = gw_http_start(address, exporter_answer, exporter, &exporter->http);
	if (status != GW_OK) {
		gw_free(exporter);
		return status;
	}
	*out = exporter;
	return GW_OK;
}

void gw_exporter_forget(const struct gw_exporter *exporter)
{
	if (exporter)
		gw_http_forget(exporter->http);
}

void gw_exporter_stop(struct gw_exporter *exporter)
{
	if (!exporter)
		return;
	gw_http_stop(exporter->http);
	gw_free(exporter);
}
