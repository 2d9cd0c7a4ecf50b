/* See edges_op.h. protocol/edge_call.c checks the replies. Fails as reads do, and with GW_PROTOCOL if a server's reply
 * is impossible. */
#include "client/batch/edges_op.h"

#include <string.h>

#include "client/batch/list_search.h"
#include "client/batch/local_lists.h"
#include "client/engine/engine.h"
#include "core/graph/book.h"
#include "core/memory/alloc.h"
#include "protocol/ops.h"
#include "sampler/lookup.h"

/* room for ids in a reply, in bytes, in addition to two ids for each pair: most pairs have at most one edge */
#define IDS_ROOM_MIN (64u << 10)

struct gw_edges_share {
	struct gw_edges_op *op;
	uint32_t part;
	uint64_t count, answered;
	struct gw_vec at;    /* uint64_t [count]: the indices of its questions, ascending */
	struct gw_vec found; /* uint64_t: positions, question after question */
	uint64_t found_count, taken;
	uint64_t from; /* where the positions of the next question continue */
	struct gw_vec call;
	struct gw_link_op request;
	/* Of lists on disk. */
	struct gw_list_search search;
	struct gw_vec numbers; /* uint64_t: the questions */
	struct gw_vec hits;    /* struct hit [hit_count], in the order in which they were found */
	uint64_t hit_count;
};

struct hit {
	uint64_t question, position;
};

static void share_ask(struct gw_edges_share *share);

static const struct gw_graph_meta *meta_of(const struct gw_edges_op *op)
{
	return op->engine->client->meta;
}

gw_status gw_edges_op_init(struct gw_edges_op *op, struct gw_engine *engine)
{
	memset(op, 0, sizeof(*op));
	op->engine = engine;
	uint32_t parts = engine->client->meta->num_parts;
	op->shares = gw_calloc(parts, sizeof(*op->shares));
	if (!op->shares)
		return GW_NO_MEMORY;
	for (uint32_t p = 0; p < parts; p++)
		op->shares[p] = (struct gw_edges_share){.op = op, .part = p};
	return GW_OK;
}

void gw_edges_op_free(struct gw_edges_op *op)
{
	for (uint32_t p = 0; op->shares && p < meta_of(op)->num_parts; p++) {
		gw_vec_free(&op->shares[p].at);
		gw_vec_free(&op->shares[p].found);
		gw_vec_free(&op->shares[p].call);
		gw_vec_free(&op->shares[p].numbers);
		gw_vec_free(&op->shares[p].hits);
		gw_list_search_free(&op->shares[p].search);
	}
	gw_free(op->shares);
	op->shares = NULL;
	gw_vec_free(&op->src);
	gw_vec_free(&op->dst);
	gw_vec_free(&op->counts);
	gw_vec_free(&op->ids);
}

/* --- End. --- */

/* In the order of the pairs. */
static gw_status collect_ids(struct gw_edges_op *op)
{
	const struct gw_graph_meta *meta = meta_of(op);
	const struct gw_edge_type *type = &meta->etypes[op->etype];
	const uint64_t *node_starts = meta->ntypes[type->dst].starts, *counts = op->counts.data;
	uint64_t total = 0;
	for (uint32_t p = 0; p < meta->num_parts; p++)
		total += op->shares[p].found_count;
	if (gw_vec_reserve(&op->ids, total * 8) != GW_OK)
		return GW_NO_MEMORY;
	int64_t *ids = op->ids.data;
	for (uint64_t i = 0, at = 0; i < op->n; i++) {
		uint32_t part = gw_book_owner(node_starts, meta->num_parts, (uint64_t)op->questions[1][i]);
		struct gw_edges_share *share = &op->shares[part];
		const uint64_t *found = (const uint64_t *)share->found.data + share->taken;
		for (uint64_t j = 0; j < counts[i]; j++)
			ids[at++] = (int64_t)(type->starts[part] + found[j]);
		share->taken += counts[i];
	}
	op->id_count = total;
	return GW_OK;
}

