/* Lanes, shares and pieces: see rows_write.h.
 *
 * Calls fail if a server cannot be reached in time (client/link/link.h), or with the server's error. They also fail if
 * one row of a push has more gradients than a request can carry and the gradients cannot be combined. If a share fails
 * or is cancelled, the call withdraws those rows of its other shares that were not sent. Some rows of a failed call may
 * thus be written. */
#include <string.h>

#include "client/engine/engine.h"
#include "client/link/link.h"
#include "client/rows/rows_write_private.h"
#include "client/rows/tensors.h"
#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/clock.h"
#include "protocol/ops.h"
#include "tensors/combine.h"

#define LANE_DEPTH       4u         /* open requests to one server; less than the server's window */
#define LANE_LOOK_MAX    64u        /* how many shares are examined behind one that waits for its optimizer's state */
#define PIECE_KEPT_BYTES (1u << 20) /* larger request memory is freed after use */

/* An open request, or a free slot for one. It carries rows `low` to `high` of one shard. */
struct lane_piece {
	struct gw_link_op op; /* first */
	struct write_lane *lane;
	struct gw_write_share *share;
	struct gw_vec request;
	uint64_t epoch, low, high;
	bool wants_state; /* requests the optimizer's state; carries no rows */
	bool busy;
	/* a copy of the request may still take effect at the server, until a later request reports (`oldest`) that this
	 * client has given it up */
	bool failed;
};

struct write_lane {
	uint32_t part;
	struct gw_write_share *head, **tail;
	struct lane_piece pieces[LANE_DEPTH];
	uint64_t sequence; /* of the last request */
	bool pumping, again;
};

struct gw_row_lanes {
	uint32_t count;
	struct write_lane lanes[];
};

static void lane_pump(struct write_lane *lane);

/* --- Shares. --- */

static void call_end_one(struct gw_write_call *call)
{
	if (--call->open > 0)
		return;
	if (call->status != GW_OK)
		gw_fail_text(call->status, call->ticket.job.text);
	gw_job_end(&call->ticket.job, call->status);
}

/* Whether a share has nothing more to send and all of its requests have ended. A flush must also be first in the
 * lane. */
static bool share_done(const struct write_lane *lane, const struct gw_write_share *share)
{
	return share->at == share->end && share->carried == 0 &&
	       (!gw_write_is_flush(share->call) || lane->head == share);
}

static void share_unref(struct write_lane *lane, struct gw_write_share *share)
{
	GW_QUEUE_REMOVE(lane->head, lane->tail, share, next);
	share->queued = false;
	call_end_one(share->call);
}

/* Withdraws the rows that no request carries. */
static void call_fail(struct gw_write_call *call, gw_status status)
{
	struct gw_row_lanes *lanes = call->ticket.client->lanes;
	if (call->status == GW_OK) {
		call->status = status;
		memcpy(call->ticket.job.text, gw_last_error(), sizeof(call->ticket.job.text));
	}
	call->open++; /* keeps the call until all shares are handled */
	for (uint32_t p = 0; p < lanes->count; p++) {
		struct gw_write_share *share = &call->shares[p];
		if (!share->queued)
			continue;
		share->at = share->end;
		if (share->carried == 0)
			share_unref(&lanes->lanes[p], share);
		lane_pump(&lanes->lanes[p]);
	}
	call_end_one(call);
}

/* --- Pieces. --- */

static uint64_t lane_piece_head_max(const struct gw_write_call *call)
{
	return call->is_push ? GW_TENSOR_PUSH_HEAD_MAX : sizeof(struct gw_tensor_rows_call);
}

/* Finds how many of the share's rows go into one request. Equal rows of a push form one unit and stay together.
 * *combined: the first unit is too large for a request, so its gradients must be combined into one. */
static gw_status lane_piece_end(const struct gw_write_share *share, uint64_t *end, bool *combined)
{
	const struct gw_write_call *call = share->call;
	uint64_t room = (GW_REQUEST_BYTES_MAX - lane_piece_head_max(call)) / (8 + call->row_bytes);
	uint64_t wanted = (GW_TENSOR_REQUEST_BYTES - lane_piece_head_max(call)) / (8 + call->row_bytes);
	wanted = wanted ? wanted : 1;
	*combined = false;
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
	*combined = *end - share->at > room;
	if (!*combined || gw_gradients_can_combine(&call->optimizer))
		return GW_OK;
	return gw_fail(GW_LIMIT,
		       "%llu gradients for one row of \"%s\" in one call: at most %llu are possible, each applied: "
		       "add them up before",
		       (unsigned long long)(*end - share->at), call->handle->base.name, (unsigned long long)room);
}

