/* The bare loops of bench sample: the same work with as little code as possible. */
#ifndef GW_BENCH_SAMPLE_CEILING_H
#define GW_BENCH_SAMPLE_CEILING_H

#include <stdbool.h>
#include <stdint.h>

#include <graphwire/block.h>

#define SAMPLE_FANOUT_MAX 32

struct ceiling_graph {
	const uint32_t *indptr;  /* [nodes + 1] */
	const uint32_t *indices; /* [indptr[nodes]] */
	const uint32_t *table;   /* [indptr[nodes], 2]: alias tables of the lists; NULL: none */
	uint64_t nodes;
};

/* The memory of one thread, and the last batch that it sampled. */
struct ceiling {
	struct ceiling_graph graph;
	uint32_t hops, fanouts[GW_HOPS_MAX];
	uint64_t *map; /* [nodes]: the batch in the upper half, the node's number in the lower */
	uint32_t batch;
	uint32_t *nodes;   /* ids in the order of first use */
	uint64_t *edge_id; /* of the last hop */
	uint32_t *source;  /* of the last hop: numbers of source nodes */
	uint32_t *pending; /* ids waiting for their map entries */
	uint64_t capacity, mapped_bytes;
	void *mapping;
	uint64_t node_count, last_edges; /* nodes of the last batch; edges of its last hop */
};

/* Allocates memory for batches of up to seeds_max seeds. Returns 0, or -1 with errno. */
int ceiling_begin(struct ceiling *ceiling, const struct ceiling_graph *graph, const uint32_t *fanouts, uint32_t hops,
		  uint64_t seeds_max);
void ceiling_end(struct ceiling *ceiling);

/* Samples one batch. Returns its edges over all hops. weighted: with replacement, in proportion to the weights of the
 * alias tables; else uniform, without replacement. */
uint64_t ceiling_batch(struct ceiling *ceiling, uint64_t key, const int64_t *seeds, uint32_t n, bool weighted);

#endif
