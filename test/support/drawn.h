/* All that a client draws from lists and asks about edges, as digests: mini-batches of every kind of sampling, with
 * edges and times, disjoint; lists of neighbours, degrees, look-ups, the edges among nodes. The graph is that of a
 * setup. */
#ifndef GW_TEST_DRAWN_H
#define GW_TEST_DRAWN_H

#include "test/support/client_paths.h"

#define SEEDS       40
#define DIGESTS_MAX 64

struct drawn {
	uint64_t digests[DIGESTS_MAX];
	uint32_t count;
};

/* Before all else: chooses the seeds. */
void drawn_begin(void);
void draw_batches(struct drawn *drawn, struct gw_client *client); /* adds those of mini-batches */
void draw_all(struct drawn *drawn, struct gw_client *client);
void expect_same(const struct drawn *got, const struct drawn *expected);

#endif
