/* Sends a datagram to the service manager, as sd_notify(3) describes. $NOTIFY_SOCKET is the path of a unix socket, or
 * "@…", a name in the abstract namespace.
 *
 * Fails, with a line in the log, if the value is not such a path or name, if it is too long, or if no process receives
 * at the socket. Never waits: if the manager does not read its socket, the message is lost. */
#include "server/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/errors/log.h"

#define TEXT_BYTES 1024

static int notify_send(const char *path, const char *text, size_t bytes)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	if ((path[0] != '/' && path[0] != '@') || length < 2)
		return EINVAL;
	if (length >= sizeof(address.sun_path))
		return ENAMETOOLONG;
	memcpy(address.sun_path, path, length);
	if (path[0] == '@')
		address.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	socklen_t address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	int error = 0;
	if (sendto(fd, text, bytes, MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&address, address_bytes) < 0)
		error = errno;
	close(fd);
	return error;
}

void gw_notify(const char *format, ...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	if (!path || !*path)
		return;
	char text[TEXT_BYTES];
	va_list arguments;
	va_start(arguments, format);
	int n = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (n < 0)
		return;
	size_t bytes = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
	int error = notify_send(path, text, bytes);
	if (error)
		gw_log(GW_LOG_WARN,
		       "NOTIFY_SOCKET=%.120s: %s: the service manager does not learn the state of this server", path,
		       strerror(error));
}
