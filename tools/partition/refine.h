/* The shares of the pieces, and moves of nodes that cut fewer edges or even out the shares.
 *
 * A share is the sum of a quantity (balance.h) over the nodes of a piece. Its limit is 1.03 times the mean, or the
 * greatest value of a node if that is more. Of several small quantities it is one more than the mean rounded up.
 */
#ifndef GW_TOOLS_PARTITION_REFINE_H
#define GW_TOOLS_PARTITION_REFINE_H

#include "tools/partition/lists.h"

#define GW_BALANCE_SLACK 0.03 /* what a share may exceed the mean by */

struct gw_shares {
	const struct gw_balance *balance;
	const struct gw_list_file *lists;
	uint32_t pieces, quantities;
	uint64_t *of;    /* [pieces][quantities] */
	uint64_t *limit; /* [quantities] */
};

/* All shares are 0. GW_NO_MEMORY. Free them in any case. */
gw_status gw_shares_make(const struct gw_balance *balance, const struct gw_list_file *lists, uint32_t pieces,
			 struct gw_shares *out);
void gw_shares_free(struct gw_shares *shares);

/* Adds a node's quantities to a piece, or takes them away. */
static inline void gw_shares_add(struct gw_shares *shares, uint32_t piece, const uint64_t *quantity, bool away)
{
	uint64_t *of = shares->of + (uint64_t)piece * shares->quantities;
	for (uint32_t c = 0; c < shares->quantities; c++)
		of[c] += away ? -quantity[c] : quantity[c];
}

/* Whether the node's quantities fit below the limits of the piece. */
static inline bool gw_shares_fit(const struct gw_shares *shares, uint32_t piece, const uint64_t *quantity)
{
	const uint64_t *of = shares->of + (uint64_t)piece * shares->quantities;
	for (uint32_t c = 0; c < shares->quantities; c++) {
		if (quantity[c] && of[c] + quantity[c] > shares->limit[c])
			return false;
	}
	return true;
}

/* The mean of the piece's shares over the quantities, as parts of the whole. */
double gw_shares_fill(const struct gw_shares *shares, uint32_t piece);

/* Moves nodes of `piece`, [lists->nodes], in `passes` passes (2 at least) over the lists, and in a few
 * more if a share is still over its limit, in ascending order. A node moves to the
 * piece with most of its neighbours, if it fits there. Nodes leave a piece that is over a limit also if more edges are
 * cut, from the second pass on; and if they fit nowhere, to where the limits are exceeded by less, or where they even
 * out all shares; or two nodes change places. Size-constrained label propagation: Meyerhenke, Sanders, Schulz,
 * "Partitioning (hierarchically clustered) complex networks via size-constrained graph clustering", 2016. The result
 * depends on the arguments alone. GW_NO_MEMORY. */
gw_status gw_refine(const struct gw_balance *balance, const struct gw_list_file *lists, uint32_t pieces,
		    uint32_t passes, int32_t *piece);

#endif
