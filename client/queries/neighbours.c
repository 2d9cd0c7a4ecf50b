/* Lists of edges around nodes, by the hop that mini-batches use (gw_hop), for one piece of the ids at a time.
 *
 *   ids, PIECE at a time -> gw_hop (client/batch/hop.h): from memory, by reads, by request -> append to the list
 *
 * So a call for in-edges draws the same edges as hop 0 of a mini-batch, at the same cost. A call is one operation with
 * one deadline. The ids that a peer sends are checked: each must be the id of a node or of an edge.
 */

#include "client/queries/neighbours.h"
#include "client/batch/hop.h"
#include "client/batch/seed_groups.h"
#include "client/engine/engine.h"
#include "client/engine/ticket.h"
#include "client/queries/edge_list.h"
#include "client/rows/tensors.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"

#define PIECE      16384u     /* ids per piece: as many as fit into one request */
#define ROOM_FIRST (1u << 22) /* limit of a list's first room, in edges, before the number of edges is known */
#define EDGES_KEPT (1u << 20) /* edges of a piece: a hop with more is not kept for the next call */

struct list_call {
	struct gw_ticket ticket; /* first: the job */
	struct gw_draw draw;
	const struct gw_edge_columns *columns;
	uint32_t etype;
	enum gw_direction direction;
	const int64_t *ids;
	uint64_t n;
	struct gw_seed_times time_form;
	const uint8_t *times[2]; /* of the ids: until, from; 8 bytes each; NULL: none */
	struct gw_edge_list **out, *list;
	uint64_t room; /* edges that the list has memory for */
	/* State of the call. */
	struct gw_hop *hop;
	struct gw_seed_groups groups; /* with times: those of the piece */
	uint64_t at, piece;           /* number of ids done, and of ids in the current piece */
	uint64_t most;                /* edges of the largest piece */
	bool asking;                  /* a piece is open */
	bool stepping;                /* list_call_step runs: a piece that ends at once must not call it again */
	gw_status failed;             /* the first failure; its text is this thread's error text */
};

static const struct gw_graph_meta *list_call_meta(const struct list_call *call)
{
	return call->ticket.client->meta;
}

/* --- A hop of the engine. --- */

static gw_status list_hop_borrow(struct gw_engine *engine, struct gw_hop **out)
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

static void list_hop_return(struct gw_engine *engine, struct gw_hop *hop, bool keep)
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
	for (uint32_t i = 0; client->engines && i <= client->engine_count; i++) {
		struct gw_engine *engine = &client->engines[i];
		if (engine->spare_hop)
			gw_hop_free(engine->spare_hop);
		gw_free(engine->spare_hop);
		engine->spare_hop = NULL;
	}
}

/* --- The list. --- */

static gw_status list_call_begin(struct list_call *call)
{
	uint64_t fanout = call->draw.rule.fanout == GW_FANOUT_ALL ? 8 : (uint64_t)call->draw.rule.fanout;
	call->room = call->n * fanout < ROOM_FIRST ? call->n * fanout : ROOM_FIRST;
	gw_status status = gw_edge_list_create(call->n, call->room, &call->list);
	if (status == GW_OK) {
		call->list->edge_count = 0;
		gw_edge_list_offsets(call->list)[0] = 0;
	}
	return status;
}

static gw_status list_make_room(struct list_call *call, uint64_t edges)
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

static gw_status list_add(struct list_call *call, uint64_t first, uint64_t n, const struct gw_hop_edges *edges)
{
	const struct gw_graph_meta *meta = list_call_meta(call);
	const struct gw_edge_type *type = &meta->etypes[call->etype];
	bool in = call->direction == GW_IN;
	uint64_t count = meta->ntypes[in ? type->src : type->dst].count;
	uint64_t at = call->list->edge_count, *offsets = gw_edge_list_offsets(call->list);
	gw_status status = list_make_room(call, at + edges->count);
	if (status != GW_OK)
		return status;
	int64_t *far = gw_edge_list_fill(in ? call->list->src : call->list->dst) + at;
	int64_t *near = gw_edge_list_fill(in ? call->list->dst : call->list->src) + at;
	int64_t *ids = gw_edge_list_fill(call->list->edge_ids) + at;
	uint64_t most = 0, most_edge = 0;
	for (uint64_t i = 0; i < edges->count; i++) {
		uint64_t edge = edges->start + edges->positions[i];
		far[i] = (int64_t)edges->neighbours[i];
		most = edges->neighbours[i] > most ? edges->neighbours[i] : most;
		most_edge = edge > most_edge ? edge : most_edge;
		ids[i] = (int64_t)edge;
	}
	if (edges->count && most >= count)
		return gw_fail(GW_PROTOCOL, "a list has node id %llu, but the type has only %llu nodes",
			       (unsigned long long)most, (unsigned long long)count);
	if (edges->count && most_edge >= type->count)
		return gw_fail(GW_PROTOCOL, "a list has edge %llu, but the type has only %llu edges",
			       (unsigned long long)most_edge, (unsigned long long)type->count);
	for (uint64_t i = 0, filled = 0; i < n; i++) {
		for (uint32_t j = 0; j < edges->counts[i]; j++)
			near[filled++] = call->ids[first + i];
		offsets[first + i + 1] = at + filled;
	}
	call->list->edge_count = at + edges->count;
	return GW_OK;
}