static struct gw_edges_op *op_of(struct gw_fan_in *answers)
{
	return (struct gw_edges_op *)((char *)answers - offsetof(struct gw_edges_op, answers));
}

static void answers_done(struct gw_fan_in *answers, gw_status status)
{
	struct gw_edges_op *op = op_of(answers);
	if (status == GW_OK && op->ask == GW_EDGE_IDS)
		status = collect_ids(op);
	op->done(op, status);
}

static void answers_cancel(struct gw_fan_in *answers)
{
	struct gw_edges_op *op = op_of(answers);
	for (uint32_t p = 0; p < meta_of(op)->num_parts; p++) {
		if (op->shares[p].request.owner && !op->shares[p].request.cancelled)
			gw_link_cancel(&op->shares[p].request);
		gw_list_search_cancel(&op->shares[p].search);
	}
}

void gw_edges_op_cancel(struct gw_edges_op *op)
{
	if (op->answers.open)
		gw_fan_in_cancel(&op->answers);
}

static void share_end(struct gw_edges_share *share, gw_status status)
{
	gw_fan_in_end_one(&share->op->answers, status);
}

/* --- Answers. --- */

static void take_end(struct gw_edges_share *share, uint64_t i, uint64_t row, uint64_t src)
{
	struct gw_edges_op *op = share->op;
	const struct gw_graph_meta *meta = meta_of(op);
	((int64_t *)op->src.data)[i] = (int64_t)src;
	((int64_t *)op->dst.data)[i] = (int64_t)(meta->ntypes[meta->etypes[op->etype].dst].starts[share->part] + row);
}

/* Stores the positions in a reply, which answers the first pairs of the request. Those of the last answered pair may be
 * incomplete. */
static gw_status take_ids(struct gw_edges_share *share, const struct gw_edge_call *call,
			  const struct gw_edge_reply *reply, const uint8_t *numbers)
{
	if (gw_vec_reserve(&share->found, (share->found_count + reply->total) * 8) != GW_OK)
		return GW_NO_MEMORY;
	uint64_t *found = (uint64_t *)share->found.data + share->found_count;
	const uint64_t *at = (const uint64_t *)share->at.data + share->answered;
	for (uint64_t i = 0; i < reply->total; i++)
		found[i] = gw_edge_number(numbers, call->count + i);
	for (uint64_t i = 0; i < (uint64_t)reply->answered + reply->partial; i++)
		((uint64_t *)share->op->counts.data)[at[i]] += gw_edge_number(numbers, i);
	share->found_count += reply->total;
	if (reply->partial && reply->total)
		share->from = found[reply->total - 1] + 1;
	else
		share->from = 0;
	return GW_OK;
}

static gw_status take_reply(struct gw_edges_share *share, const struct gw_completion *completion)
{
	struct gw_edges_op *op = share->op;
	const struct gw_graph_meta *meta = meta_of(op);
	const struct gw_edge_type *type = &meta->etypes[op->etype];
	const uint64_t *rows = meta->ntypes[type->dst].starts;
	const struct gw_edge_bounds bounds = {.rows = rows[share->part + 1] - rows[share->part],
					      .edges = type->starts[share->part + 1] - type->starts[share->part],
					      .sources = meta->ntypes[type->src].count};
	const struct gw_edge_call *call = share->call.data;
	const uint64_t *at = (const uint64_t *)share->at.data + share->answered;
	const uint8_t *numbers;
	struct gw_edge_reply reply;
	gw_status status =
		gw_edge_reply_parse(completion->reply, completion->reply_bytes, call, &bounds, &reply, &numbers);
	if (status != GW_OK)
		return gw_context(status, "part %u", share->part);
	if (call->ask == GW_EDGE_IDS)
		status = take_ids(share, call, &reply, numbers);
	for (uint64_t i = 0; call->ask != GW_EDGE_IDS && i < reply.answered; i++) {
		if (call->ask == GW_EDGE_COUNTS)
			((uint64_t *)op->counts.data)[at[i]] = gw_edge_number(numbers, i);
		else
			take_end(share, at[i], gw_edge_number(numbers, 2 * i), gw_edge_number(numbers, 2 * i + 1));
	}
	share->answered += reply.answered;
	return status;
}

