/* Any bytes as a subgraph request, and as a reply to one: refused with a line of text, or taken as they are and no
 * further than they go. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/subgraph_call.h"
#include "sampler/induced.h"

#define EDGES 5000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct taken {
	uint32_t n;
	struct gw_subgraph_edge last;
};

static gw_status take_fuzzed(void *context, uint32_t section, const struct gw_subgraph_edge *edge)
{
	struct taken *taken = context;
	assert(section == (edge->dst >= 3) && edge->dst < 8 && edge->src < (section ? 2u : 4u) &&
	       edge->position < EDGES);
	assert(!taken->n || edge->dst > taken->last.dst ||
	       (edge->dst == taken->last.dst && edge->position > taken->last.position));
	taken->last = *edge;
	taken->n++;
	return GW_OK;
}

static void parse_reply(const uint8_t *data, size_t size)
{
	static const struct gw_subgraph_section sections[] = {{3, 4}, {5, 2}};
	uint8_t asked[200] = {0};
	if (size < 2)
		return;
	const struct gw_subgraph_call call = {.section_count = 2,
					      .dst_count = 8,
					      .src_count = 6,
					      .id_bytes = 4,
					      .first = data[0] % 8u,
					      .from = data[1]};
	struct gw_subgraph_arrays arrays;
	struct gw_subgraph_reply reply;
	struct taken taken = {0};
	uint64_t next;
	memcpy(asked + sizeof(call), sections, sizeof(sections));
	gw_subgraph_call_arrays(&call, asked, &arrays);
	if (gw_subgraph_reply_parse(data + 2, size - 2, &call, &arrays, EDGES, take_fuzzed, &taken, &reply, &next) ==
	    GW_OK)
		assert(taken.n == reply.edge_count && reply.answered <= 8 && (taken.n || reply.answered > call.first));
	else
		assert(gw_last_error()[0] != '\0');
}

static void fill_sets(const struct gw_subgraph_call *call, const struct gw_subgraph_arrays *arrays)
{
	struct gw_source_set set = {0};
	for (uint32_t i = 0, at = 0; i < call->section_count; i++) {
		uint32_t n = gw_subgraph_section(arrays, i).src_count;
		uint64_t *ids = malloc(n * sizeof(*ids));
		if (gw_subgraph_srcs(call, arrays, at, n, ids) == GW_OK)
			assert(gw_source_set_fill(&set, ids, n) == GW_OK);
		at += n;
		free(ids);
	}
	gw_source_set_free(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gw_subgraph_call call;
	struct gw_subgraph_arrays arrays;
	if (size == 0)
		return 0;
	if (data[0] & 1) {
		parse_reply(data + 1, size - 1);
	} else if (gw_subgraph_call_parse(data + 1, size - 1, 4, &call, &arrays) == GW_OK) {
		assert(call.etype < 4 && call.dst_count <= GW_SUBGRAPH_DSTS_MAX &&
		       call.src_count <= GW_SUBGRAPH_SRCS_MAX);
		assert(arrays.srcs + (size_t)call.src_count * call.id_bytes == data + size);
		if (gw_subgraph_sections_check(&call, &arrays) == GW_OK)
			fill_sets(&call, &arrays);
	}
	return 0;
}
