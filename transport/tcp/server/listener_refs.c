/* References to a listener: its owner, its sockets and each connection have one. */
#include "core/memory/alloc.h"
#include "transport/tcp/tcp.h"

void gw_tcp_accept_drop(struct tcp_accept *accept)
{
	if (!accept)
		return;
	gw_socket_close(accept->io.fd);
	gw_free(accept);
}

void gw_tcp_listener_release(struct tcp_listener *listener)
{
	if (atomic_fetch_sub(&listener->references, 1) != 1)
		return;
	gw_tcp_accept_drop(atomic_load(&listener->renewed));
	if (listener->export)
		listener->local->export_free(listener->export);
	gw_free(listener);
}

uint32_t gw_tcp_loop_number(const struct tcp_listener *listener, const struct tcp_loop *loop)
{
	for (uint32_t i = 0; i < listener->loop_count; i++)
		if (listener->loops[i] == loop)
			return i;
	return 0;
}
