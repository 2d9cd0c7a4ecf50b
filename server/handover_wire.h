/* Messages between a server and its successor, over a unix socket of this user: a frame has a JSON object or raw bytes,
 * and up to GW_HANDOVER_FDS descriptors.
 *
 * Versions: the first message of each side has "version". A later version may add members to a message, and messages'
 * meaning stays. A reader skips members that it does not know, and uses a default for those that may be missing. So a
 * server hands over to each later version of Graphwire with the same GW_HANDOVER_VERSION. The number rises only if a
 * member must change its meaning; then both sides refuse. */
#ifndef GW_SERVER_HANDOVER_WIRE_H
#define GW_SERVER_HANDOVER_WIRE_H

#include <jansson.h>
#include <stdint.h>

#include "core/errors/status.h"

#define GW_HANDOVER_VERSION   1
#define GW_HANDOVER_FDS       4
#define GW_HANDOVER_BYTES_MAX (256u << 20)

struct gw_handover_message {
	json_t *json;   /* or NULL: */
	uint8_t *bytes; /* raw bytes */
	uint64_t byte_count;
	int fds[GW_HANDOVER_FDS]; /* -1: taken, or none */
	uint32_t fd_count;
};

/* Sends a JSON object, or bytes if json is NULL. The descriptors stay the caller's. GW_PEER_LOST, GW_DEADLINE. */
gw_status gw_handover_send(int fd, const json_t *json, const void *bytes, uint64_t byte_count, const int *fds,
			   uint32_t fd_count, uint64_t deadline_ns);

/* Receives one message, which gw_handover_message_end frees. GW_PEER_LOST: the other side has closed the socket;
 * GW_DEADLINE: the message did not begin in time, or stopped in the middle; GW_CANCELLED: `watched` became readable
 * (-1: none); GW_PROTOCOL: something else than a message came. */
gw_status gw_handover_receive(int fd, int watched, uint64_t deadline_ns, struct gw_handover_message *out);
void gw_handover_message_end(struct gw_handover_message *message);
/* Descriptor i of the message, which becomes the caller's; -1: it has none. */
int gw_handover_message_fd(struct gw_handover_message *message, uint32_t i);

#endif
