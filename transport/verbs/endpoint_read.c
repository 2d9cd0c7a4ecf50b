/* Reads become work requests.
 *
 *   call ─▶ frames (up to ENDPOINT_FRAMES_MAX, by reference to the caller's offsets) ─▶ waiting
 *        ─▶ as a queue pair has room: pieces ─▶ work requests, lists of up to VERBS_POST_MAX ─▶ in flight ─▶ frame ends
 *
 * A piece is contiguous on both sides. Ranges that follow each other on both sides form one piece. Long ranges are cut
 * at the region's slices, which have separate keys, and at VERBS_READ_BYTES or less (port_window.c). Pieces that follow
 * each other only at the server share a work request, with one scatter element each. Reads into an unregistered
 * destination go through the queue pair's bounce buffer. That buffer is a ring, because a queue pair completes in
 * order.
 *
 * Versioned rows are longer than the ranges that the caller asks for, and land in two places: endpoint_rows.c.
 *
 * A full endpoint is normal: the call returns the number of reads that it accepted. If a range does not fit the region
 * or the destination, the set fails before any read of the call is posted. A failed set completes when its work in
 * flight has ended.
 */
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/clock.h"
#include "transport/reads.h"
#include "transport/verbs/endpoint_private.h"

void gw_verbs_reads_begin(struct verbs_endpoint *endpoint)
{
	endpoint->waiting_end = &endpoint->waiting;
	for (uint32_t i = 0; i < ENDPOINT_FRAMES_MAX; i++) {
		endpoint->frames[i].next = endpoint->free_frames;
		endpoint->free_frames = &endpoint->frames[i];
	}
}

/* --- Frames. --- */

static void frame_end(struct verbs_endpoint *endpoint, struct verbs_frame *frame)
{
	struct gw_read_set *set = frame->set;
	assert(!frame->waiting && !frame->open);
	if (frame->dying)
		endpoint->dying--;
	frame->dying = false;
	frame->set = NULL;
	endpoint->frames_open--;
	endpoint->loop->open--;
	frame->next = endpoint->free_frames;
	endpoint->free_frames = frame;
	if (endpoint->room_wanted) {
		endpoint->room_wanted = false;
		gw_poll_group_room(endpoint->loop->group);
	}
	if (frame->stage)
		gw_verbs_stage_release(endpoint, frame->stage);
	if (frame->dynamic)
		gw_verbs_dynamic_read(endpoint, frame->dynamic);
	set->frames_open--;
	gw_read_set_settle(&endpoint->loop->completions, set);
}

static void read_wait(struct verbs_endpoint *endpoint, struct verbs_frame *frame)
{
	frame->next = NULL;
	frame->waiting = true;
	*endpoint->waiting_end = frame;
	endpoint->waiting_end = &frame->next;
}

/* All work requests of a frame have been posted and have landed. */
static void frame_landed(struct verbs_endpoint *endpoint, struct verbs_frame *frame)
{
	if (frame->stage && !frame->set->status && !gw_verbs_rows_landed(frame))
		read_wait(endpoint, frame);
	else
		frame_end(endpoint, frame);
}

static void read_unwait(struct verbs_endpoint *endpoint, struct verbs_frame *frame)
{
	GW_QUEUE_REMOVE(endpoint->waiting, endpoint->waiting_end, frame, next);
	frame->waiting = false;
}

void gw_verbs_set_drop(struct verbs_endpoint *endpoint, struct gw_read_set *set)
{
	for (uint32_t i = 0; i < ENDPOINT_FRAMES_MAX && set->frames_open; i++) {
		struct verbs_frame *frame = &endpoint->frames[i];
		if (frame->set != set)
			continue;
		if (frame->waiting)
			read_unwait(endpoint, frame);
		if (frame->open && !frame->dying) {
			frame->dying = true;
			frame->dying_ns = gw_now_ns();
			endpoint->dying++;
			verbs_timer(endpoint->loop, frame->dying_ns + ENDPOINT_PATIENCE_NS);
		} else if (!frame->open) {
			frame_end(endpoint, frame);
		}
	}
	gw_read_set_settle(&endpoint->loop->completions, set);
}

