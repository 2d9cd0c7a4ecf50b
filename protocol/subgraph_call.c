/* Checks subgraph requests and their replies. Every length from a peer is checked before its use. */
#include "protocol/subgraph_call.h"

#include <stdbool.h>
#include <string.h>

size_t gw_subgraph_call_bytes(const struct gw_subgraph_call *call)
{
	return sizeof(*call) + call->section_count * sizeof(struct gw_subgraph_section) +
	       ((size_t)call->dst_count + 1) / 2 * 8 + (size_t)call->src_count * call->id_bytes;
}

void gw_subgraph_call_arrays(const struct gw_subgraph_call *call, const void *bytes, struct gw_subgraph_arrays *arrays)
{
	arrays->sections = (const uint8_t *)bytes + sizeof(*call);
	arrays->dsts = arrays->sections + call->section_count * sizeof(struct gw_subgraph_section);
	arrays->srcs = arrays->dsts + ((size_t)call->dst_count + 1) / 2 * 8;
}

gw_status gw_subgraph_call_parse(const void *bytes, size_t byte_count, uint32_t num_etypes,
				 struct gw_subgraph_call *call, struct gw_subgraph_arrays *arrays)
{
	if (byte_count < sizeof(*call))
		return gw_fail(GW_PROTOCOL, "subgraph request of %zu bytes is too short", byte_count);
	memcpy(call, bytes, sizeof(*call));
	if (call->section_count > GW_SUBGRAPH_SECTIONS_MAX || call->dst_count > GW_SUBGRAPH_DSTS_MAX ||
	    call->src_count > GW_SUBGRAPH_SRCS_MAX || (call->id_bytes != 4 && call->id_bytes != 8) || call->zero ||
	    call->first >= call->dst_count || byte_count != gw_subgraph_call_bytes(call))
		return gw_fail(GW_PROTOCOL,
			       "subgraph request with %u sections, %u destinations and %u sources in %zu bytes",
			       call->section_count, call->dst_count, call->src_count, byte_count);
	if (call->etype >= num_etypes)
		return gw_fail(GW_RANGE, "subgraph request for edge type %u of %u", call->etype, num_etypes);
	if (call->reply_bytes_max < sizeof(struct gw_subgraph_reply) + GW_SUBGRAPH_EDGE_MAX)
		return gw_fail(GW_RANGE, "subgraph request wants a reply of %u bytes", call->reply_bytes_max);
	gw_subgraph_call_arrays(call, bytes, arrays);
	return GW_OK;
}

struct gw_subgraph_section gw_subgraph_section(const struct gw_subgraph_arrays *arrays, uint32_t number)
{
	struct gw_subgraph_section section;
	memcpy(&section, arrays->sections + (size_t)number * sizeof(section), sizeof(section));
	return section;
}

gw_status gw_subgraph_sections_check(const struct gw_subgraph_call *call, const struct gw_subgraph_arrays *arrays)
{
	uint64_t dsts = 0, srcs = 0;
	bool empty = false;
	for (uint32_t i = 0; i < call->section_count; i++) {
		struct gw_subgraph_section section = gw_subgraph_section(arrays, i);
		empty |= !section.dst_count || !section.src_count;
		dsts += section.dst_count;
		srcs += section.src_count;
	}
	if (empty || dsts != call->dst_count || srcs != call->src_count)
		return gw_fail(GW_PROTOCOL, "subgraph request whose sections do not add up");
	return GW_OK;
}

uint32_t gw_subgraph_dst(const struct gw_subgraph_arrays *arrays, uint32_t at)
{
	uint32_t row;
	memcpy(&row, arrays->dsts + (size_t)at * sizeof(row), sizeof(row));
	return row;
}

gw_status gw_subgraph_srcs(const struct gw_subgraph_call *call, const struct gw_subgraph_arrays *arrays, uint32_t at,
			   uint32_t n, uint64_t *out)
{
	const uint8_t *from = arrays->srcs + (size_t)at * call->id_bytes;
	bool descends = false;
	for (uint32_t i = 0; i < n; i++) {
		out[i] = 0;
		memcpy(&out[i], from + (size_t)i * call->id_bytes, call->id_bytes);
		descends |= i > 0 && out[i] <= out[i - 1];
	}
	return descends ? gw_fail(GW_PROTOCOL, "subgraph request whose sources do not ascend") : GW_OK;
}

/* --- Replies. --- */

static uint32_t print_short(uint64_t number, uint8_t *out)
{
	uint32_t n = 0;
	for (; number > 0x7f; number >>= 7)
		out[n++] = (uint8_t)(number | 0x80);
	out[n++] = (uint8_t)number;
	return n;
}

