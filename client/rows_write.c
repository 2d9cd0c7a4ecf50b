/* Lanes, shares and pieces: see rows_write.h. A call whose share fails or is cancelled takes its other shares back, as
 * far as they were not sent: some rows may be written then. */
#include "client/rows_write.h"

#include <string.h>

#include "client/engine.h"
#include "client/link.h"
#include "client/tensor_handles.h"
#include "client/tensors.h"
#include "client/ticket.h"
#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/list.h"
#include "core/base/sort.h"
#include "protocol/ops.h"

struct write_call;

/* What one owner is to write of a call: rows order[at] to order[end] of it. */
struct write_share {
	struct write_share *next; /* in the lane */
	struct write_call *call;
	uint64_t at, end, sent; /* sent: of these the piece under way is the last */
	bool queued, begun;
};

struct write_lane {
	struct gw_link_op op; /* first */
	uint32_t part;
	struct write_share *head, **tail;
	struct gw_vec request;
	uint64_t sequence;
	bool busy, pumping;
};

struct gw_row_lanes {
	uint32_t count;
	struct write_lane lanes[];
};

struct write_call {
	struct gw_ticket ticket; /* first: the job */
	const struct gw_tensor_handle *handle;
	const int64_t *ids;
	uint64_t n;
	const uint8_t *rows; /* values, or gradients */
	uint64_t row_bytes;  /* of one of them */
	bool is_push;
	struct gw_optimizer optimizer;
	uint64_t *keys; /* [n]: rows of the owner */
	uint32_t *order;
	uint32_t open;
	gw_status status;
	char text[GW_ERROR_TEXT_MAX];
	struct write_share shares[]; /* [num_parts] */
};

static void lane_pump(struct write_lane *lane);

/* --- Shares. --- */

static void call_end_one(struct write_call *call)
{
	if (--call->open > 0)
		return;
	if (call->status != GW_OK)
		gw_fail_text(call->status, call->text);
	gw_job_end(&call->ticket.job, call->status);
}

static void share_leave(struct write_lane *lane, struct write_share *share)
{
	GW_QUEUE_REMOVE(lane->head, lane->tail, share, next);
	share->queued = false;
	call_end_one(share->call);
}

/* The call has failed: what no request carries of it is taken back. */
static void call_fail(struct write_call *call, gw_status status)
{
	struct gw_row_lanes *lanes = call->ticket.client->lanes;
	if (call->status == GW_OK) {
		call->status = status;
		memcpy(call->text, gw_last_error(), sizeof(call->text));
	}
	call->open++; /* until all are told */
	for (uint32_t p = 0; p < lanes->count; p++) {
		struct write_lane *lane = &lanes->lanes[p];
		struct write_share *share = &call->shares[p];
		if (share->queued && (lane->head != share || !lane->busy))
			share_leave(lane, share);
	}
	call_end_one(call);
}

/* --- Pieces. --- */

/* How many of the share's rows go into one request. Equal rows of a push stay together: they are one unit. */
static gw_status piece_end(const struct write_share *share, uint64_t *end)
{
	const struct write_call *call = share->call;
	uint64_t head = call->is_push ? sizeof(struct gw_tensor_push_call) : sizeof(struct gw_tensor_rows_call);
	uint64_t room = (GW_REQUEST_BYTES_MAX - head) / (8 + call->row_bytes);
	uint64_t wanted = (GW_TENSOR_REQUEST_BYTES - head) / (8 + call->row_bytes);
	*end = share->end - share->at <= wanted ? share->end : share->at + wanted;
	if (!call->is_push)
		return GW_OK;
	const uint64_t *keys = call->keys;
	while (*end > share->at && *end < share->end && keys[*end] == keys[*end - 1])
		(*end)--;
	if (*end > share->at)
		return GW_OK;
	for (*end = share->at + 1; *end < share->end && keys[*end] == keys[share->at];)
		(*end)++;
	if (*end - share->at <= room)
		return GW_OK;
	return gw_fail(
		GW_LIMIT,
		"%llu gradients for one row of \"%s\" in one call: at most %llu are possible; add them up before",
		(unsigned long long)(*end - share->at), call->handle->base.name, (unsigned long long)room);
}

