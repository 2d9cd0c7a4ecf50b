/* Answering a read: the frame is decoded and every range checked against the region before a byte is touched; then
 * ranges are gathered into the connection's output buffer, whole ones with prefetch while they fit, and the one that
 * does not fit in parts, over as many calls as the buffer needs emptying. The payload is copied once, from the region
 * to the buffer. Fails only at the begin: a malformed frame, an unknown or stale region, a range past its end. */
#include "transport/tcp/server_answer.h"

#include <string.h>

#include "transport/copy.h"

static gw_status tcp_answer_check(const struct wire_ranges *ranges, const struct gw_service *service)
{
	const struct wire_read *read = &ranges->read;
	if (read->region >= service->region_count)
		return gw_fail(GW_RANGE, "region %u; the server has %u", read->region, service->region_count);
	if (read->generation != service->regions[read->region].generation)
		return gw_fail(GW_STALE, "region %u has been reloaded; connect again", read->region);
	return gw_wire_ranges_check(ranges, service->regions[read->region].bytes);
}

gw_status gw_tcp_answer_begin(struct tcp_answer *answer, struct gw_service *service, uint8_t type, const uint8_t *body,
			      uint32_t n)
{
	gw_status status = gw_wire_ranges(type, body, n, &answer->ranges);
	if (status)
		return status;
	status = tcp_answer_check(&answer->ranges, service);
	if (status) {
		gw_count(&service->counts.errors, 1);
		return status;
	}
	if (!answer->reads.begun)
		gw_service_reads_begin(service, &answer->reads);
	gw_count_read(&answer->reads, answer->ranges.read.count, answer->ranges.bytes);
	answer->from = service->bases[answer->ranges.read.region];
	answer->next = answer->next_done = 0;
	return GW_OK;
}

GW_PREFETCHES void prefetch(const struct tcp_answer *answer, uint32_t i)
{
	if (i < answer->ranges.read.count)
		gw_prefetch_range(answer->from + gw_wire_offset(&answer->ranges, i),
				  gw_wire_length(&answer->ranges, i));
}

/* Whole ranges while they fit: the innermost loop of a server. Returns where the next byte goes. */
static uint8_t *gather_whole(struct tcp_answer *answer, uint8_t *to, const uint8_t *end)
{
	const struct wire_ranges *ranges = &answer->ranges;
	uint32_t i = answer->next, count = ranges->read.count;
	for (uint32_t ahead = i; ahead < i + GW_COPY_AHEAD; ahead++)
		prefetch(answer, ahead);
	for (; i < count; i++) {
		uint32_t bytes = gw_wire_length(ranges, i);
		if (bytes > (size_t)(end - to))
			break;
		prefetch(answer, i + GW_COPY_AHEAD);
		if (bytes)
			gw_copy_range(to, answer->from + gw_wire_offset(ranges, i), bytes);
		to += bytes;
	}
	answer->next = i;
	return to;
}

bool gw_tcp_answer_gather(struct tcp_answer *answer, uint8_t *out, uint32_t *out_end, uint32_t out_bytes)
{
	const struct wire_ranges *ranges = &answer->ranges;
	while (answer->next < ranges->read.count) {
		if (!answer->next_done)
			*out_end = (uint32_t)(gather_whole(answer, out + *out_end, out + out_bytes) - out);
		if (answer->next == ranges->read.count)
			break;
		uint32_t room = out_bytes - *out_end;
		if (room == 0)
			return false;
		uint32_t left = gw_wire_length(ranges, answer->next) - answer->next_done;
		uint32_t part = left < room ? left : room;
		if (part)
			memcpy(out + *out_end, answer->from + gw_wire_offset(ranges, answer->next) + answer->next_done,
			       part);
		*out_end += part;
		answer->next_done += part;
		if (part == left) {
			answer->next++;
			answer->next_done = 0;
		}
	}
	return true;
}
