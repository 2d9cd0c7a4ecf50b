/* The gather step: see gather.h.
 *
 * If this process can address all of the rows, one pass copies them. A long list takes several turns, between which the
 * engine does its other work. If a server's memory is lost between two turns, the other way fetches the rest.
 *
 * A long list is sent in pieces, each as long as all pieces before it together. The owners begin with the first piece
 * while the engine still processes the rest. If the rows of an owner should be read in the order of their addresses,
 * the whole list is one piece, so that adjacent rows come together.
 *
 * With one owner, row i of the answer is row i of the output, and the answer is received in place. With several owners,
 * the transport scatters each owner's rows to their places. If the list has many duplicate ids, each id is fetched
 * once, and the row is copied to its other places at the end. Rows that are adjacent both at the owner and in the
 * output become one span, if at least half of the rows follow another row in this way.
 */
#include "client/rows/gather.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "client/engine/engine.h"
#include "client/rows/buffer.h"
#include "client/rows/local_rows.h"
#include "client/rows/rows_pull.h"
#include "core/errors/log.h"
#include "core/graph/book.h"
#include "core/memory/alloc.h"
#include "core/numbers/sort.h"
#include "core/system/clock.h"

#define SPAN_BYTES_MAX GW_ROW_BYTES_MAX
#define SEEN_SLOTS_MAX (1u << 16)
#define DUPLICATES_PAY 8          /* duplicates are removed if at least one row in this many is a duplicate */
#define FIRST_PIECE    2048u      /* rows */
#define PIECES_MAX     33u        /* enough for 2^32 rows, plus one */
#define TURN_ROWS      (1u << 17) /* local rows of one turn */
#define TURN_BYTES     (64u << 20)

struct copy {
	uint64_t to, from; /* rows of out */
};

gw_status gw_gather_op_init(struct gw_gather_op *op, struct gw_engine *engine)
{
	memset(op, 0, sizeof(*op));
	op->engine = engine;
	uint32_t parts = engine->client->meta->num_parts;
	op->cursors = gw_calloc(parts, sizeof(*op->cursors));
	op->origins = gw_calloc(parts, sizeof(*op->origins));
	if (!op->cursors || !op->origins) {
		gw_gather_op_free(op);
		return GW_NO_MEMORY;
	}
	return GW_OK;
}

void gw_gather_op_trim(struct gw_gather_op *op, size_t bytes)
{
	struct gw_vec *vecs[] = {&op->owners, &op->remote, &op->rows, &op->spans, &op->seen, &op->copies, &op->sorting};
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
	gw_free(op->cursors);
	gw_free(op->origins);
	memset(op, 0, sizeof(*op)); /* the owner of an op that could not be made may free it too */
}

static struct gw_gather_op *gather_of(struct gw_fan_in *reads)
{
	return (struct gw_gather_op *)((char *)reads - offsetof(struct gw_gather_op, reads));
}

static void gather_done(struct gw_fan_in *reads, gw_status status)
{
	struct gw_gather_op *op = gather_of(reads);
	const struct copy *copies = op->copies.data;
	for (uint64_t i = 0; i < op->copy_count && status == GW_OK; i++)
		memcpy(op->out + copies[i].to * op->row_bytes, op->out + copies[i].from * op->row_bytes, op->row_bytes);
	gw_buffer_release(op->own);
	op->own = NULL;
	op->done(op, status);
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
}

void gw_gather_op_cancel(struct gw_gather_op *op)
{
	gw_fan_in_cancel(&op->reads);
}

/* A piece of the list: ids first to end - 1. */
struct gather_piece {
	uint64_t first, end;
};

/* Finds the owner of each id, and counts the ids of each owner. */
static gw_status find_owners(struct gw_gather_op *op, const struct gw_rows *rows, const int64_t *ids,
			     const struct gather_piece *piece)
{
	uint32_t parts = op->engine->client->meta->num_parts;
	uint64_t count = rows->starts[parts];
	uint32_t *owners = op->owners.data;
	bool striped = rows->striped;
	memset(op->cursors, 0, parts * sizeof(*op->cursors));
	for (uint64_t i = piece->first; i < piece->end; i++) {
		if ((uint64_t)ids[i] >= count)
			return gw_fail_id("id", ids[i], i, count);
		uint32_t owner = striped ? (uint32_t)((uint64_t)ids[i] % parts)
					 : gw_book_owner(rows->starts, parts, (uint64_t)ids[i]);
		owners[i] = owner;
		op->cursors[owner]++;
	}
	return GW_OK;
}