/* As the server would combine them. */
static void piece_combine(const struct gw_write_share *share, uint64_t end, bool squares, uint8_t *to)
{
	const struct gw_write_call *call = share->call;
	float *sum = (float *)(void *)(to + (squares ? sizeof(float) : 0));
	gw_gradients_combine(&call->optimizer, (const float *)(const void *)call->rows, call->order + share->at,
			     end - share->at, call->row_bytes / sizeof(float), sum,
			     squares ? (float *)(void *)to : NULL);
}

static gw_status lane_piece_make(struct lane_piece *piece, const struct gw_write_share *share, uint64_t end,
				 bool combined)
{
	const struct gw_write_call *call = share->call;
	uint64_t count = combined ? 1 : end - share->at, head = sizeof(struct gw_tensor_rows_call);
	bool squares = combined && gw_gradients_need_squares(&call->optimizer);
	uint64_t bytes = count * (8 + call->row_bytes) + (squares ? sizeof(float) : 0);
	gw_status status = gw_vec_reserve(&piece->request, lane_piece_head_max(call) + bytes);
	if (status != GW_OK)
		return status;
	struct gw_tensor_push push = {.rows = {.epoch = piece->epoch, .count = (uint32_t)count},
				      .optimizer = call->optimizer,
				      .squares = squares};
	uint8_t *at = piece->request.data;
	if (call->is_push)
		head = gw_tensor_push_encode(&push, at);
	else
		memcpy(at, &push.rows, head);
	memcpy(at + head, call->keys + share->at, count * 8);
	at += head + count * 8;
	if (combined)
		piece_combine(share, end, squares, at);
	for (uint64_t i = share->at; i < end && !combined; i++, at += call->row_bytes)
		memcpy(at, call->rows + call->order[i] * call->row_bytes, call->row_bytes);
	piece->op.request = piece->request.data;
	piece->op.request_bytes = (uint32_t)(head + bytes);
	piece->op.call = call->is_push ? GW_OP_TENSOR_PUSH : GW_OP_TENSOR_UPDATE;
	return GW_OK;
}

static gw_status piece_take_state(const struct lane_piece *piece, gw_status status,
				  const struct gw_completion *completion)
{
	enum gw_tensor_state_known *known = &piece->share->call->handle->states[piece->lane->part];
	*known = GW_STATE_UNKNOWN;
	if (status == GW_OK && completion->reply_bytes == 0)
		*known = GW_STATE_THERE;
	return status;
}

static gw_status call_take_reply(const struct gw_write_call *call, const struct gw_completion *completion)
{
	uint32_t bytes = call->number ? sizeof(*call->number) : 0;
	if (!call->op)
		return GW_OK;
	if (completion->reply_bytes != bytes)
		return gw_fail(GW_PROTOCOL, "a reply of %u bytes where %u were expected", completion->reply_bytes,
			       bytes);
	if (bytes)
		memcpy(call->number, completion->reply, bytes);
	return GW_OK;
}

static void lane_piece_done(struct gw_link_op *op, gw_status status, const struct gw_completion *completion)
{
	struct lane_piece *piece = (struct lane_piece *)op;
	struct write_lane *lane = piece->lane;
	struct gw_write_share *share = piece->share;
	if (piece->wants_state)
		status = piece_take_state(piece, status, completion);
	else if (status == GW_OK)
		status = call_take_reply(share->call, completion);
	if (share->call->handle)
		status = gw_tensor_name_gone(status, share->call->handle->base.name);
	piece->busy = false;
	piece->failed = status != GW_OK;
	share->carried--;
	if (piece->request.capacity > PIECE_KEPT_BYTES)
		gw_vec_free(&piece->request);
	if (status != GW_OK)
		call_fail(share->call, status); /* also ends this share */
	else if (share_done(lane, share))
		share_unref(lane, share);
	lane_pump(lane);
}

