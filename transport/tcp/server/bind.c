/* Listening ports, with or without an earlier reservation.
 *
 *   reserve: bind without listening -> (the server loads: clients are refused, and no other process gets the port)
 *            -> yield -> listen on a second socket of the same port -> close the first
 *
 * A bound socket that does not listen reserves the port only while its SO_REUSEADDR is off. But SO_REUSEADDR must be on
 * to bind while connections of an earlier server are in TIME_WAIT. So a reservation sets the option for its own bind,
 * clears it, and sets it again just before the listener's bind. Fails on a taken port, and names the process that has
 * it.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#include "transport/tcp/server/server.h"
#include "transport/tcp/socket.h"

#define BACKLOG 512

static void set_reuse(int fd, int on)
{
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

static gw_status fail_at(const struct gw_address *address, int error)
{
	char text[GW_ADDRESS_MAX], holder[128];
	gw_address_text(address, text);
	if (error != EADDRINUSE)
		return gw_fail_errno(GW_IO, error, "listen on %s", text);
	gw_socket_holder(address->port, holder, sizeof(holder));
	return gw_fail(GW_BUSY, "listen on %s: the port is taken by %s; choose another", text, holder);
}

static gw_status bind_to(const struct gw_address *address, bool wait_to_listen, int *out, uint16_t *port)
{
	struct addrinfo *list = NULL;
	*out = -1;
	gw_status status = gw_socket_resolve(address, &list);
	if (status != GW_OK)
		return gw_context(status, "listen");
	/* A server listens at the first address of the name; only clients try the others. */
	int fd = socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	union {
		struct sockaddr_in6 six;
		struct sockaddr_in four;
		struct sockaddr any;
	} taken = {0};
	socklen_t taken_bytes = sizeof(taken);
	if (fd < 0) {
		status = fail_at(address, errno);
		goto free_list;
	}
	/* A reservation of port 0 leaves the option off: with it the kernel could choose the port of another
	 * reservation. */
	if (address->port || !wait_to_listen)
		set_reuse(fd, 1);
	if (bind(fd, list->ai_addr, list->ai_addrlen) != 0 || getsockname(fd, &taken.any, &taken_bytes) != 0) {
		status = fail_at(address, errno);
		close(fd);
		goto free_list;
	}
	*port = ntohs(taken.any.sa_family == AF_INET6 ? taken.six.sin6_port : taken.four.sin_port);
	*out = fd;
free_list:
	freeaddrinfo(list);
	return status;
}

gw_status gw_socket_listen(const struct gw_address *address, int *out, uint16_t *port)
{
	gw_status status = bind_to(address, false, out, port);
	if (status == GW_OK && listen(*out, BACKLOG) != 0) {
		status = fail_at(address, errno);
		close(*out);
		*out = -1;
	}
	return status;
}

gw_status gw_port_reserve(struct gw_address *address, int *reservation)
{
	gw_status status = bind_to(address, true, reservation, &address->port);
	if (status == GW_OK)
		set_reuse(*reservation, 0);
	return status;
}

gw_status gw_port_bound(int reservation, struct gw_address *out)
{
	union {
		struct sockaddr_storage room;
		struct sockaddr any;
	} bound = {0};
	socklen_t bytes = sizeof(bound);
	if (getsockname(reservation, &bound.any, &bytes) != 0)
		return gw_fail_errno(GW_IO, errno, "the address of a port");
	return gw_socket_address(&bound.any, bytes, out);
}

void gw_port_yield(int reservation)
{
	set_reuse(reservation, 1);
}
