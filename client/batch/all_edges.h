/* The edges of each type of a mini-batch as one list, over all hops: what the caller asked for, and the ids of the
 * edges whose rows are fetched. */
#ifndef GW_CLIENT_BATCH_ALL_EDGES_H
#define GW_CLIENT_BATCH_ALL_EDGES_H

#include "core/memory/vec.h"
#include "sampler/blocks/blocks.h"

/* Reused from batch to batch. A zero-initialized object is empty. */
struct gw_all_edges {
	bool asked;  /* with the ends, not the ids alone */
	bool no_ids; /* the blocks have none */
	bool listed; /* the lists are those of the current batch */
	/* Private: */
	struct gw_vec lists, columns; /* struct gw_sampled_edges [num_etypes]; int64_t */
};

/* The lists of all edge types, [num_etypes]; their ends are NULL unless asked. NULL: no memory. Makes the lists in the
 * first call for a batch (listed is false). */
const struct gw_sampled_edges *gw_all_edges_list(struct gw_all_edges *all, const struct gw_blocks *blocks,
						 uint32_t hops, uint32_t num_etypes, bool wide_indices);
void gw_all_edges_free(struct gw_all_edges *all);

#endif