static void lane_piece_post(struct lane_piece *piece, struct gw_write_share *share, uint64_t oldest)
{
	struct write_lane *lane = piece->lane;
	struct gw_job *job = &share->call->ticket.job;
	if (!share->begun && job->waits_away == 0)
		job->deadline_ns = gw_deadline_ns(share->call->ticket.client->timeout_ms);
	share->begun = true;
	share->carried++;
	piece->share = share;
	piece->busy = true;
	piece->op.form = GW_LINK_REQUEST;
	piece->op.once = (struct gw_once){.sequence = lane->sequence, .oldest = oldest};
	piece->op.job = job;
	piece->op.done = lane_piece_done;
	gw_engine_post(job->engine, lane->part, &piece->op);
}

/* --- Lanes. --- */

static struct lane_piece *lane_free_piece(struct write_lane *lane)
{
	for (uint32_t i = 0; i < LANE_DEPTH; i++)
		if (!lane->pieces[i].busy && !lane->pieces[i].failed)
			return &lane->pieces[i];
	return NULL;
}

/* Whether an open request carries one of these rows. Such rows wait, since open requests take effect in any order. A
 * failed request counts as open until a later request reports it as ended (`oldest`). */
static bool lane_carries(const struct write_lane *lane, uint64_t epoch, uint64_t low, uint64_t high)
{
	for (uint32_t i = 0; i < LANE_DEPTH; i++) {
		const struct lane_piece *piece = &lane->pieces[i];
		if ((piece->busy || piece->failed) && piece->epoch == epoch && piece->low <= high && low <= piece->high)
			return true;
	}
	return false;
}

static uint64_t lane_oldest(const struct write_lane *lane)
{
	uint64_t oldest = lane->sequence + 1;
	for (uint32_t i = 0; i < LANE_DEPTH; i++)
		if (lane->pieces[i].busy && lane->pieces[i].op.once.sequence < oldest)
			oldest = lane->pieces[i].op.once.sequence;
	return oldest;
}

/* The next request reports these failed requests as ended, so rows need not wait for them any more. */
static void lane_forget_failed(struct write_lane *lane, uint64_t oldest)
{
	for (uint32_t i = 0; i < LANE_DEPTH; i++)
		if (lane->pieces[i].op.once.sequence < oldest)
			lane->pieces[i].failed = false;
}

/* Requests the optimizer's state that a push needs, so that the server creates it. Creating the state takes a while; a
 * push that waited for it would block the requests behind the push on the connection. */
static gw_status lane_take_state_request(struct lane_piece *piece, const struct gw_write_share *share)
{
	const struct gw_tensor_handle *handle = share->call->handle;
	piece->epoch = handle->epochs[piece->lane->part];
	piece->low = UINT64_MAX; /* no rows */
	piece->high = 0;
	piece->wants_state = true;
	gw_status status = lane_piece_make(piece, share, share->at, false);
	if (status == GW_OK)
		handle->states[piece->lane->part] = GW_STATE_ASKED_FOR;
	return status;
}

/* Builds a request with the next rows of a share, up to *end. GW_AGAIN: the rows must wait. */
static gw_status lane_take_rows(const struct write_lane *lane, struct lane_piece *piece,
				const struct gw_write_share *share, uint64_t *end)
{
	const struct gw_write_call *call = share->call;
	bool combined = false;
	piece->wants_state = false;
	if (call->is_push && call->handle->states[lane->part] == GW_STATE_UNKNOWN &&
	    gw_optimizer_state_floats(call->optimizer.kind, 1) > 0)
		return lane_take_state_request(piece, share);
	gw_status status = lane_piece_end(share, end, &combined);
	if (status != GW_OK)
		return status;
	uint64_t epoch = call->handle->epochs[lane->part];
	if (lane_carries(lane, epoch, call->keys[share->at], call->keys[*end - 1]))
		return GW_AGAIN;
	piece->epoch = epoch;
	piece->low = call->keys[share->at];
	piece->high = call->keys[*end - 1];
	return lane_piece_make(piece, share, *end, combined);
}

static void lane_take_request(struct lane_piece *piece, const struct gw_write_share *share, uint64_t *end)
{
	const struct gw_write_call *call = share->call;
	*end = share->end;
	piece->epoch = 0; /* no rows */
	piece->wants_state = false;
	piece->op.call = call->op;
	piece->op.request = call->request;
	piece->op.request_bytes = call->request_bytes;
}

