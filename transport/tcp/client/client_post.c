/* Posts questions. Reads are cut into frames of at most WIRE_RANGES_MAX ranges and WIRE_PAYLOAD_MAX bytes. (A longer
 * single range is one frame, since neither end buffers it.) Frames are encoded into the output buffer, and each takes a
 * place in the queue. Small questions to one server leave together, with the next poll: those of all hops and
 * batches in flight take one system call at each end. A lack of places or room is a normal event: the call returns how
 * much it accepted, and the poll that makes room returns early. A range that does not fit the region or the destination
 * fails the set before anything of the call is sent. */
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "transport/reads.h"
#include "transport/tcp/client/client_private.h"

#define FLUSH_BYTES (64u << 10) /* this much output is sent even before the last read of a set is posted */

uint8_t *gw_tcp_client_reserve(struct tcp_client *client, uint32_t bytes, gw_status *status)
{
	uint32_t needed = WIRE_HEADER_BYTES + bytes;
	*status = GW_AGAIN;
	if (client->out_capacity - client->out_end >= needed)
		return client->out + client->out_end;
	if (client->io.sending || client->out_end - client->out_begin + needed > CLIENT_OUT_MAX)
		return NULL;
	uint32_t held = client->out_end - client->out_begin;
	if (client->out_capacity - held < needed) {
		uint32_t capacity = client->out_capacity;
		while (capacity < held + needed)
			capacity *= 2;
		uint8_t *out = gw_realloc(client->out, 1, capacity);
		if (!out) {
			*status = GW_NO_MEMORY;
			return NULL;
		}
		client->out = out;
		client->out_capacity = capacity;
	}
	memmove(client->out, client->out + client->out_begin, held);
	client->out_begin = 0;
	client->out_end = held;
	return client->out + client->out_end;
}

struct client_frame *gw_tcp_client_push(struct tcp_client *client, const struct wire_header *header)
{
	memcpy(client->out + client->out_end, header, WIRE_HEADER_BYTES);
	client->out_end += WIRE_HEADER_BYTES + header->bytes;
	/* The peer's silence counts from the first question on. */
	if (client_queued(client) == 0) {
		client_works(client);
		client->heard_ns = gw_now_ns();
		client->probed = false;
		tcp_loop_timer(client->loop, client->heard_ns + client->liveness_ns);
	}
	struct client_frame *frame = client_frame(client, client->queue_end++);
	assert(client_queued(client) < CLIENT_QUEUE);
	*frame = (struct client_frame){.type = header->type, .tag = header->tag};
	return frame;
}

void gw_tcp_client_send(struct tcp_client *client, uint8_t type, const void *body, uint32_t bytes)
{
	gw_status status;
	uint8_t *room = gw_tcp_client_reserve(client, bytes, &status);
	if (!room) {
		/* A full output buffer needs no probe: the answers to its frames show whether the peer lives. */
		if (status != GW_AGAIN)
			gw_tcp_client_lose(client, status);
		return;
	}
	struct wire_header header = {.bytes = bytes, .type = type};
	if (bytes)
		memcpy(room + WIRE_HEADER_BYTES, body, bytes);
	if (type == WIRE_PING) {
		header.tag = ++client->tag;
		gw_tcp_client_push(client, &header);
	} else {
		memcpy(room, &header, WIRE_HEADER_BYTES);
		client->out_end += WIRE_HEADER_BYTES + bytes;
	}
	client->loop->driver->ops->kick(client->loop->driver, &client->io);
}

/* False: the set has failed, and every read is accepted. */
static bool post_begin(struct tcp_client *client, struct gw_read_set *set, const struct gw_region *region,
		       const struct gw_region **known)
{
	char text[GW_ADDRESS_MAX];
	bool fresh = !gw_read_set_private(set)->link;
	gw_read_set_start(&client->sets, set);
	client_works(client);
	if (set->status)
		return false;
	if (fresh && set->deadline_ns)
		tcp_loop_timer(client->loop, set->deadline_ns);
	gw_status status;
	if (client->phase != CLIENT_OPEN)
		status = gw_fail(GW_PEER_LOST, "%s is not connected", gw_tcp_client_name(client, text));
	else
		status = gw_check_region(&client->base, region);
	if (status != GW_OK)
		gw_read_set_fail(set, status);
	else
		*known = gw_endpoint_region(&client->base, region->id, region->generation);
	return status == GW_OK;
}

/* The output has new questions. */
static void send_soon(struct tcp_client *client)
{
	if (client->io.sending)
		return;
	if (client->out_end - client->out_begin >= GW_TOGETHER_BYTES) {
		client->loop->driver->ops->flush(client->loop->driver, &client->io);
	} else if (!client->unsent) {
		client->unsent = true;
		client->next_unsent = client->loop->unsent;
		client->loop->unsent = client;
	}
}