/* A small hash table that overwrites on collision. A duplicate that it misses is fetched twice, which is correct
 * too. */
static gw_status clear_seen(struct gw_gather_op *op, uint64_t n)
{
	uint64_t slots = 64;
	while (slots < 4 * n && slots < SEEN_SLOTS_MAX)
		slots *= 2;
	op->seen_slots = n < 2 ? 0 : slots;
	if (n < 2)
		return GW_OK;
	if (gw_vec_reserve(&op->seen, slots * 4) != GW_OK ||
	    gw_vec_reserve(&op->copies, n * sizeof(struct copy)) != GW_OK)
		return GW_NO_MEMORY;
	memset(op->seen.data, 0, slots * 4);
	return GW_OK;
}

/* Finds duplicates of ids in this piece or earlier ones. If there are enough of them, sets their owner to UINT32_MAX
 * and lists them as copies. The table contains only ids that are fetched, never duplicates. */
static void find_duplicates(struct gw_gather_op *op, const int64_t *ids, const struct gather_piece *piece)
{
	uint32_t *seen = op->seen.data;
	struct copy *copies = (struct copy *)op->copies.data + op->copy_count;
	uint64_t found = 0;
	for (uint64_t i = piece->first; i < piece->end && i < UINT32_MAX; i++) {
		uint64_t slot = ((uint64_t)ids[i] * 0x9e3779b97f4a7c15ull) >> 40 & (op->seen_slots - 1);
		uint32_t earlier = seen[slot];
		if (earlier && ids[earlier - 1] == ids[i])
			copies[found++] = (struct copy){.to = i, .from = earlier - 1};
		else
			seen[slot] = (uint32_t)i + 1;
	}
	if (found * DUPLICATES_PAY < piece->end - piece->first)
		return;
	uint32_t *owners = op->owners.data;
	for (uint64_t i = 0; i < found; i++) {
		op->cursors[owners[copies[i].to]]--;
		owners[copies[i].to] = UINT32_MAX;
	}
	op->copy_count += found;
}

/* Lists for each owner where its rows are stored and where they go. The piece has its own place in the lists; each
 * owner has link_ops[p].count rows. */
static void list_rows(struct gw_gather_op *op, struct gw_link_op *link_ops, const struct gw_rows *rows,
		      const int64_t *ids, const struct gather_piece *piece)
{
	uint32_t parts = op->engine->client->meta->num_parts;
	assert(parts > 0);
	uint64_t start = piece->first;
	for (uint32_t p = 0; p < parts; p++) {
		link_ops[p].count = op->cursors[p];
		op->cursors[p] = start;
		start += link_ops[p].count;
	}
	const uint32_t *owners = op->owners.data;
	uint64_t *remote = op->remote.data;
	uint32_t *to = op->rows.data;
	for (uint64_t i = piece->first; i < piece->end; i++) {
		uint32_t p = owners[i];
		if (p == UINT32_MAX)
			continue;
		uint64_t at = op->cursors[p]++;
		uint64_t row = rows->striped ? (uint64_t)ids[i] / parts : (uint64_t)ids[i] - rows->starts[p];
		remote[at] = rows->places[p].offset + row * rows->step;
		to[at] = (uint32_t)i;
	}
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
	const uint64_t *remote = (uint64_t *)op->remote.data + first;
	const uint32_t *to = (uint32_t *)op->rows.data + first;
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
	return client->order == GW_ADDRESS_ORDER_ALWAYS ||
	       (client->order == GW_ADDRESS_ORDER_AUTO && endpoint && endpoint->transport->order_pays);
}

