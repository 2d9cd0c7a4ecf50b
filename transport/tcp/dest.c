/* Destinations of a read. Contiguous ones and long spans are received in place; rows that lie apart are copied out of
 * the staging buffer while it is in the cache. Cannot fail: ranges were checked when the read was accepted. */
#include "transport/tcp/dest.h"

#include "transport/copy.h"

static bool rows_are_consecutive(const uint32_t *rows, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (rows[i] != (uint64_t)rows[0] + i)
			return false;
	return true;
}

struct landing gw_tcp_dest_gather(uint8_t *base, const struct gw_gather *gather, uint32_t n)
{
	struct landing landing = {
		.to = base + gather->local,
		.left = (uint64_t)n * gather->row_bytes,
		.row_bytes = gather->row_bytes,
		.stride = gather->stride,
		.rows = gather->rows,
	};
	bool packed = n == 1 || gather->stride == gather->row_bytes;
	if (packed && (!gather->rows || rows_are_consecutive(gather->rows, n))) {
		landing.form = LANDING_CONTIGUOUS;
		if (gather->rows && n)
			landing.to += (uint64_t)gather->rows[0] * gather->stride;
	} else {
		landing.form = gather->rows ? LANDING_ROWS : LANDING_STRIDED;
	}
	landing.direct = landing.form == LANDING_CONTIGUOUS || gather->row_bytes >= LANDING_DIRECT_SPAN;
	return landing;
}

struct landing gw_tcp_dest_spans(uint8_t *base, const struct gw_span *spans, uint32_t n, uint64_t bytes)
{
	struct landing landing = {.to = base, .left = bytes, .form = LANDING_SPANS, .spans = spans};
	bool adjacent = n > 0;
	for (uint32_t i = 1; i < n && adjacent; i++)
		adjacent = spans[i].local == spans[i - 1].local + spans[i - 1].bytes;
	if (adjacent) {
		landing.form = LANDING_CONTIGUOUS;
		landing.to += spans[0].local;
	}
	landing.direct = adjacent || bytes / (n ? n : 1) >= LANDING_DIRECT_SPAN;
	return landing;
}

static inline uint32_t dest_range_bytes(const struct landing *landing, uint32_t i)
{
	return landing->form == LANDING_SPANS ? landing->spans[i].bytes : landing->row_bytes;
}

static inline uint8_t *range_start(const struct landing *landing, uint32_t i)
{
	if (landing->form == LANDING_SPANS)
		return landing->to + landing->spans[i].local;
	uint64_t row = landing->form == LANDING_ROWS ? landing->rows[i] : i;
	return landing->to + row * landing->stride;
}

size_t gw_tcp_dest_pieces(const struct landing *landing, struct iovec *iov, size_t max)
{
	if (landing->left == 0)
		return 0;
	if (landing->form == LANDING_CONTIGUOUS) {
		iov[0] = (struct iovec){landing->to, landing->left};
		return 1;
	}
	uint64_t left = landing->left;
	uint32_t done = landing->next_done;
	size_t pieces = 0;
	for (uint32_t i = landing->next; left && pieces < max; i++, done = 0) {
		uint32_t bytes = dest_range_bytes(landing, i) - done;
		if (bytes)
			iov[pieces++] = (struct iovec){range_start(landing, i) + done, bytes};
		left -= bytes;
	}
	return pieces;
}

void gw_tcp_dest_skip(struct landing *landing, uint64_t n)
{
	assert(n <= landing->left);
	landing->left -= n;
	if (landing->form == LANDING_CONTIGUOUS) {
		landing->to += n;
		return;
	}
	while (n) {
		uint32_t bytes = dest_range_bytes(landing, landing->next) - landing->next_done;
		if (n < bytes) {
			landing->next_done += (uint32_t)n;
			return;
		}
		n -= bytes;
		landing->next++;
		landing->next_done = 0;
	}
}

/* As much of the next range as there is. */
static uint32_t copy_part(struct landing *landing, const uint8_t *data, uint64_t n)
{
	uint32_t bytes = dest_range_bytes(landing, landing->next) - landing->next_done;
	uint32_t part = n < bytes ? (uint32_t)n : bytes;
	if (part)
		memcpy(range_start(landing, landing->next) + landing->next_done, data, part);
	landing->next_done += part;
	if (part == bytes) {
		landing->next++;
		landing->next_done = 0;
	}
	landing->left -= part;
	return part;
}

void gw_tcp_dest_copy(struct landing *landing, const uint8_t *data, uint64_t n)
{
	assert(n <= landing->left);
	if (n == 0)
		return;
	if (landing->form == LANDING_CONTIGUOUS) {
		memcpy(landing->to, data, n);
		landing->to += n;
		landing->left -= n;
		return;
	}
	if (landing->next_done) {
		uint32_t part = copy_part(landing, data, n);
		data += part;
		n -= part;
	}
	if (landing->form != LANDING_SPANS && landing->row_bytes) {
		uint32_t bytes = landing->row_bytes;
		uint64_t whole = n / bytes; /* one division for each piece of staging */
		for (uint64_t i = 0; i < whole; i++, data += bytes)
			gw_copy_range(range_start(landing, landing->next++), data, bytes);
		landing->left -= whole * bytes;
		n -= whole * bytes;
	}
	while (n) {
		uint32_t part = copy_part(landing, data, n);
		data += part;
		n -= part;
	}
}
