/* One request as a separate job: see remote_call.h. Fails if the server cannot be reached in time (client/link/link.h),
 * or with the server's error. */
#include "client/engine/remote_call.h"

#include <string.h>

#include "client/engine/engine.h"
#include "core/memory/alloc.h"

static gw_status remote_call_keep(struct gw_remote_call *call, const struct gw_completion *completion)
{
	if (completion->reply_memory && *completion->reply_memory) {
		call->memory = *completion->reply_memory;
		call->kept = completion->reply;
		*completion->reply_memory = NULL;
		return GW_OK;
	}
	call->kept = call->memory = gw_malloc(completion->reply_bytes);
	if (call->memory && completion->reply_bytes)
		memcpy(call->memory, completion->reply, completion->reply_bytes);
	return call->memory ? GW_OK : GW_NO_MEMORY;
}

static gw_status remote_call_copy(struct gw_remote_call *call, const struct gw_completion *completion)
{
	gw_status status = gw_vec_reserve(call->reply, completion->reply_bytes);
	if (status == GW_OK && completion->reply_bytes)
		memcpy(call->reply->data, completion->reply, completion->reply_bytes);
	return status;
}

static void remote_call_done(struct gw_link_op *op, gw_status status, const struct gw_completion *completion)
{
	struct gw_remote_call *call = op->owner;
	if (status == GW_OK) {
		call->reply_bytes = completion->reply_bytes;
		status = call->reply ? remote_call_copy(call, completion) : remote_call_keep(call, completion);
	}
	gw_job_end(&call->ticket.job, status);
}

static void remote_call_start(struct gw_job *job)
{
	struct gw_remote_call *call = (struct gw_remote_call *)job;
	call->op.job = job;
	gw_engine_post(job->engine, call->part, &call->op);
}

static void remote_call_cancel(struct gw_job *job)
{
	gw_link_cancel(&((struct gw_remote_call *)job)->op);
}

static void remote_call_finish(struct gw_ticket *ticket, gw_status status)
{
	(void)ticket;
	(void)status;
}

void gw_remote_call_begin(struct gw_remote_call *call, struct gw_engine *engine, uint32_t part, uint16_t op,
			  const void *request, uint32_t request_bytes, struct gw_vec *reply, bool soon)
{
	*call = (struct gw_remote_call){
		.ticket = {.job = {.start = remote_call_start, .cancel = remote_call_cancel},
			   .client = engine->client,
			   .finish = remote_call_finish},
		.op = {.form = GW_LINK_REQUEST,
		       .call = op,
		       .request = request,
		       .request_bytes = request_bytes,
		       .done = remote_call_done,
		       .owner = call},
		.part = part,
		.reply = reply,
	};
	gw_engine_submit(engine, &call->ticket.job, soon);
}

gw_status gw_remote_call_end(struct gw_remote_call *call)
{
	return gw_ticket_finish(&call->ticket);
}

gw_status gw_remote_call(struct gw_client *client, uint32_t part, uint16_t op, const void *request,
			 uint32_t request_bytes, struct gw_vec *reply, size_t *bytes)
{
	struct gw_remote_call call;
	gw_remote_call_begin(&call, gw_client_engine(client), part, op, request, request_bytes, reply, true);
	gw_status status = gw_remote_call_end(&call);
	*bytes = call.reply_bytes;
	return status;
}