/* Mutable rows are fetched as rows_pull.h describes. */
static void pull_part(struct gw_gather_op *op, struct gw_link_op *link_op, const struct gw_rows *rows, uint32_t part,
		      uint64_t first, uint64_t local)
{
	struct gw_pull *pull = &op->pulls[link_op - op->link_ops];
	pull->name = rows->name;
	pull->epoch = rows->epochs[part];
	pull->rows = (uint64_t *)op->remote.data + first;
	pull->to = (uint32_t *)op->rows.data + first;
	pull->count = link_op->count;
	pull->step = rows->step;
	pull->out = op->out;
	pull->out_local = local;
	pull->row_bytes = op->row_bytes;
	pull->reads = &op->reads;
	pull->read = rows->read ? &rows->read[(size_t)op->engine->number * rows->read_stride + part] : NULL;
	gw_pull_start(pull, gw_engine_link(op->engine, part), link_op);
}

static void post_part(struct gw_gather_op *op, struct gw_link_op *link_op, const struct gw_rows *rows, uint32_t part,
		      uint64_t first, struct gw_buffer *buffer)
{
	uint64_t n = link_op->count;
	uint64_t *remote = (uint64_t *)op->remote.data + first;
	uint32_t *to = (uint32_t *)op->rows.data + first;
	uint64_t local = (uint64_t)(op->out - buffer->base);
	link_op->buffer = buffer;
	link_op->region = rows->places[part].region;
	link_op->generation = rows->places[part].generation;
	link_op->job = op->reads.job;
	link_op->done = gather_read_done;
	link_op->owner = op;
	if (n > 1 && wants_order(op, part) && gw_sort_rows(remote, to, n, &op->sorting) != GW_OK)
		gw_log(GW_LOG_DEBUG, "rows are fetched unsorted: %s", gw_last_error());
	/* Mutable rows are read one by one. */
	if (n > 1 && !rows->epochs && count_adjacent(remote, to, n, op->row_bytes) * 2 >= n) {
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
	if (rows->epochs)
		pull_part(op, link_op, rows, part, first, local);
	else
		gw_engine_post(op->engine, part, link_op);
}

/* Address order needs the whole list at once, so that adjacent rows come together. */
static bool goes_in_pieces(const struct gw_gather_op *op)
{
	for (uint32_t p = 0; p < op->engine->client->meta->num_parts; p++)
		if (wants_order(op, p))
			return false;
	return true;
}

/* The next piece ends twice as far into the list as the piece before it. A small rest of the list joins this piece. */
static struct gather_piece next_piece(const struct gather_piece *before, uint64_t n)
{
	uint64_t end = 2 * before->end + FIRST_PIECE;
	return (struct gather_piece){before->end, n < end + FIRST_PIECE ? n : end};
}

static gw_status link_ops_room(struct gw_gather_op *op, uint64_t n)
{
	uint64_t pieces = 1, parts = op->engine->client->meta->num_parts;
	for (uint64_t end = FIRST_PIECE; end < n && pieces < PIECES_MAX; end = 2 * end + FIRST_PIECE)
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

/* The buffer that the transports write to. */
static gw_status gather_find_buffer(struct gw_gather_op *op)
{
	uint64_t bytes = op->n * op->row_bytes;
	if (!op->buffer)
		op->buffer = gw_buffer_find(op->engine, op->out, bytes);
	if (op->buffer)
		return GW_OK;
	gw_status status = gw_buffer_register(op->engine->group, op->out, bytes, &op->own);
	op->buffer = op->own;
	return status;
}

static gw_status gather_prepare(struct gw_gather_op *op)
{
	const struct gw_rows *rows = &op->from;
	uint64_t n = op->n;
	if (gw_vec_reserve(&op->owners, n * 4) != GW_OK || gw_vec_reserve(&op->remote, n * 8) != GW_OK ||
	    gw_vec_reserve(&op->rows, n * 4) != GW_OK ||
	    gw_vec_reserve(&op->spans, n * sizeof(struct gw_span)) != GW_OK || link_ops_room(op, n) != GW_OK ||
	    (rows->epochs && gw_pulls_reserve(&op->pulls, &op->pull_room, op->link_op_room) != GW_OK))
		return GW_NO_MEMORY;
	op->seen_slots = 0;
	gw_status status = gather_find_buffer(op);
	return status != GW_OK || op->unique ? status : clear_seen(op, n);
}

static gw_status post_piece(struct gw_gather_op *op, const struct gather_piece *piece)
{
	const struct gw_rows *rows = &op->from;
	uint32_t parts = op->engine->client->meta->num_parts;
	struct gw_link_op *link_ops = op->link_ops + op->link_op_count;
	gw_status status = find_owners(op, rows, op->ids, piece);
	if (status != GW_OK)
		return status;
	if (op->seen_slots)
		find_duplicates(op, op->ids, piece);
	list_rows(op, link_ops, rows, op->ids, piece);
	op->link_op_count += parts;
	uint64_t first = piece->first;
	for (uint32_t p = 0; p < parts; p++) {
		uint64_t count = link_ops[p].count;
		if (count > 0 && op->reads.status == GW_OK) {
			gw_fan_in_add(&op->reads);
			post_part(op, &link_ops[p], rows, p, first, op->buffer);
		}
		first += count;
	}
	return GW_OK;
}

/* Posts the reads of the rows from op->at on. */
static gw_status gather_post(struct gw_gather_op *op)
{
	gw_status status = gather_prepare(op);
	bool in_pieces = status == GW_OK && goes_in_pieces(op);
	for (struct gather_piece piece = {op->at, op->at};
	     piece.end < op->n && status == GW_OK && op->reads.status == GW_OK;) {
		piece = in_pieces ? next_piece(&piece, op->n) : (struct gather_piece){op->at, op->n};
		status = post_piece(op, &piece);
	}
	return status;
}

/* One turn of copies. GW_AGAIN: the next turn continues. */
static gw_status gather_copy(struct gw_gather_op *op, const struct gw_local_rows *local)
{
	uint64_t left = op->n - op->at, most = TURN_BYTES / (op->row_bytes ? op->row_bytes : 1);
	most = most < TURN_ROWS ? most : TURN_ROWS;
	most = left < most ? left : most;
	uint64_t copied = gw_local_rows_copy(local, op->ids + op->at, most, op->out + op->at * op->row_bytes);
	op->at += copied;
	if (copied < most)
		return gw_fail_id("id", op->ids[op->at], op->at, local->starts[local->parts]);
	return op->at < op->n ? GW_AGAIN : GW_OK;
}

/* Whether copies may fetch the rows. After the deadline they may not: the transport then reports it. The first turn
 * does not look at the clock, which takes a tenth of the time of one row; the turn ends within milliseconds. */
static bool gather_is_local(const struct gw_gather_op *op, struct gw_local_rows *local)
{
	local->origins = op->origins;
	if (op->engine->client->order == GW_ADDRESS_ORDER_ALWAYS || !gw_local_rows_find(op->engine, &op->from, local))
		return false;
	uint64_t now = op->at > 0 ? gw_now_ns() : 0;
	return now < gw_job_deadline(op->reads.job, now);
}

static void gather_go_on(struct gw_turn *turn)
{
	struct gw_gather_op *op = (struct gw_gather_op *)((char *)turn - offsetof(struct gw_gather_op, turn));
	struct gw_local_rows local;
	gw_status status = op->reads.status;
	if (status == GW_OK)
		status = gather_is_local(op, &local) ? gather_copy(op, &local) : gather_post(op);
	if (status == GW_AGAIN)
		gw_engine_continue(op->engine, turn);
	else
		gw_fan_in_end_one(&op->reads, status);
}

void gw_gather_op_start(struct gw_gather_op *op, struct gw_job *job, const struct gw_rows *rows, const int64_t *ids,
			uint64_t n, struct gw_buffer *buffer, uint8_t *out, bool unique)
{
	gw_fan_in_begin(&op->reads, job, gather_cancel_reads, gather_done);
	op->copy_count = op->link_op_count = 0;
	op->from = *rows;
	op->ids = ids;
	op->n = n;
	op->at = 0;
	op->unique = unique;
	op->out = out;
	op->row_bytes = rows->row_bytes;
	op->buffer = buffer;
	op->turn.run = gather_go_on;
	gw_status status = gather_check(rows, n);
	if (status == GW_OK)
		gather_go_on(&op->turn);
	else
		gw_fan_in_end_one(&op->reads, status);
}
