/* Single calls about edges: their ends, the ids of pairs, and whether pairs have edges.
 *
 *   caller -> ticket -> gw_edges_op in an engine -> results written, still in the engine -> gw_wait
 *
 * Fails as edges_op.h does, or if memory for the result runs out.
 */
#include <string.h>

#include "client/batch/edges_op.h"
#include "client/engine/engine.h"
#include "client/engine/ticket.h"
#include "client/queries/edge_list.h"
#include "core/memory/alloc.h"

struct edges_call {
	struct gw_ticket ticket; /* first: the job */
	struct gw_edges_op op;
	enum gw_edge_ask ask;
	uint32_t etype;
	const int64_t *first, *second;
	uint64_t n;
	/* Where the results are written. */
	int64_t *src, *dst;
	bool *has;
	struct gw_edge_list **out, *list;
};

static gw_status list_edges(struct edges_call *call)
{
	const struct gw_edges_op *op = &call->op;
	gw_status status = gw_edge_list_create(call->n, op->id_count, &call->list);
	if (status != GW_OK)
		return status;
	uint64_t *offsets = gw_edge_list_offsets(call->list);
	int64_t *src = gw_edge_list_fill(call->list->src), *dst = gw_edge_list_fill(call->list->dst);
	const uint64_t *counts = op->counts.data;
	uint64_t at = 0;
	for (uint64_t i = 0; i < call->n; i++) {
		offsets[i] = at;
		for (uint64_t j = 0; j < counts[i]; j++, at++) {
			src[at] = call->first[i];
			dst[at] = call->second[i];
		}
	}
	offsets[call->n] = at;
	if (at)
		memcpy(gw_edge_list_fill(call->list->edge_ids), op->ids.data, at * 8);
	return GW_OK;
}

static void edges_done(struct gw_edges_op *op, gw_status status)
{
	struct edges_call *call = op->owner;
	if (status == GW_OK && call->ask == GW_EDGE_IDS)
		status = list_edges(call);
	if (status == GW_OK && call->ask == GW_EDGE_ENDS && call->n) {
		memcpy(call->src, op->src.data, call->n * 8);
		memcpy(call->dst, op->dst.data, call->n * 8);
	}
	for (uint64_t i = 0; status == GW_OK && call->ask == GW_EDGE_COUNTS && i < call->n; i++)
		call->has[i] = ((const uint64_t *)op->counts.data)[i] > 0;
	gw_job_end(&call->ticket.job, status);
}

static void edges_start(struct gw_job *job)
{
	struct edges_call *call = (struct edges_call *)job;
	call->op.done = edges_done;
	call->op.owner = call;
	gw_edges_op_start(&call->op, job, call->ask, call->etype, call->first, call->second, call->n);
}

static void edges_cancel(struct gw_job *job)
{
	gw_edges_op_cancel(&((struct edges_call *)job)->op);
}

static void edges_finish(struct gw_ticket *ticket, gw_status status)
{
	struct edges_call *call = (struct edges_call *)ticket;
	if (status == GW_OK && call->out)
		*call->out = call->list;
	else
		gw_edge_list_free(call->list);
	gw_edges_op_free(&call->op);
	gw_free(call);
}

/* soon: the caller waits for it at once. */
static gw_status edges_submit(struct gw_client *client, const struct edges_call *wanted, bool soon,
			      struct gw_ticket **ticket)
{
	*ticket = NULL;
	if (wanted->out)
		*wanted->out = NULL;
	gw_status status = gw_client_check(client);
	if (status != GW_OK)
		return status;
	if (wanted->etype >= client->meta->num_etypes)
		return gw_fail(GW_RANGE, "edge type %u of %u", wanted->etype, client->meta->num_etypes);
	if (wanted->n > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%llu questions in one call: at most 2^32 - 1", (unsigned long long)wanted->n);
	struct edges_call *call = gw_malloc(sizeof(*call));
	if (!call)
		return GW_NO_MEMORY;
	*call = *wanted;
	struct gw_engine *engine = gw_client_engine(client);
	status = gw_edges_op_init(&call->op, engine);
	if (status != GW_OK) {
		gw_free(call);
		return status;
	}
	call->ticket.client = client;
	call->ticket.finish = edges_finish;
	call->ticket.job.start = edges_start;
	call->ticket.job.cancel = edges_cancel;
	gw_engine_submit(engine, &call->ticket.job, soon);
	*ticket = &call->ticket;
	return GW_OK;
}

static gw_status edges_run(struct gw_client *client, const struct edges_call *wanted)
{
	struct gw_ticket *ticket;
	gw_status status = edges_submit(client, wanted, true, &ticket);
	return status == GW_OK ? gw_ticket_finish(ticket) : status;
}

static struct edges_call find_call(uint32_t etype, const int64_t *edge_ids, uint64_t n, int64_t *src, int64_t *dst)
{
	return (struct edges_call){
		.ask = GW_EDGE_ENDS, .etype = etype, .first = edge_ids, .n = n, .src = src, .dst = dst};
}

static struct edges_call ids_call(uint32_t etype, const int64_t *src, const int64_t *dst, uint64_t n,
				  struct gw_edge_list **out)
{
	return (struct edges_call){.ask = GW_EDGE_IDS, .etype = etype, .first = src, .second = dst, .n = n, .out = out};
}

static struct edges_call has_call(uint32_t etype, const int64_t *src, const int64_t *dst, uint64_t n, bool *out)
{
	return (struct edges_call){
		.ask = GW_EDGE_COUNTS, .etype = etype, .first = src, .second = dst, .n = n, .has = out};
}

gw_status gw_find_edges(struct gw_client *client, uint32_t etype, const int64_t *edge_ids, uint64_t n, int64_t *src,
			int64_t *dst)
{
	const struct edges_call call = find_call(etype, edge_ids, n, src, dst);
	return edges_run(client, &call);
}

gw_status gw_find_edges_start(struct gw_client *client, uint32_t etype, const int64_t *edge_ids, uint64_t n,
			      int64_t *src, int64_t *dst, struct gw_ticket **ticket)
{
	const struct edges_call call = find_call(etype, edge_ids, n, src, dst);
	return edges_submit(client, &call, false, ticket);
}

gw_status gw_edge_ids(struct gw_client *client, uint32_t etype, const int64_t *src, const int64_t *dst, uint64_t n,
		      struct gw_edge_list **out)
{
	const struct edges_call call = ids_call(etype, src, dst, n, out);
	return edges_run(client, &call);
}

gw_status gw_edge_ids_start(struct gw_client *client, uint32_t etype, const int64_t *src, const int64_t *dst,
			    uint64_t n, struct gw_edge_list **out, struct gw_ticket **ticket)
{
	const struct edges_call call = ids_call(etype, src, dst, n, out);
	return edges_submit(client, &call, false, ticket);
}

gw_status gw_has_edges(struct gw_client *client, uint32_t etype, const int64_t *src, const int64_t *dst, uint64_t n,
		       bool *out)
{
	const struct edges_call call = has_call(etype, src, dst, n, out);
	return edges_run(client, &call);
}

gw_status gw_has_edges_start(struct gw_client *client, uint32_t etype, const int64_t *src, const int64_t *dst,
			     uint64_t n, bool *out, struct gw_ticket **ticket)
{
	const struct edges_call call = has_call(etype, src, dst, n, out);
	return edges_submit(client, &call, false, ticket);
}
