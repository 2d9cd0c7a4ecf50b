/* One server of one part, and a connection to it that makes requests byte by byte: what tests of its answers stand on.
 * Everything here fails the test when it cannot be done. */
#ifndef GW_TEST_SERVER_BED_H
#define GW_TEST_SERVER_BED_H

#include "test/support/cluster.h"
#include "test/support/graph_fixture.h"

struct server_bed {
	struct gw_fixture fixture;
	struct gw_server *server;
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
};

/* The fixture's graph with so many nodes of paper. */
void server_bed_begin(struct server_bed *bed, uint64_t seed, uint64_t scale);
void server_bed_end(struct server_bed *bed);

/* One more connection, with a poll group of its own. */
struct gw_poll_group *server_bed_group(void);
void server_bed_join(const struct server_bed *bed, struct gw_poll_group *group, struct gw_endpoint **out);

/* The completion of what has this cookie, which is the next one. */
struct gw_completion server_bed_await(struct gw_poll_group *group, const void *cookie);

#endif
