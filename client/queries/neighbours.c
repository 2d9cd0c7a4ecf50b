/* Degrees of nodes and their out-edges, by reads alone: no handler of a server runs. In-edges: neighbours_in.c.
 *
 *   ids -> records (two neighbouring offsets) from their owners -> degrees: done
 *                                                               -> positions: a pure function of (key, node)
 *   positions, PIECE at a time -> destinations, and the edges' ids, from their owners -> a list of edges
 *
 * A call is one operation with one deadline. Offsets and ids come from a peer and are checked: offsets must ascend and
 * fit their part; a destination must be a node. Fails as a gather does; also if parts store offsets in different
 * widths, or if the lists are not stored.
 */
#include "client/queries/neighbours.h"

#include <stdio.h>

#include "client/engine/engine.h"
#include "client/engine/ticket.h"
#include "client/queries/edge_list.h"
#include "client/rows/gather.h"
#include "client/rows/tensors.h"
#include "client/state/recv_buffer.h"
#include "core/graph/book.h"
#include "core/memory/alloc.h"
#include "sampler/pick.h"
#include "sampler/picks.h"

#define PIECE (1u << 20) /* edges fetched at once */

struct neighbours_call {
	struct gw_ticket ticket; /* first: the job */
	struct gw_neighbours_spec spec;
	struct gw_pick_rule rule;
	const int64_t *ids;
	uint64_t n;
	int64_t *degrees; /* the results; NULL: the caller wants out-edges */
	struct gw_edge_list **out, *list;
	/* Where the lists are stored. */
	uint32_t columns, column;
	const uint64_t *node_starts; /* of the nodes in `ids` */
	uint64_t *edge_starts;       /* [num_parts + 1]: first position of each part, numbered over all parts */
	struct gw_place *offsets, *ends, *eids;
	/* State of the call. */
	struct gw_gather_op op;
	struct gw_recv_buffer received;
	struct gw_vec positions; /* int64_t [edge_count]: positions, numbered over all parts */
	uint64_t done, piece;    /* number of edges fetched, and of edges in the current piece */
};

static void fetch_piece(struct neighbours_call *call);

static const struct gw_edge_type *type_of(const struct neighbours_call *call)
{
	return &call->ticket.client->meta->etypes[call->spec.etype];
}

/* Runs in the engine, which owns the receive buffers. */
static void neighbours_end(struct neighbours_call *call, gw_status status)
{
	gw_recv_buffer_free(&call->received);
	gw_job_end(&call->ticket.job, status);
}

/* --- The second step: destinations, and ids of out-edges. --- */

static gw_status fetch_start(struct neighbours_call *call, const struct gw_place *places, uint32_t width,
			     void (*done)(struct gw_gather_op *op, gw_status status))
{
	struct gw_engine *engine = call->ticket.job.engine;
	const struct gw_rows rows = {.starts = call->edge_starts,
				     .places = (struct gw_place *)(uintptr_t)places,
				     .step = width,
				     .row_bytes = width};
	gw_status status = gw_recv_buffer_reserve(&call->received, &engine->slab, call->piece * width);
	if (status != GW_OK)
		return status;
	call->op.done = done;
	gw_gather_op_start(&call->op, &call->ticket.job, &rows, (const int64_t *)call->positions.data + call->done,
			   call->piece, call->received.buffer, call->received.data, true);
	return GW_OK;
}

static void piece_done(struct neighbours_call *call)
{
	call->done += call->piece;
	if (call->done < call->list->edge_count)
		fetch_piece(call);
	else
		neighbours_end(call, GW_OK);
}

static void eids_fetched(struct gw_gather_op *op, gw_status status)
{
	struct neighbours_call *call = op->owner;
	const uint64_t *eids = (const void *)call->received.data;
	int64_t *out = gw_edge_list_fill(call->list->edge_ids) + call->done;
	for (uint64_t i = 0; i < call->piece && status == GW_OK; i++) {
		if (eids[i] >= type_of(call)->count)
			status = gw_fail(GW_PROTOCOL, "a list of out-edges has edge %llu of %llu",
					 (unsigned long long)eids[i], (unsigned long long)type_of(call)->count);
		out[i] = (int64_t)eids[i];
	}
	if (status != GW_OK)
		neighbours_end(call, status);
	else
		piece_done(call);
}

