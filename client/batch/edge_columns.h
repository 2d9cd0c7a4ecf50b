/* The columns that an edge rule names: which kind of sampling draws with them, and where they are stored.
 *
 *   gw_edge_rule {weight: "w"} -> kind -> feature "w" and its alias table, in all parts -> forms, places
 *
 * A client looks a rule up once, and keeps the result until it is closed.
 */
#ifndef GW_CLIENT_BATCH_EDGE_COLUMNS_H
#define GW_CLIENT_BATCH_EDGE_COLUMNS_H

#include "client/state/client.h"
#include "sampler/columns.h"

struct gw_edge_columns {
	struct gw_edge_columns *next;
	struct gw_column_names names; /* its own copies */
	struct gw_edge_sampling sampling;
	char *keys[GW_COLUMN_COUNT];              /* of the arrays; NULL: the draw does not use the column */
	struct gw_place *places[GW_COLUMN_COUNT]; /* [num_parts] */
	bool by_request; /* a draw reads whole lists: the owner should make it, even if reads cost the owner nothing */
};

/* Finds the columns of a rule; *out is NULL for a rule without names: uniform sampling. The client owns the result.
 * GW_NOT_FOUND: the edge type has no such feature; GW_UNSUPPORTED: the feature holds no numbers, or a kind of sampling
 * that this version does not have. */
gw_status gw_edge_columns_find(struct gw_client *client, uint32_t etype, const struct gw_edge_rule *rule,
			       const struct gw_edge_columns **out);

void gw_edge_columns_free(struct gw_client *client);

#endif
