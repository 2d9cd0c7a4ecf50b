/* The gather step: see gather.h.
 *
 * If this process can address all of the rows, one pass copies them. A long list takes several slices, between which
 * the engine does its other work. If it can address only the rows of some parts, the requests for the others are sent
 * first, and their owners work while the copies are made. Rows of the others that are near (near_rows.h) are copied
 * before those that are here. If a server's memory is lost between two slices, a request fetches the rest.
 *
 * A long list is sent in pieces, each as long as all pieces before it together. The owners begin with the first piece
 * while the engine still processes the rest. If the rows of an owner should be read in the order of their addresses,
 * the whole list is one piece, so that adjacent rows come together.
 *
 * With one owner, row i of the answer is row i of the output, and the answer is received in place. With several owners,
 * the transport scatters each owner's rows to their places. If the list has many duplicate ids, each id is fetched
 * once, and the row is copied to its other places at the end. Rows that are adjacent both at the owner and in the
 * output become one span, if at least half of the rows follow another row in this way.
 *
 * With a window (row_window.h), gather_ahead.c plans which of the rows out of reach are fetched, and copies the others
 * when these have landed.
 *
 * Rows that land as they are stored, to be converted, are converted slice by slice at the end. Their memory may be the
 * output's: `at` says which rows have their final form, also if memory is lost after some slices of the first way.
 */
#include "client/rows/gather.h"

#include <stddef.h>
#include <string.h>

#include "client/engine/engine.h"
#include "client/rows/buffer.h"
#include "client/rows/gather_private.h"
#include "client/rows/local_rows.h"
#include "client/rows/rows_pull.h"
#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/numbers/sort.h"
#include "core/system/clock.h"
#include "core/system/trace.h"

#define SPAN_BYTES_MAX GW_ROW_BYTES_MAX
#define FIRST_PIECE    2048u      /* rows */
#define PIECES_MAX     33u        /* enough for 2^32 rows, plus one */
#define DIVIDED_ROWS   1024u      /* a step divides this many rows into local and other ones */
#define SLICE_ROWS     (1u << 17) /* local rows of one slice */
#define SLICE_BYTES    (64u << 20)

gw_status gw_gather_op_init(struct gw_gather_op *op, struct gw_engine *engine)
{
	memset(op, 0, sizeof(*op));
	op->engine = engine;
	uint32_t parts = engine->client->meta->num_parts;
	op->origins = gw_calloc(parts, sizeof(*op->origins));
	op->was_here = gw_calloc(parts, sizeof(*op->was_here));
	gw_status status = gw_row_lists_init(&op->lists, parts);
	if (status != GW_OK || !op->origins || !op->was_here) {
		gw_gather_op_free(op);
		return GW_NO_MEMORY;
	}
	return GW_OK;
}

void gw_gather_op_trim(struct gw_gather_op *op, size_t bytes)
{
	struct gw_vec *vecs[] = {&op->lists.owners, &op->lists.remote, &op->lists.to, &op->spans,     &op->lists.seen,
				 &op->lists.copies, &op->sorting,      &op->here,     &op->elsewhere, &op->near_list};
	const size_t count = sizeof(vecs) / sizeof(vecs[0]);
	size_t held = 0;
	for (size_t i = 0; i < count; i++)
		held += vecs[i]->capacity;
	for (size_t i = 0; i < count && held > bytes; i++)
		gw_vec_free(vecs[i]);
}

void gw_gather_op_free(struct gw_gather_op *op)
{
	gw_gather_op_trim(op, 0);
	gw_pulls_free(op->pulls, op->pull_room);
	gw_free(op->link_ops);
	gw_row_lists_free(&op->lists);
	gw_window_share_free(&op->share);
	gw_free(op->origins);
	gw_free(op->was_here);
	memset(op, 0, sizeof(*op)); /* the owner of an op that could not be made may free it too */
}