/* False: the number does not end before `end`, or exceeds 64 bits. */
static bool take_short(const uint8_t **at, const uint8_t *end, uint64_t *number)
{
	*number = 0;
	for (uint32_t shift = 0; *at < end && shift < 64; shift += 7) {
		uint8_t byte = *(*at)++;
		uint64_t bits = byte & 0x7fu;
		if (shift == 63 && bits > 1)
			return false;
		*number |= bits << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

uint32_t gw_subgraph_edge_print(const struct gw_subgraph_edge *edge, uint32_t before, uint8_t *out)
{
	uint32_t n = print_short(edge->dst - before, out);
	n += print_short(edge->src, out + n);
	return n + print_short(edge->position, out + n);
}

/* Where the reading of a reply is. */
struct reply_cursor {
	const struct gw_subgraph_call *call;
	const struct gw_subgraph_arrays *arrays;
	const uint8_t *at, *end;
	uint64_t edges; /* the part's */
	uint32_t number;
	struct gw_subgraph_section section;
	uint64_t section_end; /* the first destination after the section */
	struct gw_subgraph_edge edge;
	uint64_t from; /* the least position of the next edge of the same destination */
};

static gw_status next_edge(struct reply_cursor *cursor)
{
	uint64_t more, src, position;
	if (!take_short(&cursor->at, cursor->end, &more) || !take_short(&cursor->at, cursor->end, &src) ||
	    !take_short(&cursor->at, cursor->end, &position))
		return gw_fail(GW_PROTOCOL, "subgraph reply that ends inside an edge");
	if (more >= cursor->call->dst_count - cursor->edge.dst)
		return gw_fail(GW_PROTOCOL, "subgraph reply with an edge of a destination that was not asked about");
	cursor->edge.dst += (uint32_t)more;
	while (cursor->section_end <= cursor->edge.dst) {
		cursor->section = gw_subgraph_section(cursor->arrays, ++cursor->number);
		cursor->section_end += cursor->section.dst_count;
	}
	uint64_t from = more ? 0 : cursor->from;
	if (src >= cursor->section.src_count || position < from || position >= cursor->edges)
		return gw_fail(GW_PROTOCOL,
			       "subgraph reply: position %llu of %llu edges, after %llu, from source %llu of %u",
			       (unsigned long long)position, (unsigned long long)cursor->edges,
			       (unsigned long long)from, (unsigned long long)src, cursor->section.src_count);
	cursor->edge.src = (uint32_t)src;
	cursor->edge.position = position;
	cursor->from = position + 1;
	return GW_OK;
}

gw_status gw_subgraph_reply_parse(const void *bytes, size_t byte_count, const struct gw_subgraph_call *call,
				  const struct gw_subgraph_arrays *arrays, uint64_t edges,
				  gw_status (*take)(void *context, uint32_t section,
						    const struct gw_subgraph_edge *edge),
				  void *context, struct gw_subgraph_reply *reply, uint64_t *next)
{
	if (byte_count < sizeof(*reply))
		return gw_fail(GW_PROTOCOL, "subgraph reply of %zu bytes", byte_count);
	memcpy(reply, bytes, sizeof(*reply));
	if (reply->answered > call->dst_count || reply->answered < call->first ||
	    (!reply->edge_count && reply->answered == call->first))
		return gw_fail(GW_PROTOCOL, "subgraph reply that answers %u to %u of %u destinations", call->first,
			       reply->answered, call->dst_count);
	struct reply_cursor cursor = {.call = call,
				      .arrays = arrays,
				      .at = (const uint8_t *)bytes + sizeof(*reply),
				      .end = (const uint8_t *)bytes + byte_count,
				      .edges = edges,
				      .section = gw_subgraph_section(arrays, 0),
				      .edge.dst = call->first,
				      .from = call->from};
	cursor.section_end = cursor.section.dst_count;
	for (uint32_t i = 0; i < reply->edge_count; i++) {
		gw_status status = next_edge(&cursor);
		if (status == GW_OK)
			status = take(context, cursor.number, &cursor.edge);
		if (status != GW_OK)
			return status;
	}
	if (cursor.at != cursor.end || (reply->edge_count && cursor.edge.dst > reply->answered))
		return gw_fail(GW_PROTOCOL, "subgraph reply with %u edges in %zu bytes", reply->edge_count, byte_count);
	*next = reply->edge_count && cursor.edge.dst == reply->answered ? cursor.from : 0;
	return GW_OK;
}
