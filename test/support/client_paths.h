/* The same graph over several paths: standalone, and from servers, with many engines and with one. Fails the test when
 * a path cannot be opened. */
#ifndef GW_TEST_CLIENT_PATHS_H
#define GW_TEST_CLIENT_PATHS_H

#include "test/support/client_setup.h"

struct ways {
	struct setup setup;
	struct gw_client *clients[4];
	uint32_t count;
};

/* offer: the servers' transport; NULL: all. */
void paths_begin(struct ways *ways, uint64_t seed, uint32_t parts, const char *offer, const char *driver);
void paths_end(struct ways *ways);
/* Runs a body over a graph in one part, and over one in three. */
void paths_of_parts(uint64_t seed, void (*body)(const struct ways *ways));

struct gw_loader *paths_loader(struct gw_client *client, const struct gw_loader_options *options);
/* One epoch from a start; digests of its batches; returns how many. */
uint32_t paths_run_loader(struct gw_client *client, struct gw_loader_options options, struct gw_loader_state start,
			  uint64_t *digests);

/* Two hops over all edge types. */
extern const int32_t all_fanouts[2 * GW_FIXTURE_ETYPES];

#endif