static struct gw_gather_op *gather_of(struct gw_fan_in *reads)
{
	return (struct gw_gather_op *)((char *)reads - offsetof(struct gw_gather_op, reads));
}

static bool converts(const struct gw_gather_op *op)
{
	return op->to.conversion.to_bytes > 0;
}

static void gather_read_done(struct gw_link_op *link_op, gw_status status, const struct gw_completion *completion)
{
	(void)completion;
	struct gw_gather_op *op = link_op->owner;
	link_op->owner = NULL;
	gw_fan_in_end_one(&op->reads, status);
}

static void gather_cancel_reads(struct gw_fan_in *reads)
{
	struct gw_gather_op *op = gather_of(reads);
	for (uint64_t i = 0; i < op->link_op_count; i++) {
		if (op->link_ops[i].owner)
			gw_link_cancel(&op->link_ops[i]);
	}
	if (op->parked)
		gw_gather_unpark(op);
}

uint64_t gw_gather_slice_rows(const struct gw_gather_op *op, uint64_t left)
{
	const uint64_t bytes = converts(op) ? op->to.conversion.to_bytes : op->row_bytes;
	uint64_t most = SLICE_BYTES / (bytes ? bytes : 1);
	most = most < SLICE_ROWS ? most : SLICE_ROWS;
	return left < most ? left : most;
}

static void convert_landed(struct gw_job_slice *slice)
{
	struct gw_gather_op *op = (struct gw_gather_op *)((char *)slice - offsetof(struct gw_gather_op, slice));
	const struct gw_conversion *conversion = &op->to.conversion;
	const uint64_t rows = op->reads.status == GW_OK ? gw_gather_slice_rows(op, op->n - op->at) : 0;
	gw_convert_rows(conversion, op->to.rows + op->at * conversion->from_bytes,
			op->to.out + op->at * conversion->to_bytes, rows);
	op->at += rows;
	if (rows > 0 && op->at < op->n)
		gw_engine_continue(op->engine, slice);
	else
		gw_fan_in_end_one(&op->reads, op->reads.status);
}

/* All rows have landed; or, in later calls, are copied from the window, and are converted. */
static void gather_done(struct gw_fan_in *reads, gw_status status)
{
	struct gw_gather_op *op = gather_of(reads);
	if (status == GW_OK)
		gw_row_lists_copy_duplicates(&op->lists, op->to.rows, op->row_bytes);
	op->lists.copy_count = 0;
	if (status == GW_OK && op->stage != GW_GATHER_PLAIN) {
		gw_fan_in_begin(reads, reads->job, gather_cancel_reads, gather_done);
		op->slice.run = gw_gather_follow;
		gw_gather_follow(&op->slice);
		return;
	}
	if (status == GW_OK && converts(op) && op->at < op->n) {
		gw_fan_in_begin(reads, reads->job, gather_cancel_reads, gather_done);
		op->slice.run = convert_landed;
		convert_landed(&op->slice);
		return;
	}
	if (op->share.window)
		gw_row_window_leave(&op->share);
	gw_buffer_release(op->own);
	op->own = NULL;
	op->done(op, status);
}

void gw_gather_op_cancel(struct gw_gather_op *op)
{
	gw_fan_in_cancel(&op->reads);
}

/* Counts the rows that directly follow the row before them, both in the source and in the destination. */
static uint64_t count_adjacent(const uint64_t *remote, const uint32_t *to, uint64_t n, uint64_t row_bytes)
{
	uint64_t adjacent = 0;
	for (uint64_t i = 1; i < n; i++)
		adjacent += remote[i] == remote[i - 1] + row_bytes && to[i] == to[i - 1] + 1;
	return adjacent;
}

/* Whether the destinations of the rows are consecutive, so that the answer can be received in place. */
static bool is_run(const uint32_t *to, uint64_t n)
{
	for (uint64_t i = 1; i < n; i++) {
		if (to[i] != to[i - 1] + 1)
			return false;
	}
	return true;
}