void gw_verbs_reads_withdraw(struct verbs_endpoint *endpoint, const struct gw_dynamic_region_entry *entry)
{
	for (uint32_t i = 0; i < ENDPOINT_FRAMES_MAX; i++) {
		struct verbs_frame *frame = &endpoint->frames[i];
		if (!frame->set || frame->dynamic != entry)
			continue;
		gw_read_set_fail(frame->set, GW_NOT_FOUND);
		if (frame->waiting)
			read_unwait(endpoint, frame);
		if (!frame->open)
			frame_end(endpoint, frame);
	}
}

uint64_t gw_verbs_dying_since(const struct verbs_endpoint *endpoint)
{
	uint64_t since = GW_NO_DEADLINE;
	for (uint32_t i = 0; i < ENDPOINT_FRAMES_MAX; i++)
		if (endpoint->frames[i].dying && endpoint->frames[i].dying_ns < since)
			since = endpoint->frames[i].dying_ns;
	return since;
}

void gw_verbs_read_done(struct verbs_qp *qp, struct verbs_wr *wr)
{
	struct verbs_frame *frame = wr->frame;
	struct verbs_endpoint *endpoint = qp->owner;
	if (--frame->open == 0 && !frame->waiting)
		frame_landed(endpoint, frame);
}

void gw_verbs_reads_silenced(struct verbs_endpoint *endpoint)
{
	for (uint32_t i = 0; i < ENDPOINT_FRAMES_MAX; i++) {
		endpoint->frames[i].open = 0;
		endpoint->frames[i].stage = NULL;   /* gw_verbs_rows_end frees all stages */
		endpoint->frames[i].dynamic = NULL; /* the connection has ended, so no server waits for a release */
	}
}

/* --- Ranges, and pieces of them. --- */

struct read_piece {
	uint64_t remote;
	uint8_t *local;
	uint32_t bytes;
};

/* At most `most` bytes, within one slice. False: no piece is left. */
static bool piece_take(struct verbs_frame *frame, uint32_t shift, uint32_t most, struct read_piece *piece)
{
	while (frame->at < frame->n && verbs_range_bytes(frame, frame->at) == 0)
		frame->at++;
	if (frame->at == frame->n)
		return false;
	uint32_t bytes = verbs_range_bytes(frame, frame->at) - frame->at_done;
	piece->remote = verbs_range_remote(frame, frame->at) + frame->at_done;
	piece->local = verbs_range_local(frame, frame->at) + frame->at_done;
	uint64_t slice_left = (((piece->remote >> shift) + 1) << shift) - piece->remote;
	most = slice_left < most ? (uint32_t)slice_left : most;
	if (bytes > most) {
		piece->bytes = most;
		frame->at_done += most;
		return true;
	}
	frame->at++;
	frame->at_done = 0;
	for (; frame->at < frame->n; frame->at++) {
		uint32_t more = verbs_range_bytes(frame, frame->at);
		if (more > most - bytes || verbs_range_remote(frame, frame->at) != piece->remote + bytes ||
		    verbs_range_local(frame, frame->at) != piece->local + bytes)
			break;
		bytes += more;
	}
	piece->bytes = bytes;
	return true;
}

/* Whether the next piece begins at `remote` in the region, in the same slice as the byte before. */
static bool piece_follows(const struct verbs_frame *frame, uint32_t shift, uint64_t remote)
{
	if (frame->at == frame->n || verbs_range_bytes(frame, frame->at) == 0)
		return false;
	return verbs_range_remote(frame, frame->at) + frame->at_done == remote && (remote & ((1ull << shift) - 1)) != 0;
}

/* --- Work requests. --- */

/* Work requests that are posted together. Each is stored next to its scatter elements, so that a single one touches one
 * page. */
struct batch {
	uint32_t n;
	struct {
		struct ibv_send_wr wr;
		struct ibv_sge sges[VERBS_SGES_MAX];
	} works[VERBS_POST_MAX];
};