static void share_replied(struct gw_link_op *request, gw_status status, const struct gw_completion *completion)
{
	struct gw_edges_share *share = request->owner;
	request->owner = NULL;
	if (status == GW_OK)
		status = take_reply(share, completion);
	if (status != GW_OK || share->op->answers.status != GW_OK || share->answered == share->count)
		share_end(share, status);
	else
		share_ask(share);
}

/* --- Questions. --- */

/* With ids that are local to its owner. */
static void write_question(const struct gw_edges_share *share, uint64_t i, uint64_t *numbers)
{
	const struct gw_edges_op *op = share->op;
	const struct gw_edge_type *type = &meta_of(op)->etypes[op->etype];
	if (op->ask == GW_EDGE_ENDS) {
		numbers[0] = (uint64_t)op->questions[0][i] - type->starts[share->part];
	} else {
		numbers[0] = (uint64_t)op->questions[1][i] - meta_of(op)->ntypes[type->dst].starts[share->part];
		numbers[1] = (uint64_t)op->questions[0][i];
	}
}

static void share_ask(struct gw_edges_share *share)
{
	struct gw_edges_op *op = share->op;
	uint64_t left = share->count - share->answered;
	uint32_t n = left < GW_EDGE_QUERIES_MAX ? (uint32_t)left : GW_EDGE_QUERIES_MAX;
	uint32_t width = gw_edge_call_width(op->ask);
	size_t bytes = sizeof(struct gw_edge_call) + (size_t)n * width * 8;
	if (gw_vec_reserve(&share->call, bytes) != GW_OK) {
		share_end(share, GW_NO_MEMORY);
		return;
	}
	struct gw_edge_call *call = share->call.data;
	*call = (struct gw_edge_call){.ask = op->ask,
				      .etype = op->etype,
				      .count = n,
				      .reply_bytes_max =
					      (uint32_t)gw_edge_reply_bytes(op->ask, n) + 2 * n * 8 + IDS_ROOM_MIN,
				      .from = share->from};
	const uint64_t *at = (const uint64_t *)share->at.data + share->answered;
	for (uint32_t i = 0; i < n; i++)
		write_question(share, at[i], (uint64_t *)(call + 1) + (size_t)i * width);
	share->request.form = GW_LINK_REQUEST;
	share->request.call = GW_OP_EDGES;
	share->request.request = call;
	share->request.request_bytes = (uint32_t)bytes;
	share->request.job = op->answers.job;
	share->request.done = share_replied;
	share->request.owner = share;
	gw_engine_post(op->engine, share->part, &share->request);
}

/* NULL: this process cannot address them. */
static const struct gw_adjacency *lists_of(const struct gw_edges_share *share)
{
	const struct gw_client *client = share->op->engine->client;
	return client->standalone ? gw_own_lists(client, share->part, GW_IN, share->op->etype)
				  : gw_local_lists(share->op->engine, share->part, GW_IN, share->op->etype);
}

static gw_status look_up_pair(struct gw_edges_share *share, const struct gw_adjacency *lists, uint64_t i)
{
	struct gw_edges_op *op = share->op;
	uint64_t numbers[2], position, budget = UINT64_MAX, n = 0;
	struct gw_lookup lookup;
	write_question(share, i, numbers);
	gw_status status =
		gw_lookup_begin(&lookup, lists, meta_of(op)->etypes[op->etype].order, numbers[0], numbers[1], 0);
	while (status == GW_OK && gw_lookup_next(&lookup, &budget, &position)) {
		n++;
		if (op->ask != GW_EDGE_IDS)
			continue;
		status = gw_vec_reserve(&share->found, (share->found_count + 1) * 8);
		if (status == GW_OK)
			((uint64_t *)share->found.data)[share->found_count++] = position;
	}
	((uint64_t *)op->counts.data)[i] = n;
	return status;
}