static uint64_t gather_build_spans(struct gw_gather_op *op, struct gw_span *spans, uint64_t first, uint64_t n,
				   uint64_t local)
{
	const uint64_t *remote = (uint64_t *)op->lists.remote.data + first;
	const uint32_t *to = (uint32_t *)op->lists.to.data + first;
	uint64_t count = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct gw_span *last = count ? &spans[count - 1] : NULL;
		uint64_t at = local + to[i] * op->row_bytes;
		if (last && last->remote + last->bytes == remote[i] && last->local + last->bytes == at &&
		    last->bytes + op->row_bytes <= SPAN_BYTES_MAX)
			last->bytes += (uint32_t)op->row_bytes;
		else
			spans[count++] =
				(struct gw_span){.remote = remote[i], .local = at, .bytes = (uint32_t)op->row_bytes};
	}
	return count;
}

static bool wants_order(const struct gw_gather_op *op, uint32_t part)
{
	const struct gw_client *client = op->engine->client;
	const struct gw_endpoint *endpoint = gw_engine_link(op->engine, part)->endpoint;
	if (op->from.on_disk && op->from.places[part].on_disk && client->order != GW_ADDRESS_ORDER_NEVER)
		return true;
	return client->order == GW_ADDRESS_ORDER_ALWAYS ||
	       (client->order == GW_ADDRESS_ORDER_AUTO && endpoint && endpoint->transport->order_pays);
}

/* Mutable rows, and rows on disk, are fetched as rows_pull.h describes. */
static void pull_part(struct gw_gather_op *op, struct gw_link_op *link_op, const struct gw_rows *rows, uint32_t part,
		      uint64_t first, uint64_t local)
{
	struct gw_pull *pull = &op->pulls[link_op - op->link_ops];
	pull->name = rows->name;
	pull->place = &rows->places[part];
	pull->epoch = rows->epochs ? rows->epochs[part] : 0;
	pull->rows = (uint64_t *)op->lists.remote.data + first;
	pull->to = (uint32_t *)op->lists.to.data + first;
	pull->count = link_op->count;
	pull->step = rows->step;
	pull->out = op->to.rows;
	pull->out_local = local;
	pull->row_bytes = op->row_bytes;
	pull->reads = &op->reads;
	pull->read = rows->read ? &rows->read[(size_t)op->engine->number * rows->read_stride + part] : NULL;
	gw_pull_start(pull, gw_engine_link(op->engine, part), link_op);
}

static void post_part(struct gw_gather_op *op, struct gw_link_op *link_op, const struct gw_rows *rows, uint32_t part,
		      uint64_t first, struct gw_buffer *buffer)
{
	const bool pulled = rows->epochs || rows->places[part].on_disk;
	uint64_t n = link_op->count;
	uint64_t *remote = (uint64_t *)op->lists.remote.data + first;
	uint32_t *to = (uint32_t *)op->lists.to.data + first;
	uint64_t local = (uint64_t)(op->to.rows - buffer->base);
	link_op->buffer = buffer;
	link_op->region = rows->places[part].region;
	link_op->generation = rows->places[part].generation;
	link_op->job = op->reads.job;
	link_op->done = gather_read_done;
	link_op->owner = op;
	if (n > 1 && wants_order(op, part) && gw_sort_rows(remote, to, n, &op->sorting) != GW_OK)
		gw_log(GW_LOG_DEBUG, "rows are fetched unsorted: %s", gw_last_error());
	/* Mutable rows are read one by one. */
	if (n > 1 && !pulled && count_adjacent(remote, to, n, op->row_bytes) * 2 >= n) {
		struct gw_span *spans = (struct gw_span *)op->spans.data + first;
		link_op->form = GW_LINK_SPANS;
		link_op->count = gather_build_spans(op, spans, first, n, local);
		link_op->spans = spans;
	} else {
		bool in_order = is_run(to, n);
		link_op->form = GW_LINK_GATHER;
		link_op->count = n;
		link_op->gather = (struct gw_gather){.remote = remote,
						     .rows = in_order ? NULL : to,
						     .local = in_order ? local + to[0] * op->row_bytes : local,
						     .row_bytes = (uint32_t)op->row_bytes,
						     .stride = (uint32_t)op->row_bytes};
	}
	if (pulled)
		pull_part(op, link_op, rows, part, first, local);
	else
		gw_engine_post(op->engine, part, link_op);
}

