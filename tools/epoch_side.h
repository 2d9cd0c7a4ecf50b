/* One client's side of an epoch: resolves the plan's names in the graph, lists the seeds, opens the loader. */
#ifndef GW_TOOLS_EPOCH_SIDE_H
#define GW_TOOLS_EPOCH_SIDE_H

#include "tools/epoch_times.h"

#define GW_EPOCH_OVERRIDES_MAX 64
#define GW_EPOCH_FETCHES_MAX   64

/* A fanout for each hop; hop 0 starts at the seeds. */
struct gw_epoch_fanouts {
	uint32_t hops;
	int32_t of_hop[GW_HOPS_MAX];
};

/* What to stream, by names. A NULL name stands for the usual name, if the graph has it. A name that is given must
 * exist in the graph. */
struct gw_epoch_plan {
	const char *edges;    /* an edge type: the seeds are its edges, and mask and labels are its features; NULL: the
				 seeds are nodes */
	uint32_t negatives;   /* negatives of each edge */
	bool no_true_edges;   /* a negative that is an edge is drawn again */
	bool keep_edges;      /* neighbourhoods may hold the batch's own edges and their reverses */
	const char *ntype;    /* node type of the seeds; NULL: the first with the labels, else the first */
	const char *features; /* NULL: "feat"; read for every node of each type that has them */
	const char *labels;   /* NULL: "label"; read for the seeds */
	const char *mask; /* NULL: "train_mask"; the seeds are the nodes where it is not 0; without a mask, all nodes */
	bool one_part;    /* only seeds that `part` owns */
	uint32_t part;
	struct gw_epoch_fanouts fanouts;
	uint32_t override_count; /* each override has as many hops as fanouts */
	struct gw_epoch_override {
		const char *etype;
		struct gw_epoch_fanouts fanouts;
	} overrides[GW_EPOCH_OVERRIDES_MAX];
	bool replace, disjoint;
	struct gw_epoch_times_plan times;
	uint32_t batch_size, depth;
	uint64_t seed;
};

struct gw_epoch_side {
	struct gw_client *client;
	struct gw_loader *loader;
	struct gw_loader_options options;
	struct gw_fetch fetches[GW_EPOCH_FETCHES_MAX];
	struct gw_edge_seeds edges; /* set if the seeds are edges */
	int32_t *fanouts;           /* [hops][num_etypes] */
	int64_t *seeds;
	uint64_t seed_count;
	struct gw_epoch_times times;
	uint64_t begun_ns; /* when the loader began to sample */
};

/* Opens a client, and a loader at the start of epoch 0. GW_NOT_FOUND names what the graph does not have. On failure
 * nothing stays open. Two sides with one plan on the same graph stream the same bytes. */
gw_status gw_epoch_side_open(const struct gw_epoch_plan *plan, const struct gw_client_options *client,
			     struct gw_epoch_side *side);
void gw_epoch_side_close(struct gw_epoch_side *side); /* a zeroed one is allowed */

#endif
