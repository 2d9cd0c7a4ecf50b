/* The memory's own ceiling of bench sample: the reads and writes that batches make at random places of memory, made
 * again without the sampler.
 *
 *   replay_begin -> a batch is sampled -> replay_add (hop by hop, row by row) ... -> replay_batch, any number of times
 *
 * A trace takes 4 bytes for each edge, 5 for each row, and 4 for each draw by weight.
 */
#ifndef GW_BENCH_SAMPLE_REPLAY_H
#define GW_BENCH_SAMPLE_REPLAY_H

#include "bench/sample_graph.h"
#include "core/memory/vec.h"
#include "sampler/blocks/relabel.h"

#define REPLAY_RUN_MAX   1024
#define REPLAY_DRAWS_MAX 144 /* draws of a list: 4 * SAMPLE_FANOUT_MAX + 16 */
#define REPLAY_WEIGHTS   255 /* instead of a number of draws: the weights of the complete list are read */

/* How far ahead of their use addresses are prefetched, and to where. */
struct replay_pace {
	uint32_t run;     /* lists; all their neighbours are prefetched before the first is read */
	uint32_t offsets; /* lists */
	uint32_t slots;   /* neighbours */
	uint32_t level;   /* the cache into which neighbours are prefetched: 1 or 2 */
};

/* One hop of one batch: where its data begins in the trace. */
struct replay_hop {
	uint64_t rows, nodes, row, edges, pick, column;
};

struct replay {
	const struct sample_graph *graph;
	const struct gw_relabel *relabel; /* its map's slots are read and written, and keep their values */
	uint32_t hops;
	bool weighted;     /* rows have draws */
	struct gw_vec hop; /* struct replay_hop [batches * hops] */
	struct gw_vec
		nodes; /* uint32_t: for each batch, the destinations of its last hop; earlier hops' are a prefix */
	struct gw_vec counts;  /* uint8_t: picks of each row of each hop */
	struct gw_vec draws;   /* uint8_t: reads of alias entries of each row, or REPLAY_WEIGHTS */
	struct gw_vec picks;   /* uint32_t: positions in the list */
	struct gw_vec columns; /* uint32_t: positions in the list's alias table */
	uint64_t hop_count, node_count, row_count, pick_count, column_count;
	uint32_t *elements, *ids; /* [REPLAY_RUN_MAX * SAMPLE_FANOUT_MAX] */
};

/* One row of a hop, as the sampler has read it. */
struct replay_row {
	const uint32_t *picks; /* [count] */
	uint32_t count;
	const uint32_t *columns; /* [draws]; draws 0 for a uniform draw */
	uint32_t draws;          /* or REPLAY_WEIGHTS */
};

gw_status replay_begin(struct replay *replay, const struct sample_graph *graph, const struct gw_relabel *relabel,
		       uint32_t hops);
/* Removes all batches. weighted: whether the next batches are drawn by weight. */
void replay_clear(struct replay *replay, bool weighted);
void replay_end(struct replay *replay);

/* Adds a hop of `rows` destinations, nodes [rows], which begin with those of the batch's hop before. Then its rows
 * follow, in order. GW_NO_MEMORY. */
gw_status replay_add_hop(struct replay *replay, const int64_t *nodes, uint64_t rows, bool first);
gw_status replay_add_row(struct replay *replay, const struct replay_row *row);

/* Replays one batch. Adds the ids of its neighbours to *sum. Returns its edges. */
uint64_t replay_batch(const struct replay *replay, uint64_t batch, const struct replay_pace *pace, uint64_t *sum);

#endif
