/* Gathers from mapped memory. Each range is prefetched GW_COPY_AHEAD ranges before it is copied. A row that changes is
 * copied until its sequence shows a complete copy (core/numbers/row.h), a bounded number of times, with growing pauses.
 * The ranges were checked before, so a read set fails only if memory for its list of torn rows runs out. */
#include "transport/mapped.h"

#include "transport/copy.h"

static inline void mapped_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* False: it is still torn. */
static __attribute__((noinline, cold)) bool row_again(const struct gw_row_format *format, const uint8_t *row,
						      uint8_t *to)
{
	uint32_t pauses = 1;
	for (int tries = 1; tries < GW_MAPPED_TRIES; tries++) {
		for (uint32_t i = 0; i < pauses; i++)
			mapped_pause();
		pauses = pauses < GW_MAPPED_PAUSES ? 2 * pauses : pauses;
		if (gw_row_copy(format, row, to))
			return true;
	}
	return false;
}

/* The source and destination of rows of a versioned region. */
struct mapped_rows {
	const struct gw_row_format *format;
	const uint8_t *from;
	uint8_t *to;
	struct gw_read_set *set;
};

static inline void row_take(const struct mapped_rows *rows, uint64_t remote, uint64_t local)
{
	const uint8_t *row = rows->from + remote;
	if (!gw_row_copy(rows->format, row, rows->to + local) && !row_again(rows->format, row, rows->to + local))
		gw_read_set_torn(rows->set, remote, local);
}

static void mapped_gather_rows(const struct mapped_rows *rows, const struct gw_gather *gather, size_t count)
{
	uint32_t stride = rows->format->stride;
	for (size_t i = 0; i < count && i < GW_COPY_AHEAD; i++)
		gw_prefetch_range(rows->from + gather->remote[i], stride);
	for (size_t i = 0; i < count; i++) {
		if (i + GW_COPY_AHEAD < count)
			gw_prefetch_range(rows->from + gather->remote[i + GW_COPY_AHEAD], stride);
		uint64_t row = gather->rows ? gather->rows[i] : i;
		row_take(rows, gather->remote[i], gather->local + row * gather->stride);
	}
}

size_t gw_mapped_gather(const struct gw_region *region, const uint8_t *from, uint8_t *to, struct gw_read_set *set,
			const struct gw_gather *gather, size_t n, uint64_t *bytes)
{
	uint32_t row_bytes = gather->row_bytes;
	size_t count = n < GW_MAPPED_RANGES ? n : GW_MAPPED_RANGES;
	if (row_bytes && count > GW_MAPPED_BYTES / row_bytes)
		count = row_bytes < GW_MAPPED_BYTES ? GW_MAPPED_BYTES / row_bytes : 1;
	*bytes = (uint64_t)count * row_bytes;
	if (row_bytes == 0)
		return count;
	if (region->kind == GW_REGION_VERSIONED) {
		mapped_gather_rows(&(struct mapped_rows){&region->rows.format, from, to, set}, gather, count);
		return count;
	}
	to += gather->local;
	for (size_t i = 0; i < count && i < GW_COPY_AHEAD; i++)
		gw_prefetch_range(from + gather->remote[i], row_bytes);
	for (size_t i = 0; i < count; i++) {
		if (i + GW_COPY_AHEAD < count)
			gw_prefetch_range(from + gather->remote[i + GW_COPY_AHEAD], row_bytes);
		uint64_t row = gather->rows ? gather->rows[i] : i;
		gw_copy_range(to + row * gather->stride, from + gather->remote[i], row_bytes);
	}
	return count;
}

size_t gw_mapped_readv(const struct gw_region *region, const uint8_t *from, uint8_t *to, struct gw_read_set *set,
		       const struct gw_span *spans, size_t n, uint64_t *bytes)
{
	const struct mapped_rows rows = {&region->rows.format, from, to, set};
	bool versioned = region->kind == GW_REGION_VERSIONED;
	size_t i = 0;
	*bytes = 0;
	for (; i < n && i < GW_MAPPED_RANGES && *bytes < GW_MAPPED_BYTES; i++) {
		if (i + GW_COPY_AHEAD < n)
			gw_prefetch_range(from + spans[i + GW_COPY_AHEAD].remote, spans[i + GW_COPY_AHEAD].bytes);
		if (versioned && spans[i].bytes)
			row_take(&rows, spans[i].remote, spans[i].local);
		else if (spans[i].bytes)
			gw_copy_range(to + spans[i].local, from + spans[i].remote, spans[i].bytes);
		*bytes += spans[i].bytes;
	}
	return i;
}

size_t gw_mapped_end(struct gw_endpoint *endpoint, struct gw_completions *completions, struct gw_read_set *set,
		     size_t n, size_t taken, bool last)
{
	taken = gw_read_set_end(completions, set, n, taken, last);
	if (taken < n)
		gw_poll_group_room(endpoint->group);
	return taken;
}