/* False: no piece is left, or the buffer has no room now. */
static bool bounce_build(struct verbs_qp *qp, struct verbs_frame *frame, uint32_t shift, struct verbs_wr *wr,
			 struct ibv_sge *sge, uint64_t *remote)
{
	uint32_t at = frame->at, done = frame->at_done, most = verbs_qp_share(qp)->read_bytes;
	struct read_piece piece;
	if (!piece_take(frame, shift, most < VERBS_BOUNCE_PIECE ? most : VERBS_BOUNCE_PIECE, &piece))
		return false;
	if (!gw_verbs_bounce_take(qp, piece.bytes, wr)) {
		frame->at = at;
		frame->at_done = done;
		return false;
	}
	*remote = piece.remote;
	wr->bytes = piece.bytes;
	wr->bounce_to = piece.local;
	*sge = (struct ibv_sge){
		.addr = (uintptr_t)qp->bounce.base + wr->bounce_at, .length = piece.bytes, .lkey = qp->bounce.mr->lkey};
	return true;
}

/* Returns the number of scatter elements; 0: no piece is left. */
static uint32_t direct_build(struct verbs_qp *qp, struct verbs_frame *frame, uint32_t shift, struct verbs_wr *wr,
			     struct ibv_sge *sges, uint64_t *remote)
{
	uint32_t count = 0, most = verbs_qp_share(qp)->read_bytes;
	struct read_piece piece;
	while (count < qp->sges_max && wr->bytes < most) {
		if (count && !piece_follows(frame, shift, *remote + wr->bytes))
			break;
		if (!piece_take(frame, shift, most - wr->bytes, &piece))
			break;
		if (count == 0)
			*remote = piece.remote;
		sges[count++] = (struct ibv_sge){
			.addr = (uintptr_t)piece.local, .length = piece.bytes, .lkey = frame->mr->lkey};
		wr->bytes += piece.bytes;
	}
	return count;
}

/* False: no piece is left, or the bounce buffer has no room now. */
static bool read_build(struct verbs_qp *qp, struct verbs_frame *frame, struct batch *batch)
{
	struct verbs_wr *wr = verbs_qp_next(qp);
	struct ibv_sge *sges = batch->works[batch->n].sges;
	uint32_t shift = frame->place->shift, count;
	uint64_t remote = 0;
	*wr = (struct verbs_wr){.work = VERBS_READ, .frame = frame};
	if (__builtin_expect(frame->stage != NULL, 0))
		count = gw_verbs_rows_build(qp, frame, wr, sges, &remote);
	else if (frame->mr)
		count = direct_build(qp, frame, shift, wr, sges, &remote);
	else
		count = bounce_build(qp, frame, shift, wr, sges, &remote);
	if (count == 0)
		return false;
	qp->head++;
	verbs_qp_acquire(qp, wr->bytes);
	frame->open++;
	bool signal = ++qp->unsignalled >= VERBS_SIGNAL_EVERY;
	qp->unsignalled = signal ? 0 : qp->unsignalled;
	/* Set field by field: a read uses no other field, and clearing all took longer than setting these. */
	struct ibv_send_wr *out = &batch->works[batch->n].wr;
	out->wr_id = verbs_wr_id(qp);
	out->next = NULL;
	out->sg_list = sges;
	out->num_sge = (int)count;
	out->opcode = IBV_WR_RDMA_READ;
	out->send_flags = signal ? IBV_SEND_SIGNALED : 0;
	out->wr.rdma.remote_addr = frame->place->base + remote;
	memcpy(&out->wr.rdma.rkey, frame->place->keys + 4 * (remote >> shift), 4);
	if (batch->n)
		batch->works[batch->n - 1].wr.next = out;
	batch->n++;
	return true;
}

/* As many work requests as the queue pair has room for; false: none. */
static bool post_batch(struct verbs_endpoint *endpoint, struct verbs_qp *qp)
{
	struct batch batch;
	batch.n = 0;
	while (endpoint->waiting && batch.n < VERBS_POST_MAX && verbs_qp_room(qp)) {
		struct verbs_frame *frame = endpoint->waiting;
		if (read_build(qp, frame, &batch) && frame->at < frame->n)
			continue;
		if (frame->at < frame->n)
			break;
		read_unwait(endpoint, frame);
		if (!frame->open)
			frame_landed(endpoint, frame);
	}
	if (!batch.n)
		return false;
	/* Signal the last work request: a later one that would be signalled may never be posted. */
	batch.works[batch.n - 1].wr.send_flags = IBV_SEND_SIGNALED;
	qp->unsignalled = 0;
	gw_verbs_qp_post(qp, &batch.works[0].wr, batch.n);
	return true;
}

