/* The answer to one read: a cursor over the ranges that were asked for. */
#ifndef GW_TRANSPORT_TCP_SERVER_ANSWER_H
#define GW_TRANSPORT_TCP_SERVER_ANSWER_H

#include "transport/service_private.h"
#include "transport/tcp/wire.h"

struct tcp_answer {
	struct wire_ranges ranges; /* .bytes: of the payload */
	struct gw_service *service;
	const uint8_t *from;      /* the region */
	uint32_t next, next_done; /* the range that comes next, and how much of it is gathered */
	/* Versioned regions. */
	const struct gw_region_rows *rows; /* NULL: immutable, and there as long as the service */
	struct gw_region_rows row_copy;    /* what it points to */
	bool dynamic, gone;                /* may be withdrawn; was, and zeros are sent for it */
	uint8_t *long_row;                 /* of a row that is longer than the output buffer: a whole copy */
	uint32_t *torn;                    /* ranges that are */
	uint32_t torn_count, torn_capacity;
	bool gathered;                 /* all of the payload: what is torn is to be told */
	gw_status failure;             /* what is told instead */
	struct gw_service_reads reads; /* counts all that the connection began; ended by its owner */
};

/* Decodes and checks a GATHER's or READV's body of n bytes, which must stay until the answer is complete, and counts
 * the read. GW_PROTOCOL: a malformed frame, from which the connection cannot go on; GW_RANGE, GW_STALE: it can. */
gw_status gw_tcp_answer_begin(struct tcp_answer *answer, struct gw_service *service, uint8_t type, const uint8_t *body,
			      uint32_t n);

/* Appends payload to the buffer of out_bytes, of which *out_end are in use. True when all of it has been appended;
 * false when the buffer is full, and the rest is for later calls. */
bool gw_tcp_answer_gather(struct tcp_answer *answer, uint8_t *out, uint32_t *out_end, uint32_t out_bytes);

/* What follows the payload of a versioned region's rows: a TORN frame, or an ERROR's status (GW_NO_MEMORY), which is
 * the caller's to send. GW_AGAIN: it does not fit the rest of the buffer. */
gw_status gw_tcp_answer_close(struct tcp_answer *answer, uint64_t tag, uint8_t *out, uint32_t *out_end,
			      uint32_t out_bytes);

/* The connection has ended: what answers took is freed. */
void gw_tcp_answer_end(struct tcp_answer *answer);

#endif
