/* Calls that write rows: checks them, splits them by the owners of the rows, and passes the shares to the lanes: see
 * rows_write.h. Fails on tensors that cannot be written, on ids that are not rows, if memory runs out, and with the
 * errors of row_lanes.c. */

#include "client/engine/engine.h"
#include "client/rows/rows_write_private.h"
#include "client/rows/tensors.h"
#include "core/memory/alloc.h"
#include "core/numbers/sort.h"

/* If an update contains a row more than once, the last value is kept. */
static void call_drop_overwritten(struct gw_write_call *call)
{
	uint64_t kept = 0;
	for (uint64_t i = 0; i < call->n; i++) {
		if (i + 1 < call->n && call->keys[i + 1] == call->keys[i])
			continue;
		call->keys[kept] = call->keys[i];
		call->order[kept++] = call->order[i];
	}
	call->n = kept;
}

/* Sorts the rows by owner and number; equal rows keep the order of the call. */
static gw_status call_split(struct gw_write_call *call)
{
	const struct gw_tensor_layout *layout = &call->handle->layout;
	struct gw_vec scratch = {0};
	uint32_t parts = layout->parts;
	for (uint64_t i = 0; i < call->n; i++) {
		uint64_t id = (uint64_t)call->ids[i];
		if (id >= layout->rows)
			return gw_fail_id("id", call->ids[i], i, layout->rows);
		/* One key for owner and row: the row's number if all owners' rows were stored one after another. */
		uint32_t owner = gw_tensor_layout_owner(layout, id);
		call->keys[i] = layout->starts[owner] + gw_tensor_layout_row(layout, owner, id);
		call->order[i] = (uint32_t)i;
	}
	gw_status status = call->n > 1 ? gw_sort_rows(call->keys, call->order, call->n, &scratch) : GW_OK;
	gw_vec_free(&scratch);
	if (status == GW_OK && !call->is_push)
		call_drop_overwritten(call);
	uint64_t at = 0;
	for (uint32_t p = 0; p < parts && status == GW_OK; p++) {
		struct gw_write_share *share = &call->shares[p];
		share->at = at;
		for (; at < call->n && call->keys[at] < layout->starts[p + 1]; at++)
			call->keys[at] -= layout->starts[p];
		share->end = at;
	}
	return status;
}

static void write_call_start(struct gw_job *job)
{
	struct gw_write_call *call = (struct gw_write_call *)job;
	gw_status status = call->handle ? call_split(call) : GW_OK;
	if (status != GW_OK)
		gw_job_end(job, status);
	else
		gw_row_lanes_take(call->ticket.client->lanes, call);
}

static void write_call_cancel(struct gw_job *job)
{
	struct gw_write_call *call = (struct gw_write_call *)job;
	gw_row_lanes_cancel(call->ticket.client->lanes, call);
}

static void call_finish(struct gw_ticket *ticket, gw_status status)
{
	(void)status;
	struct gw_write_call *call = (struct gw_write_call *)ticket;
	gw_free(call->keys);
	gw_free(call->order);
	gw_free(call);
}

static gw_status call_make(struct gw_client *client, uint64_t n, struct gw_write_call **out)
{
	struct gw_write_call *call = gw_calloc(1, sizeof(*call) + client->meta->num_parts * sizeof(call->shares[0]));
	*out = NULL;
	if (!call)
		return GW_NO_MEMORY;
	call->keys = gw_calloc(n ? n : 1, sizeof(*call->keys));
	call->order = gw_calloc(n ? n : 1, sizeof(*call->order));
	if (!call->keys || !call->order) {
		gw_free(call->keys);
		gw_free(call->order);
		gw_free(call);
		return GW_NO_MEMORY;
	}
	call->n = n;
	call->ticket.client = client;
	call->ticket.finish = call_finish;
	call->ticket.job.start = write_call_start;
	call->ticket.job.cancel = write_call_cancel;
	call->ticket.job.is_boundless = true; /* lanes send few requests at a time */
	*out = call;
	return GW_OK;
}

