/* A TCP client and a server that is a script, played in the client's own thread: the client is connected, and has
 * memory registered that is as large as the server's one region. */
#ifndef GW_TEST_TCP_SCENE_H
#define GW_TEST_TCP_SCENE_H

#include "test/support/fake_peer.h"
#include "test/support/transport_bed.h"
#include "transport/tcp/client/client_private.h"

#define SCENE_BYTES (1u << 20)
#define SCENE_READS 2u

struct scene {
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
	struct tcp_client *client;
	struct gw_buffer *buffer;
	struct gw_read_set reads[SCENE_READS];
	int listener, fd; /* of the script; fd < 0: closed already */
	uint8_t landing[SCENE_BYTES], answer[WIRE_HEADER_BYTES + SCENE_BYTES];
};

/* liveness_ns: as in gw_connect_options. */
struct scene *scene_begin(const struct bed_kind *kind, uint64_t liveness_ns);
void scene_end(struct scene *scene);

#endif
