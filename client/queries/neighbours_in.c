/* Lists of in-edges, by the hop that mini-batches use (gw_hop), for one piece of the ids at a time.
 *
 *   ids, PIECE at a time -> gw_hop (client/batch/hop.h): from memory, by reads, by request -> append to the list
 *
 * So a call draws the same edges as hop 0 of a mini-batch, at the same cost. A call is one operation with one deadline.
 * The neighbour ids that a peer sends are checked: each must be the id of a node.
 */
#include "client/batch/hop.h"
#include "client/engine/engine.h"
#include "client/engine/ticket.h"
#include "client/queries/edge_list.h"
#include "client/queries/neighbours.h"
#include "core/memory/alloc.h"

#define PIECE      16384u     /* ids per piece: as many as fit into one request */
#define ROOM_FIRST (1u << 22) /* limit of a list's first room, in edges, before the number of edges is known */
#define EDGES_KEPT (1u << 20) /* edges of a piece: a hop with more is not kept for the next call */

struct in_call {
	struct gw_ticket ticket; /* first: the job */
	struct gw_pick_rule rule;
	uint32_t etype;
	const int64_t *ids;
	uint64_t n;
	struct gw_edge_list **out, *list;
	uint64_t room; /* edges that the list has memory for */
	/* State of the call. */
	struct gw_hop *hop;
	uint64_t at, piece; /* number of ids done, and of ids in the current piece */
	uint64_t most;      /* edges of the largest piece */
	bool asking;        /* a piece is open */
	bool stepping;      /* in_call_step runs: a piece that ends at once must not call it again */
	gw_status failed;   /* the first failure; its text is this thread's error text */
};

static const struct gw_graph_meta *in_call_meta(const struct in_call *call)
{
	return call->ticket.client->meta;
}

/* --- A hop of the engine. --- */

static gw_status in_hop_borrow(struct gw_engine *engine, struct gw_hop **out)
{
	*out = engine->spare_hop;
	engine->spare_hop = NULL;
	if (*out)
		return GW_OK;
	*out = gw_calloc(1, sizeof(**out));
	if (!*out)
		return GW_NO_MEMORY;
	gw_status status = gw_hop_init(*out, engine);
	if (status != GW_OK) {
		gw_free(*out);
		*out = NULL;
	}
	return status;
}

static void in_hop_return(struct gw_engine *engine, struct gw_hop *hop, bool keep)
{
	if (hop && keep && !engine->spare_hop) {
		engine->spare_hop = hop;
	} else if (hop) {
		gw_hop_free(hop);
		gw_free(hop);
	}
}

void gw_neighbours_free(struct gw_client *client)
{
	for (uint32_t i = 0; client->engines && i < client->engine_count; i++) {
		struct gw_engine *engine = &client->engines[i];
		if (engine->spare_hop)
			gw_hop_free(engine->spare_hop);
		gw_free(engine->spare_hop);
		engine->spare_hop = NULL;
	}
}

/* --- The list. --- */

static gw_status in_list_begin(struct in_call *call)
{
	uint64_t fanout = call->rule.fanout == GW_FANOUT_ALL ? 8 : (uint64_t)call->rule.fanout;
	call->room = call->n * fanout < ROOM_FIRST ? call->n * fanout : ROOM_FIRST;
	gw_status status = gw_edge_list_create(call->n, call->room, &call->list);
	if (status == GW_OK) {
		call->list->edge_count = 0;
		gw_edge_list_offsets(call->list)[0] = 0;
	}
	return status;
}

static gw_status in_list_make_room(struct in_call *call, uint64_t edges)
{
	if (edges > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%llu nodes have more than 2^32 - 1 edges: ask for fewer in one call",
			       (unsigned long long)call->n);
	if (edges <= call->room)
		return GW_OK;
	uint64_t room = edges > call->room + call->room / 2 ? edges : call->room + call->room / 2;
	gw_status status = gw_edge_list_resize(call->list, room);
	if (status == GW_OK)
		call->room = room;
	return status;
}

static gw_status in_list_add(struct in_call *call, uint64_t first, uint64_t n, const struct gw_hop_edges *edges)
{
	uint64_t count = in_call_meta(call)->ntypes[in_call_meta(call)->etypes[call->etype].src].count;
	uint64_t at = call->list->edge_count, *offsets = gw_edge_list_offsets(call->list);
	gw_status status = in_list_make_room(call, at + edges->count);
	if (status != GW_OK)
		return status;
	int64_t *src = gw_edge_list_fill(call->list->src) + at, *dst = gw_edge_list_fill(call->list->dst) + at;
	int64_t *ids = gw_edge_list_fill(call->list->edge_ids) + at;
	uint64_t most = 0;
	for (uint64_t i = 0; i < edges->count; i++) {
		src[i] = (int64_t)edges->neighbours[i];
		most = edges->neighbours[i] > most ? edges->neighbours[i] : most;
		ids[i] = (int64_t)(edges->start + edges->positions[i]);
	}
	if (edges->count && most >= count)
		return gw_fail(GW_PROTOCOL, "a list has node id %llu, but the type has only %llu nodes",
			       (unsigned long long)most, (unsigned long long)count);
	for (uint64_t i = 0, filled = 0; i < n; i++) {
		for (uint32_t j = 0; j < edges->counts[i]; j++)
			dst[filled++] = call->ids[first + i];
		offsets[first + i + 1] = at + filled;
	}
	call->list->edge_count = at + edges->count;
	return GW_OK;
}

