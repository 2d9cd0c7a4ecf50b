/* Versioned rows over RDMA: a READ of a complete row lands in two places.
 *
 *   at the server   [ payload | padding, sequence, hash ]
 *                        │              └──▶ a staging area of the endpoint: the row's tail
 *                        └──▶ the row of the result (perhaps through the bounce buffer)
 *   all of a frame has landed ─▶ each row's hash is compared (gw_row_verify)
 *                             ─▶ torn rows are read again, a bounded number of times
 *                             ─▶ rows that are still torn are listed in the completion, for a PULL
 *
 * The check relies on no order of bytes. A device fetches the cache lines of a row in any order while a processor may
 * write them. A row that is longer than a read, or that crosses two slices, arrives by several reads and queue pairs.
 * The hash detects a row whose bytes come from different writes.
 *
 * Frames of such rows are short, so that one is verified while others are in flight. Each such frame needs a stage, the
 * staging area for the tails of its rows. The endpoint has few stages; a call that finds no free stage accepts only a
 * prefix. Fails if memory cannot be locked.
 */
#include <string.h>

#include "core/memory/alloc.h"
#include "transport/verbs/endpoint_private.h"

#define ROW_TRIES  8u
#define TAIL_BYTES 32u /* at most 15 bytes of padding, and the trailer */
static_assert(TAIL_BYTES >= GW_ROW_ALIGN - 1 + GW_ROW_TRAILER_BYTES, "fits");

struct verbs_staging {
	struct verbs_pages pages;
	struct verbs_stage *free;
	struct verbs_stage stages[ENDPOINT_STAGES];
};

gw_status gw_verbs_rows_begin(struct verbs_endpoint *endpoint)
{
	if (endpoint->staging)
		return GW_OK;
	struct verbs_staging *staging = gw_calloc(1, sizeof(*staging));
	if (!staging)
		return GW_NO_MEMORY;
	size_t bytes = (size_t)STAGE_ROWS * TAIL_BYTES;
	gw_status status =
		gw_verbs_pages_create(endpoint->poller->device->pd, ENDPOINT_STAGES * bytes, &staging->pages);
	if (status != GW_OK) {
		gw_free(staging);
		return status;
	}
	for (uint32_t i = 0; i < ENDPOINT_STAGES; i++) {
		struct verbs_stage *stage = &staging->stages[i];
		stage->tails = staging->pages.base + i * bytes;
		stage->lkey = staging->pages.mr->lkey;
		stage->next = staging->free;
		staging->free = stage;
	}
	endpoint->staging = staging;
	return GW_OK;
}

void gw_verbs_rows_end(struct verbs_endpoint *endpoint)
{
	if (endpoint->staging)
		gw_verbs_pages_destroy(&endpoint->staging->pages);
	gw_free(endpoint->staging);
	endpoint->staging = NULL;
}

struct verbs_stage *gw_verbs_stage_acquire(struct verbs_endpoint *endpoint)
{
	struct verbs_stage *stage = endpoint->staging->free;
	if (!stage)
		return NULL;
	endpoint->staging->free = stage->next;
	stage->tries = 0;
	stage->again = false;
	return stage;
}

void gw_verbs_stage_release(struct verbs_endpoint *endpoint, struct verbs_stage *stage)
{
	stage->next = endpoint->staging->free;
	endpoint->staging->free = stage;
}

/* --- Building reads. --- */

/* The index of the range to read at position `at`. The first pass reads all ranges of the frame, later passes the torn
 * ones. */
static inline uint32_t rows_index(const struct verbs_frame *frame, uint32_t at)
{
	return frame->stage->again ? frame->stage->torn[at] : at;
}

/* A contiguous part of a row's payload or of its tail. */
struct rows_piece {
	uint64_t remote;
	uint8_t *to;
	uint32_t bytes;
	bool tail;
};

/* False: no row is left. */
static bool rows_next(struct verbs_frame *frame, struct rows_piece *piece)
{
	const struct gw_row_format *format = &frame->rows->format;
	while (frame->at < frame->n && verbs_range_bytes(frame, rows_index(frame, frame->at)) == 0)
		frame->at++;
	if (frame->at == frame->n)
		return false;
	uint32_t index = rows_index(frame, frame->at), payload = format->payload_bytes;
	piece->remote = verbs_range_remote(frame, index) + frame->at_done;
	piece->tail = frame->at_done >= payload;
	if (piece->tail) {
		piece->to = frame->stage->tails + (size_t)index * TAIL_BYTES + (frame->at_done - payload);
		piece->bytes = format->stride - frame->at_done;
	} else {
		piece->to = verbs_range_local(frame, index) + frame->at_done;
		piece->bytes = payload - frame->at_done;
	}
	return true;
}

