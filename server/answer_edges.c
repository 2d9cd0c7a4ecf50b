/* The edge request: ends of edges, how many edges a pair has, and which.
 *
 *   reserve the reply ─▶ question by question: looked up in the part's lists ─▶ written behind the answers before it
 *                             └─▶ the slice's work is used up: others have their turn, then on from there
 *
 * The reply's bytes do not depend on where the handler left off. Rows, positions and sources come from a peer: each is
 * checked. Fails on a malformed call, a row or position that is not of this part, and for want of memory.
 */
#include <string.h>

#include "protocol/edge_call.h"
#include "sampler/lookup.h"
#include "server/server.h"

#define REPLY_BYTES_MAX (16u << 20) /* whatever a client asks for */
#define SLICE_WORK      16384u      /* positions looked at in one turn, about */
#define BISECT_WORK     16u         /* what one bisection counts for */
#define CHUNK           256u        /* positions written at once */

/* What is kept from one turn to the next. */
struct edges_work {
	bool begun, searching;
	uint32_t answered;
	uint64_t room;  /* positions that the reply still takes */
	uint64_t found; /* of the pair that is being searched */
	uint64_t total;
	struct gw_lookup lookup;
};

/* One turn's view of the call. */
struct edges_slice {
	struct gw_edge_call call;
	const uint8_t *numbers;
	const struct gw_adjacency *lists;
	enum gw_list_order order;
	struct gw_reply *reply;
	struct edges_work *work;
	uint64_t budget;
};

static void edges_spend(struct edges_slice *turn, uint64_t work)
{
	turn->budget -= work < turn->budget ? work : turn->budget;
}

static void put_number(const struct edges_slice *turn, uint64_t at, uint64_t number)
{
	uint32_t bytes;
	uint8_t *data = gw_reply_data(turn->reply, &bytes);
	memcpy(data + sizeof(struct gw_edge_reply) + at * 8, &number, 8);
}

static gw_status answer_ends(struct edges_slice *turn)
{
	uint32_t i = turn->work->answered;
	uint64_t row, position = gw_edge_number(turn->numbers, i);
	gw_status status = gw_lookup_row(turn->lists, position, &row);
	if (status != GW_OK)
		return status;
	put_number(turn, 2ull * i, row);
	put_number(turn, 2ull * i + 1, gw_load_id(turn->lists->indices, turn->lists->index_bytes, position));
	edges_spend(turn, BISECT_WORK);
	turn->work->answered++;
	return GW_OK;
}

/* Positions of the pair, as many as the turn and the reply have room for. */
static gw_status list_positions(struct edges_slice *turn, bool *full)
{
	struct edges_work *work = turn->work;
	uint64_t positions[CHUNK], n = 0;
	while (n < CHUNK && n < work->room && gw_lookup_next(&work->lookup, &turn->budget, &positions[n]))
		n++;
	*full = n == work->room && work->lookup.at < work->lookup.end;
	if (!n)
		return GW_OK;
	uint8_t *out = gw_reply_extend(turn->reply, (uint32_t)(n * 8));
	if (!out)
		return GW_NO_MEMORY;
	memcpy(out, positions, n * 8);
	work->room -= n;
	work->found += n;
	work->total += n;
	return GW_OK;
}

static void count_positions(struct edges_slice *turn)
{
	uint64_t position;
	while (gw_lookup_next(&turn->work->lookup, &turn->budget, &position))
		turn->work->found++;
}

/* Begins or goes on with the next pair; *full: the reply is, before its end. */
static gw_status answer_pair(struct edges_slice *turn, bool *full)
{
	struct edges_work *work = turn->work;
	uint32_t i = work->answered;
	gw_status status = GW_OK;
	if (!work->searching) {
		uint64_t from = turn->call.ask == GW_EDGE_IDS && i == 0 ? turn->call.from : 0;
		status = gw_lookup_begin(&work->lookup, turn->lists, turn->order,
					 gw_edge_number(turn->numbers, 2ull * i),
					 gw_edge_number(turn->numbers, 2ull * i + 1), from);
		work->searching = status == GW_OK;
		edges_spend(turn, BISECT_WORK);
	}
	if (status == GW_OK && turn->call.ask == GW_EDGE_IDS)
		status = list_positions(turn, full);
	else if (status == GW_OK)
		count_positions(turn);
	if (status != GW_OK)
		return status;
	put_number(turn, i, work->found);
	if (work->lookup.at == work->lookup.end) {
		work->searching = false;
		work->found = 0;
		work->answered++;
	}
	return GW_OK;
}

static gw_status edges_begin(struct edges_slice *turn)
{
	const struct gw_edge_call *call = &turn->call;
	uint64_t fixed = gw_edge_reply_bytes(call->ask, call->count), bytes = fixed;
	if (call->ask == GW_EDGE_IDS)
		bytes = call->reply_bytes_max < REPLY_BYTES_MAX ? call->reply_bytes_max : REPLY_BYTES_MAX;
	gw_status status = gw_reply_reserve(turn->reply, bytes);
	if (status != GW_OK)
		return status;
	uint8_t *out = gw_reply_extend(turn->reply, (uint32_t)fixed);
	if (!out)
		return GW_NO_MEMORY;
	memset(out, 0, fixed);
	turn->work->room = (bytes - fixed) / 8;
	turn->work->begun = true;
	return GW_OK;
}

static void edges_end(const struct edges_slice *turn)
{
	const struct edges_work *work = turn->work;
	struct gw_edge_reply head = {
		.answered = work->answered, .partial = work->searching && work->found, .total = work->total};
	uint32_t bytes;
	memcpy(gw_reply_data(turn->reply, &bytes), &head, sizeof(head));
}

gw_status gw_server_edges(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)thread;
	const struct gw_server *server = context;
	struct edges_slice turn = {.reply = reply, .budget = SLICE_WORK};
	gw_status status =
		gw_edge_call_parse(call->bytes, call->byte_count, server->meta->num_etypes, &turn.call, &turn.numbers);
	if (status != GW_OK)
		return status;
	turn.lists = gw_part_adjacency(server->part, turn.call.etype);
	turn.order = server->meta->etypes[turn.call.etype].order;
	turn.work = gw_reply_work(reply, sizeof(*turn.work), NULL);
	if (!turn.work)
		return GW_NO_MEMORY;
	if (!turn.work->begun)
		status = edges_begin(&turn);
	bool full = false;
	while (status == GW_OK && !full && turn.work->answered < turn.call.count) {
		if (!turn.budget)
			return GW_AGAIN;
		status = turn.call.ask == GW_EDGE_ENDS ? answer_ends(&turn) : answer_pair(&turn, &full);
	}
	if (status == GW_OK)
		edges_end(&turn);
	return status;
}