static gw_status piece_make(struct write_lane *lane, struct write_share *share)
{
	const struct write_call *call = share->call;
	const struct gw_optimizer *optimizer = &call->optimizer;
	gw_status status = piece_end(share, &share->sent);
	uint64_t count = share->sent - share->at;
	uint64_t head = call->is_push ? sizeof(struct gw_tensor_push_call) : sizeof(struct gw_tensor_rows_call);
	uint64_t bytes = head + count * (8 + call->row_bytes);
	if (status == GW_OK)
		status = gw_vec_reserve(&lane->request, bytes);
	if (status != GW_OK)
		return status;
	struct gw_tensor_push_call push = {
		.rows = {.birth = call->handle->births[lane->part], .count = (uint32_t)count},
		.kind = (uint32_t)optimizer->kind,
		.combine = (uint32_t)optimizer->combine,
		.rate = optimizer->rate,
		.eps = optimizer->eps,
		.beta1 = optimizer->beta1,
		.beta2 = optimizer->beta2,
		.step = optimizer->step,
	};
	uint8_t *at = lane->request.data;
	memcpy(at, &push, head);
	memcpy(at + head, call->keys + share->at, count * 8);
	at += head + count * 8;
	for (uint64_t i = share->at; i < share->sent; i++, at += call->row_bytes)
		memcpy(at, call->rows + call->order[i] * call->row_bytes, call->row_bytes);
	lane->op.request = lane->request.data;
	lane->op.request_bytes = (uint32_t)bytes;
	lane->op.call = call->is_push ? GW_OP_TENSOR_PUSH : GW_OP_TENSOR_UPDATE;
	return GW_OK;
}

/* --- Lanes. --- */

static void write_piece_done(struct gw_link_op *op, gw_status status, const struct gw_completion *completion)
{
	(void)completion;
	struct write_lane *lane = (struct write_lane *)op;
	struct write_share *share = lane->head;
	struct write_call *call = share->call;
	lane->busy = false;
	share->at = share->sent;
	if (status != GW_OK)
		call_fail(call, status); /* takes this share along */
	else if (call->status != GW_OK)
		share_leave(lane, share);
	lane_pump(lane);
}

static void piece_post(struct write_lane *lane, struct write_share *share)
{
	struct gw_job *job = &share->call->ticket.job;
	if (!share->begun && job->waits_away == 0)
		job->deadline_ns = gw_deadline_ns(share->call->ticket.client->timeout_ms);
	share->begun = true;
	lane->op.form = GW_LINK_REQUEST;
	lane->sequence++;
	lane->op.once = (struct gw_once){.sequence = lane->sequence, .oldest = lane->sequence};
	lane->op.job = job;
	lane->op.done = write_piece_done;
	lane->busy = true;
	gw_link_post(job->engine->part_links[lane->part], &lane->op);
}

/* Sends the next piece of what is first. A request that fails at once comes back here from within. */
static void lane_pump(struct write_lane *lane)
{
	if (lane->pumping)
		return;
	lane->pumping = true;
	while (lane->head && !lane->busy) {
		struct write_share *share = lane->head;
		gw_status status = GW_OK;
		if (share->at == share->end) {
			share_leave(lane, share);
			continue;
		}
		status = piece_make(lane, share);
		if (status != GW_OK)
			call_fail(share->call, status);
		else
			piece_post(lane, share);
	}
	lane->pumping = false;
}

gw_status gw_row_lanes_create(struct gw_client *client, struct gw_row_lanes **out)
{
	uint32_t parts = client->meta->num_parts;
	struct gw_row_lanes *lanes = *out = gw_calloc(1, sizeof(*lanes) + parts * sizeof(lanes->lanes[0]));
	if (!lanes)
		return GW_NO_MEMORY;
	lanes->count = parts;
	for (uint32_t p = 0; p < parts; p++) {
		lanes->lanes[p].part = p;
		lanes->lanes[p].tail = &lanes->lanes[p].head;
	}
	return GW_OK;
}

void gw_row_lanes_destroy(struct gw_row_lanes *lanes)
{
	for (uint32_t p = 0; lanes && p < lanes->count; p++)
		gw_vec_free(&lanes->lanes[p].request);
	gw_free(lanes);
}

/* --- Calls. --- */

/* The owner of each row, and its number there; then the rows by owner, in their order, those of a push by number. */
static gw_status call_deal(struct write_call *call)
{
	const struct gw_tensor_layout *layout = &call->handle->layout;
	struct gw_vec scratch = {0};
	uint32_t parts = layout->parts;
	for (uint64_t i = 0; i < call->n; i++) {
		uint64_t id = (uint64_t)call->ids[i];
		if (id >= layout->rows)
			return gw_fail(GW_RANGE, "id %lld at position %llu: ids run from 0 to %lld",
				       (long long)call->ids[i], (unsigned long long)i, (long long)layout->rows - 1);
		/* By owner and row at once: a row's number among all that owners have, one after another. */
		uint32_t owner = gw_tensor_layout_owner(layout, id);
		call->keys[i] = layout->starts[owner] + gw_tensor_layout_row(layout, owner, id);
		call->order[i] = (uint32_t)i;
	}
	gw_status status = call->n > 1 ? gw_sort_rows(call->keys, call->order, call->n, &scratch) : GW_OK;
	gw_vec_free(&scratch);
	uint64_t at = 0;
	for (uint32_t p = 0; p < parts && status == GW_OK; p++) {
		struct write_share *share = &call->shares[p];
		share->at = at;
		for (; at < call->n && call->keys[at] < layout->starts[p + 1]; at++)
			call->keys[at] -= layout->starts[p];
		share->end = at;
	}
	return status;
}

