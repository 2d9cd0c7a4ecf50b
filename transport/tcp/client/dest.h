/* The destination of one read's payload: a cursor. */
#ifndef GW_TRANSPORT_TCP_CLIENT_DEST_H
#define GW_TRANSPORT_TCP_CLIENT_DEST_H

#include <stdbool.h>
#include <sys/uio.h>

#include "transport/transport.h"

/* Shorter spans are cheaper to copy from the staging buffer than to hand to the kernel one by one. */
#define TCP_DEST_DIRECT_SPAN 2048u

/* Rows of so many bytes, of an answer of so many, are copied around the caches: more arrives than these hold until the
 * rows are read. */
#define TCP_DEST_AROUND_ROW   256u
#define TCP_DEST_AROUND_BYTES (256u << 10)

struct tcp_dest {
	uint8_t *to;   /* contiguous: the next byte; rows: row 0; spans: the buffer's first byte */
	uint64_t left; /* bytes still to come */
	enum { TCP_DEST_CONTIGUOUS, TCP_DEST_STRIDED, TCP_DEST_ROWS, TCP_DEST_SPANS } form;
	bool direct; /* worth receiving in place */
	bool around; /* worth copying around the caches */
	uint32_t row_bytes, stride;
	const uint32_t *rows;
	const struct gw_span *spans;
	uint32_t next; /* the next range; next_done: how many bytes of it have arrived */
	uint32_t next_done;
};

/* For n checked ranges. */
struct tcp_dest gw_tcp_dest_gather(uint8_t *base, const struct gw_gather *gather, uint32_t n);
struct tcp_dest gw_tcp_dest_spans(uint8_t *base, const struct gw_span *spans, uint32_t n, uint64_t bytes);

/* The memory of the next bytes: up to max pieces, `left` bytes at most. Does not advance the cursor. */
size_t gw_tcp_dest_pieces(const struct tcp_dest *dest, struct iovec *iov, size_t max);

/* Advance by n <= left bytes, which have arrived in place (skip) or are copied from `data`. */
void gw_tcp_dest_skip(struct tcp_dest *dest, uint64_t n);
void gw_tcp_dest_copy(struct tcp_dest *dest, const uint8_t *data, uint64_t n);

#endif
