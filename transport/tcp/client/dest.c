/* Destinations of a read. Contiguous destinations and long spans are received in place. Separate rows are copied from
 * the staging buffer while it is in the cache; many long rows go around the caches to their places. Cannot fail: ranges
 * were checked when the read was accepted. */
#include "transport/tcp/client/dest.h"

#include "transport/copy.h"

static bool rows_are_consecutive(const uint32_t *rows, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (rows[i] != (uint64_t)rows[0] + i)
			return false;
	return true;
}

struct tcp_dest gw_tcp_dest_gather(uint8_t *base, const struct gw_gather *gather, uint32_t n)
{
	struct tcp_dest dest = {
		.to = base + gather->local,
		.left = (uint64_t)n * gather->row_bytes,
		.row_bytes = gather->row_bytes,
		.stride = gather->stride,
		.rows = gather->rows,
	};
	bool packed = n == 1 || gather->stride == gather->row_bytes;
	if (packed && (!gather->rows || rows_are_consecutive(gather->rows, n))) {
		dest.form = TCP_DEST_CONTIGUOUS;
		if (gather->rows && n)
			dest.to += (uint64_t)gather->rows[0] * gather->stride;
	} else {
		dest.form = gather->rows ? TCP_DEST_ROWS : TCP_DEST_STRIDED;
	}
	dest.direct = dest.form == TCP_DEST_CONTIGUOUS || gather->row_bytes >= TCP_DEST_DIRECT_SPAN;
	dest.around = gather->row_bytes >= TCP_DEST_AROUND_ROW && dest.left >= TCP_DEST_AROUND_BYTES;
	return dest;
}

struct tcp_dest gw_tcp_dest_spans(uint8_t *base, const struct gw_span *spans, uint32_t n, uint64_t bytes)
{
	struct tcp_dest dest = {.to = base, .left = bytes, .form = TCP_DEST_SPANS, .spans = spans};
	bool adjacent = n > 0;
	for (uint32_t i = 1; i < n && adjacent; i++)
		adjacent = spans[i].local == spans[i - 1].local + spans[i - 1].bytes;
	if (adjacent) {
		dest.form = TCP_DEST_CONTIGUOUS;
		dest.to += spans[0].local;
	}
	dest.direct = adjacent || bytes / (n ? n : 1) >= TCP_DEST_DIRECT_SPAN;
	return dest;
}

static inline uint32_t dest_range_bytes(const struct tcp_dest *dest, uint32_t i)
{
	return dest->form == TCP_DEST_SPANS ? dest->spans[i].bytes : dest->row_bytes;
}

static inline uint8_t *range_start(const struct tcp_dest *dest, uint32_t i)
{
	if (dest->form == TCP_DEST_SPANS)
		return dest->to + dest->spans[i].local;
	uint64_t row = dest->form == TCP_DEST_ROWS ? dest->rows[i] : i;
	return dest->to + row * dest->stride;
}

size_t gw_tcp_dest_pieces(const struct tcp_dest *dest, struct iovec *iov, size_t max)
{
	if (dest->left == 0)
		return 0;
	if (dest->form == TCP_DEST_CONTIGUOUS) {
		iov[0] = (struct iovec){dest->to, dest->left};
		return 1;
	}
	uint64_t left = dest->left;
	uint32_t done = dest->next_done;
	size_t pieces = 0;
	for (uint32_t i = dest->next; left && pieces < max; i++, done = 0) {
		uint32_t bytes = dest_range_bytes(dest, i) - done;
		if (bytes)
			iov[pieces++] = (struct iovec){range_start(dest, i) + done, bytes};
		left -= bytes;
	}
	return pieces;
}

void gw_tcp_dest_skip(struct tcp_dest *dest, uint64_t n)
{
	assert(n <= dest->left);
	dest->left -= n;
	if (dest->form == TCP_DEST_CONTIGUOUS) {
		dest->to += n;
		return;
	}
	while (n) {
		uint32_t bytes = dest_range_bytes(dest, dest->next) - dest->next_done;
		if (n < bytes) {
			dest->next_done += (uint32_t)n;
			return;
		}
		n -= bytes;
		dest->next++;
		dest->next_done = 0;
	}
}

static uint32_t copy_part(struct tcp_dest *dest, const uint8_t *data, uint64_t n)
{
	uint32_t bytes = dest_range_bytes(dest, dest->next) - dest->next_done;
	uint32_t part = n < bytes ? (uint32_t)n : bytes;
	if (part)
		memcpy(range_start(dest, dest->next) + dest->next_done, data, part);
	dest->next_done += part;
	if (part == bytes) {
		dest->next++;
		dest->next_done = 0;
	}
	dest->left -= part;
	return part;
}

void gw_tcp_dest_copy(struct tcp_dest *dest, const uint8_t *data, uint64_t n)
{
	assert(n <= dest->left);
	if (n == 0)
		return;
	if (dest->form == TCP_DEST_CONTIGUOUS) {
		memcpy(dest->to, data, n);
		dest->to += n;
		dest->left -= n;
		return;
	}
	if (dest->next_done) {
		uint32_t part = copy_part(dest, data, n);
		data += part;
		n -= part;
	}
	if (dest->form != TCP_DEST_SPANS && dest->row_bytes) {
		uint32_t bytes = dest->row_bytes;
		uint64_t whole = n / bytes; /* one division for each piece of staged bytes */
		for (uint64_t i = 0; i < whole && dest->around; i++, data += bytes)
			gw_copy_around(range_start(dest, dest->next++), data, bytes);
		for (uint64_t i = 0; i < whole && !dest->around; i++, data += bytes)
			gw_copy_range(range_start(dest, dest->next++), data, bytes);
		if (dest->around)
			gw_copy_around_end();
		dest->left -= whole * bytes;
		n -= whole * bytes;
	}
	while (n) {
		uint32_t part = copy_part(dest, data, n);
		data += part;
		n -= part;
	}
}