/* --- Piece after piece. --- */

static void list_call_step(struct list_call *call);

static void list_call_end(struct list_call *call, gw_status status)
{
	gw_seed_groups_free(&call->groups);
	list_hop_return(call->ticket.job.engine, call->hop, call->most <= EDGES_KEPT);
	if (status == GW_OK && call->list->edge_count < call->room - call->room / 4)
		/* if this fails, the list keeps more room than it needs */
		(void)gw_edge_list_resize(call->list, call->list->edge_count);
	gw_job_end(&call->ticket.job, status);
}

/* Ids [first, first + n) of the piece. */
static struct gw_frontier piece_frontier(const struct list_call *call, uint64_t first, uint64_t n)
{
	return (struct gw_frontier){
		.nodes = (const uint64_t *)call->ids + call->at + first,
		.groups = call->time_form.uses ? (const uint32_t *)call->groups.numbers.data + first : NULL,
		.n = n,
		.first = first,
	};
}

static gw_status piece_append(struct list_call *call)
{
	uint64_t before = call->list->edge_count;
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < call->piece && status == GW_OK; i += GW_HOP_RUN) {
		uint64_t n = call->piece - i < GW_HOP_RUN ? call->piece - i : GW_HOP_RUN;
		const struct gw_frontier next = piece_frontier(call, i, n);
		struct gw_hop_edges edges;
		status = gw_hop_take(call->hop, call->etype, &next, &edges);
		if (status == GW_OK)
			status = list_add(call, call->at + i, n, &edges);
	}
	uint64_t edges = call->list->edge_count - before;
	call->most = edges > call->most ? edges : call->most;
	call->at += call->piece;
	return status;
}

static void piece_done(struct gw_hop *hop, gw_status status)
{
	struct list_call *call = hop->owner;
	call->asking = false;
	if (status == GW_OK)
		status = piece_append(call);
	call->failed = status;
	if (!call->stepping)
		list_call_step(call);
}

static gw_status piece_check(const struct list_call *call)
{
	const struct gw_edge_type *type = &list_call_meta(call)->etypes[call->etype];
	uint64_t count = list_call_meta(call)->ntypes[call->direction == GW_IN ? type->dst : type->src].count;
	for (uint64_t i = call->at; i < call->at + call->piece; i++) {
		if ((uint64_t)call->ids[i] >= count)
			return gw_fail_id("id", call->ids[i], i, count);
	}
	return GW_OK;
}

/* With times, every id of the piece is a group. Groups begin at 0 in each piece, so the pieces have keys of their own;
 * that of the first one is the key of a mini-batch. */
static gw_status piece_groups(struct list_call *call, struct gw_draw *draw)
{
	struct gw_seeds list = {.count = call->piece};
	*draw = call->draw;
	if (!call->time_form.uses)
		return GW_OK;
	if (call->at)
		draw->rule.key = gw_mix64(draw->rule.key + call->at);
	list.times = call->times[0] + call->at * sizeof(int64_t);
	if (call->times[1])
		list.times_from = call->times[1] + call->at * sizeof(int64_t);
	gw_status status = gw_seed_groups_set(&call->groups, &call->time_form, &list, 1);
	draw->groups = call->groups.tables[call->time_form.uses >> 1];
	return status;
}

static gw_status piece_start(struct list_call *call)
{
	struct gw_draw draw;
	uint64_t left = call->n - call->at;
	call->piece = left < PIECE ? left : PIECE;
	gw_hop_begin(call->hop, call->direction);
	gw_status status = piece_check(call);
	if (status == GW_OK)
		status = piece_groups(call, &draw);
	if (status != GW_OK)
		return status;
	const struct gw_frontier frontier = piece_frontier(call, 0, call->piece);
	status = gw_hop_want(call->hop, call->etype, &draw, call->columns, &frontier);
	if (status != GW_OK)
		return status;
	call->asking = true;
	gw_hop_start(call->hop, &call->ticket.job);
	return GW_OK;
}

static void list_call_step(struct list_call *call)
{
	call->stepping = true;
	while (call->failed == GW_OK && !call->asking && call->at < call->n) {
		gw_status status = piece_start(call);
		if (status != GW_OK)
			call->failed = status;
	}
	call->stepping = false;
	if (!call->asking)
		list_call_end(call, call->failed);
}

static void list_call_start(struct gw_job *job)
{
	struct list_call *call = (struct list_call *)job;
	call->failed = list_hop_borrow(job->engine, &call->hop);
	if (call->failed == GW_OK)
		call->failed = list_call_begin(call);
	if (call->failed == GW_OK) {
		call->hop->done = piece_done;
		call->hop->owner = call;
	}
	list_call_step(call);
}

