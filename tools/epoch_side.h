/* One client's side of an epoch: the graph's names resolved, the seeds, the loader. */
#ifndef GW_TOOLS_EPOCH_SIDE_H
#define GW_TOOLS_EPOCH_SIDE_H

#include <graphwire/graphwire.h>

#define GW_EPOCH_HOPS_MAX      16
#define GW_EPOCH_OVERRIDES_MAX 64
#define GW_EPOCH_FETCHES_MAX   64

/* A fanout for each hop; hop 0 starts at the seeds. */
struct gw_epoch_fanouts {
	uint32_t hops;
	int32_t of_hop[GW_EPOCH_HOPS_MAX];
};

/* What to stream, by names. A NULL name stands for the usual one, where the graph has it; a name that is given must be
 * in the graph. */
struct gw_epoch_plan {
	const char *edges;    /* an edge type: the seeds are its edges, mask and labels features of them; NULL: nodes */
	uint32_t negatives;   /* for each of them */
	bool no_true_edges;   /* negatives that are edges are drawn again */
	bool keep_edges;      /* their neighbourhoods may hold the edges themselves, and their reverses */
	const char *ntype;    /* of the seeds; NULL: the first that has the labels, else the first */
	const char *features; /* "feat": read for every node of each type that has them */
	const char *labels;   /* "label": read for the seeds */
	const char *mask;     /* "train_mask": the seeds are the nodes where it is not 0; without a mask, all nodes */
	bool one_part;        /* only seeds that `part` owns */
	uint32_t part;
	struct gw_epoch_fanouts fanouts;
	uint32_t override_count; /* as many hops each as fanouts has */
	struct gw_epoch_override {
		const char *etype;
		struct gw_epoch_fanouts fanouts;
	} overrides[GW_EPOCH_OVERRIDES_MAX];
	bool replace;
	uint32_t batch_size, depth;
	uint64_t seed;
};

struct gw_epoch_side {
	struct gw_client *client;
	struct gw_loader *loader;
	struct gw_loader_options options;
	struct gw_fetch fetches[GW_EPOCH_FETCHES_MAX];
	struct gw_edge_seeds edges; /* where the seeds are edges */
	int32_t *fanouts;           /* [hops][num_etypes] */
	int64_t *seeds;
	uint64_t seed_count;
};

/* Opens a client and a loader at the start of epoch 0. GW_NOT_FOUND names what the graph does not have; on failure
 * nothing stays open. Two sides of one plan on the same graph stream the same bytes. */
gw_status gw_epoch_side_open(const struct gw_epoch_plan *plan, const struct gw_client_options *client,
			     struct gw_epoch_side *side);
void gw_epoch_side_close(struct gw_epoch_side *side); /* a zeroed one is allowed */

#endif