static gw_status share_look_up(struct gw_edges_share *share, const struct gw_adjacency *lists)
{
	struct gw_edges_op *op = share->op;
	const uint64_t *at = share->at.data;
	gw_status status = GW_OK;
	for (uint64_t j = 0; j < share->count && status == GW_OK; j++) {
		uint64_t row, numbers[2];
		if (op->ask != GW_EDGE_ENDS) {
			status = look_up_pair(share, lists, at[j]);
			continue;
		}
		write_question(share, at[j], numbers);
		status = gw_lookup_row(lists, numbers[0], &row);
		if (status == GW_OK)
			take_end(share, at[j], row, gw_load_id(lists->indices, lists->index_bytes, numbers[0]));
	}
	return status == GW_OK ? GW_OK : gw_context(status, "part %u", share->part);
}

/* --- Lists on disk. --- */

static gw_status share_found(void *owner, uint64_t question, uint64_t row, uint64_t position, uint64_t src)
{
	struct gw_edges_share *share = owner;
	struct gw_edges_op *op = share->op;
	const uint64_t i = ((const uint64_t *)share->at.data)[question];
	if (op->ask == GW_EDGE_ENDS) {
		take_end(share, i, row, src);
		return GW_OK;
	}
	((uint64_t *)op->counts.data)[i]++;
	if (op->ask == GW_EDGE_COUNTS)
		return GW_OK;
	if (gw_vec_reserve(&share->hits, (share->hit_count + 1) * sizeof(struct hit)) != GW_OK)
		return GW_NO_MEMORY;
	((struct hit *)share->hits.data)[share->hit_count++] = (struct hit){question, position};
	return GW_OK;
}

/* The hits, question after question. */
static gw_status sort_hits(struct gw_edges_share *share)
{
	const uint64_t *at = share->at.data, *counts = share->op->counts.data;
	const struct hit *hits = share->hits.data;
	uint64_t *next = share->numbers.data, total = 0;
	if (gw_vec_reserve(&share->found, share->hit_count * 8) != GW_OK)
		return GW_NO_MEMORY;
	for (uint64_t j = 0; j < share->count; j++) {
		next[j] = total;
		total += counts[at[j]];
	}
	for (uint64_t i = 0; i < share->hit_count; i++)
		((uint64_t *)share->found.data)[next[hits[i].question]++] = hits[i].position;
	share->found_count = share->hit_count;
	return GW_OK;
}

static void share_searched(void *owner, gw_status status)
{
	struct gw_edges_share *share = owner;
	if (status == GW_OK && share->op->ask == GW_EDGE_IDS)
		status = sort_hits(share);
	share_end(share, status);
}

static void share_search(struct gw_edges_share *share)
{
	struct gw_edges_op *op = share->op;
	const uint64_t *at = share->at.data;
	if (gw_vec_reserve(&share->numbers, share->count * 2 * sizeof(uint64_t)) != GW_OK) {
		share_end(share, GW_NO_MEMORY);
		return;
	}
	uint64_t *numbers = share->numbers.data, *srcs = numbers + share->count;
	for (uint64_t j = 0; j < share->count; j++) {
		uint64_t question[2] = {0};
		write_question(share, at[j], question);
		numbers[j] = question[0];
		srcs[j] = question[1];
	}
	share->hit_count = 0;
	share->search.answers = &op->answers;
	share->search.part = share->part;
	share->search.etype = op->etype;
	share->search.found = share_found;
	share->search.done = share_searched;
	share->search.owner = share;
	if (op->ask == GW_EDGE_ENDS)
		gw_list_search_ends(&share->search, numbers, share->count);
	else
		gw_list_search_edges(&share->search, numbers, srcs, share->count);
}