static gw_status take_ends(struct neighbours_call *call)
{
	uint64_t count = call->ticket.client->meta->ntypes[type_of(call)->dst].count;
	uint8_t width = (uint8_t)call->ends[0].element_bytes;
	int64_t *out = gw_edge_list_fill(call->list->dst) + call->done;
	for (uint64_t i = 0; i < call->piece; i++) {
		uint64_t id = gw_load_id(call->received.data, width, i);
		if (id >= count)
			return gw_fail(GW_PROTOCOL, "a list has node %llu of %llu", (unsigned long long)id,
				       (unsigned long long)count);
		out[i] = (int64_t)id;
	}
	return GW_OK;
}

static void ends_fetched(struct gw_gather_op *op, gw_status status)
{
	struct neighbours_call *call = op->owner;
	if (status == GW_OK)
		status = take_ends(call);
	if (status == GW_OK)
		status = fetch_start(call, call->eids, 8, eids_fetched);
	if (status != GW_OK)
		neighbours_end(call, status);
}

static void fetch_piece(struct neighbours_call *call)
{
	uint64_t left = call->list->edge_count - call->done;
	call->piece = left < PIECE ? left : PIECE;
	gw_status status = fetch_start(call, call->ends, call->ends[0].element_bytes, ends_fetched);
	if (status != GW_OK)
		neighbours_end(call, status);
}

/* --- The first step: records. --- */

/* Finds [begin, end) of the list of question i, as positions in its part. */
static gw_status read_list(const struct neighbours_call *call, uint64_t i, uint32_t *part, uint64_t *begin,
			   uint64_t *end)
{
	uint8_t width = (uint8_t)call->offsets[0].element_bytes;
	const uint8_t *record = call->received.data + i * 2 * call->columns * width;
	*part = gw_book_owner(call->node_starts, call->ticket.client->meta->num_parts, (uint64_t)call->ids[i]);
	*begin = gw_load_id(record, width, call->column);
	*end = gw_load_id(record, width, call->columns + call->column);
	uint64_t edges = call->edge_starts[*part + 1] - call->edge_starts[*part];
	if (*begin > *end || *end > edges)
		return gw_fail(GW_PROTOCOL, "part %u: offsets %llu and %llu of node %lld in lists of %llu edges", *part,
			       (unsigned long long)*begin, (unsigned long long)*end, (long long)call->ids[i],
			       (unsigned long long)edges);
	return GW_OK;
}

static gw_status report_degrees(struct neighbours_call *call)
{
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < call->n && status == GW_OK; i++) {
		uint32_t part;
		uint64_t begin, end;
		status = read_list(call, i, &part, &begin, &end);
		call->degrees[i] = (int64_t)(end - begin);
	}
	return status;
}

/* Counts the edges, and creates the list with room for them. pick_positions fills in offsets and the requested ids. */
static gw_status begin_list(struct neighbours_call *call)
{
	uint64_t total = 0;
	uint32_t part;
	uint64_t begin, end;
	for (uint64_t i = 0; i < call->n; i++) {
		gw_status status = read_list(call, i, &part, &begin, &end);
		if (status != GW_OK)
			return status;
		total += gw_pick_count(&call->rule, end - begin);
		if (total > UINT32_MAX)
			return gw_fail(GW_LIMIT, "%llu nodes have more than 2^32 - 1 edges: ask for fewer in one call",
				       (unsigned long long)i + 1);
	}
	gw_status status = gw_edge_list_create(call->n, total, &call->list);
	return status == GW_OK ? gw_vec_reserve(&call->positions, total * 8) : status;
}

static gw_status pick_positions(struct neighbours_call *call)
{
	struct gw_pick_scratch scratch = {0};
	uint64_t *offsets = gw_edge_list_offsets(call->list), at = 0;
	int64_t *asked = gw_edge_list_fill(call->list->src);
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < call->n && status == GW_OK; i++) {
		uint32_t part;
		uint64_t begin, end, *positions = (uint64_t *)call->positions.data + at;
		status = read_list(call, i, &part, &begin, &end);
		uint64_t picks = gw_pick_count(&call->rule, end - begin);
		if (status == GW_OK && picks)
			status = gw_pick(&call->rule, (uint64_t)call->ids[i], end - begin, &scratch, positions);
		for (uint64_t j = 0; j < picks && status == GW_OK; j++) {
			positions[j] += call->edge_starts[part] + begin;
			asked[at + j] = call->ids[i];
		}
		offsets[i] = at;
		at += picks;
	}
	offsets[call->n] = at;
	gw_pick_scratch_free(&scratch);
	return status;
}

