/* Blocking sockets without Nagle: see sockets.h. They use nothing of the transports, since the bare loops are the
 * transports' ceiling. */
#include "bench/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

int gw_sockets_connect(int *client, int *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(address);
	int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	*client = *server = -1;
	if (listener < 0)
		return errno;
	*client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*client >= 0 && bind(listener, (struct sockaddr *)&address, bytes) == 0 && listen(listener, 1) == 0 &&
	    getsockname(listener, (struct sockaddr *)&address, &bytes) == 0 &&
	    connect(*client, (struct sockaddr *)&address, bytes) == 0)
		*server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	int error = *server < 0 ? errno : 0;
	close(listener);
	if (error) {
		if (*client >= 0)
			close(*client);
		*client = -1;
		return error;
	}
	setsockopt(*client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(*server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return 0;
}

bool gw_sockets_send(int fd, const void *buffer, size_t bytes)
{
	for (const uint8_t *at = buffer; bytes;) {
		ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		at += n;
		bytes -= (size_t)n;
	}
	return true;
}

bool gw_sockets_receive(int fd, void *buffer, size_t bytes)
{
	for (uint8_t *at = buffer; bytes;) {
		ssize_t n = recv(fd, at, bytes, 0);
		if (n <= 0)
			return false;
		at += n;
		bytes -= (size_t)n;
	}
	return true;
}
