/* Sockets: see socket.h. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/tcp/socket.h"

gw_status gw_socket_address(const struct sockaddr *end, uint32_t bytes, struct gw_address *out)
{
	char port[8];
	*out = (struct gw_address){.scheme = "tcp"};
	int error = getnameinfo(end, bytes, out->host, sizeof(out->host), port, sizeof(port),
				NI_NUMERICHOST | NI_NUMERICSERV);
	if (error)
		return gw_fail(GW_IO, "the address of a port: %s", gai_strerror(error));
	out->port = (uint16_t)strtoul(port, NULL, 10);
	return GW_OK;
}

/* A numeric address needs no look-up. */
static int tcp_socket_ask(const struct gw_address *address, int flags, struct addrinfo **list)
{
	char port[8];
	snprintf(port, sizeof(port), "%u", address->port);
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
	int error = getaddrinfo(address->host, port, &hints, list);
	if (error)
		*list = NULL;
	return error;
}

bool gw_socket_number(const struct gw_address *address, struct addrinfo **list)
{
	return tcp_socket_ask(address, AI_NUMERICHOST, list) == 0;
}

gw_status gw_socket_resolve(const struct gw_address *address, struct addrinfo **list)
{
	char text[GW_ADDRESS_MAX];
	int error = tcp_socket_ask(address, 0, list);
	if (error == 0)
		return GW_OK;
	const char *why = error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error);
	gw_status status = error == EAI_MEMORY                         ? GW_NO_MEMORY
			   : error == EAI_AGAIN || error == EAI_SYSTEM ? GW_PEER_LOST /* may be known later */
								       : GW_NOT_FOUND;
	return gw_fail(status, "%s: %s", gw_address_text(address, text), why);
}

void gw_socket_tune(int fd)
{
	int on = 1, idle_s = 20, interval_s = 5, probes = 4, unacknowledged_ms = 60000;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof(unacknowledged_ms));
}

uint32_t gw_socket_receive_buffer(int fd)
{
	int bytes = 0;
	socklen_t size = sizeof(bytes);
	return getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size) == 0 && bytes > 0 ? (uint32_t)bytes : 0;
}

/* The inode of the socket that listens on the port, or 0. Lines of /proc/net/tcp:
 * "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …", addresses in hexadecimal. */
static unsigned long listening_inode(const char *table, uint16_t port)
{
	FILE *file = fopen(table, "re");
	if (!file)
		return 0;
	char line[512];
	unsigned long inode = 0;
	while (!inode && fgets(line, sizeof(line), file)) {
		unsigned local_port, state;
		unsigned long found;
		if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %lu",
			   &local_port, &state, &found) == 3 &&
		    local_port == port && state == 0x0a)
			inode = found;
	}
	fclose(file);
	return inode;
}

static bool process_holds(const char *pid, const char *link)
{
	char path[300], target[64];
	snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
	DIR *folder = opendir(path);
	if (!folder)
		return false;
	bool holds = false;
	for (struct dirent *entry; !holds && (entry = readdir(folder));) {
		ssize_t n = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = 0;
		holds = strcmp(target, link) == 0;
	}
	closedir(folder);
	return holds;
}

static void process_name(const char *pid, char *text, size_t bytes)
{
	char path[64], name[64] = "";
	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	FILE *file = fopen(path, "re");
	if (file) {
		if (fgets(name, sizeof(name), file))
			name[strcspn(name, "\n")] = 0;
		fclose(file);
	}
	snprintf(text, bytes, "process %.20s (%s)", pid, name);
}

void gw_socket_holder(uint16_t port, char *text, size_t bytes)
{
	snprintf(text, bytes, "another process");
	unsigned long inode = listening_inode("/proc/net/tcp", port);
	inode = inode ? inode : listening_inode("/proc/net/tcp6", port);
	if (!inode)
		return;
	char link[64];
	snprintf(link, sizeof(link), "socket:[%lu]", inode);
	DIR *processes = opendir("/proc");
	if (!processes)
		return;
	for (struct dirent *entry; (entry = readdir(processes));) {
		if (!isdigit((unsigned char)entry->d_name[0]) || !process_holds(entry->d_name, link))
			continue;
		process_name(entry->d_name, text, bytes);
		break;
	}
	closedir(processes);
}
