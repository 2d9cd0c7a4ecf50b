/* The edge request: the ends of edges, or the number and the positions of a pair's edges.
 *
 *   reserve the reply ─▶ for each question: look it up in the part's lists ─▶ append the answer to the reply
 *                             └─▶ the slice's work is used up: other clients are served, then the call continues
 *
 * The reply's bytes do not depend on where slices end. Rows, positions and sources come from a peer, so each is
 * checked. Fails on a malformed call, on a row or position that this part does not have, and if memory runs out.
 */
#include <string.h>

#include "protocol/edge_call.h"
#include "sampler/lookup.h"
#include "server/disk_lists.h"
#include "server/server.h"

#define REPLY_BYTES_MAX (16u << 20) /* even if a client asks for more */
#define SLICE_WORK      16384u      /* about as many positions are checked in one slice */
#define BISECT_WORK     16u         /* the cost of one bisection, in positions */
#define CHUNK           256u        /* positions written at once */

/* The state that is kept between slices. */
struct edges_work {
	bool begun, searching;
	uint32_t answered;
	uint64_t room;  /* positions that the reply still has room for */
	uint64_t found; /* positions found so far for the current pair */
	uint64_t total;
	struct gw_lookup lookup;
};

/* One slice of the call. */
struct edges_slice {
	struct gw_edge_call call;
	const uint8_t *numbers;
	const struct gw_adjacency *lists;
	enum gw_list_order order;
	struct gw_reply *reply;
	struct edges_work *work;
	uint64_t budget;
};

static void edges_spend(struct edges_slice *slice, uint64_t work)
{
	slice->budget -= work < slice->budget ? work : slice->budget;
}

static void put_number(const struct edges_slice *slice, uint64_t at, uint64_t number)
{
	uint32_t bytes;
	uint8_t *data = gw_reply_data(slice->reply, &bytes);
	memcpy(data + sizeof(struct gw_edge_reply) + at * 8, &number, 8);
}

static gw_status answer_ends(struct edges_slice *slice)
{
	uint32_t i = slice->work->answered;
	uint64_t row, position = gw_edge_number(slice->numbers, i);
	gw_status status = gw_lookup_row(slice->lists, position, &row);
	if (status != GW_OK)
		return status;
	put_number(slice, 2ull * i, row);
	put_number(slice, 2ull * i + 1, gw_load_id(slice->lists->indices, slice->lists->index_bytes, position));
	edges_spend(slice, BISECT_WORK);
	slice->work->answered++;
	return GW_OK;
}

/* As many as the slice and the reply have room for. */
static gw_status list_positions(struct edges_slice *slice, bool *full)
{
	struct edges_work *work = slice->work;
	uint64_t positions[CHUNK], n = 0;
	while (n < CHUNK && n < work->room && gw_lookup_next(&work->lookup, &slice->budget, &positions[n]))
		n++;
	*full = n == work->room && work->lookup.at < work->lookup.end;
	if (!n)
		return GW_OK;
	uint8_t *out = gw_reply_extend(slice->reply, (uint32_t)(n * 8));
	if (!out)
		return GW_NO_MEMORY;
	memcpy(out, positions, n * 8);
	work->room -= n;
	work->found += n;
	work->total += n;
	return GW_OK;
}

static void count_positions(struct edges_slice *slice)
{
	uint64_t position;
	while (gw_lookup_next(&slice->work->lookup, &slice->budget, &position))
		slice->work->found++;
}

/* *full: the reply is full before the pair's end. */
static gw_status answer_pair(struct edges_slice *slice, bool *full)
{
	struct edges_work *work = slice->work;
	uint32_t i = work->answered;
	gw_status status = GW_OK;
	if (!work->searching) {
		uint64_t from = slice->call.ask == GW_EDGE_IDS && i == 0 ? slice->call.from : 0;
		status = gw_lookup_begin(&work->lookup, slice->lists, slice->order,
					 gw_edge_number(slice->numbers, 2ull * i),
					 gw_edge_number(slice->numbers, 2ull * i + 1), from);
		work->searching = status == GW_OK;
		edges_spend(slice, BISECT_WORK);
	}
	if (status == GW_OK && slice->call.ask == GW_EDGE_IDS)
		status = list_positions(slice, full);
	else if (status == GW_OK)
		count_positions(slice);
	if (status != GW_OK)
		return status;
	put_number(slice, i, work->found);
	if (work->lookup.at == work->lookup.end) {
		work->searching = false;
		work->found = 0;
		work->answered++;
	}
	return GW_OK;
}

static gw_status edges_begin(struct edges_slice *slice)
{
	const struct gw_edge_call *call = &slice->call;
	uint64_t fixed = gw_edge_reply_bytes(call->ask, call->count), bytes = fixed;
	if (call->ask == GW_EDGE_IDS)
		bytes = call->reply_bytes_max < REPLY_BYTES_MAX ? call->reply_bytes_max : REPLY_BYTES_MAX;
	gw_status status = gw_reply_reserve(slice->reply, bytes);
	if (status != GW_OK)
		return status;
	uint8_t *out = gw_reply_extend(slice->reply, (uint32_t)fixed);
	if (!out)
		return GW_NO_MEMORY;
	memset(out, 0, fixed);
	slice->work->room = (bytes - fixed) / 8;
	slice->work->begun = true;
	return GW_OK;
}

static void edges_end(const struct edges_slice *slice)
{
	const struct edges_work *work = slice->work;
	struct gw_edge_reply head = {
		.answered = work->answered, .partial = work->searching && work->found, .total = work->total};
	uint32_t bytes;
	memcpy(gw_reply_data(slice->reply, &bytes), &head, sizeof(head));
}

gw_status gw_server_edges(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	const struct gw_server *server = context;
	struct edges_slice slice = {.reply = reply, .budget = SLICE_WORK};
	gw_status status = gw_edge_call_parse(call->bytes, call->byte_count, server->meta->num_etypes, &slice.call,
					      &slice.numbers);
	if (status != GW_OK)
		return status;
	slice.lists = gw_part_adjacency(server->part, slice.call.etype);
	slice.order = server->meta->etypes[slice.call.etype].order;
	status = gw_disk_lists_refuse(server->meta, slice.call.etype, slice.lists);
	if (status != GW_OK)
		return status;
	slice.work = gw_reply_work(reply, sizeof(*slice.work), NULL);
	if (!slice.work)
		return GW_NO_MEMORY;
	if (!slice.work->begun)
		status = edges_begin(&slice);
	bool full = false;
	while (status == GW_OK && !full && slice.work->answered < slice.call.count) {
		if (!slice.budget)
			return GW_AGAIN;
		status = slice.call.ask == GW_EDGE_ENDS ? answer_ends(&slice) : answer_pair(&slice, &full);
	}
	if (status == GW_OK)
		edges_end(&slice);
	return status;
}
