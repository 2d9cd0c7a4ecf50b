/* Descriptors in the ancillary data of a message, sent and received. Cannot fail: the kernel or this file closes the
 * descriptors that do not fit; the receiver counts its descriptors and notices the missing ones. */
#include "transport/tcp/driver/fd_passing.h"

#include <string.h>
#include <unistd.h>

bool gw_tcp_fd_passing_send(struct tcp_fd_passing *fd_passing, struct msghdr *message)
{
	if (!fd_passing->out_count)
		return false;
	size_t bytes = fd_passing->out_count * sizeof(int);
	memset(fd_passing->control, 0, sizeof(fd_passing->control));
	message->msg_control = fd_passing->control;
	message->msg_controllen = CMSG_SPACE(bytes);
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(header), fd_passing->out, bytes);
	return true;
}

void gw_tcp_fd_passing_sent(struct tcp_fd_passing *fd_passing)
{
	fd_passing->out_count = 0;
}

bool gw_tcp_fd_passing_receive(struct tcp_fd_passing *fd_passing, struct msghdr *message)
{
	if (!fd_passing->wanted)
		return false;
	message->msg_control = fd_passing->control;
	message->msg_controllen = sizeof(fd_passing->control);
	return true;
}

void gw_tcp_fd_passing_received(struct tcp_fd_passing *fd_passing, struct msghdr *message)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
			if (fd_passing->in_count < TCP_PASSED_MAX)
				fd_passing->in[fd_passing->in_count++] = fd;
			else
				close(fd);
		}
	}
}

void gw_tcp_fd_passing_end(struct tcp_fd_passing *fd_passing)
{
	while (fd_passing->in_count)
		close(fd_passing->in[--fd_passing->in_count]);
}
