/* The two ways by which --method lp makes a first assignment. */
#ifndef GW_TOOLS_PARTITION_LP_H
#define GW_TOOLS_PARTITION_LP_H

#include "tools/partition/refine.h"

/* Assigns nodes one after another, nodes of high degree first, each to the piece with the best of: its neighbours
 * there, less a price of what the piece already has. Fennel's law (Tsourakakis and others, "FENNEL: streaming graph
 * partitioning for massive scale graphs", 2014), with the limits of refine.h. Two more passes in ascending order assign
 * each node again (Nishimura, Ugander, "Restreaming graph partitioning", 2013). piece: [lists->nodes]. Takes 16 bytes a
 * piece and quantity. GW_NO_MEMORY. */
gw_status gw_lp_stream(const struct gw_balance *balance, const struct gw_list_file *lists, uint32_t pieces,
		       int32_t *piece);

/* Merges nodes into clusters of bounded size by label propagation, and cuts the graph of clusters with METIS:
 * Meyerhenke, Sanders, Schulz, "Partitioning complex networks via size-constrained clustering", 2014. Takes 12 bytes a
 * node and 4 a cluster besides `piece`, and METIS's memory for a fifth of the entries at most. *done is false, and
 * piece has no pieces, if the clusters have more edges among them, if the memory or METIS's limits do not allow them,
 * or if the build has no METIS. GW_NO_MEMORY, and the errors of gw_metis_run. */
gw_status gw_lp_contract(const struct gw_balance *balance, const struct gw_list_file *lists, uint32_t pieces,
			 int32_t *piece, bool *done);

#endif
