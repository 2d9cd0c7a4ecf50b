/* The ceiling of bench sample: the same work by a bare loop without any code of Graphwire. */
#ifndef GW_BENCH_SAMPLE_CEILING_H
#define GW_BENCH_SAMPLE_CEILING_H

#include <stdint.h>

#define SAMPLE_HOPS_MAX   8
#define SAMPLE_FANOUT_MAX 32

struct ceiling_graph {
	const uint32_t *indptr;  /* [nodes + 1] */
	const uint32_t *indices; /* [indptr[nodes]] */
	uint64_t nodes;
};

/* The memory of one thread, and its last sampled batch. */
struct ceiling {
	struct ceiling_graph graph;
	uint32_t hops, fanouts[SAMPLE_HOPS_MAX];
	uint64_t *map; /* [nodes]: batch in the upper half, number in the lower */
	uint32_t batch;
	uint32_t *nodes;   /* ids in the order of first use */
	uint64_t *edge_id; /* of the last hop */
	uint32_t *source;  /* of the last hop: numbers of nodes */
	uint32_t *pending; /* ids that pass through the map */
	uint64_t capacity, mapped_bytes;
	void *mapping;
	uint64_t node_count, last_edges; /* of the last batch; of its last hop */
};

/* Allocates memory for batches of up to seeds_max seeds. Returns 0, or -1 with errno. */
int ceiling_begin(struct ceiling *ceiling, const struct ceiling_graph *graph, const uint32_t *fanouts, uint32_t hops,
		  uint64_t seeds_max);
void ceiling_end(struct ceiling *ceiling);

/* Samples one batch. Returns its edges over all hops. */
uint64_t ceiling_batch(struct ceiling *ceiling, uint64_t key, const int64_t *seeds, uint32_t n);

#endif
