/* Degrees of nodes, by reads alone: no handler of a server runs, except that offsets on disk are requested.
 *
 *   ids -> records (two neighbouring offsets) from their owners -> degrees
 *   ids -> lists of all parts in memory of this host -> degrees
 *
 * A call is one operation with one deadline. Offsets come from a peer and are checked: they must ascend and fit their
 * part. Fails as a gather does; also if parts store offsets in different widths, or if the lists are not stored.
 */
#include <graphwire/edges.h>

#include "client/batch/local_lists.h"
#include "client/engine/engine.h"
#include "client/engine/ticket.h"
#include "client/rows/gather.h"
#include "client/rows/tensors.h"
#include "client/state/recv_buffer.h"
#include "core/graph/book.h"
#include "core/memory/alloc.h"

struct degrees_call {
	struct gw_ticket ticket; /* first: the job */
	uint32_t etype;
	enum gw_direction direction;
	const int64_t *ids;
	uint64_t n;
	int64_t *out;
	/* Where the offsets are stored. */
	const struct gw_node_places *offsets;
	const uint64_t *node_starts, *edges;
	uint32_t column;
	/* State of the call. */
	struct gw_gather_op op;
	struct gw_recv_buffer received;
};

/* Runs in the engine, which owns the receive buffers. */
static void degrees_end(struct degrees_call *call, gw_status status)
{
	gw_recv_buffer_free(&call->received);
	gw_job_end(&call->ticket.job, status);
}

static gw_status fail_offsets(const struct degrees_call *call, uint64_t i, uint32_t part, uint64_t begin, uint64_t end)
{
	return gw_fail(GW_PROTOCOL, "part %u: offsets %llu and %llu of node %lld in lists of %llu edges", part,
		       (unsigned long long)begin, (unsigned long long)end, (long long)call->ids[i],
		       (unsigned long long)call->edges[part]);
}

static gw_status report_degrees(struct degrees_call *call)
{
	uint32_t parts = call->ticket.client->meta->num_parts, columns = call->offsets->columns;
	uint8_t width = (uint8_t)call->offsets->indptr[0].element_bytes;
	for (uint64_t i = 0; i < call->n; i++) {
		const uint8_t *record = call->received.data + i * 2 * columns * width;
		uint32_t part = gw_book_owner(call->node_starts, parts, (uint64_t)call->ids[i]);
		uint64_t begin = gw_load_id(record, width, call->column);
		uint64_t end = gw_load_id(record, width, columns + call->column);
		if (begin > end || end > call->edges[part])
			return fail_offsets(call, i, part, begin, end);
		call->out[i] = (int64_t)(end - begin);
	}
	return GW_OK;
}

static void records_fetched(struct gw_gather_op *op, gw_status status)
{
	struct degrees_call *call = op->owner;
	degrees_end(call, status == GW_OK ? report_degrees(call) : status);
}

/* GW_NOT_FOUND: the gather shall find them, because a part's lists are elsewhere, or report an id that does not exist;
 * `out` is then undefined. Only where a server holds lists of other parts: a gather reads mapped records as fast. */
static gw_status degrees_here(const struct degrees_call *call)
{
	struct gw_engine *engine = call->ticket.job.engine;
	uint32_t parts = call->ticket.client->meta->num_parts;
	if (!engine->lists_link)
		return GW_NOT_FOUND;
	for (uint64_t i = 0; i < call->n; i++) {
		if ((uint64_t)call->ids[i] >= call->node_starts[parts])
			return GW_NOT_FOUND;
		uint32_t part = gw_book_owner(call->node_starts, parts, (uint64_t)call->ids[i]);
		const struct gw_adjacency *lists = gw_local_lists(engine, part, call->direction, call->etype);
		uint64_t begin, end;
		if (!lists)
			return GW_NOT_FOUND;
		gw_adjacency_list(lists, (uint64_t)call->ids[i] - call->node_starts[part], &begin, &end);
		if (begin > end || end > lists->edges)
			return fail_offsets(call, i, part, begin, end);
		call->out[i] = (int64_t)(end - begin);
	}
	return GW_OK;
}

