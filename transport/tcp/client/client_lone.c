/* Waits for a single short answer in a blocking receive on its socket. If nothing else is open, this saves a system
 * call: the look at all sockets (epoll), or the arming of an operation (io_uring).
 *
 *   one short read open, all of it sent ─▶ await ─▶ received ─▶ its completion
 *                                           └▶ too long, or a wake came: normal waits for a while
 *
 * The price: a wake by another thread may be noticed only when the answer has come, or after TCP_AWAIT_NS. So only
 * reads are awaited like this, since a server answers them at once. After a wake or a slow answer, the next PAUSE waits
 * are normal ones. A loop that serves never awaits, since any client may send next. One wait in USUAL is always normal,
 * so that events of other connections are noticed. */
#include "transport/tcp/client/client_private.h"

#define USUAL 64
#define PAUSE 1000

/* Whether the output is empty and the answer needs no more than a receive or two. */
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
	for (struct tcp_client *client, **at = &loop->working; (client = gw_tcp_client_at_work(at));
	     at = &client->next_working) {
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