static gw_status write_check(struct gw_client *client, const struct gw_tensor *tensor, uint64_t n)
{
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = gw_tensor_check(client, tensor);
	if (status != GW_OK)
		return status;
	if (!tensor->writable)
		return gw_fail(
			GW_INVALID,
			"\"%s\" is a feature, which cannot be written: create a tensor that begins as its copy%s%s",
			tensor->name, client->local_group ? "" : ", or start the servers with --mutable ",
			client->local_group ? "" : tensor->name);
	if (n > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%llu rows in one call: at most 2^32 - 1", (unsigned long long)n);
	return GW_OK;
}

static gw_status write_submit(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			      const void *rows, const struct gw_optimizer *optimizer, bool soon,
			      struct gw_write_call **out)
{
	const struct gw_tensor_handle *handle = (const struct gw_tensor_handle *)tensor;
	gw_status status = write_check(client, tensor, n);
	if (status == GW_OK)
		status = call_make(client, n, out);
	if (status != GW_OK)
		return status;
	struct gw_write_call *call = *out;
	call->handle = handle;
	call->ids = ids;
	call->rows = rows;
	call->row_bytes = optimizer ? handle->layout.row_elements * sizeof(float) : handle->layout.row_bytes;
	call->is_push = optimizer != NULL;
	if (optimizer)
		call->optimizer = *optimizer;
	/* All writes use the same engine, so that calls start in the order in which threads submit them. */
	gw_engine_submit(&client->engines[0], &call->ticket.job, soon);
	return GW_OK;
}

gw_status gw_update(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
		    const void *rows)
{
	struct gw_write_call *call;
	gw_status status = write_submit(client, tensor, ids, n, rows, NULL, true, &call);
	return status == GW_OK ? gw_ticket_finish(&call->ticket) : status;
}

gw_status gw_update_start(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			  const void *rows, struct gw_ticket **ticket)
{
	struct gw_write_call *call;
	*ticket = NULL;
	gw_status status = write_submit(client, tensor, ids, n, rows, NULL, false, &call);
	if (status == GW_OK)
		*ticket = &call->ticket;
	return status;
}

static gw_status write_push_check(const struct gw_optimizer *optimizer)
{
	if (!optimizer || !gw_optimizer_rule_of((uint32_t)optimizer->kind) ||
	    (unsigned)optimizer->combine > GW_COMBINE_EACH)
		return gw_fail(GW_INVALID, "a push by an unknown optimizer");
	return GW_OK;
}

gw_status gw_push(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
		  const float *gradients, const struct gw_optimizer *optimizer)
{
	struct gw_write_call *call;
	gw_status status = write_push_check(optimizer);
	if (status == GW_OK)
		status = write_submit(client, tensor, ids, n, gradients, optimizer, true, &call);
	return status == GW_OK ? gw_ticket_finish(&call->ticket) : status;
}

gw_status gw_push_start(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			const float *gradients, const struct gw_optimizer *optimizer, struct gw_ticket **ticket)
{
	struct gw_write_call *call;
	*ticket = NULL;
	gw_status status = write_push_check(optimizer);
	if (status == GW_OK)
		status = write_submit(client, tensor, ids, n, gradients, optimizer, false, &call);
	if (status == GW_OK)
		*ticket = &call->ticket;
	return status;
}

gw_status gw_flush(struct gw_client *client)
{
	struct gw_write_call *call;
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = call_make(client, 0, &call);
	if (status != GW_OK)
		return status;
	gw_engine_submit(&client->engines[0], &call->ticket.job, true);
	return gw_ticket_finish(&call->ticket);
}

gw_status gw_numbered_call(struct gw_client *client, uint32_t part, uint16_t op, const void *request,
			   uint32_t request_bytes, uint64_t *number)
{
	struct gw_write_call *call;
	gw_status status = call_make(client, 0, &call);
	if (status != GW_OK)
		return status;
	call->op = op;
	call->request = request;
	call->request_bytes = request_bytes;
	call->number = number;
	call->shares[part].end = 1;
	gw_engine_submit(&client->engines[0], &call->ticket.job, true);
	return gw_ticket_finish(&call->ticket);
}