static void degrees_start(struct gw_job *job)
{
	struct degrees_call *call = (struct degrees_call *)job;
	gw_status status = degrees_here(call);
	if (status != GW_NOT_FOUND) {
		degrees_end(call, status);
		return;
	}
	uint64_t step = (uint64_t)call->offsets->columns * call->offsets->indptr[0].element_bytes;
	const struct gw_rows rows = {
		.starts = call->node_starts,
		.places = call->offsets->indptr,
		.step = step,
		.row_bytes = 2 * step,
		.on_disk = gw_places_are_on_disk(call->ticket.client, call->offsets->indptr),
	};
	status = gw_recv_buffer_reserve(&call->received, &job->engine->slab, call->n * 2 * step);
	if (status != GW_OK) {
		degrees_end(call, status);
		return;
	}
	call->op.done = records_fetched;
	call->op.owner = call;
	const struct gw_landing to = gw_landing_in(&call->received);
	gw_gather_op_start(&call->op, job, &rows, call->ids, call->n, &to, false);
}

static void degrees_cancel(struct gw_job *job)
{
	gw_gather_op_cancel(&((struct degrees_call *)job)->op);
}

static void degrees_finish(struct gw_ticket *ticket, gw_status status)
{
	struct degrees_call *call = (struct degrees_call *)ticket;
	(void)status;
	gw_gather_op_free(&call->op);
	gw_free(call);
}

static gw_status find_offsets(struct gw_client *client, struct degrees_call *call)
{
	const struct gw_graph_meta *meta = client->meta;
	if (call->etype >= meta->num_etypes)
		return gw_fail(GW_RANGE, "edge type %u of %u", call->etype, meta->num_etypes);
	if (call->n > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%llu ids in one call: at most 2^32 - 1", (unsigned long long)call->n);
	const struct gw_edge_type *type = &meta->etypes[call->etype];
	bool in = call->direction == GW_IN;
	uint32_t ntype = in ? type->dst : type->src;
	call->edges = client->list_places[call->direction][call->etype].edges;
	if (!call->edges)
		return gw_fail_not_by_source(client, call->etype);
	call->offsets = &client->node_places[call->direction][ntype];
	call->node_starts = meta->ntypes[ntype].starts;
	call->column = in ? type->column : type->out_column;
	for (uint32_t p = 1; p < meta->num_parts; p++) {
		if (call->offsets->indptr[p].element_bytes != call->offsets->indptr[0].element_bytes)
			return gw_fail(GW_UNSUPPORTED, "the parts store offsets of %s in different widths",
				       meta->ntypes[ntype].name);
	}
	return GW_OK;
}

/* soon: the caller waits for it at once. */
static gw_status degrees_submit(struct gw_client *client, struct degrees_call wanted, bool soon,
				struct gw_ticket **ticket)
{
	*ticket = NULL;
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = find_offsets(client, &wanted);
	if (status != GW_OK)
		return status;
	struct degrees_call *call = gw_malloc(sizeof(*call));
	if (!call)
		return GW_NO_MEMORY;
	*call = wanted;
	call->ticket.client = client;
	call->ticket.finish = degrees_finish;
	call->ticket.job.start = degrees_start;
	call->ticket.job.cancel = degrees_cancel;
	struct gw_engine *engine = gw_client_engine(client);
	status = gw_gather_op_init(&call->op, engine);
	if (status != GW_OK) {
		gw_gather_op_free(&call->op);
		gw_free(call);
		return status;
	}
	gw_engine_submit(engine, &call->ticket.job, soon);
	*ticket = &call->ticket;
	return GW_OK;
}

static gw_status degrees_run(struct gw_client *client, struct degrees_call wanted)
{
	struct gw_ticket *ticket;
	gw_status status = degrees_submit(client, wanted, true, &ticket);
	return status == GW_OK ? gw_ticket_finish(ticket) : status;
}

static struct degrees_call degrees_call(uint32_t etype, enum gw_direction direction, const int64_t *ids, uint64_t n,
					int64_t *out)
{
	return (struct degrees_call){.etype = etype, .direction = direction, .ids = ids, .n = n, .out = out};
}

gw_status gw_degrees(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n, int64_t *out)
{
	return degrees_run(client, degrees_call(etype, GW_IN, ids, n, out));
}

gw_status gw_degrees_start(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n, int64_t *out,
			   struct gw_ticket **ticket)
{
	return degrees_submit(client, degrees_call(etype, GW_IN, ids, n, out), false, ticket);
}

gw_status gw_out_degrees(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n, int64_t *out)
{
	return degrees_run(client, degrees_call(etype, GW_OUT, ids, n, out));
}

gw_status gw_out_degrees_start(struct gw_client *client, uint32_t etype, const int64_t *ids, uint64_t n, int64_t *out,
			       struct gw_ticket **ticket)
{
	return degrees_submit(client, degrees_call(etype, GW_OUT, ids, n, out), false, ticket);
}