static void write_call_start(struct gw_job *job)
{
	struct write_call *call = (struct write_call *)job;
	struct gw_row_lanes *lanes = call->ticket.client->lanes;
	gw_status status = call->handle ? call_deal(call) : GW_OK;
	if (status != GW_OK) {
		gw_job_end(job, status);
		return;
	}
	call->open = 1; /* until all are queued */
	for (uint32_t p = 0; p < lanes->count; p++) {
		struct write_lane *lane = &lanes->lanes[p];
		struct write_share *share = &call->shares[p];
		share->call = call;
		if (call->handle && share->at == share->end)
			continue;
		call->open++;
		share->queued = true;
		share->next = NULL;
		*lane->tail = share;
		lane->tail = &share->next;
		/* A flush has nothing to send: it is over when it is first. */
	}
	for (uint32_t p = 0; p < lanes->count; p++)
		lane_pump(&lanes->lanes[p]);
	call_end_one(call);
}

static void write_call_cancel(struct gw_job *job)
{
	struct write_call *call = (struct write_call *)job;
	struct gw_row_lanes *lanes = call->ticket.client->lanes;
	call->open++; /* it may end with the last request that is cancelled */
	call_fail(call, gw_fail(GW_CANCELLED, "cancelled"));
	for (uint32_t p = 0; p < lanes->count; p++) {
		struct write_lane *lane = &lanes->lanes[p];
		if (lane->busy && lane->head == &call->shares[p])
			gw_link_cancel(&lane->op);
	}
	call_end_one(call);
}

static void call_finish(struct gw_ticket *ticket, gw_status status)
{
	(void)status;
	struct write_call *call = (struct write_call *)ticket;
	gw_free(call->keys);
	gw_free(call->order);
	gw_free(call);
}

static gw_status call_make(struct gw_client *client, uint64_t n, struct write_call **out)
{
	struct write_call *call = gw_calloc(1, sizeof(*call) + client->meta->num_parts * sizeof(call->shares[0]));
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
			"\"%s\" is a feature, which cannot be written: create a tensor that begins as its copy, or "
			"start the servers with --mutable %s",
			tensor->name, tensor->name);
	if (n > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%llu rows in one call: at most 2^32 - 1", (unsigned long long)n);
	return GW_OK;
}

static gw_status write_submit(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			      const void *rows, const struct gw_optimizer *optimizer, bool soon,
			      struct write_call **out)
{
	const struct gw_tensor_handle *handle = (const struct gw_tensor_handle *)tensor;
	gw_status status = write_check(client, tensor, n);
	if (status == GW_OK)
		status = call_make(client, n, out);
	if (status != GW_OK)
		return status;
	struct write_call *call = *out;
	call->handle = handle;
	call->ids = ids;
	call->rows = rows;
	call->row_bytes = optimizer ? handle->layout.row_elements * sizeof(float) : handle->layout.row_bytes;
	call->is_push = optimizer != NULL;
	if (optimizer)
		call->optimizer = *optimizer;
	/* Always the same engine: what threads submit one after another is started so. */
	gw_engine_submit(&client->engines[0], &call->ticket.job, soon);
	return GW_OK;
}

gw_status gw_update(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
		    const void *rows)
{
	struct write_call *call;
	gw_status status = write_submit(client, tensor, ids, n, rows, NULL, true, &call);
	return status == GW_OK ? gw_ticket_finish(&call->ticket) : status;
}

gw_status gw_update_start(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			  const void *rows, struct gw_ticket **ticket)
{
	struct write_call *call;
	*ticket = NULL;
	gw_status status = write_submit(client, tensor, ids, n, rows, NULL, false, &call);
	if (status == GW_OK)
		*ticket = &call->ticket;
	return status;
}

static gw_status write_push_check(const struct gw_optimizer *optimizer)
{
	if (!optimizer || (unsigned)optimizer->kind > GW_ADAM || (unsigned)optimizer->combine > GW_COMBINE_EACH)
		return gw_fail(GW_INVALID, "a push by an unknown optimizer");
	return GW_OK;
}

gw_status gw_push(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
		  const float *gradients, const struct gw_optimizer *optimizer)
{
	struct write_call *call;
	gw_status status = write_push_check(optimizer);
	if (status == GW_OK)
		status = write_submit(client, tensor, ids, n, gradients, optimizer, true, &call);
	return status == GW_OK ? gw_ticket_finish(&call->ticket) : status;
}

gw_status gw_push_start(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			const float *gradients, const struct gw_optimizer *optimizer, struct gw_ticket **ticket)
{
	struct write_call *call;
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
	struct write_call *call;
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = call_make(client, 0, &call);
	if (status != GW_OK)
		return status;
	gw_engine_submit(&client->engines[0], &call->ticket.job, true);
	return gw_ticket_finish(&call->ticket);
}