/* --- Start. --- */

static gw_status check_questions(const struct gw_edges_op *op)
{
	const struct gw_graph_meta *meta = meta_of(op);
	const struct gw_edge_type *type = &meta->etypes[op->etype];
	bool ends = op->ask == GW_EDGE_ENDS;
	const uint64_t counts[] = {ends ? type->count : meta->ntypes[type->src].count, meta->ntypes[type->dst].count};
	static const char *const what[] = {"source", "destination"};
	for (uint64_t i = 0; i < op->n; i++) {
		for (uint32_t k = 0; k < (ends ? 1u : 2u); k++) {
			if ((uint64_t)op->questions[k][i] >= counts[k])
				return gw_fail_id(ends ? "edge" : what[k], op->questions[k][i], i, counts[k]);
		}
	}
	return GW_OK;
}

static gw_status split_questions(struct gw_edges_op *op)
{
	const struct gw_graph_meta *meta = meta_of(op);
	const struct gw_edge_type *type = &meta->etypes[op->etype];
	bool ends = op->ask == GW_EDGE_ENDS;
	const uint64_t *starts = ends ? type->starts : meta->ntypes[type->dst].starts;
	const int64_t *keys = op->questions[ends ? 0 : 1];
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		struct gw_edges_share *share = &op->shares[p];
		share->count = share->answered = share->found_count = share->taken = share->from = 0;
	}
	for (uint64_t i = 0; i < op->n; i++)
		op->shares[gw_book_owner(starts, meta->num_parts, (uint64_t)keys[i])].count++;
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		if (gw_vec_reserve(&op->shares[p].at, op->shares[p].count * 8) != GW_OK)
			return GW_NO_MEMORY;
		op->shares[p].count = 0;
	}
	for (uint64_t i = 0; i < op->n; i++) {
		struct gw_edges_share *share = &op->shares[gw_book_owner(starts, meta->num_parts, (uint64_t)keys[i])];
		((uint64_t *)share->at.data)[share->count++] = i;
	}
	return GW_OK;
}

static gw_status edges_prepare(struct gw_edges_op *op)
{
	gw_status status = check_questions(op);
	if (status != GW_OK)
		return status;
	if (op->ask == GW_EDGE_ENDS) {
		if (gw_vec_reserve(&op->src, op->n * 8) != GW_OK || gw_vec_reserve(&op->dst, op->n * 8) != GW_OK)
			return GW_NO_MEMORY;
	} else {
		if (gw_vec_reserve(&op->counts, op->n * 8) != GW_OK)
			return GW_NO_MEMORY;
		if (op->n)
			memset(op->counts.data, 0, op->n * 8);
	}
	return split_questions(op);
}

void gw_edges_op_start(struct gw_edges_op *op, struct gw_job *job, enum gw_edge_ask ask, uint32_t etype,
		       const int64_t *first, const int64_t *second, uint64_t n)
{
	op->ask = ask;
	op->etype = etype;
	op->questions[0] = first;
	op->questions[1] = second;
	op->n = n;
	op->id_count = 0;
	gw_fan_in_begin(&op->answers, job, answers_cancel, answers_done);
	gw_status status = edges_prepare(op);
	for (uint32_t p = 0; p < meta_of(op)->num_parts && status == GW_OK && op->answers.status == GW_OK; p++) {
		struct gw_edges_share *share = &op->shares[p];
		if (share->count == 0)
			continue;
		const struct gw_adjacency *lists = lists_of(share);
		gw_fan_in_add(&op->answers);
		if (lists)
			share_end(share, share_look_up(share, lists));
		else if (gw_lists_are_on_disk(op->engine->client, p, GW_IN, op->etype))
			share_search(share);
		else
			share_ask(share);
	}
	gw_fan_in_end_one(&op->answers, status);
}
