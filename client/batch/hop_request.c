/* Neighbours by the owner's sample request. Rows are sent in calls of bounded size. A reply contains picks for the
 * first rows of a call; the remaining rows are requested again. A list that is too long for a reply is read instead. */
#include "client/batch/hop_source.h"
#include "client/engine/engine.h"
#include "core/numbers/rng.h"
#include "protocol/ops.h"
#include "protocol/sample_call.h"

#define REPLY_BYTES_MAX (4u << 20)

/* New picks of a reply: their lists, and what holds for each of them. */
struct replied {
	const uint32_t *counts;
	const uint64_t *positions; /* NULL: the reply has none */
	uint64_t lists, picks;
	uint64_t bound; /* of the picks of a list */
	uint64_t edges; /* a position is below it */
	uint64_t step;  /* from a pick to the next one of the same list, at least */
	bool ascend;
	int32_t fanout;
};

/* A pick that is less than `step` after the one before it must be the first of its list, so both are counted. No loop
 * has a branch on a pick. */
static bool picks_are_good(const struct replied *reply)
{
	const uint32_t *counts = reply->counts;
	const uint64_t *positions = reply->positions, edges = reply->edges, step = reply->step;
	uint64_t longest = 0, beyond = 0, falls = 0, at = 0;
	for (uint64_t i = 0; i < reply->lists; i++)
		longest = counts[i] > longest ? counts[i] : longest;
	if (longest > reply->bound || !positions)
		return longest <= reply->bound;
	for (uint64_t i = 0; i < reply->picks; i++)
		beyond += positions[i] >= edges;
	if (beyond || !reply->ascend)
		return beyond == 0;
	for (uint64_t i = 1; i < reply->picks; i++)
		falls += positions[i] < positions[i - 1] + step;
	for (uint64_t i = 0; i < reply->lists; i++) {
		falls -= at > 0 && counts[i] > 0 && positions[at] < positions[at - 1] + step;
		at += counts[i];
	}
	return falls == 0;
}

/* The same rules pick by pick, to name the first that is broken. */
static gw_status bad_picks(const struct replied *reply)
{
	for (uint64_t i = 0, at = 0; i < reply->lists; i++) {
		if (reply->counts[i] > reply->bound)
			return gw_fail(GW_PROTOCOL, "a reply picks %u neighbours at fanout %d", reply->counts[i],
				       reply->fanout);
		for (uint64_t first = at, end = at + reply->counts[i]; at < end && reply->positions; at++) {
			const uint64_t position = reply->positions[at];
			if (position >= reply->edges)
				return gw_fail(GW_PROTOCOL, "a reply picks position %llu of %llu",
					       (unsigned long long)position, (unsigned long long)reply->edges);
			if (reply->ascend && at > first && position < reply->positions[at - 1] + reply->step)
				return gw_fail(GW_PROTOCOL, "a reply picks position %llu after %llu",
					       (unsigned long long)position,
					       (unsigned long long)reply->positions[at - 1]);
		}
	}
	return GW_OK;
}

/* Checks that the peer returned no more picks than the draw allows, that the picks of a node ascend, and that they lie
 * within the peer's part. */
static gw_status check_picks(const struct gw_hop_source *source, uint64_t dst_before, uint64_t edge_before)
{
	const struct gw_client *client = source->answers->job->engine->client;
	const struct gw_list_places *lists = &client->list_places[source->direction][source->etype];
	const struct gw_pick_rule *rule = &source->draw.rule;
	const bool in = source->direction == GW_IN, repeats = rule->replace && rule->fanout != GW_FANOUT_ALL;
	const struct gw_picks *picks = &source->picks;
	const struct replied reply = {
		.counts = (const uint32_t *)picks->counts.data + dst_before,
		.positions = source->draw.no_edge_ids ? NULL : (const uint64_t *)picks->positions.data + edge_before,
		.lists = picks->dst_count - dst_before,
		.picks = picks->edge_count - edge_before,
		.bound = gw_draw_bound(&source->draw, lists->edges[source->share->part]),
		.edges = in ? lists->edges[source->share->part] : client->meta->etypes[source->etype].count,
		.step = !repeats,
		.ascend = in,
		.fanout = rule->fanout,
	};
	return picks_are_good(&reply) ? GW_OK : bad_picks(&reply);
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
				       source->draw.no_edge_ids, &source->picks, &answered);
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
		gw_hop_request(source);
	} else {
		gw_fan_in_end_one(source->answers, GW_OK);
	}
}