/* False: the piece must wait. */
static bool lane_send(struct write_lane *lane, struct gw_write_share *share)
{
	uint64_t oldest = lane_oldest(lane), end = share->at;
	gw_status status = GW_OK;
	lane_forget_failed(lane, oldest);
	struct lane_piece *piece = lane_free_piece(lane);
	if (!piece || lane->sequence + 1 - oldest >= GW_WINDOW)
		return false;
	if (share->call->op)
		lane_take_request(piece, share, &end);
	else
		status = lane_take_rows(lane, piece, share, &end);
	if (status == GW_AGAIN)
		return false;
	if (status != GW_OK) {
		call_fail(share->call, status);
		return true;
	}
	lane->sequence++;
	share->at = end;
	lane_piece_post(piece, share, oldest);
	return true;
}

static bool share_waits_for_state(const struct write_lane *lane, const struct gw_write_share *share)
{
	const struct gw_tensor_handle *handle = share->call->handle;
	return handle && handle->states[lane->part] == GW_STATE_ASKED_FOR;
}

/* The share to send next: the first share with rows to send that does not wait for an optimizer's state. A numbered
 * call overtakes no share, and no share overtakes a numbered call. */
static struct gw_write_share *lane_next(const struct write_lane *lane)
{
	struct gw_write_share *share = lane->head;
	while (share && share->at == share->end)
		share = share->next;
	for (uint32_t looked = 0; share && looked < LANE_LOOK_MAX; looked++, share = share->next) {
		if (looked > 0 && share->call->op)
			return NULL;
		if (share->at < share->end && !share_waits_for_state(lane, share))
			return share;
	}
	return NULL;
}

/* One step: ends the first share, or sends a piece of the next share (lane_next). Returns whether it did either. */
static bool lane_step(struct write_lane *lane)
{
	if (lane->head && share_done(lane, lane->head)) {
		share_unref(lane, lane->head);
		return true;
	}
	struct gw_write_share *share = lane_next(lane);
	return share && lane_send(lane, share);
}

/* A request that fails at once calls this function recursively. */
static void lane_pump(struct write_lane *lane)
{
	lane->again = true;
	if (lane->pumping)
		return;
	lane->pumping = true;
	while (lane->again) {
		lane->again = false;
		while (lane_step(lane))
			;
	}
	lane->pumping = false;
}

void gw_row_lanes_take(struct gw_row_lanes *lanes, struct gw_write_call *call)
{
	call->open = 1; /* until all shares are queued */
	for (uint32_t p = 0; p < lanes->count; p++) {
		struct write_lane *lane = &lanes->lanes[p];
		struct gw_write_share *share = &call->shares[p];
		share->call = call;
		if (!gw_write_is_flush(call) && share->at == share->end)
			continue;
		call->open++;
		share->queued = true;
		share->next = NULL;
		*lane->tail = share;
		lane->tail = &share->next;
	}
	for (uint32_t p = 0; p < lanes->count; p++)
		lane_pump(&lanes->lanes[p]);
	call_end_one(call);
}

void gw_row_lanes_cancel(struct gw_row_lanes *lanes, struct gw_write_call *call)
{
	call->open++; /* the call may end with the last cancelled request */
	call_fail(call, gw_fail(GW_CANCELLED, "cancelled"));
	for (uint32_t p = 0; p < lanes->count; p++) {
		for (uint32_t i = 0; i < LANE_DEPTH; i++) {
			struct lane_piece *piece = &lanes->lanes[p].pieces[i];
			if (piece->busy && piece->share == &call->shares[p])
				gw_link_cancel(&piece->op);
		}
	}
	call_end_one(call);
}

gw_status gw_row_lanes_create(struct gw_client *client, struct gw_row_lanes **out)
{
	uint32_t parts = client->meta->num_parts;
	struct gw_row_lanes *lanes = *out = gw_calloc(1, sizeof(*lanes) + parts * sizeof(lanes->lanes[0]));
	if (!lanes)
		return GW_NO_MEMORY;
	lanes->count = parts;
	for (uint32_t p = 0; p < parts; p++) {
		struct write_lane *lane = &lanes->lanes[p];
		lane->part = p;
		lane->tail = &lane->head;
		for (uint32_t i = 0; i < LANE_DEPTH; i++)
			lane->pieces[i].lane = lane;
	}
	return GW_OK;
}

void gw_row_lanes_destroy(struct gw_row_lanes *lanes)
{
	for (uint32_t p = 0; lanes && p < lanes->count; p++)
		for (uint32_t i = 0; i < LANE_DEPTH; i++)
			gw_vec_free(&lanes->lanes[p].pieces[i].request);
	gw_free(lanes);
}
