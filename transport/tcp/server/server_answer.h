/* The answer to one read: a cursor over the read's ranges. */
#ifndef GW_TRANSPORT_TCP_SERVER_SERVER_ANSWER_H
#define GW_TRANSPORT_TCP_SERVER_SERVER_ANSWER_H

#include "transport/service/service_backend.h"
#include "transport/tcp/wire.h"
#include "transport/transport.h"

struct tcp_answer {
	struct wire_ranges ranges; /* .bytes: the payload's length */
	struct gw_service *service;
	const uint8_t *from;      /* the region's first byte */
	uint32_t next, next_done; /* the next range, and how many of its bytes are gathered */
	/* Versioned regions. */
	const struct gw_region_rows *rows; /* NULL: an immutable region, whose memory lasts as long as the service */
	struct gw_region_rows row_copy;    /* the target of `rows` */
	bool dynamic, gone; /* dynamic: the region may be withdrawn; gone: it was, and zeros are sent instead */
	uint8_t *long_row;  /* a complete copy of a row that is longer than the output buffer */
	uint32_t *torn;     /* the numbers of torn ranges */
	uint32_t torn_count, torn_capacity;
	bool gathered;               /* the payload is complete: TORN comes next */
	gw_status failure;           /* sent instead of TORN */
	struct gw_service_peer peer; /* counts the connection's reads; the connection begins and ends it */
};

/* Decodes and checks the body of a GATHER or READV, and counts the read. The body must stay until the answer is
 * complete. GW_PROTOCOL: a malformed frame; the connection must end. After any other error the connection can go on. */
gw_status gw_tcp_answer_begin(struct tcp_answer *answer, struct gw_service *service, uint8_t type, const uint8_t *body,
			      uint32_t n);

/* The memory of the payload, if it is one long range of memory that stays as long as the service, without versions: it
 * is then sent from there. Else NULL. */
const uint8_t *gw_tcp_answer_direct(const struct tcp_answer *answer);

/* Appends payload to the buffer of out_bytes, whose first *out_end bytes are in use. true: the payload is complete;
 * false: the buffer is full, and later calls append the rest. */
bool gw_tcp_answer_gather(struct tcp_answer *answer, uint8_t *out, uint32_t *out_end, uint32_t out_bytes);

/* The bytes that the end of a versioned read needs. */
uint32_t gw_tcp_answer_close_bytes(const struct tcp_answer *answer);

/* Appends the end of a versioned read: a TORN frame. GW_AGAIN: the buffer has no room. For any other error the caller
 * sends an ERROR frame with that status instead. */
gw_status gw_tcp_answer_close(struct tcp_answer *answer, uint64_t tag, uint8_t *out, uint32_t *out_end,
			      uint32_t out_bytes);

/* The connection has ended: frees the memory of its answers. */
void gw_tcp_answer_end(struct tcp_answer *answer);

#endif
