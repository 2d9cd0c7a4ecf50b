/* Gathering from mapped memory: each range is prefetched GW_COPY_AHEAD ranges before it is copied. Cannot fail: ranges
 * were checked. */
#include "transport/mapped.h"

#include "transport/copy.h"

size_t gw_mapped_gather(const uint8_t *from, uint8_t *to, const struct gw_gather *gather, size_t n, uint64_t *bytes)
{
	uint32_t row_bytes = gather->row_bytes;
	size_t count = n < GW_MAPPED_RANGES ? n : GW_MAPPED_RANGES;
	if (row_bytes && count > GW_MAPPED_BYTES / row_bytes)
		count = row_bytes < GW_MAPPED_BYTES ? GW_MAPPED_BYTES / row_bytes : 1;
	*bytes = (uint64_t)count * row_bytes;
	if (row_bytes == 0)
		return count;
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

size_t gw_mapped_readv(const uint8_t *from, uint8_t *to, const struct gw_span *spans, size_t n, uint64_t *bytes)
{
	size_t i = 0;
	*bytes = 0;
	for (; i < n && i < GW_MAPPED_RANGES && *bytes < GW_MAPPED_BYTES; i++) {
		if (i + GW_COPY_AHEAD < n)
			gw_prefetch_range(from + spans[i + GW_COPY_AHEAD].remote, spans[i + GW_COPY_AHEAD].bytes);
		if (spans[i].bytes)
			gw_copy_range(to + spans[i].local, from + spans[i].remote, spans[i].bytes);
		*bytes += spans[i].bytes;
	}
	return i;
}

size_t gw_mapped_end(struct gw_endpoint *endpoint, struct gw_completions *completions, struct gw_read_set *set,
		     size_t n, size_t taken, bool last)
{
	if (set->status)
		taken = n;
	if (taken < n)
		gw_poll_group_room(endpoint->group);
	if (last && taken == n)
		set->last_accepted = true;
	gw_read_set_settle(completions, set);
	return taken;
}