/* Address order needs the whole list at once, so that adjacent rows come together. */
static bool goes_in_pieces(const struct gw_gather_op *op)
{
	const enum gw_gather_order order = op->engine->client->order;
	return order != GW_ADDRESS_ORDER_ALWAYS && (order != GW_ADDRESS_ORDER_AUTO || !op->engine->ordered_links);
}

/* The next piece ends twice as far into the list as the piece before it. A small rest of the list joins this piece. */
static struct gw_row_piece next_piece(const struct gw_row_piece *before, uint64_t n)
{
	uint64_t end = 2 * before->end + FIRST_PIECE;
	return (struct gw_row_piece){before->end, n < end + FIRST_PIECE ? n : end};
}

/* One more piece than the list has: for the rows of memory that is lost between two slices. And one for the rows that a
 * window has not. */
static gw_status link_ops_room(struct gw_gather_op *op, uint64_t n)
{
	uint64_t pieces = op->share.window ? 3 : 2, parts = op->engine->client->meta->num_parts;
	for (uint64_t end = FIRST_PIECE; end < n && pieces <= PIECES_MAX; end = 2 * end + FIRST_PIECE)
		pieces++;
	op->link_op_count = 0;
	if (pieces * parts <= op->link_op_room)
		return GW_OK;
	gw_free(op->link_ops);
	op->link_ops = gw_calloc(pieces * parts, sizeof(*op->link_ops));
	op->link_op_room = op->link_ops ? pieces * parts : 0;
	return op->link_ops ? GW_OK : GW_NO_MEMORY;
}

static gw_status gather_check(const struct gw_rows *rows, uint64_t n)
{
	if (n > UINT32_MAX || rows->row_bytes > SPAN_BYTES_MAX)
		return gw_fail(GW_LIMIT, "%llu rows of %llu bytes in one call: at most 2^32 - 1 rows of %u bytes",
			       (unsigned long long)n, (unsigned long long)rows->row_bytes, SPAN_BYTES_MAX);
	return GW_OK;
}

static gw_status gather_find_buffer(struct gw_gather_op *op)
{
	uint64_t bytes = op->n * op->row_bytes;
	if (!op->to.buffer)
		op->to.buffer = gw_buffer_find(op->engine, op->to.rows, bytes);
	if (op->to.buffer)
		return GW_OK;
	gw_status status = gw_buffer_register(op->engine->group, op->to.rows, bytes, &op->own);
	op->to.buffer = op->own;
	return status;
}

gw_status gw_gather_prepare(struct gw_gather_op *op)
{
	const struct gw_rows *rows = &op->from;
	uint64_t n = op->n;
	if (gw_row_lists_begin(&op->lists, n, op->unique) != GW_OK ||
	    gw_vec_reserve(&op->spans, n * sizeof(struct gw_span)) != GW_OK || link_ops_room(op, n) != GW_OK ||
	    ((rows->epochs || rows->on_disk) &&
	     gw_pulls_reserve(&op->pulls, &op->pull_room, op->link_op_room) != GW_OK))
		return GW_NO_MEMORY;
	return gather_find_buffer(op);
}

gw_status gw_gather_post_piece(struct gw_gather_op *op, const struct gw_row_piece *piece)
{
	const struct gw_row_ids ids = {&op->from, op->ids, op->divided.elsewhere, op->only_owner};
	gw_status status = gw_row_lists_add(&op->lists, &ids, piece);
	if (status != GW_OK)
		return status;
	struct gw_link_op *link_ops = op->link_ops + op->link_op_count;
	op->link_op_count += op->lists.parts;
	uint64_t first = piece->first;
	for (uint32_t p = 0; p < op->lists.parts; p++) {
		uint64_t count = link_ops[p].count = op->lists.counts[p];
		if (count > 0 && op->reads.status == GW_OK) {
			gw_fan_in_add(&op->reads);
			post_part(op, &link_ops[p], &op->from, p, first, op->to.buffer);
		}
		first += count;
	}
	return GW_OK;
}

