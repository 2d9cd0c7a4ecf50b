/* Messages over a queue pair. Both directions work alike.
 *
 *   A: takes a credit, copies a piece into a send buffer, posts it ──▶ B: one of its posted receives
 *   B: handles it, posts the receive again, owes A a credit ─────▶ granted in B's next message, or in a separate one
 *
 * Small messages are posted together: one call to the device and one completion for a list of work requests. The owner
 * flushes when it has no more to send; the stream flushes earlier when the messages have GW_TOGETHER_BYTES or more.
 *
 * A side begins with as many credits as the other side has receives. A message therefore always finds a posted receive:
 * a "receiver not ready" error would be a fault of Graphwire, and no retry hides it. A message that only grants credits
 * needs no credit; VERBS_RECEIVES_SPARE extra receives are for such messages. Two are enough: such a message grants at
 * least half of all credits, so two of them grant all credits. Until the receiver has handled those two, the sender
 * owes no credits, so it sends no third.
 *
 * Fails on a malformed message (GW_PROTOCOL) and when the device refuses work.
 */
#include <string.h>

#include "transport/verbs/verbs.h"

#define PLACES (VERBS_RECEIVES + VERBS_RECEIVES_SPARE)

static uint8_t *receive_place(const struct verbs_stream *stream, uint32_t slot)
{
	return stream->pages.base + (size_t)slot * VERBS_CHUNK_BYTES;
}

static uint8_t *send_place(const struct verbs_stream *stream, uint32_t number)
{
	return stream->pages.base + (size_t)(PLACES + number % VERBS_SENDS) * VERBS_CHUNK_BYTES;
}

static gw_status receive_again(struct verbs_stream *stream, uint32_t slot)
{
	return gw_verbs_qp_receive(stream->qp, slot, receive_place(stream, slot), VERBS_CHUNK_BYTES,
				   stream->pages.mr->lkey);
}

gw_status gw_verbs_stream_begin(struct verbs_stream *stream, struct verbs_qp *qp, struct ibv_pd *pd)
{
	*stream = (struct verbs_stream){.qp = qp, .credits = VERBS_RECEIVES};
	gw_status status =
		gw_verbs_pages_create(pd, (size_t)(PLACES + VERBS_SENDS) * VERBS_CHUNK_BYTES, &stream->pages);
	for (uint32_t slot = 0; slot < PLACES && status == GW_OK; slot++)
		status = receive_again(stream, slot);
	return status;
}

void gw_verbs_stream_end(struct verbs_stream *stream)
{
	gw_verbs_pages_destroy(&stream->pages);
	stream->qp = NULL;
}

void gw_verbs_stream_sent(struct verbs_stream *stream)
{
	stream->send_begin++;
}

/* Checks a message's header against the message's length and against the credits that can exist. */
static gw_status stream_check(const struct verbs_stream *stream, const struct verbs_message *message, uint32_t bytes)
{
	if (bytes < sizeof(*message) || message->bytes != bytes - sizeof(*message))
		return gw_fail(GW_PROTOCOL, "an RDMA message of %u bytes that claims another length", bytes);
	if (message->type < VERBS_REQUEST || message->type > VERBS_CREDIT ||
	    (message->type != VERBS_ERROR && message->status) || message->bytes > message->total)
		return gw_fail(GW_PROTOCOL, "a malformed RDMA message of type %u", message->type);
	/* Such a message needs no credit but takes a receive: too many of them would only waste our time. */
	if (message->type == VERBS_CREDIT && (message->bytes || message->credits < VERBS_RECEIVES / 2))
		return gw_fail(GW_PROTOCOL, "an RDMA message that grants %u credits and nothing else",
			       message->credits);
	if (message->credits > VERBS_RECEIVES - stream->credits)
		return gw_fail(GW_PROTOCOL, "an RDMA message that grants %u credits, more than exist",
			       message->credits);
	return GW_OK;
}

