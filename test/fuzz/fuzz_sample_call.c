/* Any bytes as a sample request, and as a reply to one: refused with a line of text, or taken as they are and no
 * further than they go. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "protocol/sample_call.h"
#include "sampler/picks.h"

#define ROWS_MAX 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_reply(const uint8_t *data, size_t size)
{
	struct gw_picks picks = {0};
	uint32_t answered = 0;
	gw_status status = gw_sample_reply_parse(data, size, ROWS_MAX, &picks, &answered);
	const uint32_t *counts = picks.counts.data;
	uint64_t sum = 0;
	for (uint64_t i = 0; i < picks.dst_count; i++)
		sum += counts[i];
	assert(sum == picks.edge_count && picks.dst_count <= ROWS_MAX);
	if (status == GW_OK)
		assert(answered == picks.dst_count);
	else
		assert(gw_last_error()[0] != '\0');
	gw_picks_free(&picks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gw_sample_call call;
	struct gw_sample_arrays arrays;
	if (size == 0)
		return 0;
	if (data[0] & 1) {
		parse_reply(data + 1, size - 1);
	} else if (gw_sample_call_parse(data + 1, size - 1, 4, &call, &arrays) == GW_OK) {
		assert(call.etype < 4 && call.row_count <= GW_SAMPLE_ROWS_MAX);
		assert((const uint8_t *)arrays.rows + call.row_count * 4ull == data + size);
		assert(gw_sample_call_bytes(&call) == size - 1);
		assert((call.flags & ~(uint32_t)GW_SAMPLE_FLAGS) == 0);
	}
	return 0;
}