gw_status gw_gather_divide(struct gw_gather_op *op, const struct gw_local_rows *local)
{
	if (gw_vec_reserve(&op->here, op->n * sizeof(uint32_t)) != GW_OK ||
	    gw_vec_reserve(&op->elsewhere, op->n * sizeof(uint32_t)) != GW_OK ||
	    (op->near.sets && gw_vec_reserve(&op->near_list, op->n * sizeof(uint32_t)) != GW_OK))
		return GW_NO_MEMORY;
	op->divided = (struct gw_divided_rows){.here = op->here.data, .elsewhere = op->elsewhere.data};
	op->divides = true;
	uint32_t others = 0, other = 0;
	for (uint32_t p = 0; p < local->parts; p++) {
		op->was_here[p] = local->origins[p] != 0;
		others += !op->was_here[p];
		other = op->was_here[p] ? other : p;
	}
	op->only_owner = others == 1 ? other : UINT32_MAX;
	return GW_OK;
}

void gw_gather_divide_near(struct gw_gather_op *op, uint64_t before)
{
	struct gw_divided_rows *divided = &op->divided;
	const uint64_t found =
		gw_near_rows_divide(&op->near, op->ids, divided->elsewhere + before, divided->elsewhere_count - before,
				    (uint32_t *)op->near_list.data + op->near_count);
	divided->elsewhere_count -= found;
	op->near_count += found;
}

/* Divides the list of ids from *at on, until the rows elsewhere that are not posted fill a piece, or the list ends. */
static gw_status divide_piece(struct gw_gather_op *op, const struct gw_local_rows *local, uint64_t *at,
			      struct gw_row_piece *piece)
{
	while (*at < op->n && op->divided.elsewhere_count < piece->end) {
		uint64_t end = op->n - *at < DIVIDED_ROWS ? op->n : *at + DIVIDED_ROWS;
		const uint64_t before = op->divided.elsewhere_count;
		*at = gw_local_rows_divide(local, op->ids, *at, end, &op->divided);
		if (*at < end)
			return gw_fail_id("id", op->ids[*at], *at, local->starts[local->parts]);
		if (op->near.sets)
			gw_gather_divide_near(op, before);
	}
	piece->end = op->divided.elsewhere_count;
	return GW_OK;
}

static gw_status gather_post_elsewhere(struct gw_gather_op *op, const struct gw_local_rows *local)
{
	gw_status status = gw_gather_prepare(op);
	if (status == GW_OK)
		status = gw_gather_divide(op, local);
	bool in_pieces = status == GW_OK && goes_in_pieces(op);
	struct gw_row_piece piece = {0, 0};
	for (uint64_t at = op->at; at < op->n && status == GW_OK && op->reads.status == GW_OK;) {
		piece = (struct gw_row_piece){piece.end, in_pieces ? 2 * piece.end + FIRST_PIECE : op->n};
		status = divide_piece(op, local, &at, &piece);
		if (status == GW_OK && piece.end > piece.first)
			status = gw_gather_post_piece(op, &piece);
	}
	return status;
}

gw_status gw_gather_post_pieces(struct gw_gather_op *op, uint64_t first, uint64_t end)
{
	gw_status status = GW_OK;
	bool in_pieces = goes_in_pieces(op);
	for (struct gw_row_piece piece = {first, first};
	     piece.end < end && status == GW_OK && op->reads.status == GW_OK;) {
		piece = in_pieces ? next_piece(&piece, end) : (struct gw_row_piece){first, end};
		status = gw_gather_post_piece(op, &piece);
	}
	return status;
}