static void list_call_cancel(struct gw_job *job)
{
	gw_hop_cancel(((struct list_call *)job)->hop);
}

static void list_call_finish(struct gw_ticket *ticket, gw_status status)
{
	struct list_call *call = (struct list_call *)ticket;
	if (status == GW_OK)
		*call->out = call->list;
	else
		gw_edge_list_free(call->list);
	gw_free(call);
}

static gw_status list_call_take_times(struct list_call *call, const struct gw_neighbours_spec *spec)
{
	const struct gw_seeds list = {.count = call->n, .times = spec->times, .times_from = spec->times_from};
	call->time_form = (struct gw_seed_times){.real = spec->real_times, .strict = spec->strict_times};
	call->times[0] = spec->times;
	call->times[1] = spec->times_from;
	gw_status status = gw_seed_times_of(call->ticket.client, &spec->rule, spec->etype, 1, &call->time_form);
	return status == GW_OK ? gw_seed_times_check(&call->time_form, &list, 1, 0) : status;
}

static gw_status list_call_set(struct gw_client *client, struct list_call *call, const struct gw_neighbours_spec *spec,
			       uint64_t seed, uint64_t stream)
{
	if (spec->etype >= client->meta->num_etypes)
		return gw_fail(GW_RANGE, "edge type %u of %u", spec->etype, client->meta->num_etypes);
	if ((unsigned)spec->direction > GW_OUT)
		return gw_fail(GW_INVALID, "direction %u: it is in or out", (unsigned)spec->direction);
	if (spec->fanout < GW_FANOUT_ALL || spec->fanout > GW_FANOUT_MAX)
		return gw_fail(GW_INVALID, "fanout %d: give -1 for all, or 0 to %d", spec->fanout, GW_FANOUT_MAX);
	if (call->n > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%llu ids in one call: at most 2^32 - 1", (unsigned long long)call->n);
	if (!client->list_places[spec->direction][spec->etype].indices)
		return gw_fail_not_by_source(client, spec->etype);
	gw_status status = gw_edge_columns_find(client, spec->etype, &spec->rule, &call->columns);
	char text[GW_COLUMN_NAMES_TEXT];
	if (status == GW_OK && call->columns && spec->direction == GW_OUT)
		return gw_fail(GW_UNSUPPORTED,
			       "edge type %s: out-edges are drawn uniformly; the rule (%s) draws from in-edges",
			       client->etypes[spec->etype].name,
			       gw_column_names_text(&call->columns->names, NULL, text));
	uint32_t hop = spec->direction == GW_OUT ? GW_DRAW_OUT_HOP : 0;
	call->etype = spec->etype;
	call->direction = spec->direction;
	call->draw = (struct gw_draw){
		.rule = {.key = gw_draw_key(seed, stream, GW_DRAW_NEIGHBOURS, hop, spec->etype),
			 .fanout = spec->fanout,
			 .replace = spec->replace},
		.kind = &gw_sample_uniform,
	};
	if (call->columns)
		gw_draw_set(&call->draw, &call->columns->sampling);
	return status == GW_OK ? list_call_take_times(call, spec) : status;
}

/* soon: the caller waits for it at once. */
static gw_status list_call_submit(struct gw_client *client, const struct gw_neighbours_spec *spec, uint64_t seed,
				  uint64_t stream, const int64_t *ids, uint64_t n, bool soon, struct gw_edge_list **out,
				  struct gw_ticket **ticket)
{
	*out = NULL;
	*ticket = NULL;
	gw_status status = gw_client_check(client);
	if (status != GW_OK)
		return status;
	struct list_call *call = gw_malloc(sizeof(*call));
	if (!call)
		return GW_NO_MEMORY;
	*call = (struct list_call){.ticket = {.client = client,
					      .finish = list_call_finish,
					      .job = {.start = list_call_start, .cancel = list_call_cancel}},
				   .ids = ids,
				   .n = n,
				   .out = out};
	status = list_call_set(client, call, spec, seed, stream);
	if (status != GW_OK) {
		gw_free(call);
		return status;
	}
	gw_engine_submit(gw_client_engine(client), &call->ticket.job, soon);
	*ticket = &call->ticket;
	return GW_OK;
}

gw_status gw_neighbours(struct gw_client *client, const struct gw_neighbours_spec *spec, uint64_t seed, uint64_t stream,
			const int64_t *ids, uint64_t n, struct gw_edge_list **out)
{
	struct gw_ticket *ticket;
	gw_status status = list_call_submit(client, spec, seed, stream, ids, n, true, out, &ticket);
	return status == GW_OK ? gw_ticket_finish(ticket) : status;
}

gw_status gw_neighbours_start(struct gw_client *client, const struct gw_neighbours_spec *spec, uint64_t seed,
			      uint64_t stream, const int64_t *ids, uint64_t n, struct gw_edge_list **out,
			      struct gw_ticket **ticket)
{
	return list_call_submit(client, spec, seed, stream, ids, n, false, out, ticket);
}