void gw_verbs_reads_pump(struct verbs_endpoint *endpoint)
{
	uint32_t refused = 0;
	while (endpoint->waiting && refused < endpoint->qp_count) {
		struct verbs_qp *qp = endpoint->conns[endpoint->turn].qp;
		if (++endpoint->turn >= endpoint->qp_count)
			endpoint->turn = 0;
		if (qp->failure)
			return;
		refused = post_batch(endpoint, qp) ? 0 : refused + 1;
	}
}

/* --- The calls. --- */

/* The MR of a buffer on the endpoint's device. If it has none, *mr is NULL, and the queue pairs get bounce buffers. */
static gw_status read_destination(struct verbs_endpoint *endpoint, struct gw_buffer *buffer, struct ibv_mr **mr)
{
	struct verbs_device *device = endpoint->poller->device;
	struct verbs_buffer_mrs *mrs = buffer->words[gw_transport_verbs.number];
	if (!mrs)
		mrs = buffer->words[gw_transport_verbs.number] = gw_calloc(1, sizeof(*mrs));
	if (!mrs)
		return GW_NO_MEMORY;
	struct verbs_cached_mr **cached = &mrs->on[endpoint->poller->index];
	if (*cached && (*cached)->device != device) {
		gw_verbs_mr_cache_put(*cached, buffer->base, buffer->bytes); /* it belonged to a removed device */
		*cached = NULL;
	}
	if (!*cached)
		*cached = gw_verbs_mr_cache_get(device, buffer->base, buffer->bytes);
	if (!*cached)
		return GW_NO_MEMORY;
	*mr = (*cached)->mr;
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < endpoint->qp_count && !*mr && status == GW_OK; i++)
		if (!endpoint->conns[i].qp->bounce.base)
			status = gw_verbs_pages_create(device->pd, VERBS_BOUNCE_BYTES, &endpoint->conns[i].qp->bounce);
	return status;
}

/* The source of a read call, and the MR of its destination. */
struct read_source {
	const struct gw_region *region;
	const struct verbs_place *place;
	struct gw_dynamic_region_entry *dynamic; /* entry of a dynamic region; else NULL */
	struct ibv_mr *mr;
	bool staged; /* versioned rows */
};

gw_status gw_verbs_words_check(const struct verbs_endpoint *endpoint, const struct gw_region *region)
{
	const struct gw_row_format *format = &region->rows.format;
	if (region->kind != GW_REGION_VERSIONED || format->versioned || format->payload_bytes == 1 ||
	    endpoint->whole_words)
		return GW_OK;
	return gw_fail(
		GW_UNSUPPORTED,
		"rows of %u bytes that change: the server's RDMA device does not promise to read such a row in one "
		"access; request them instead",
		format->payload_bytes);
}

static gw_status read_source(struct verbs_endpoint *endpoint, const struct gw_region *region,
			     struct read_source *source)
{
	gw_status status = gw_check_region(&endpoint->base, region);
	if (status != GW_OK)
		return status;
	if (region->id < GW_REGIONS_MAX) {
		source->region = &endpoint->regions[region->id];
		source->place = &endpoint->places[region->id];
	} else {
		source->dynamic = gw_dynamic_region_find(&endpoint->base, region->id, region->generation);
		source->region = &source->dynamic->region;
		source->place = source->dynamic->mapping; /* verbs_dynamic_keys begins with the place */
	}
	if (source->region->kind != GW_REGION_VERSIONED)
		return GW_OK;
	source->staged = source->region->rows.format.versioned;
	return source->staged ? gw_verbs_rows_begin(endpoint) : gw_verbs_words_check(endpoint, source->region);
}

