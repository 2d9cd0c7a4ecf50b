/* Any bytes as a sample request, and as a reply to one: refused with a line of text, or taken as they are and no
 * further than they go. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/sample_call.h"
#include "sampler/picks.h"

#define ROWS_MAX 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_reply(const uint8_t *data, size_t size, bool no_edges)
{
	struct gw_picks picks = {0};
	uint32_t answered = 0;
	gw_status status = gw_sample_reply_parse(data, size, ROWS_MAX, no_edges, &picks, &answered);
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

/* What is printed is the same call. */
static void use_call(const struct gw_sample_call *call, const struct gw_sample_arrays *arrays, const uint8_t *end)
{
	struct gw_sample_group_run run;
	int64_t time;
	struct gw_sample_call again;
	struct gw_sample_arrays again_arrays;
	uint64_t rows = 0;
	uint32_t row;
	size_t bytes = gw_sample_call_bytes(call);
	for (uint32_t i = 0; i < call->run_count; i++) {
		memcpy(&run, arrays->runs + i, sizeof(run));
		assert(!call->table_count || run.group < call->table_count);
		rows += run.rows;
	}
	assert(!call->run_count || rows == call->row_count);
	assert(!arrays->from == !(call->flags & GW_SAMPLE_WINDOWS));
	for (uint32_t i = 0; i < call->table_count; i++) {
		memcpy(&time, arrays->until + i, sizeof(time));
		if (arrays->from)
			memcpy(&time, arrays->from + i, sizeof(time));
	}
	for (uint32_t i = 0; i < call->row_count; i++)
		memcpy(&row, arrays->rows + i, sizeof(row));
	assert((const uint8_t *)arrays->rows + call->row_count * 4ull == end);

	uint8_t *printed = malloc(bytes);
	assert(printed);
	gw_sample_call_print(call, arrays, printed);
	assert(gw_sample_call_parse(printed, bytes, 4, &again, &again_arrays) == GW_OK);
	assert(memcmp(&again, call, sizeof(again)) == 0);
	for (uint32_t i = 0; i < call->column_count; i++) {
		assert(again_arrays.columns[i].number == arrays->columns[i].number);
		assert(strcmp(again_arrays.columns[i].name, arrays->columns[i].name) == 0);
	}
	/* The table, the runs and the rows lie together. */
	assert(memcmp(again_arrays.until, arrays->until, (size_t)(end - (const uint8_t *)arrays->until)) == 0);
	free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gw_sample_call call;
	struct gw_sample_arrays arrays;
	if (size == 0)
		return 0;
	if (data[0] & 1) {
		parse_reply(data + 1, size - 1, data[0] & 2);
	} else if (gw_sample_call_parse(data + 1, size - 1, 4, &call, &arrays) == GW_OK) {
		assert(call.etype < 4 && call.row_count <= GW_SAMPLE_ROWS_MAX);
		assert(gw_sample_call_bytes(&call) == size - 1);
		assert((call.flags & ~(uint32_t)GW_SAMPLE_FLAGS) == 0);
		use_call(&call, &arrays, data + size);
	} else {
		assert(gw_last_error()[0] != '\0');
	}
	return 0;
}
