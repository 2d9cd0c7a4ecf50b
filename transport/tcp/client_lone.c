/* One row, asked for and waited for: nothing else is open, so its answer is waited for in the socket's own receive,
 * which spares the look at all sockets (epoll) or the arming of an operation (io_uring).
 *
 *   one read of few bytes open, all of it sent ─▶ await ─▶ received ─▶ its completion
 *                                                  └▶ too long, or somebody wanted the thread: the usual way for a
 * while
 *
 * The price is that another thread's wake may be heard only when the answer has come, or after TCP_AWAIT_NS. So only
 * reads are waited for like that, which a server answers at once; and where threads do wake each other, or answers take
 * longer, PAUSE waits go the usual way before it is tried again. A loop that serves never does: it does not know who
 * comes next. One wait in USUAL goes the usual way in any case, so that other connections' news are heard. */
#include "transport/tcp/client.h"

#define USUAL 64
#define PAUSE 1000

/* Nothing is left to be sent, and what comes needs no more than a receive or two. */
static bool awaits_little(struct tcp_client *client)
{
	if (client->phase != CLIENT_OPEN || client_queued(client) != 1 || client->out_end > client->out_begin ||
	    client->io.fd_passing || client->io.low_water > 1 || client->direct_dying)
		return false;
	const struct client_frame *frame = client_oldest(client);
	return frame->set && frame->bytes < CLIENT_LOW_WATER_MIN;
}

struct tcp_io *gw_tcp_lone(struct tcp_loop *loop)
{
	struct tcp_client *lone = NULL;
	if (loop->servers || loop->listeners)
		return NULL;
	for (struct tcp_client *client = loop->clients; client; client = client->next) {
		if (client->connecting || client->closed)
			return NULL;
		if (client_queued(client) == 0)
			continue;
		if (lone)
			return NULL;
		lone = client;
	}
	if (!lone || !awaits_little(lone))
		return NULL;
	if (loop->lone_pause) {
		loop->lone_pause--;
		return NULL;
	}
	if (++loop->lone_waits % USUAL == 0 || gw_poll_group_woken(loop->group))
		return NULL;
	return &lone->io;
}

void gw_tcp_lone_ended(struct tcp_loop *loop, enum tcp_awaited outcome)
{
	if (outcome == TCP_AWAIT_TOO_LONG || gw_poll_group_woken(loop->group))
		loop->lone_pause = PAUSE;
}