static void rows_taken(struct verbs_frame *frame, uint32_t bytes)
{
	frame->at_done += bytes;
	if (frame->at_done < frame->rows->format.stride)
		return;
	frame->at++;
	frame->at_done = 0;
}

/* False: the piece cannot be part of this work request. */
static bool rows_land(struct verbs_qp *qp, const struct verbs_frame *frame, struct rows_piece *piece,
		      struct verbs_wr *wr, struct ibv_sge *sge)
{
	uint64_t at = (uintptr_t)piece->to;
	uint32_t lkey = frame->stage->lkey;
	if (!piece->tail && frame->mr) {
		lkey = frame->mr->lkey;
	} else if (!piece->tail) {
		/* A work request uses one place in the bounce buffer. */
		piece->bytes = piece->bytes < VERBS_BOUNCE_PIECE ? piece->bytes : VERBS_BOUNCE_PIECE;
		if (wr->bounce_to || !gw_verbs_bounce_take(qp, piece->bytes, wr))
			return false;
		wr->bounce_to = piece->to;
		at = (uintptr_t)qp->bounce.base + wr->bounce_at;
		lkey = qp->bounce.mr->lkey;
	} else {
		wr->apart = (uint16_t)(wr->apart + piece->bytes);
	}
	*sge = (struct ibv_sge){.addr = at, .length = piece->bytes, .lkey = lkey};
	return true;
}

uint32_t gw_verbs_rows_build(struct verbs_qp *qp, struct verbs_frame *frame, struct verbs_wr *wr, struct ibv_sge *sges,
			     uint64_t *remote)
{
	uint32_t count = 0, most = verbs_qp_share(qp)->read_bytes, shift = frame->place->shift;
	struct rows_piece piece;
	while (count < qp->sges_max && wr->bytes < most && rows_next(frame, &piece)) {
		uint64_t slice_left = (((piece.remote >> shift) + 1) << shift) - piece.remote;
		/* Each slice has its own key. */
		if (count && (piece.remote != *remote + wr->bytes || (piece.remote & ((1ull << shift) - 1)) == 0))
			break;
		piece.bytes = piece.bytes < most - wr->bytes ? piece.bytes : most - wr->bytes;
		piece.bytes = piece.bytes < slice_left ? piece.bytes : (uint32_t)slice_left;
		if (!rows_land(qp, frame, &piece, wr, &sges[count]))
			break;
		if (count++ == 0)
			*remote = piece.remote;
		wr->bytes += piece.bytes;
		rows_taken(frame, piece.bytes);
	}
	return count;
}

/* --- Checking landed rows. --- */

static bool rows_whole(const struct verbs_frame *frame, uint32_t index)
{
	const struct gw_row_format *format = &frame->rows->format;
	struct gw_row_trailer trailer;
	uint32_t padding = gw_row_trailer_at(format) - format->payload_bytes;
	memcpy(&trailer, frame->stage->tails + (size_t)index * TAIL_BYTES + padding, sizeof(trailer));
	return gw_row_verify(format, frame->rows->seed, verbs_range_remote(frame, index) / format->stride,
			     verbs_range_local(frame, index), &trailer);
}

bool gw_verbs_rows_landed(struct verbs_frame *frame)
{
	struct verbs_stage *stage = frame->stage;
	uint32_t torn = 0;
	for (uint32_t at = 0; at < frame->n; at++) {
		uint32_t index = rows_index(frame, at);
		if (verbs_range_bytes(frame, index) && !rows_whole(frame, index))
			stage->torn[torn++] =
				(uint16_t)index; /* torn <= at, so this overwrites no index that is still needed */
	}
	if (!torn)
		return true;
	stage->again = true;
	frame->n = torn;
	frame->at = frame->at_done = 0;
	if (++stage->tries < ROW_TRIES)
		return false;
	for (uint32_t i = 0; i < torn; i++)
		gw_read_set_torn(frame->set, verbs_range_remote(frame, stage->torn[i]),
				 (uint64_t)(verbs_range_local(frame, stage->torn[i]) - frame->base));
	return true;
}