/* --- Piece after piece. --- */

static void in_call_step(struct in_call *call);

static void in_call_end(struct in_call *call, gw_status status)
{
	in_hop_return(call->ticket.job.engine, call->hop, call->most <= EDGES_KEPT);
	if (status == GW_OK && call->list->edge_count < call->room - call->room / 4)
		/* if this fails, the list keeps more room than it needs */
		(void)gw_edge_list_resize(call->list, call->list->edge_count);
	gw_job_end(&call->ticket.job, status);
}

static gw_status in_piece_take(struct in_call *call)
{
	uint64_t before = call->list->edge_count;
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < call->piece && status == GW_OK; i += GW_HOP_RUN) {
		uint64_t n = call->piece - i < GW_HOP_RUN ? call->piece - i : GW_HOP_RUN;
		struct gw_hop_edges edges;
		status = gw_hop_take(call->hop, call->etype, i, (const uint64_t *)call->ids + call->at + i, n, &edges);
		if (status == GW_OK)
			status = in_list_add(call, call->at + i, n, &edges);
	}
	uint64_t edges = call->list->edge_count - before;
	call->most = edges > call->most ? edges : call->most;
	call->at += call->piece;
	return status;
}

static void in_piece_done(struct gw_hop *hop, gw_status status)
{
	struct in_call *call = hop->owner;
	call->asking = false;
	if (status == GW_OK)
		status = in_piece_take(call);
	call->failed = status;
	if (!call->stepping)
		in_call_step(call);
}

static gw_status in_piece_check(const struct in_call *call)
{
	uint64_t count = in_call_meta(call)->ntypes[in_call_meta(call)->etypes[call->etype].dst].count;
	for (uint64_t i = call->at; i < call->at + call->piece; i++) {
		if ((uint64_t)call->ids[i] >= count)
			return gw_fail_id("id", call->ids[i], i, count);
	}
	return GW_OK;
}

static gw_status in_piece_start(struct in_call *call)
{
	uint64_t left = call->n - call->at;
	call->piece = left < PIECE ? left : PIECE;
	gw_hop_begin(call->hop);
	gw_status status = in_piece_check(call);
	if (status == GW_OK)
		status = gw_hop_want(call->hop, call->etype, &call->rule, (const uint64_t *)call->ids + call->at,
				     call->piece);
	if (status != GW_OK)
		return status;
	call->asking = true;
	gw_hop_start(call->hop, &call->ticket.job);
	return GW_OK;
}

static void in_call_step(struct in_call *call)
{
	call->stepping = true;
	while (call->failed == GW_OK && !call->asking && call->at < call->n) {
		gw_status status = in_piece_start(call);
		if (status != GW_OK)
			call->failed = status;
	}
	call->stepping = false;
	if (!call->asking)
		in_call_end(call, call->failed);
}

static void in_call_start(struct gw_job *job)
{
	struct in_call *call = (struct in_call *)job;
	call->failed = in_hop_borrow(job->engine, &call->hop);
	if (call->failed == GW_OK)
		call->failed = in_list_begin(call);
	if (call->failed == GW_OK) {
		call->hop->done = in_piece_done;
		call->hop->owner = call;
	}
	in_call_step(call);
}

static void in_call_cancel(struct gw_job *job)
{
	gw_hop_cancel(((struct in_call *)job)->hop);
}

static void in_call_finish(struct gw_ticket *ticket, gw_status status)
{
	struct in_call *call = (struct in_call *)ticket;
	if (status == GW_OK)
		*call->out = call->list;
	else
		gw_edge_list_free(call->list);
	gw_free(call);
}

gw_status gw_neighbours_in(struct gw_client *client, const struct gw_list_call *wanted, bool soon,
			   struct gw_ticket **ticket)
{
	struct in_call *call = gw_malloc(sizeof(*call));
	if (!call)
		return GW_NO_MEMORY;
	*call = (struct in_call){.ticket = {.client = client,
					    .finish = in_call_finish,
					    .job = {.start = in_call_start, .cancel = in_call_cancel}},
				 .rule = wanted->rule,
				 .etype = wanted->etype,
				 .ids = wanted->ids,
				 .n = wanted->n,
				 .out = wanted->out};
	gw_engine_submit(gw_client_engine(client), &call->ticket.job, soon);
	*ticket = &call->ticket;
	return GW_OK;
}