static gw_status gather_post(struct gw_gather_op *op)
{
	gw_status status = gw_gather_prepare(op);
	return status == GW_OK ? gw_gather_post_pieces(op, op->at, op->n) : status;
}

/* Posts the reads of the rows that were here, and are no longer. */
static gw_status gather_post_lost(struct gw_gather_op *op)
{
	struct gw_divided_rows *divided = &op->divided;
	struct gw_row_piece piece = {divided->elsewhere_count, divided->elsewhere_count};
	op->only_owner = UINT32_MAX;
	for (; op->near_at < op->near_count; op->near_at++)
		divided->elsewhere[piece.end++] = ((uint32_t *)op->near_list.data)[op->near_at];
	for (; op->here_at < divided->here_count; op->here_at++)
		divided->elsewhere[piece.end++] = divided->here[op->here_at];
	divided->elsewhere_count = piece.end;
	return gw_gather_post_piece(op, &piece);
}

static void count_copied(const struct gw_gather_op *op, uint64_t rows)
{
	gw_gather_count(&op->engine->copied_bytes, rows * op->row_bytes);
}

/* GW_AGAIN: the next slice continues. */
static gw_status gather_copy(struct gw_gather_op *op, const struct gw_local_rows *local)
{
	const struct gw_landing *to = &op->to;
	const int64_t *ids = op->ids + op->at;
	uint64_t most = gw_gather_slice_rows(op, op->n - op->at), copied;
	if (converts(op))
		copied = gw_local_rows_convert(local, ids, most, &to->conversion,
					       to->out + op->at * to->conversion.to_bytes);
	else
		copied = gw_local_rows_copy(local, ids, most, to->rows + op->at * op->row_bytes);
	op->at += copied;
	count_copied(op, copied);
	if (copied < most)
		return gw_fail_id("id", op->ids[op->at], op->at, local->starts[local->parts]);
	return op->at < op->n ? GW_AGAIN : GW_OK;
}

/* The same for rows that are near. A server that breaks its index while it is mapped loses the rest: requests fetch
 * it. */
static gw_status gather_copy_near(struct gw_gather_op *op)
{
	const uint32_t *list = (uint32_t *)op->near_list.data + op->near_at;
	const uint64_t most = gw_gather_slice_rows(op, op->near_count - op->near_at);
	const uint64_t copied = gw_near_rows_copy(&op->near, op->ids, list, most, op->to.rows);
	op->near_at += copied;
	count_copied(op, copied);
	for (uint32_t s = 0; s < op->near.sets; s++) {
		const struct gw_near_set *set = &op->near.set[s];
		gw_gather_count(&set->link->counts.near_rows, set->copied);
		gw_gather_count(&set->link->counts.near_bytes, set->copied * op->row_bytes);
	}
	if (copied < most)
		return gather_post_lost(op);
	return op->near_at < op->near_count || op->divided.here_count ? GW_AGAIN : GW_OK;
}

/* The same for the rows that are here, if others are elsewhere. */
static gw_status gather_copy_here(struct gw_gather_op *op, const struct gw_local_rows *local)
{
	const uint32_t *list = op->divided.here + op->here_at;
	uint64_t most = gw_gather_slice_rows(op, op->divided.here_count - op->here_at);
	uint64_t copied = gw_local_rows_copy_listed(local, op->ids, list, most, op->to.rows);
	op->here_at += copied;
	count_copied(op, copied);
	if (copied < most)
		return gw_fail_id("id", op->ids[list[copied]], list[copied], local->starts[local->parts]);
	return op->here_at < op->divided.here_count ? GW_AGAIN : GW_OK;
}

/* Finds the parts whose rows copies may fetch, and the replicas of rows of the others. Returns the number of the parts.
 * After the deadline, copies may fetch no rows, so that the transport reports the deadline. The first slice does not
 * look at the clock, which takes a tenth of the time of one row; the slice ends within milliseconds. */
