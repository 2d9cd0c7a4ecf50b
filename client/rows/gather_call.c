/* gw_gather, gw_gather_as and their starts: a ticket around one gather.
 *
 * The thread of a synchronous call runs the engine itself, unless another thread already does. So a single row needs no
 * hand-over between threads. The memory of the last gather is kept for the next one, unless it is large. Rows that
 * become narrower land in memory of the call, others in the caller's.
 */
#include "client/rows/gather_call.h"

#include <stdatomic.h>

#include "client/engine/engine.h"
#include "client/engine/ticket.h"
#include "client/rows/gather.h"
#include "client/rows/tensors.h"
#include "core/memory/alloc.h"

struct gather_call {
	struct gw_ticket ticket; /* first: the job */
	struct gw_gather_op op;
	struct gw_rows rows;
	const int64_t *ids;
	uint64_t n;
	uint8_t *out;
	struct gw_conversion conversion; /* to_bytes 0: none */
	struct gw_recv_buffer landed;    /* rows that become narrower */
	struct gw_gather_window with;    /* zeroed: no window */
};

#define KEPT_BYTES (16u << 20) /* limit for the lists; enough for about 150,000 rows */

static void call_free(struct gather_call *call)
{
	gw_gather_op_free(&call->op);
	gw_free(call);
}

static void gather_call_done(struct gw_gather_op *op, gw_status status)
{
	struct gather_call *call = op->owner;
	gw_recv_buffer_free(&call->landed);
	gw_job_end(&call->ticket.job, status);
}

static void gather_start(struct gw_job *job)
{
	struct gather_call *call = (struct gather_call *)job;
	const struct gw_conversion *conversion = &call->conversion;
	struct gw_landing to = {.rows = call->out, .conversion = *conversion, .out = call->out};
	if (conversion->to_bytes >= conversion->from_bytes) {
		to.rows += gw_conversion_start(conversion, call->n);
	} else {
		gw_status status =
			gw_recv_buffer_reserve(&call->landed, &job->engine->slab, call->n * conversion->from_bytes);
		if (status != GW_OK) {
			gw_job_end(job, status);
			return;
		}
		to.buffer = call->landed.buffer;
		to.rows = call->landed.data;
	}
	call->op.done = gather_call_done;
	call->op.owner = call;
	gw_gather_op_start(&call->op, job, &call->rows, call->ids, call->n, &to, false);
}

static void gather_cancel(struct gw_job *job)
{
	gw_gather_op_cancel(&((struct gather_call *)job)->op);
}

static void gather_finish(struct gw_ticket *ticket, gw_status status)
{
	(void)status;
	struct gather_call *call = (struct gather_call *)ticket;
	struct gw_client *client = ticket->client;
	void *none = NULL;
	if (call->with.ended)
		call->with.ended(call->with.owner);
	call->with = (struct gw_gather_window){0};
	gw_gather_op_trim(&call->op, KEPT_BYTES);
	bool is_short = call->op.engine == &client->engines[client->engine_count];
	if (!atomic_compare_exchange_strong(&client->spare_calls[is_short], &none, call))
		call_free(call);
}

static gw_status call_create(struct gw_client *client, uint64_t n, struct gather_call **out)
{
	struct gw_engine *short_engine = &client->engines[client->engine_count];
	struct gw_engine *engine =
		atomic_load(&client->loaders) ? gw_engine_for_call(client, n <= GW_SHORT_ROWS) : NULL;
	struct gather_call *call = atomic_exchange(&client->spare_calls[engine == short_engine], (void *)NULL);
	if (!call) {
		engine = engine ? engine : gw_client_engine(client);
		call = gw_calloc(1, sizeof(*call));
		if (!call)
			return GW_NO_MEMORY;
		gw_status status = gw_gather_op_init(&call->op, engine);
		if (status != GW_OK) {
			gw_free(call);
			return status;
		}
		call->ticket.client = client;
		call->ticket.finish = gather_finish;
		call->ticket.job.start = gather_start;
		call->ticket.job.cancel = gather_cancel;
	}
	*out = call;
	return GW_OK;
}

void gw_calls_free(struct gw_client *client)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct gather_call *call = atomic_exchange(&client->spare_calls[i], NULL);
		if (call)
			call_free(call);
	}
}

static gw_status gather_submit(struct gw_client *client, const struct gw_tensor *tensor, gw_dtype convert,
			       const int64_t *ids, uint64_t n, void *out, const struct gw_gather_window *with,
			       bool soon, struct gather_call **created)
{
	struct gw_conversion conversion;
	gw_status status = gw_tensor_check(client, tensor);
	if (status == GW_OK)
		status = gw_tensor_conversion(tensor, convert, &conversion);
	if (status == GW_OK && n > UINT32_MAX)
		status = gw_fail(GW_LIMIT, "%llu rows in one call: at most 2^32 - 1", (unsigned long long)n);
	if (status == GW_OK)
		status = gw_client_check(client);
	if (status == GW_OK)
		status = call_create(client, n, created);
	if (status != GW_OK)
		return status;
	struct gather_call *call = *created;
	call->rows = ((const struct gw_client_tensor *)tensor)->rows;
	call->conversion = conversion;
	call->ids = ids;
	call->n = n;
	call->out = out;
	call->with = with ? *with : (struct gw_gather_window){0};
	call->op.share.window = call->with.window;
	call->op.share.number = call->with.number;
	gw_engine_submit(call->op.engine, &call->ticket.job, soon);
	return GW_OK;
}

gw_status gw_gather_as(struct gw_client *client, const struct gw_tensor *tensor, gw_dtype convert, const int64_t *ids,
		       uint64_t n, void *out)
{
	struct gather_call *call = NULL;
	gw_status status = gather_submit(client, tensor, convert, ids, n, out, NULL, true, &call);
	return status == GW_OK ? gw_ticket_finish(&call->ticket) : status;
}

gw_status gw_gather_call_start(struct gw_client *client, const struct gw_tensor *tensor, gw_dtype convert,
			       const int64_t *ids, uint64_t n, void *out, const struct gw_gather_window *with,
			       struct gw_ticket **ticket)
{
	*ticket = NULL;
	struct gather_call *call = NULL;
	gw_status status = gather_submit(client, tensor, convert, ids, n, out, with, false, &call);
	if (status == GW_OK)
		*ticket = &call->ticket;
	return status;
}

gw_status gw_gather_as_start(struct gw_client *client, const struct gw_tensor *tensor, gw_dtype convert,
			     const int64_t *ids, uint64_t n, void *out, struct gw_ticket **ticket)
{
	return gw_gather_call_start(client, tensor, convert, ids, n, out, NULL, ticket);
}

gw_status gw_gather(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n, void *out)
{
	return gw_gather_as(client, tensor, 0, ids, n, out);
}

gw_status gw_gather_start(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			  void *out, struct gw_ticket **ticket)
{
	return gw_gather_as_start(client, tensor, 0, ids, n, out, ticket);
}
