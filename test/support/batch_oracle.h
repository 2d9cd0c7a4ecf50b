/* A mini-batch by its definition: ends of positives and negatives, and every block drawn again from the edge list of a
 * made graph, less what is excluded. Everything here fails the test where the batch differs. */
#ifndef GW_TEST_BATCH_ORACLE_H
#define GW_TEST_BATCH_ORACLE_H

#include <graphwire/graphwire.h>

#include "test/support/graph_fixture.h"

/* What a batch is held against. */
struct batch_oracle {
	const struct gw_fixture *fixture;
	const struct gw_sample_spec *spec;
	const struct gw_minibatch *batch;
	uint64_t seed, stream;
};

/* All blocks; returns how many drawn edges were excluded. */
uint64_t batch_oracle_blocks(const struct batch_oracle *oracle);

/* The seeds of a batch of edges, of each of their types: their ends, and their negatives. */
void batch_oracle_ends(const struct batch_oracle *oracle);

/* The papers or authors that are born at a time, in the order in which negatives are drawn from them: part by part, by
 * time and id. nodes: room for all. Returns how many. */
uint64_t batch_oracle_existing(const struct gw_fixture *fixture, uint32_t ntype, double time, uint64_t *nodes);
/* Those of them that have not ended. */
uint64_t batch_oracle_living(const struct gw_fixture *fixture, uint32_t ntype, double time, uint64_t *nodes);

#endif
