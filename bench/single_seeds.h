/* Single seeds with the mini-batches that they must have, and the bare round trips that such a mini-batch needs. */
#ifndef GW_BENCH_SINGLE_SEEDS_H
#define GW_BENCH_SINGLE_SEEDS_H

#include "bench/bare_chain.h"
#include "bench/batches.h"

#define GW_BARE_ROUNDS_MAX (2 * GW_HOPS_MAX + 1)

struct gw_single_seed {
	int64_t id;
	uint64_t stream, digest; /* of a loader's mini-batch of this seed alone */
	struct gw_bare_round rounds[GW_BARE_ROUNDS_MAX];
};

struct gw_single_seeds {
	struct gw_batches batches; /* the spec */
	struct gw_single_seed *seeds;
	uint32_t count, round_count;
	uint32_t bytes_max;                    /* the largest answer's rows */
	double nodes_per_seed, edges_per_seed; /* means */
};

/* Draws seeds and samples each of them with a loader of the standalone client. Features are read, labels are not. Call
 * gw_single_seeds_end in any case. */
gw_status gw_single_seeds_begin(struct gw_single_seeds *s, struct gw_client *alone, const struct gw_batches_spec *spec,
				uint32_t count);
void gw_single_seeds_end(struct gw_single_seeds *s);

/* Samples one seed with gw_sample, as an online service does. *microseconds: how long the call took. GW_DIGEST: its
 * bytes are not those of the loader's mini-batch. */
gw_status gw_single_seed_sample(const struct gw_single_seeds *s, const struct gw_single_seed *seed,
				struct gw_client *client, const struct gw_tensor *features, double *microseconds);

#endif