static uint32_t gather_find_local(struct gw_gather_op *op, struct gw_local_rows *local)
{
	local->origins = op->origins;
	local->parts = 0;
	op->near.sets = 0;
	uint32_t found = 0;
	if (op->engine->client->order != GW_ADDRESS_ORDER_ALWAYS)
		found = gw_local_rows_find(op->engine, &op->from, local);
	if (found < local->parts && op->from.near)
		gw_near_rows_find(op->engine, &op->from, &op->near);
	const bool reaches = found || op->near.sets, began = op->at > 0 || op->here_at > 0 || op->near_at > 0;
	uint64_t now = reaches && began ? gw_now_ns() : 0;
	if (now < gw_job_deadline(op->reads.job, now))
		return found;
	op->near.sets = 0;
	return 0;
}

/* reaches: copies may fetch rows. */
static bool still_here(const struct gw_gather_op *op, const struct gw_local_rows *local, bool reaches)
{
	for (uint32_t p = 0; reaches && p < local->parts; p++) {
		if (op->was_here[p] && !local->origins[p])
			return false;
	}
	return reaches;
}

static gw_status gather_step(struct gw_gather_op *op)
{
	struct gw_local_rows local;
	if (op->stage == GW_GATHER_DIVIDED)
		return gw_gather_plan(op);
	const uint32_t found = gather_find_local(op, &local);
	const bool reaches = found || op->near.sets;
	if (op->divides && !still_here(op, &local, reaches))
		return gather_post_lost(op);
	if (op->divides)
		return op->near_at < op->near_count ? gather_copy_near(op) : gather_copy_here(op, &local);
	const bool all_here = found && found == local.parts;
	if (op->counts)
		return all_here ? GW_OK : gw_gather_divide_all(op, reaches ? &local : NULL);
	if (op->share.window && op->at == 0 && all_here)
		gw_row_window_pass(op->share.window, op->share.number);
	if (all_here)
		return gather_copy(op, &local);
	if (op->share.window && op->at == 0)
		return gw_gather_divide_all(op, reaches ? &local : NULL);
	gw_status status = reaches ? gather_post_elsewhere(op, &local) : gather_post(op);
	return status == GW_OK && (op->near_count || op->divided.here_count) ? GW_AGAIN : status;
}

static void gather_go_on(struct gw_job_slice *slice)
{
	struct gw_gather_op *op = (struct gw_gather_op *)((char *)slice - offsetof(struct gw_gather_op, slice));
	static const struct gw_trace_form form = {"gather", "batch", {"rows"}, NULL};
	uint64_t began = gw_trace_span_begin();
	gw_status status = op->reads.status == GW_OK ? gather_step(op) : op->reads.status;
	gw_trace_span_end(&form, began, op->n, 0);
	if (status == GW_AGAIN && !op->parked)
		gw_engine_continue(op->engine, slice);
	else if (status != GW_AGAIN)
		gw_fan_in_end_one(&op->reads, status);
}

void gw_gather_op_start(struct gw_gather_op *op, struct gw_job *job, const struct gw_rows *rows, const int64_t *ids,
			uint64_t n, const struct gw_landing *to, bool unique)
{
	gw_fan_in_begin(&op->reads, job, gather_cancel_reads, gather_done);
	op->lists.copy_count = op->link_op_count = op->here_at = 0;
	op->near_count = op->near_at = 0;
	op->divided = (struct gw_divided_rows){0};
	op->divides = false;
	op->only_owner = UINT32_MAX;
	op->from = *rows;
	op->ids = ids;
	op->n = n;
	op->at = 0;
	op->unique = unique;
	op->to = *to;
	op->row_bytes = rows->row_bytes;
	op->stage = GW_GATHER_PLAIN;
	op->parked = false;
	op->slice.run = gather_go_on;
	gw_status status = gather_check(rows, n);
	if (status == GW_OK)
		gather_go_on(&op->slice);
	else
		gw_fan_in_end_one(&op->reads, status);
}
