/* A small HTTP server for scrapers and probes, in a thread of its own.
 *
 *   accept ──► read the head ──► the handler ──► write the response ──► close
 *        │            └── longer than 4 KiB, malformed, slower than 2 s: refused
 *        └── no place: the oldest connection whose request is not complete is closed for the new one
 *
 * A connection carries one request. At most GW_HTTP_CONNECTIONS are open, each with GW_HTTP_REQUEST_MAX bytes and one
 * response, and each ends GW_HTTP_LIMIT_MS after its request came or should have come. So no client, however slow, and
 * no number of clients, keeps another one waiting for longer, and the memory is bounded. */
#ifndef GW_METRICS_HTTP_H
#define GW_METRICS_HTTP_H

#include "core/memory/vec.h"
#include "metrics/http_request.h"
#include "transport/address.h"

#define GW_HTTP_CONNECTIONS 8
#define GW_HTTP_LIMIT_MS    2000

struct gw_http;

struct gw_http_response {
	uint32_t status;
	const char *content_type; /* static */
	struct gw_vec body;       /* the server frees it */
	size_t body_bytes;
};

/* Fills the response; runs in the server's thread, one request at a time. The request is valid meanwhile. */
typedef void (*gw_http_handler)(void *context, const struct gw_http_request *request,
				struct gw_http_response *response);

/* Sets the body to a text. Without memory the body stays empty. */
void gw_http_respond(struct gw_http_response *response, uint32_t status, const char *text);

/* Listens at the address; port 0 becomes the actual port. GW_BUSY names the process that has the port. */
gw_status gw_http_start(struct gw_address *address, gw_http_handler handler, void *context, struct gw_http **out);
/* Ends the thread; open connections are closed. NULL is allowed. */
void gw_http_stop(struct gw_http *http);
/* Closes the copies of the sockets that a forked child has. It frees nothing: the thread may have been at work. */
void gw_http_forget(const struct gw_http *http);

#endif
