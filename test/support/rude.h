/* A bed with a well-behaved client, beside which a test's scripted ones misbehave. What follows fails the test in
 * progress if it is not as it says. */
#ifndef GW_TEST_RUDE_H
#define GW_TEST_RUDE_H

#include "test/support/fake_peer.h"
#include "test/support/transport_bed.h"

struct rude {
	struct bed bed;
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
	struct gw_buffer *buffer;
	uint8_t landing[4096];
};

/* *state: the backend, as gw_bed_run hands it to a test. */
struct rude *rude_begin(void **state, const struct bed_options *options);
void rude_end(struct rude *rude);
/* The well-behaved client is served within the time of a wait. */
void others_are_served(struct rude *rude);
/* A scripted client that has said hello; and a request of it. */
int rude_enter(struct rude *rude, struct wire_region *regions);
bool rude_call(int fd, uint16_t op, uint64_t tag, const void *bytes, uint32_t n);
struct gw_service_counters rude_counters(const struct rude *rude);

#endif
