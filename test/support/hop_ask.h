/* What a mini-batch asks its hop for, asked alone: any draw and any groups, by any way that the client has. */
#ifndef GW_TEST_HOP_ASK_H
#define GW_TEST_HOP_ASK_H

#include "client/batch/hop.h"
#include "core/graph/picks.h"
#include "test/support/graph_fixture.h"

struct hop_ask {
	uint32_t etype;
	enum gw_direction direction;
	struct gw_draw draw;
	const struct gw_edge_columns *columns; /* NULL: the draw needs none */
	struct gw_frontier frontier;           /* first: 0 */
};

/* Runs the hop in an engine of the client, and appends what it gives to out, whose positions are edge ids. */
gw_status hop_ask(struct gw_client *client, const struct hop_ask *ask, struct gw_picks *out);

/* The columns of a rule. From now on the client draws by that rule with this kind. */
gw_status hop_columns(struct gw_client *client, uint32_t etype, struct gw_edge_rule rule,
		      const struct gw_sampling_kind *kind, const struct gw_edge_columns **out);

/* Before a fixture is written: moves the lists of 120 papers into that of paper FIXTURE_HUB, in cites, so that they are
 * empty. */
#define FIXTURE_HUB 5
void fixture_add_hub(struct gw_fixture *fixture);

#endif