/* False: the set has failed, and the call counts as accepted. */
static bool read_begin(struct verbs_endpoint *endpoint, struct gw_read_set *set, const struct gw_region *region,
		       struct gw_buffer *buffer, struct read_source *source)
{
	char text[GW_ADDRESS_MAX];
	bool fresh = !gw_read_set_private(set)->link;
	gw_read_set_start(&endpoint->sets, set);
	if (set->status)
		return false;
	if (fresh && set->deadline_ns)
		verbs_timer(endpoint->loop, set->deadline_ns);
	gw_status status;
	if (endpoint->phase != ENDPOINT_OPENED)
		status = gw_fail(GW_PEER_LOST, "%s is not connected", gw_verbs_name(endpoint, text));
	else if (set->deadline_ns && set->deadline_ns != GW_NO_DEADLINE && gw_past_ns() >= set->deadline_ns)
		status = gw_fail(GW_DEADLINE, "the deadline passed before the read began");
	else
		status = read_source(endpoint, region, source);
	if (status == GW_OK)
		status = read_destination(endpoint, buffer, &source->mr);
	if (status != GW_OK)
		gw_read_set_fail(set, status);
	return status == GW_OK;
}

static size_t read_end(struct verbs_endpoint *endpoint, struct gw_read_set *set, size_t n, size_t taken, bool last)
{
	if (set->status && set->frames_open)
		gw_verbs_set_drop(endpoint, set);
	taken = gw_read_set_end(&endpoint->loop->completions, set, n, taken, last);
	if (taken < n)
		endpoint->room_wanted = true;
	return taken;
}

static struct verbs_frame *frame_begin(struct verbs_endpoint *endpoint, struct gw_read_set *set,
				       const struct read_source *source, const struct gw_buffer *buffer)
{
	struct verbs_frame *frame = endpoint->free_frames;
	if (!frame)
		return NULL;
	frame->stage = source->staged ? gw_verbs_stage_acquire(endpoint) : NULL;
	if (source->staged && !frame->stage)
		return NULL;
	endpoint->free_frames = frame->next;
	/* Set field by field: clearing it first takes three times as long. The caller sets the ranges. */
	frame->set = set;
	frame->base = buffer->base;
	frame->mr = source->mr;
	frame->spans = NULL;
	frame->at = frame->at_done = frame->open = 0;
	frame->place = source->place;
	frame->rows = &source->region->rows;
	frame->dynamic = source->dynamic;
	if (frame->dynamic)
		frame->dynamic->reads++;
	frame->dying = false;
	read_wait(endpoint, frame);
	set->frames_open++;
	endpoint->frames_open++;
	endpoint->loop->open++;
	return frame;
}

size_t gw_verbs_read(struct gw_endpoint *base, struct gw_read_set *set, const struct gw_region *region,
		     struct gw_buffer *buffer, const struct gw_reads *reads, bool last)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;
	struct read_source source = {0};
	size_t n = reads->n;
	if (set->done)
		return n;
	if (!read_begin(endpoint, set, region, buffer, &source))
		return read_end(endpoint, set, n, n, last);
	gw_status status = gw_check_reads(source.region, buffer, reads);
	if (status != GW_OK) {
		gw_read_set_fail(set, status);
		return read_end(endpoint, set, n, n, last);
	}
	size_t taken = 0, most = source.staged ? STAGE_ROWS : FRAME_RANGES_MAX;
	while (taken < n) {
		struct verbs_frame *frame = frame_begin(endpoint, set, &source, buffer);
		if (!frame)
			break;
		if (reads->gather)
			frame->gather = gw_gather_from(reads->gather, taken);
		else
			frame->spans = reads->spans + taken;
		frame->n = (uint32_t)(n - taken < most ? n - taken : most);
		taken += frame->n;
	}
	gw_verbs_reads_pump(endpoint);
	return read_end(endpoint, set, n, taken, last);
}

void gw_verbs_cancel(struct gw_endpoint *base, struct gw_read_set *set)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;
	if (set->done || !gw_read_set_private(set)->link)
		return;
	gw_read_set_fail(set, gw_fail(GW_CANCELLED, "cancelled"));
	set->last_accepted = true;
	gw_verbs_set_drop(endpoint, set);
}
