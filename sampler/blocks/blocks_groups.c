/* Runs of a batch in groups: every neighbour gets the group of its destination before it is numbered. */
#include "sampler/blocks/blocks_private.h"

gw_status gw_blocks_number_in_groups(struct gw_blocks *blocks, const uint32_t *of_rows, uint64_t n,
				     const uint32_t *counts, const uint64_t *neighbours, uint64_t total, void *numbers)
{
	uint32_t etype = gw_blocks_edges_now(blocks)->etype;
	gw_status status = gw_vec_reserve(&blocks->end_groups, total * sizeof(uint32_t));
	if (status != GW_OK)
		return status;
	uint32_t *groups = blocks->end_groups.data;
	for (uint64_t i = 0, at = 0; i < n; i++) {
		for (uint32_t j = 0; j < counts[i]; j++)
			groups[at++] = of_rows[i];
	}
	return gw_relabel_run_groups(blocks->relabel, &blocks->nodes[blocks->meta->etypes[etype].src], neighbours,
				     groups, total, numbers, blocks->spec.wide_indices);
}
