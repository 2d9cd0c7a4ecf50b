/* The head of an HTTP request, and the head of its response: pure functions over bytes (RFC 9112). */
#ifndef GW_METRICS_HTTP_REQUEST_H
#define GW_METRICS_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define GW_HTTP_REQUEST_MAX 4096 /* bytes of a head; a longer one is 431 */
#define GW_HTTP_HEAD_MAX    512  /* bytes of a response's head */

struct gw_http_text {
	const char *at; /* not zero-terminated; NULL: the request has none */
	size_t bytes;
};

struct gw_http_request {
	struct gw_http_text method, path; /* the path is without the query */
	struct gw_http_text accept;       /* the first header of that name */
	bool head;                        /* HEAD: the response has no body */
};

/* Parses bytes that begin a connection. 0: the head is not complete, more bytes must come. 200: *out points into the
 * bytes. Else the status of the response that refuses the request: 400, 431, 505. */
uint32_t gw_http_request_parse(const char *bytes, size_t count, struct gw_http_request *out);

bool gw_http_text_is(struct gw_http_text text, const char *other);

/* Whether a client with this Accept prefers OpenMetrics 1.0 to the text format. */
bool gw_http_wants_openmetrics(struct gw_http_text accept);

/* Writes status line and headers; returns their length. The connection closes after the response. */
size_t gw_http_head_print(char out[GW_HTTP_HEAD_MAX], uint32_t status, const char *content_type, uint64_t body_bytes,
			  time_t now);

#endif
