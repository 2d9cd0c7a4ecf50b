/* Any bytes as an edge request, and as a reply to one: refused with a line of text, or taken as they are and no further
 * than they go. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "protocol/edge_call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_reply(const uint8_t *data, size_t size)
{
	static const struct gw_edge_bounds bounds = {.rows = 1000, .edges = 5000, .sources = 2000};
	if (size < 2)
		return;
	const struct gw_edge_call call = {.ask = GW_EDGE_ENDS + data[0] % 3u, .count = data[0] / 4u, .from = data[1]};
	struct gw_edge_reply reply;
	const uint8_t *numbers;
	if (gw_edge_reply_parse(data + 2, size - 2, &call, &bounds, &reply, &numbers) != GW_OK) {
		assert(gw_last_error()[0] != '\0');
		return;
	}
	uint64_t sum = 0, n = (size - 2 - sizeof(reply)) / 8;
	assert(numbers + n * 8 == data + size);
	for (uint64_t i = 0; call.ask == GW_EDGE_IDS && i < call.count; i++)
		sum += gw_edge_number(numbers, i);
	assert(call.ask != GW_EDGE_IDS || (sum == reply.total && n == call.count + sum));
	for (uint64_t i = call.count; call.ask == GW_EDGE_IDS && i < n; i++)
		assert(gw_edge_number(numbers, i) < bounds.edges);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gw_edge_call call;
	const uint8_t *numbers;
	if (size == 0)
		return 0;
	if (data[0] & 1) {
		parse_reply(data + 1, size - 1);
	} else if (gw_edge_call_parse(data + 1, size - 1, 4, &call, &numbers) == GW_OK) {
		assert(call.etype < 4 && call.count <= GW_EDGE_QUERIES_MAX);
		assert(numbers + (size_t)call.count * gw_edge_call_width(call.ask) * 8 == data + size);
	}
	return 0;
}