void gw_verbs_stream_received(struct verbs_stream *stream, uint32_t slot, uint32_t bytes)
{
	struct verbs_message message;
	assert(slot < PLACES);
	memcpy(&message, receive_place(stream, slot), sizeof(message));
	if (!stream->failure)
		stream->failure = stream_check(stream, &message, bytes);
	if (stream->failure)
		return;
	stream->credits += message.credits;
	/* Apply credits at once, even while messages wait in the inbox. A message that only grants credits is handled
	 * here, so its receive is posted again. */
	if (message.type == VERBS_CREDIT)
		stream->failure = receive_again(stream, slot);
	else if (stream->inbox_end - stream->inbox_begin == VERBS_RECEIVES)
		stream->failure = gw_fail(GW_PROTOCOL, "an RDMA message without a credit");
	else
		stream->inbox[stream->inbox_end++ % VERBS_INBOX] = (uint8_t)slot;
}

bool gw_verbs_stream_peek(struct verbs_stream *stream, struct verbs_message *message, const uint8_t **body)
{
	if (stream->failure || stream->inbox_begin == stream->inbox_end)
		return false;
	const uint8_t *bytes = receive_place(stream, stream->inbox[stream->inbox_begin % VERBS_INBOX]);
	memcpy(message, bytes, sizeof(*message));
	*body = bytes + sizeof(*message);
	return true;
}

gw_status gw_verbs_stream_next(struct verbs_stream *stream)
{
	stream->grant++;
	return receive_again(stream, stream->inbox[stream->inbox_begin++ % VERBS_INBOX]);
}

gw_status gw_verbs_stream_send(struct verbs_stream *stream, const struct verbs_message *header, const void *body)
{
	bool credit = header->type == VERBS_CREDIT;
	struct verbs_qp *qp = stream->qp;
	if ((!credit && stream->credits == 0) || stream->send_end - stream->send_begin == VERBS_SENDS ||
	    verbs_qp_open(qp) + stream->unposted >= qp->depth)
		return GW_AGAIN;
	struct verbs_message message = *header;
	message.credits = stream->grant;
	assert(message.bytes <= VERBS_PIECE_BYTES);
	uint8_t *place = send_place(stream, stream->send_end++);
	memcpy(place, &message, sizeof(message));
	if (body && message.bytes)
		memcpy(place + sizeof(message), body, message.bytes);
	stream->grant = 0;
	stream->credits -= !credit;
	stream->unposted++;
	stream->unposted_bytes += (uint32_t)sizeof(message) + message.bytes;
	if (stream->unposted_bytes >= GW_TOGETHER_BYTES)
		gw_verbs_stream_flush(stream);
	return GW_OK;
}

void gw_verbs_stream_flush(struct verbs_stream *stream)
{
	struct ibv_send_wr works[VERBS_SENDS];
	struct ibv_sge sges[VERBS_SENDS];
	struct verbs_qp *qp = stream->qp;
	uint32_t n = stream->unposted;
	if (n == 0)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct verbs_message message;
		uint8_t *place = send_place(stream, stream->send_end - n + i);
		memcpy(&message, place, sizeof(message));
		verbs_qp_push(qp)->work = VERBS_SEND;
		sges[i] = (struct ibv_sge){.addr = (uintptr_t)place,
					   .length = (uint32_t)sizeof(message) + message.bytes,
					   .lkey = stream->pages.mr->lkey};
		works[i] = (struct ibv_send_wr){.wr_id = verbs_wr_id(qp),
						.next = i + 1 < n ? &works[i + 1] : NULL,
						.sg_list = &sges[i],
						.num_sge = 1,
						.opcode = IBV_WR_SEND,
						.send_flags = i + 1 < n ? 0 : IBV_SEND_SIGNALED};
	}
	qp->unsignalled = 0;
	stream->unposted = stream->unposted_bytes = 0;
	gw_verbs_qp_post(qp, works, n);
}

void gw_verbs_stream_grant(struct verbs_stream *stream)
{
	static const struct verbs_message credit = {.type = VERBS_CREDIT};
	if (stream->grant >= VERBS_RECEIVES / 2)
		gw_verbs_stream_send(stream, &credit, NULL); /* if no send buffer is free now, a later call grants */
}
