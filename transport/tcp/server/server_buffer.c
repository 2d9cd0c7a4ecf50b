/* A connection's buffers for input and output, on loan from its loop (lender.h). Before the key is proved they are
 * small ones of the connection's own.
 *
 *   input:  bytes are known to wait in the socket ─▶ a large buffer ─▶ all frames are answered ─▶ returned
 *           an operation of the driver waits for bytes ─▶ a small buffer, which a frame that is longer replaces
 *   output: the first frame ─▶ a buffer ─▶ all bytes are sent ─▶ returned
 *
 * Fails if memory runs out, and if a frame is longer than the client's share of memory.
 */
#include <string.h>

#include "transport/tcp/server/server_private.h"

#define IDLE_BYTES 8192u /* in which an operation waits for bytes: fits a gather of 2,000 rows */
#define GROWN_STEP 4096u /* the buffer of a long frame is a multiple of this */

static void in_replace(struct tcp_server *server, struct tcp_loan loan)
{
	uint32_t held = server->in_end - server->in_begin;
	if (held)
		memcpy(loan.memory, server->in.memory + server->in_begin, held);
	gw_tcp_return(&server->loop->lender, &server->in);
	server->in = loan;
	server->in_begin = 0;
	server->in_end = held;
}

/* The frame of a call stays until the call is answered, and may move. */
static gw_status in_room_beside_call(struct tcp_server *server)
{
	uint32_t held = server->in_end - server->in_begin;
	if (!server->in.large || server->io.readable)
		return GW_OK;
	struct tcp_loan loan = gw_tcp_lend_exactly(held + IDLE_BYTES);
	if (loan.memory)
		in_replace(server, loan);
	return loan.memory ? GW_OK : GW_NO_MEMORY;
}

gw_status gw_tcp_server_in_room(struct tcp_server *server)
{
	struct tcp_lender *lender = &server->loop->lender;
	uint32_t held = server->in_end - server->in_begin;
	if (server->reading)
		return GW_OK;
	if (server->calling)
		return in_room_beside_call(server);
	if (held) {
		if (server->in_begin)
			memmove(server->in.memory, server->in.memory + server->in_begin, held);
	} else if (server->phase == SERVER_OPEN || !server->in.memory) {
		bool large = server->io.readable && gw_tcp_can_lend(lender);
		if (server->in.bytes < IDLE_BYTES || (large && !server->in.large)) {
			gw_tcp_return(lender, &server->in);
			server->in = large ? gw_tcp_lend(lender) : gw_tcp_lend_exactly(IDLE_BYTES);
		}
	}
	server->in_begin = 0;
	server->in_end = held;
	return server->in.memory ? GW_OK : GW_NO_MEMORY;
}

gw_status gw_tcp_server_in_grow(struct tcp_server *server, uint32_t needed)
{
	struct tcp_lender *lender = &server->loop->lender;
	if (server->io.receiving)
		return GW_AGAIN;
	if ((uint64_t)needed + server->out.bytes > server->service->limits.bytes_per_client)
		return gw_fail(GW_LIMIT, "a frame of %u bytes exceeds this server's memory for one client", needed);
	bool large = needed <= TCP_LENT_BYTES && gw_tcp_can_lend(lender);
	struct tcp_loan loan =
		large ? gw_tcp_lend(lender) : gw_tcp_lend_exactly((needed + GROWN_STEP - 1) / GROWN_STEP * GROWN_STEP);
	if (!loan.memory)
		return GW_NO_MEMORY;
	in_replace(server, loan);
	return GW_OK;
}

gw_status gw_tcp_server_out_ready(struct tcp_server *server)
{
	if (!server->out.memory)
		server->out = gw_tcp_lend(&server->loop->lender);
	return server->out.memory ? GW_OK : GW_NO_MEMORY;
}

gw_status gw_tcp_server_out_grow(struct tcp_server *server, uint32_t needed)
{
	if (server->out.bytes >= needed)
		return GW_OK;
	struct tcp_loan loan = gw_tcp_lend_exactly(needed);
	if (!loan.memory)
		return GW_NO_MEMORY;
	gw_tcp_return(&server->loop->lender, &server->out);
	server->out = loan;
	return GW_OK;
}

void gw_tcp_server_in_settle(struct tcp_server *server)
{
	bool idle = server->in_begin == server->in_end && !server->io.receiving && !server->io.readable;
	if (server->phase >= SERVER_OPEN && idle && server->in.bytes != IDLE_BYTES) {
		gw_tcp_return(&server->loop->lender, &server->in);
		server->in_begin = server->in_end = 0;
	}
}

void gw_tcp_server_out_settle(struct tcp_server *server)
{
	if (server->phase >= SERVER_OPEN && server->out_begin == server->out_end && !server->reading &&
	    !server->io.sending)
		gw_tcp_return(&server->loop->lender, &server->out);
}

void gw_tcp_server_buffers_end(struct tcp_server *server)
{
	gw_tcp_return(&server->loop->lender, &server->in);
	gw_tcp_return(&server->loop->lender, &server->out);
}