static void records_fetched(struct gw_gather_op *op, gw_status status)
{
	struct neighbours_call *call = op->owner;
	if (status == GW_OK && call->degrees) {
		neighbours_end(call, report_degrees(call));
		return;
	}
	if (status == GW_OK)
		status = begin_list(call);
	if (status == GW_OK)
		status = pick_positions(call);
	if (status != GW_OK || call->list->edge_count == 0)
		neighbours_end(call, status);
	else
		fetch_piece(call);
}

static void neighbours_start(struct gw_job *job)
{
	struct neighbours_call *call = (struct neighbours_call *)job;
	uint64_t step = (uint64_t)call->columns * call->offsets[0].element_bytes;
	const struct gw_rows rows = {
		.starts = call->node_starts, .places = call->offsets, .step = step, .row_bytes = 2 * step};
	gw_status status = gw_recv_buffer_reserve(&call->received, &job->engine->slab, call->n * 2 * step);
	if (status != GW_OK) {
		neighbours_end(call, status);
		return;
	}
	call->op.done = records_fetched;
	call->op.owner = call;
	gw_gather_op_start(&call->op, job, &rows, call->ids, call->n, call->received.buffer, call->received.data,
			   false);
}

static void neighbours_cancel(struct gw_job *job)
{
	gw_gather_op_cancel(&((struct neighbours_call *)job)->op);
}

/* --- The call. --- */

static void neighbours_free(struct neighbours_call *call)
{
	gw_edge_list_free(call->list);
	gw_gather_op_free(&call->op);
	gw_vec_free(&call->positions);
	gw_free(call->edge_starts);
	gw_free(call->offsets);
	gw_free(call->ends);
	gw_free(call->eids);
	gw_free(call);
}

static void neighbours_finish(struct gw_ticket *ticket, gw_status status)
{
	struct neighbours_call *call = (struct neighbours_call *)ticket;
	if (status == GW_OK && call->out) {
		*call->out = call->list;
		call->list = NULL;
	}
	neighbours_free(call);
}

/* Finds where offsets, ends and edge ids are stored. Takes the number of edges from the arrays of the ends. */
static gw_status find_lists(struct neighbours_call *call)
{
	const struct gw_client *client = call->ticket.client;
	const struct gw_graph_meta *meta = client->meta;
	const struct gw_edge_type *type = type_of(call);
	bool in = call->spec.direction == GW_IN;
	const struct gw_node_type *rows_of = &meta->ntypes[in ? type->dst : type->src];
	char key[2 * GW_EDGE_FOLDER_MAX];
	if (!in && type->out_column == GW_TYPE_NONE)
		return gw_fail(GW_UNSUPPORTED,
			       "%s is not stored by source: import it with --transpose to ask for out-edges",
			       client->etypes[call->spec.etype].name);
	call->columns = in ? rows_of->columns : rows_of->out_columns;
	call->column = in ? type->column : type->out_column;
	call->node_starts = rows_of->starts;
	snprintf(key, sizeof(key), "node/%s/%s", rows_of->name, in ? "indptr" : "out_indptr");
	gw_status status = gw_places_find(client, key, &call->offsets);
	if (status == GW_OK && call->out) {
		snprintf(key, sizeof(key), "edge/%s/out/eid", type->folder);
		status = gw_places_find(client, key, &call->eids);
	}
	snprintf(key, sizeof(key), "edge/%s/%s", type->folder, in ? "indices" : "out/indices");
	if (status == GW_OK && call->out)
		status = gw_places_find(client, key, &call->ends);
	call->edge_starts = gw_calloc(meta->num_parts + 1, sizeof(*call->edge_starts));
	if (status != GW_OK || !call->edge_starts)
		return status == GW_OK ? GW_NO_MEMORY : status;
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		call->edge_starts[p + 1] = call->edge_starts[p] + gw_meta_array(meta, p, key)->shape[0];
		if (call->offsets[p].element_bytes != call->offsets[0].element_bytes)
			return gw_fail(GW_UNSUPPORTED, "the parts store offsets of %s in different widths",
				       rows_of->name);
	}
	return GW_OK;
}

