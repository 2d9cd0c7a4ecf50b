/* Mini-batches: the job that samples one, and the memory that stores it.
 *
 *   [edges -> ends, negatives (batch_edges.h)] -> seeds -> blocks (all hops from memory, or hop by hop from the owners)
 *                                              -> fetches -> the view that the caller gets
 *
 * A batch belongs to an engine. A released batch returns to the engine's list, which keeps its memory for reuse.
 */
#ifndef GW_CLIENT_BATCH_BATCH_H
#define GW_CLIENT_BATCH_BATCH_H

#include "client/batch/all_edges.h"
#include "client/batch/batch_edges.h"
#include "client/batch/batch_trace.h"
#include "client/batch/held_out.h"
#include "client/batch/hop.h"
#include "client/batch/seed_groups.h"
#include "client/engine/fan_in.h"
#include "client/engine/ticket.h"
#include "client/rows/gather.h"
#include "client/rows/landed.h"
#include "sampler/blocks/blocks.h"

struct gw_batch_fetch {
	struct gw_gather_op op;
	struct gw_landed rows;
	uint64_t row_bytes; /* as they are returned */
};

struct gw_batch {
	struct gw_ticket ticket; /* first: the job */
	struct gw_minibatch view;
	struct gw_engine *engine;
	struct gw_batch *next_unused;
	/* What to sample: copies of the spec's arrays. */
	struct gw_blocks_spec spec;
	struct gw_batch_edges edges; /* for seeds that are edges: their ends and negatives */
	bool asking;                 /* a request about edges is open */
	struct gw_vec lists;         /* struct gw_seeds: the types; later also counts and ids */
	uint32_t list_count;
	struct gw_vec fanouts, fetches, seeds; /* int32_t; struct gw_fetch; int64_t */
	struct gw_vec times[2];                /* of the seeds: until, from; 8 bytes each */
	bool has_times[2];
	bool disjoint;                  /* each seed is a group of its own, and then: */
	struct gw_seed_times time_form; /* uses 0: without times */
	struct gw_seed_groups groups;
	bool has_rules;                      /* an edge type is not drawn from uniformly, and then: */
	struct gw_vec sampling, columns;     /* [num_etypes]: struct gw_edge_sampling, const struct gw_edge_columns * */
	struct gw_vec local, local_of_types; /* columns in memory: struct gw_columns [num_etypes][num_parts] */
	uint32_t fetch_count;
	struct gw_all_edges all_edges;
	uint64_t seed_count, seed, stream;
	/* The loader sets this before it submits the batch; NULL for single mini-batches. The engine calls it to fill
	 * seeds, seed_count and the counts of the lists. */
	gw_status (*fill_seeds)(struct gw_batch *batch);
	void *owner;
	uint64_t number; /* the loader's number of this batch; in the windows */
	/* The loader's windows: [fetch_count], NULL where a fetch has none. NULL: no look-ahead. */
	struct gw_row_window *const *windows;
	bool counts;             /* fetches no rows: finds out which are elsewhere, for fetches with a window */
	struct gw_vec positions; /* uint64_t: used by the loader while it fills the seeds */
	/* Sampling state. */
	struct gw_blocks *blocks;
	struct gw_relabel *relabel;
	struct gw_hop hop;
	bool has_hop;
	uint32_t hop_number;
	struct gw_batch_fetch *work; /* [fetch_capacity] */
	uint32_t fetch_capacity;
	struct gw_fan_in gathers; /* of the fetches */
	bool fetching;
	struct gw_batch_trace trace;
	/* Arrays that the view points to. */
	const struct gw_block **view_blocks;
	uint64_t *view_node_counts;
	const int64_t **view_nodes;
	const uint32_t **view_groups;
	const void **view_rows;
	uint64_t *view_row_counts;
	struct gw_held_out *held_out; /* a ticket's share; NULL in a loader, which has its own */
	struct gw_ahead *ahead;       /* likewise: whose windows these are */
};

/* Returns a batch of this engine: an unused one, or a new one. gw_batch_release keeps the batch for
 * reuse. */
gw_status gw_batch_acquire(struct gw_engine *engine, struct gw_batch **out);
void gw_batch_release(struct gw_batch *batch);
/* Destroys a batch from any thread, while the engine runs. The batch's job must have ended. */
void gw_batch_discard(struct gw_batch *batch);
void gw_batches_free(struct gw_client *client);

#define GW_SEEDS_MAX   (1u << 24) /* of one mini-batch */
#define GW_FETCHES_MAX 256

/* The types of the seeds of a spec: one per list of nodes or of edges. If list_count is 0, the spec names the only
 * type. */
struct gw_seed_types {
	const struct gw_seeds *lists;
	uint32_t list_count;
};

/* Checks that a spec is valid and supported. GW_INVALID, GW_RANGE, GW_LIMIT, GW_UNSUPPORTED. */
gw_status gw_spec_check(struct gw_client *client, const struct gw_sample_spec *spec, struct gw_seed_types types);
/* Checks the types of the seeds. Lists of nodes must have different node types. Lists of edges must be one for each
 * edge type of the spec, in the spec's order. GW_INVALID, GW_RANGE, GW_LIMIT. */
gw_status gw_seed_types_check(const struct gw_client *client, const struct gw_sample_spec *spec,
			      struct gw_seed_types types);

/* Checks the times of lists of seeds that pass gw_spec_check(). most: the most seeds of a batch, without negatives.
 * GW_INVALID, GW_LIMIT. */
gw_status gw_seed_lists_check_times(struct gw_client *client, const struct gw_sample_spec *spec,
				    const struct gw_seeds *lists, uint32_t list_count, uint64_t most);

/* The number of edge types of the seeds; 0: the seeds are nodes. */
static inline uint32_t gw_spec_edge_types(const struct gw_sample_spec *spec)
{
	return !spec->edges ? 0 : spec->edge_type_count ? spec->edge_type_count : 1;
}

/* Checks a spec and copies it into a batch. The caller still owns the arrays that spec.edges points to. */
gw_status gw_batch_set_spec(struct gw_batch *batch, const struct gw_sample_spec *spec, struct gw_seed_types types);

/* Steps of the job (client/batch/batch_hop.c). Begin passes the frontiers of the current hop to batch->hop. Merge adds
 * the edges that batch->hop has found to the blocks of the current hop. */
gw_status gw_batch_hop_begin(struct gw_batch *batch);
gw_status gw_batch_hop_merge(struct gw_batch *batch);

/* The columns by which the batch draws from an edge type; NULL: uniformly. */
static inline const struct gw_edge_columns *gw_batch_columns(const struct gw_batch *batch, uint32_t etype)
{
	return batch->has_rules ? ((const struct gw_edge_columns *const *)batch->columns.data)[etype] : NULL;
}

/* The last step of the job, once the blocks are complete: runs the fetches and ends the job
 * (client/batch/batch_fetch.c). */
void gw_batch_fetch(struct gw_batch *batch);

/* The job of a batch. Submit it to the batch's engine. */
struct gw_job *gw_batch_job(struct gw_batch *batch);

#endif