static size_t post_end(struct tcp_client *client, struct gw_read_set *set, size_t n, size_t taken, bool last)
{
	if (set->status && set->frames_open)
		gw_tcp_client_drop_set(client, set);
	taken = gw_read_set_end(&client->loop->completions, set, n, taken, last);
	if (taken < n)
		client->room_wanted = true;
	uint32_t unsent = client->out_end - client->out_begin;
	if (client->phase == CLIENT_OPEN && unsent && (last || unsent >= FLUSH_BYTES))
		send_soon(client);
	return taken;
}

/* NULL: no room, or memory ran out and the set has failed. */
static struct client_frame *frame_push(struct tcp_client *client, struct gw_read_set *set, uint8_t type,
				       const struct wire_read *read, const uint64_t *at, size_t step)
{
	if (client_queued(client) >= CLIENT_FRAMES_MAX)
		return NULL;
	struct wire_code code = gw_wire_code(at, read->count, step);
	uint32_t bytes = gw_wire_read_bytes(type, read->count, code.width);
	gw_status status;
	uint8_t *room = gw_tcp_client_reserve(client, bytes, &status);
	if (!room) {
		if (status != GW_AGAIN)
			gw_read_set_fail(set, status);
		return NULL;
	}
	struct wire_read head = *read;
	head.base = code.base;
	head.shift = code.shift;
	head.width = code.width;
	memcpy(room + WIRE_HEADER_BYTES, &head, sizeof(head));
	gw_wire_encode(&code, at, read->count, step, room + WIRE_HEADER_BYTES + WIRE_READ_BYTES);
	struct wire_header header = {.bytes = bytes, .type = type, .tag = ++client->tag};
	struct client_frame *frame = gw_tcp_client_push(client, &header);
	frame->set = set;
	frame->count = read->count;
	set->frames_open++;
	return frame;
}

/* Returns how many rows; 0: see frame_push. */
static uint32_t frame_rows(struct tcp_client *client, struct gw_read_set *set, const struct gw_region *region,
			   struct gw_buffer *buffer, const struct gw_gather *rows, size_t n)
{
	uint32_t rows_max = WIRE_RANGES_MAX;
	if (rows->row_bytes > WIRE_PAYLOAD_MAX / WIRE_RANGES_MAX)
		rows_max = rows->row_bytes >= WIRE_PAYLOAD_MAX ? 1 : WIRE_PAYLOAD_MAX / rows->row_bytes;
	uint32_t count = n < rows_max ? (uint32_t)n : rows_max;
	struct wire_read read = {
		.region = region->id, .generation = region->generation, .count = count, .length = rows->row_bytes};
	struct client_frame *frame = frame_push(client, set, WIRE_GATHER, &read, rows->remote, sizeof(uint64_t));
	if (!frame)
		return 0;
	frame->bytes = (uint64_t)count * rows->row_bytes;
	frame->dest = gw_tcp_dest_gather(buffer->base, rows, count);
	frame->rows = region->kind == GW_REGION_VERSIONED;
	if (frame->rows)
		frame->gather = *rows;
	return count;
}

/* At least one. */
static uint32_t spans_fit(const struct gw_span *spans, size_t n, uint64_t *bytes)
{
	uint32_t count = 1;
	*bytes = spans[0].bytes;
	while (count < n && count < WIRE_RANGES_MAX && *bytes + spans[count].bytes <= WIRE_PAYLOAD_MAX)
		*bytes += spans[count++].bytes;
	return count;
}

/* Returns how many spans; 0: see frame_push. */
static uint32_t frame_spans(struct tcp_client *client, struct gw_read_set *set, const struct gw_region *region,
			    struct gw_buffer *buffer, const struct gw_span *spans, size_t n)
{
	uint64_t bytes;
	assert(spans);
	uint32_t count = spans_fit(spans, n, &bytes);
	struct wire_read read = {
		.region = region->id, .generation = region->generation, .count = count, .length = (uint32_t)bytes};
	/* A single range needs no list of lengths, and may be long. */
	uint8_t type = count == 1 ? WIRE_GATHER : WIRE_READV;
	struct client_frame *frame = frame_push(client, set, type, &read, &spans->remote, sizeof(struct gw_span));
	if (!frame)
		return 0;
	if (type == WIRE_READV) {
		uint8_t *lengths = client->out + client->out_end - 4ull * count;
		for (uint32_t i = 0; i < count; i++)
			memcpy(lengths + 4ull * i, &spans[i].bytes, 4);
	}
	frame->bytes = bytes;
	frame->dest = gw_tcp_dest_spans(buffer->base, spans, count, bytes);
	frame->spans = spans;
	frame->rows = region->kind == GW_REGION_VERSIONED;
	return count;
}