static gw_status neighbours_check(const struct gw_client *client, const struct neighbours_call *wanted)
{
	const struct gw_neighbours_spec *spec = &wanted->spec;
	if (spec->etype >= client->meta->num_etypes)
		return gw_fail(GW_RANGE, "edge type %u of %u", spec->etype, client->meta->num_etypes);
	if ((unsigned)spec->direction > GW_OUT)
		return gw_fail(GW_INVALID, "direction %u: it is in or out", (unsigned)spec->direction);
	if (spec->fanout < GW_FANOUT_ALL || spec->fanout > GW_FANOUT_MAX)
		return gw_fail(GW_INVALID, "fanout %d: give -1 for all, or 0 to %d", spec->fanout, GW_FANOUT_MAX);
	if (wanted->n > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%llu ids in one call: at most 2^32 - 1", (unsigned long long)wanted->n);
	return GW_OK;
}

/* Checks the call, copies it and submits it. soon: the caller waits for it at once. */
static gw_status neighbours_submit(struct gw_client *client, const struct neighbours_call *wanted, bool soon,
				   struct gw_ticket **ticket)
{
	*ticket = NULL;
	if (wanted->out)
		*wanted->out = NULL;
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = neighbours_check(client, wanted);
	if (status != GW_OK)
		return status;
	if (wanted->out && wanted->spec.direction == GW_IN) {
		const struct gw_list_call list = {.etype = wanted->spec.etype,
						  .rule = wanted->rule,
						  .ids = wanted->ids,
						  .n = wanted->n,
						  .out = wanted->out};
		return gw_neighbours_in(client, &list, soon, ticket);
	}
	struct neighbours_call *call = gw_malloc(sizeof(*call));
	if (!call)
		return GW_NO_MEMORY;
	*call = *wanted;
	call->ticket.client = client;
	call->ticket.finish = neighbours_finish;
	call->ticket.job.start = neighbours_start;
	call->ticket.job.cancel = neighbours_cancel;
	struct gw_engine *engine = gw_client_engine(client);
	status = gw_gather_op_init(&call->op, engine);
	if (status == GW_OK)
		status = find_lists(call);
	if (status != GW_OK) {
		neighbours_free(call);
		return status;
	}
	gw_engine_submit(engine, &call->ticket.job, soon);
	*ticket = &call->ticket;
	return GW_OK;
}

static gw_status neighbours_run(struct gw_client *client, const struct neighbours_call *wanted)
{
	struct gw_ticket *ticket;
	gw_status status = neighbours_submit(client, wanted, true, &ticket);
	return status == GW_OK ? gw_ticket_finish(ticket) : status;
}

static struct neighbours_call degrees_call(uint32_t etype, enum gw_direction direction, const int64_t *ids, uint64_t n,
					   int64_t *out)
{
	return (struct neighbours_call){
		.spec = {.etype = etype, .direction = direction}, .ids = ids, .n = n, .degrees = out};
}

static struct neighbours_call list_call(const struct gw_neighbours_spec *spec, uint64_t seed, uint64_t stream,
					const int64_t *ids, uint64_t n, struct gw_edge_list **out)
{
	uint32_t hop = spec->direction == GW_OUT ? GW_DRAW_OUT_HOP : 0;
	return (struct neighbours_call){.spec = *spec,
					.rule = {.key = gw_draw_key(seed, stream, GW_DRAW_NEIGHBOURS, hop, spec->etype),
						 .fanout = spec->fanout,
						 .replace = spec->replace},
					.ids = ids,
					.n = n,
					.out = out};
}

gw_status gw_degrees(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n, int64_t *out)
{
	const struct neighbours_call call = degrees_call(etype, GW_IN, ids, n, out);
	return neighbours_run(client, &call);
}

gw_status gw_degrees_start(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n, int64_t *out,
			   struct gw_ticket **ticket)
{
	const struct neighbours_call call = degrees_call(etype, GW_IN, ids, n, out);
	return neighbours_submit(client, &call, false, ticket);
}

gw_status gw_out_degrees(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n, int64_t *out)
{
	const struct neighbours_call call = degrees_call(etype, GW_OUT, ids, n, out);
	return neighbours_run(client, &call);
}

gw_status gw_out_degrees_start(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n, int64_t *out,
			       struct gw_ticket **ticket)
{
	const struct neighbours_call call = degrees_call(etype, GW_OUT, ids, n, out);
	return neighbours_submit(client, &call, false, ticket);
}

gw_status gw_neighbours(struct gw_client *client, const struct gw_neighbours_spec *spec, uint64_t seed, uint64_t stream,
			const int64_t *ids, uint64_t n, struct gw_edge_list **out)
{
	const struct neighbours_call call = list_call(spec, seed, stream, ids, n, out);
	return neighbours_run(client, &call);
}

gw_status gw_neighbours_start(struct gw_client *client, const struct gw_neighbours_spec *spec, uint64_t seed,
			      uint64_t stream, const int64_t *ids, uint64_t n, struct gw_edge_list **out,
			      struct gw_ticket **ticket)
{
	const struct neighbours_call call = list_call(spec, seed, stream, ids, n, out);
	return neighbours_submit(client, &call, false, ticket);
}
