/* Descriptors that are passed over a unix socket (SCM_RIGHTS), for the drivers: they go along with the next bytes that
 * are sent, and come along with bytes that are received. */
#ifndef GW_TRANSPORT_TCP_FD_PASSING_H
#define GW_TRANSPORT_TCP_FD_PASSING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define TCP_PASSED_MAX 16 /* at once */

struct tcp_fd_passing {
	int out[TCP_PASSED_MAX]; /* the owner's; sent with the next bytes */
	uint32_t out_count;
	int in[TCP_PASSED_MAX]; /* have come */
	uint32_t in_count;
	bool wanted; /* take what comes; else the kernel lets it go */
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(TCP_PASSED_MAX * sizeof(int))];
};

/* Whether the message carries descriptors, which are put into it. */
bool gw_tcp_fd_passing_send(struct tcp_fd_passing *fd_passing, struct msghdr *message);
/* They are gone. */
void gw_tcp_fd_passing_sent(struct tcp_fd_passing *fd_passing);

/* Whether descriptors may come with the message, for which room is made. */
bool gw_tcp_fd_passing_receive(struct tcp_fd_passing *fd_passing, struct msghdr *message);
/* Bytes have come, perhaps with descriptors; more than there is room for are closed. */
void gw_tcp_fd_passing_received(struct tcp_fd_passing *fd_passing, struct msghdr *message);

/* Closes what has come and was not taken. */
void gw_tcp_fd_passing_end(struct tcp_fd_passing *fd_passing);

#endif