size_t gw_tcp_read(struct gw_endpoint *base, struct gw_read_set *set, const struct gw_region *region,
		   struct gw_buffer *buffer, const struct gw_reads *reads, bool last)
{
	struct tcp_client *client = (struct tcp_client *)base;
	if (set->done)
		return reads->n;
	const struct gw_region *known = NULL;
	if (!post_begin(client, set, region, &known))
		return post_end(client, set, reads->n, reads->n, last);
	gw_status status = gw_check_reads(known, buffer, reads);
	if (status != GW_OK) {
		gw_read_set_fail(set, status);
		return post_end(client, set, reads->n, reads->n, last);
	}
	size_t taken = 0;
	uint32_t count = 1;
	while (taken < reads->n && count) {
		if (reads->gather) {
			struct gw_gather rest = gw_gather_from(reads->gather, taken);
			count = frame_rows(client, set, known, buffer, &rest, reads->n - taken);
		} else {
			count = frame_spans(client, set, known, buffer, reads->spans + taken, reads->n - taken);
		}
		taken += count;
	}
	return post_end(client, set, reads->n, taken, last);
}

gw_status gw_tcp_request(struct gw_endpoint *base, uint16_t op, const struct gw_once *once, const void *bytes,
			 uint32_t n, uint64_t deadline_ns, void *cookie)
{
	struct tcp_client *client = (struct tcp_client *)base;
	char text[GW_ADDRESS_MAX];
	if (n > GW_REQUEST_BYTES_MAX)
		return gw_fail(GW_LIMIT, "a request of %u bytes; a request has at most %u", n, GW_REQUEST_BYTES_MAX);
	struct gw_note *note;
	if (client->phase != CLIENT_OPEN)
		return gw_completions_answer(
			&client->loop->completions, cookie,
			gw_fail(GW_PEER_LOST, "%s is not connected", gw_tcp_client_name(client, text)));
	if (client_queued(client) >= CLIENT_FRAMES_MAX || client->requests_open >= client->requests_max) {
		client->room_wanted = true;
		return gw_fail(GW_AGAIN, "%u requests are open", client->requests_open);
	}
	gw_status status;
	uint8_t *room = gw_tcp_client_reserve(client, WIRE_REQUEST_BYTES + n, &status);
	if (!room && status == GW_AGAIN) {
		client->room_wanted = true;
		return gw_fail(GW_AGAIN, "the output buffer is full");
	}
	if (!room)
		return status;
	status = gw_note_create(cookie, &note);
	if (status != GW_OK)
		return status;
	static const struct gw_once twice;
	memcpy(room + WIRE_HEADER_BYTES, once ? once : &twice, WIRE_REQUEST_BYTES);
	if (n)
		memcpy(room + WIRE_HEADER_BYTES + WIRE_REQUEST_BYTES, bytes, n);
	struct wire_header header = {
		.bytes = WIRE_REQUEST_BYTES + n, .type = WIRE_REQUEST, .op = op, .tag = ++client->tag};
	struct client_frame *frame = gw_tcp_client_push(client, &header);
	frame->note = note;
	frame->deadline_ns = deadline_ns ? deadline_ns : GW_NO_DEADLINE;
	tcp_loop_timer(client->loop, frame->deadline_ns);
	client->requests_open++;
	send_soon(client);
	return GW_OK;
}

void gw_tcp_clients_flush(struct tcp_loop *loop)
{
	struct tcp_client *client;
	while ((client = loop->unsent)) {
		loop->unsent = client->next_unsent;
		client->unsent = false;
		if (client->phase == CLIENT_OPEN && !client->io.sending)
			loop->driver->ops->flush(loop->driver, &client->io);
	}
}

void gw_tcp_request_cancel(struct gw_endpoint *base, const void *cookie)
{
	struct tcp_client *client = (struct tcp_client *)base;
	for (uint32_t at = client->queue_begin; at != client->queue_end; at++) {
		struct client_frame *frame = client_frame(client, at);
		if (!frame->note || frame->note->cookie != cookie)
			continue;
		gw_completions_post(&client->loop->completions, frame->note, gw_fail(GW_CANCELLED, "cancelled"));
		frame->note = NULL; /* the question keeps its place in the queue for the answer */
		return;
	}
}

void gw_tcp_cancel(struct gw_endpoint *base, struct gw_read_set *set)
{
	struct tcp_client *client = (struct tcp_client *)base;
	if (set->done || !gw_read_set_private(set)->link)
		return;
	gw_read_set_fail(set, gw_fail(GW_CANCELLED, "cancelled"));
	set->last_accepted = true;
	gw_tcp_client_drop_set(client, set);
}
