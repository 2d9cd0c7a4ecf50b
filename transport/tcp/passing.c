/* Descriptors in the ancillary data of a message, out and in. Cannot fail: what does not fit is closed, by the kernel
 * or here, and missed by whoever counts. */
#include "transport/tcp/passing.h"

#include <string.h>
#include <unistd.h>

bool gw_passing_send(struct tcp_passing *passing, struct msghdr *message)
{
	if (!passing->out_count)
		return false;
	size_t bytes = passing->out_count * sizeof(int);
	memset(passing->control, 0, sizeof(passing->control));
	message->msg_control = passing->control;
	message->msg_controllen = CMSG_SPACE(bytes);
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(header), passing->out, bytes);
	return true;
}

void gw_passing_sent(struct tcp_passing *passing)
{
	passing->out_count = 0;
}

bool gw_passing_receive(struct tcp_passing *passing, struct msghdr *message)
{
	if (!passing->wanted)
		return false;
	message->msg_control = passing->control;
	message->msg_controllen = sizeof(passing->control);
	return true;
}

void gw_passing_received(struct tcp_passing *passing, struct msghdr *message)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
			if (passing->in_count < TCP_PASSED_MAX)
				passing->in[passing->in_count++] = fd;
			else
				close(fd);
		}
	}
}

void gw_passing_end(struct tcp_passing *passing)
{
	while (passing->in_count)
		close(passing->in[--passing->in_count]);
}
