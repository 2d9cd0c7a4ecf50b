/* Checks edge requests and their replies. Every length from a peer is checked before its use. */
#include "protocol/edge_call.h"

#include <string.h>

uint64_t gw_edge_number(const uint8_t *numbers, uint64_t i)
{
	uint64_t number;
	memcpy(&number, numbers + i * 8, 8);
	return number;
}

size_t gw_edge_reply_bytes(uint32_t ask, uint32_t count)
{
	return sizeof(struct gw_edge_reply) + (size_t)count * (ask == GW_EDGE_ENDS ? 16 : 8);
}

gw_status gw_edge_call_parse(const void *bytes, size_t byte_count, uint32_t num_etypes, struct gw_edge_call *call,
			     const uint8_t **numbers)
{
	if (byte_count < sizeof(*call))
		return gw_fail(GW_PROTOCOL, "edge request of %zu bytes is too short", byte_count);
	memcpy(call, bytes, sizeof(*call));
	if (call->ask < GW_EDGE_ENDS || call->ask > GW_EDGE_IDS)
		return gw_fail(GW_PROTOCOL, "edge request of kind %u", call->ask);
	if (call->count > GW_EDGE_QUERIES_MAX ||
	    byte_count - sizeof(*call) != (size_t)call->count * gw_edge_call_width(call->ask) * 8)
		return gw_fail(GW_PROTOCOL, "edge request with %u questions in %zu bytes", call->count, byte_count);
	if (call->etype >= num_etypes)
		return gw_fail(GW_RANGE, "edge request for edge type %u of %u", call->etype, num_etypes);
	if (call->reply_bytes_max < gw_edge_reply_bytes(call->ask, call->count) + 8)
		return gw_fail(GW_RANGE, "edge request with %u questions wants a reply of %u bytes", call->count,
			       call->reply_bytes_max);
	*numbers = (const uint8_t *)bytes + sizeof(*call);
	return GW_OK;
}

static gw_status check_ends(const struct gw_edge_call *call, const struct gw_edge_bounds *bounds,
			    const uint8_t *numbers)
{
	for (uint64_t i = 0; i < call->count; i++) {
		uint64_t row = gw_edge_number(numbers, 2 * i), src = gw_edge_number(numbers, 2 * i + 1);
		if (row >= bounds->rows || src >= bounds->sources)
			return gw_fail(GW_PROTOCOL,
				       "edge reply: an edge from node %llu to row %llu, which do not exist",
				       (unsigned long long)src, (unsigned long long)row);
	}
	return GW_OK;
}

/* For ids: the counts of the answered pairs add up, all other counts are 0, and the reply makes progress. For counts:
 * each count is possible. */
static gw_status check_counts(const struct gw_edge_call *call, const struct gw_edge_bounds *bounds,
			      const struct gw_edge_reply *reply, const uint8_t *numbers)
{
	bool ids = call->ask == GW_EDGE_IDS;
	uint64_t left = reply->total, told = (uint64_t)reply->answered + reply->partial;
	for (uint64_t i = 0; i < call->count; i++) {
		uint64_t count = gw_edge_number(numbers, i);
		if (count > bounds->edges || (ids && count > left) || (count && i >= told))
			return gw_fail(GW_PROTOCOL, "edge reply whose counts do not add up");
		left -= ids ? count : 0;
	}
	if (left)
		return gw_fail(GW_PROTOCOL, "edge reply whose counts do not add up");
	if (reply->answered < call->count && !reply->total && !reply->answered)
		return gw_fail(GW_PROTOCOL, "edge reply that answers nothing");
	return GW_OK;
}

static gw_status check_positions(const struct gw_edge_call *call, const struct gw_edge_bounds *bounds,
				 const uint8_t *numbers)
{
	const uint8_t *positions = numbers + (size_t)call->count * 8;
	for (uint64_t i = 0; i < call->count; i++) {
		uint64_t from = i == 0 ? call->from : 0;
		for (uint64_t left = gw_edge_number(numbers, i); left > 0; left--, positions += 8) {
			uint64_t position = gw_edge_number(positions, 0);
			if (position < from || position >= bounds->edges)
				return gw_fail(GW_PROTOCOL, "edge reply: position %llu of %llu edges, after %llu",
					       (unsigned long long)position, (unsigned long long)bounds->edges,
					       (unsigned long long)from);
			from = position + 1;
		}
	}
	return GW_OK;
}

gw_status gw_edge_reply_parse(const void *bytes, size_t byte_count, const struct gw_edge_call *call,
			      const struct gw_edge_bounds *bounds, struct gw_edge_reply *reply, const uint8_t **numbers)
{
	size_t fixed = gw_edge_reply_bytes(call->ask, call->count);
	if (byte_count < fixed)
		return gw_fail(GW_PROTOCOL, "edge reply of %zu bytes to %u questions", byte_count, call->count);
	memcpy(reply, bytes, sizeof(*reply));
	*numbers = (const uint8_t *)bytes + sizeof(*reply);
	bool ids = call->ask == GW_EDGE_IDS;
	if (reply->answered > call->count || (!ids && reply->answered < call->count) || reply->partial > 1 ||
	    (reply->partial && (!ids || reply->answered == call->count)) || reply->total != (byte_count - fixed) / 8 ||
	    (byte_count - fixed) % 8 != 0 || (!ids && reply->total))
		return gw_fail(GW_PROTOCOL, "edge reply with %u of %u answers and %llu positions in %zu bytes",
			       reply->answered, call->count, (unsigned long long)reply->total, byte_count);
	if (call->ask == GW_EDGE_ENDS)
		return check_ends(call, bounds, *numbers);
	gw_status status = check_counts(call, bounds, reply, *numbers);
	return status != GW_OK || !ids ? status : check_positions(call, bounds, *numbers);
}
