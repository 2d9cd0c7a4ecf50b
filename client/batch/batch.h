/* Mini-batches: the job that samples one, and the memory that holds it.
 *
 *   [edges -> ends, negatives (batch_edges.h)] -> seeds -> blocks (all hops from memory, or hop by hop from the owners)
 *                                              -> fetches -> the view that the caller gets
 *
 * A batch belongs to an engine and goes back to its list when released; its memory is kept and reused.
 */
#ifndef GW_CLIENT_BATCH_BATCH_H
#define GW_CLIENT_BATCH_BATCH_H

#include "client/batch/batch_edges.h"
#include "client/batch/hop.h"
#include "client/engine/fan_in.h"
#include "client/engine/ticket.h"
#include "client/rows/gather.h"
#include "client/state/recv_buffer.h"
#include "sampler/blocks.h"

struct gw_batch_fetch {
	struct gw_gather_op op;
	struct gw_recv_buffer rows;
	struct gw_vec ids; /* edge ids of all hops, for GW_AT_EDGES */
};

struct gw_batch {
	struct gw_ticket ticket; /* first: the job */
	struct gw_minibatch view;
	struct gw_engine *engine;
	struct gw_batch *next_unused;
	/* What to sample: the spec's copies. */
	struct gw_blocks_spec spec;
	struct gw_batch_edges edges; /* of seeds that are edges: what they lead to */
	bool asking;                 /* about edges */
	struct gw_vec lists;         /* struct gw_seeds: types, then counts and ids too */
	uint32_t list_count;
	struct gw_vec fanouts, fetches, seeds; /* int32_t; struct gw_fetch; int64_t */
	uint32_t fetch_count;
	uint64_t seed_count, seed, stream;
	/* Set before submission, called in the engine: fills seeds, seed_count and the lists' counts (the loader). May
	 * be NULL. */
	gw_status (*fill_seeds)(struct gw_batch *batch);
	void *owner;
	uint64_t number;         /* the loader's */
	struct gw_vec positions; /* uint64_t: the loader's, while it fills the seeds of several types */
	/* The work. */
	struct gw_blocks *blocks;
	struct gw_relabel *relabel;
	struct gw_hop hop;
	bool has_hop;
	uint32_t hop_number;
	struct gw_batch_fetch *work; /* [fetch_capacity] */
	uint32_t fetch_capacity;
	struct gw_fan_in gathers; /* of the fetches */
	bool fetching;
	/* What the view points to. */
	const struct gw_block **view_blocks;
	uint64_t *view_node_counts;
	const int64_t **view_nodes;
	const void **view_rows;
	uint64_t *view_row_counts;
};

/* A batch of this engine: an unused one, or a new one. Given back it is kept for the next; destroyed, its memory is
 * free. */
gw_status gw_batch_acquire(struct gw_engine *engine, struct gw_batch **out);
void gw_batch_release(struct gw_batch *batch);
void gw_batch_destroy(struct gw_batch *batch); /* in its engine, or when that has no thread any more */
/* The same from any thread, while the engine runs. The batch's job has ended. */
void gw_batch_discard(struct gw_batch *batch);
void gw_batches_free(struct gw_client *client);

#define GW_SEEDS_MAX   (1u << 24) /* of one mini-batch */
#define GW_FETCHES_MAX 256

/* Seeds that a spec is for: lists of nodes, or of the edges that it tells; with list_count 0: of the one type that it
 * tells. */
struct gw_seed_types {
	const struct gw_seeds *lists;
	uint32_t list_count;
};

/* Whether a spec can be copied and followed. GW_INVALID, GW_RANGE, GW_LIMIT, GW_UNSUPPORTED. */
gw_status gw_spec_check(const struct gw_client *client, const struct gw_sample_spec *spec, struct gw_seed_types types);
/* Whether lists are of different node types, or one of each edge type of the spec, in its order. GW_INVALID, GW_RANGE,
 * GW_LIMIT. */
gw_status gw_seed_types_check(const struct gw_client *client, const struct gw_sample_spec *spec,
			      struct gw_seed_types types);

/* How many edge types the seeds are of; 0: they are nodes. */
static inline uint32_t gw_spec_edge_types(const struct gw_sample_spec *spec)
{
	return !spec->edges ? 0 : spec->edge_type_count ? spec->edge_type_count : 1;
}

/* Copies a spec into a batch; checks it. What spec.edges points to stays the caller's. */
gw_status gw_batch_set_spec(struct gw_batch *batch, const struct gw_sample_spec *spec, struct gw_seed_types types);

/* A step of the job: the current hop's frontiers are what batch->hop is about to ask for; once that is done, its edges
 * are the hop's blocks (client/batch/batch_hop.c). */
gw_status gw_batch_hop_begin(struct gw_batch *batch);
gw_status gw_batch_hop_merge(struct gw_batch *batch);

/* The last step of the job, once the blocks are there: the fetches, and then its end (client/batch/batch_fetch.c). */
void gw_batch_fetch(struct gw_batch *batch);

/* The job of a batch: submit it to the batch's engine. */
struct gw_job *gw_batch_job(struct gw_batch *batch);

#endif
