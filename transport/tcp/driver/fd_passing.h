/* Descriptors that are passed over a unix socket (SCM_RIGHTS), for the drivers. They are sent with the next bytes, and
 * arrive with received bytes. */
#ifndef GW_TRANSPORT_TCP_DRIVER_FD_PASSING_H
#define GW_TRANSPORT_TCP_DRIVER_FD_PASSING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define TCP_PASSED_MAX 16 /* in one message */

struct tcp_fd_passing {
	int out[TCP_PASSED_MAX]; /* to send with the next bytes; they stay the owner's */
	uint32_t out_count;
	int in[TCP_PASSED_MAX]; /* received descriptors */
	uint32_t in_count;
	bool wanted; /* receive descriptors; if false the kernel drops them */
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(TCP_PASSED_MAX * sizeof(int))];
};

/* Puts the descriptors into the message; false: none to send. */
bool gw_tcp_fd_passing_send(struct tcp_fd_passing *fd_passing, struct msghdr *message);
/* The descriptors were sent. */
void gw_tcp_fd_passing_sent(struct tcp_fd_passing *fd_passing);

/* Makes room in the message for descriptors; false: none wanted. */
bool gw_tcp_fd_passing_receive(struct tcp_fd_passing *fd_passing, struct msghdr *message);
/* Takes the descriptors that arrived with a message; closes those beyond the room. */
void gw_tcp_fd_passing_received(struct tcp_fd_passing *fd_passing, struct msghdr *message);

/* Closes received descriptors that nothing took over. */
void gw_tcp_fd_passing_end(struct tcp_fd_passing *fd_passing);

#endif