/* In runs. GW_NO_MEMORY. */
static gw_status print_group_runs(struct gw_hop_source *source, uint64_t first, uint64_t n, uint32_t *count)
{
	const uint32_t *groups = gw_hop_share_groups(source->share);
	*count = 0;
	if (!groups)
		return GW_OK;
	if (gw_vec_reserve(&source->group_runs, n * sizeof(struct gw_sample_group_run)) != GW_OK)
		return GW_NO_MEMORY;
	struct gw_sample_group_run *runs = source->group_runs.data;
	for (uint64_t i = 0; i < n; i++) {
		if (*count && runs[*count - 1].group == groups[first + i])
			runs[*count - 1].rows++;
		else
			runs[(*count)++] = (struct gw_sample_group_run){.group = groups[first + i], .rows = 1};
	}
	return GW_OK;
}

/* As many rows as fit a request. */
static gw_status print_call(struct gw_hop_source *source)
{
	uint64_t first = source->picks.dst_count, left = source->share->count - first;
	const struct gw_draw *draw = &source->draw;
	struct gw_sample_arrays arrays;
	source->asked = left < GW_SAMPLE_ROWS_MAX ? left : GW_SAMPLE_ROWS_MAX;
	struct gw_sample_call call = {.sampler_version = GW_SAMPLER_VERSION,
				      .etype = source->etype,
				      .key = draw->rule.key,
				      .fanout = draw->rule.fanout,
				      .kind = draw->kind->number,
				      .flags = (draw->rule.replace ? GW_SAMPLE_REPLACE : 0u) |
					       (source->direction == GW_OUT ? GW_SAMPLE_BY_SOURCE : 0u) |
					       (draw->groups.strict_ends ? GW_SAMPLE_STRICT_ENDS : 0u) |
					       (draw->groups.from ? GW_SAMPLE_WINDOWS : 0u) |
					       (draw->no_edge_ids ? GW_SAMPLE_NO_EDGES : 0u),
				      .row_count = (uint32_t)source->asked,
				      .reply_bytes_max = REPLY_BYTES_MAX,
				      .table_count = draw->groups.count};
	for (uint32_t c = 0; source->columns && c < GW_COLUMN_COUNT; c++) {
		if (source->columns->names.of[c])
			gw_sample_call_add_column(&call, &arrays, c, source->columns->names.of[c]);
	}
	if (gw_vec_reserve(&source->call_rows, source->asked * sizeof(uint32_t)) != GW_OK)
		return GW_NO_MEMORY;
	uint32_t *rows = source->call_rows.data;
	const uint64_t *from = (const uint64_t *)source->share->rows.data + first;
	for (uint64_t i = 0; i < source->asked; i++)
		rows[i] = (uint32_t)from[i];
	gw_status status = print_group_runs(source, first, source->asked, &call.run_count);
	if (status == GW_OK)
		status = gw_vec_reserve(&source->call, gw_sample_call_bytes(&call));
	if (status != GW_OK)
		return status;
	arrays.until = draw->groups.until;
	arrays.from = draw->groups.from;
	arrays.runs = source->group_runs.data;
	arrays.rows = rows;
	gw_sample_call_print(&call, &arrays, source->call.data);
	source->link_op.request = source->call.data;
	source->link_op.request_bytes = (uint32_t)gw_sample_call_bytes(&call);
	return GW_OK;
}

void gw_hop_request(struct gw_hop_source *source)
{
	gw_status status = print_call(source);
	if (status != GW_OK) {
		gw_fan_in_end_one(source->answers, status);
		return;
	}
	source->link_op.form = GW_LINK_REQUEST;
	source->link_op.call = GW_OP_SAMPLE;
	source->link_op.job = source->answers->job;
	source->link_op.done = hop_request_replied;
	source->link_op.owner = source;
	gw_engine_post(source->answers->job->engine, source->share->part, &source->link_op);
}
