/* The times of nodes, by which negatives exist: where the index of a node type's times is stored.
 *
 *   gw_edge_seeds {exist_time: "t"} -> node feature "t" -> its index in all parts (core/graph/times.h): keys, and nodes
 *
 * A client looks names up once, and keeps the result until it is closed.
 */
#ifndef GW_CLIENT_BATCH_NODE_TIMES_H
#define GW_CLIENT_BATCH_NODE_TIMES_H

#include "client/state/client.h"

struct gw_node_times {
	struct gw_node_times *next;
	uint32_t ntype;
	char *name, *end;     /* the features; end NULL: a node exists for ever */
	bool real, real_ends; /* the times are real numbers; and the ends */
	gw_dtype end_dtype;
	/* Entry i of part p's index is row starts[p] + i of both: the key, and the node's row in the part. */
	struct gw_rows keys, nodes;
	struct gw_rows ends; /* by node */
};

/* Finds the times that the negatives of a spec need; *out is NULL if they need none. The client owns the result.
 * GW_INVALID, GW_NOT_FOUND, GW_UNSUPPORTED: see gw_edge_seeds. */
gw_status gw_node_times_find(struct gw_client *client, const struct gw_edge_seeds *spec,
			     const struct gw_node_times **out);

void gw_node_times_free(struct gw_client *client);

#endif
