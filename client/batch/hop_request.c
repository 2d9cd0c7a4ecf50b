/* Neighbours by the owner's sample request. Rows are sent in calls of bounded size. A reply contains picks for the
 * first rows of a call; the remaining rows are requested again. A list that is too long for a reply is read instead. */
#include <string.h>

#include "client/batch/hop_source.h"
#include "client/engine/engine.h"
#include "protocol/ops.h"
#include "protocol/sample_call.h"

#define REPLY_BYTES_MAX (4u << 20)

static void hop_request_ask(struct gw_hop_source *source);

/* Checks that the peer returned no more picks than the rule allows, and that the picks lie within the peer's part. */
static gw_status check_picks(const struct gw_hop_source *source, uint64_t dst_before, uint64_t edge_before)
{
	const uint64_t *edge_starts = source->answers->job->engine->client->meta->etypes[source->etype].starts;
	uint64_t edges = edge_starts[source->share->part + 1] - edge_starts[source->share->part];
	const struct gw_picks *picks = &source->picks;
	const uint32_t *counts = picks->counts.data;
	for (uint64_t i = dst_before; i < picks->dst_count; i++) {
		if (source->rule.fanout != GW_FANOUT_ALL && counts[i] > (uint32_t)source->rule.fanout)
			return gw_fail(GW_PROTOCOL, "a reply picks %u neighbours at fanout %d", counts[i],
				       source->rule.fanout);
	}
	const uint64_t *positions = picks->positions.data;
	for (uint64_t i = edge_before; i < picks->edge_count; i++) {
		if (positions[i] >= edges)
			return gw_fail(GW_PROTOCOL, "a reply picks position %llu of %llu",
				       (unsigned long long)positions[i], (unsigned long long)edges);
	}
	return GW_OK;
}

static void hop_request_replied(struct gw_link_op *link_op, gw_status status, const struct gw_completion *completion)
{
	struct gw_hop_source *source = link_op->owner;
	link_op->owner = NULL;
	if (status != GW_OK) {
		gw_fan_in_end_one(source->answers, status);
		return;
	}
	uint64_t dst_before = source->picks.dst_count, edge_before = source->picks.edge_count;
	uint32_t answered = 0;
	status = gw_sample_reply_parse(completion->reply, completion->reply_bytes, (uint32_t)source->asked,
				       &source->picks, &answered);
	if (status == GW_OK)
		status = check_picks(source, dst_before, edge_before);
	if (status != GW_OK || source->answers->status != GW_OK) {
		gw_fan_in_end_one(source->answers, status);
	} else if (answered == 0) {
		source->picks.dst_count = 0;
		source->picks.edge_count = 0;
		source->mode = GW_HOP_READS;
		gw_hop_read(source);
	} else if (source->picks.dst_count < source->share->count) {
		hop_request_ask(source);
	} else {
		gw_fan_in_end_one(source->answers, GW_OK);
	}
}

static void hop_request_ask(struct gw_hop_source *source)
{
	uint64_t first = source->picks.dst_count, left = source->share->count - first;
	source->asked = left < GW_SAMPLE_ROWS_MAX ? left : GW_SAMPLE_ROWS_MAX;
	size_t bytes = sizeof(struct gw_sample_call) + source->asked * 4;
	if (gw_vec_reserve(&source->call, bytes) != GW_OK) {
		gw_fan_in_end_one(source->answers, GW_NO_MEMORY);
		return;
	}
	struct gw_sample_call *call = source->call.data;
	*call = (struct gw_sample_call){.sampler_version = GW_SAMPLER_VERSION,
					.etype = source->etype,
					.key = source->rule.key,
					.fanout = source->rule.fanout,
					.replace = source->rule.replace,
					.row_count = (uint32_t)source->asked,
					.reply_bytes_max = REPLY_BYTES_MAX};
	uint32_t *rows = (uint32_t *)(call + 1);
	const uint64_t *from = (const uint64_t *)source->share->rows.data + first;
	for (uint64_t i = 0; i < source->asked; i++)
		rows[i] = (uint32_t)from[i];
	source->link_op.form = GW_LINK_REQUEST;
	source->link_op.call = GW_OP_SAMPLE;
	source->link_op.request = call;
	source->link_op.request_bytes = (uint32_t)bytes;
	source->link_op.job = source->answers->job;
	source->link_op.done = hop_request_replied;
	source->link_op.owner = source;
	gw_engine_post(source->answers->job->engine, source->share->part, &source->link_op);
}

void gw_hop_request(struct gw_hop_source *source)
{
	hop_request_ask(source);
}
