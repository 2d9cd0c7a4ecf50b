/* What the methods that cut few edges share: the numbering of all nodes, the quantities that each part has its share
 * of, and the nodes without neighbours. */
#ifndef GW_TOOLS_PARTITION_BALANCE_H
#define GW_TOOLS_PARTITION_BALANCE_H

#include "tools/partition/plan.h"
#include "tools/partition/symmetric.h"

#define GW_BALANCE_QUANTITIES_MAX GW_PLAN_CONSTRAINTS_MAX /* callers check it */

struct gw_balance {
	const struct gw_plan *plan;
	const struct gw_part *part;
	const struct gw_graph_meta *meta;
	uint64_t *base;                      /* [ntypes + 1]: the first node of each type in the common numbering */
	struct gw_symmetric_source *sources; /* [etypes] */
	uint64_t edges;
	struct gw_plan_classes classes;
	uint32_t quantities; /* the nodes of each class; with --balance-edges the edges into each class too */
};

/* GW_NOT_FOUND, GW_NO_MEMORY. Free it in any case. */
gw_status gw_balance_open(const struct gw_plan *plan, const struct gw_part *part, struct gw_balance *out);
void gw_balance_free(struct gw_balance *balance); /* a zeroed one is allowed */

/* What a node of the common numbering adds to each quantity: [quantities]. *ntype: 0 before the first call; nodes come
 * in ascending order. */
void gw_balance_of_node(const struct gw_balance *balance, uint64_t node, uint32_t *ntype, uint64_t *quantity);

/* Sets the pieces of all nodes: those of the `nodes` nodes in origin, ascending, as `piece` says. The nodes without
 * neighbours even out the pieces, class by class, in runs of ascending ids. GW_NO_MEMORY. */
gw_status gw_balance_fill_up(const struct gw_balance *balance, const uint32_t *origin, uint64_t nodes,
			     const int32_t *piece, struct gw_assignment *assignment);

#endif
