/* Pushes over a link that is cut again and again: each is applied once, and the sums are exact. Fails the test where
 * they are not. */
#ifndef GW_TEST_CUT_PUSHES_H
#define GW_TEST_CUT_PUSHES_H

#include "test/support/client_setup.h"
#include "test/support/relay.h"

#define CUT_PUSHES_ROWS    300
#define CUT_PUSHES_COLUMNS 5

struct cut_pushes {
	struct setup setup;
	struct relay relay;
	struct gw_client *client;
	const struct gw_tensor *tensor;
	float expected[CUT_PUSHES_ROWS]; /* in each column */
};

/* A server, a relay before it, a client of one thread, and a tensor of zeros. */
void cut_pushes_begin(struct cut_pushes *pushes);
/* So many attempts at cutting the link somewhere in the answers to eight pushes; then all pushes must have been applied
 * once. Returns how many times it was cut while pushes were open. At most 1,000 at a time. */
uint32_t cut_pushes_run(struct cut_pushes *pushes, uint32_t attempts, uint64_t seed);
void cut_pushes_read(struct cut_pushes *pushes, float *rows); /* all of them */
void cut_pushes_end(struct cut_pushes *pushes);

#endif
