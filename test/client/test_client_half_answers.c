/* Operations that are cancelled when one server has answered all of their requests, and the other none: each ends once,
 * and the client goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include <graphwire/edges.h>

#include "test/support/client_setup.h"
#include "test/support/must.h"
#include "test/support/relay.h"

#define PARTS 2
#define IDS   40
#define STEPS 8 /* more than any operation has one after another */

/* What an operation reads and writes until it is cancelled. */
struct room {
	int64_t ids[IDS], found[2][IDS];
	uint8_t rows[IDS * 64];
	struct gw_edge_list *list;
	struct gw_minibatch *batch;
};

static gw_status start_gather(struct gw_client *client, struct room *room, struct gw_ticket **ticket)
{
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	return gw_gather_start(client, feat, room->ids, IDS, room->rows, ticket);
}

static gw_status start_degrees(struct gw_client *client, struct room *room, struct gw_ticket **ticket)
{
	return gw_degrees_start(client, FIXTURE_CITES, room->ids, IDS, room->found[0], ticket);
}

static gw_status start_find(struct gw_client *client, struct room *room, struct gw_ticket **ticket)
{
	return gw_find_edges_start(client, FIXTURE_CITES, room->ids, IDS, room->found[0], room->found[1], ticket);
}

static gw_status start_edge_ids(struct gw_client *client, struct room *room, struct gw_ticket **ticket)
{
	return gw_edge_ids_start(client, FIXTURE_CITES, room->ids, room->ids, IDS, &room->list, ticket);
}

static gw_status start_subgraph(struct gw_client *client, struct room *room, struct gw_ticket **ticket)
{
	const struct gw_subgraph_nodes nodes = {.count = IDS, .ids = room->ids};
	const struct gw_subgraph_spec spec = {.etype = FIXTURE_CITES, .src = nodes, .dst = nodes};
	return gw_subgraph_start(client, &spec, &room->list, ticket);
}

static gw_status start_in(struct gw_client *client, struct room *room, struct gw_ticket **ticket)
{
	const struct gw_neighbours_spec spec = {.etype = FIXTURE_CITES, .fanout = GW_ALL_NEIGHBOURS};
	return gw_neighbours_start(client, &spec, 1, 2, room->ids, IDS, &room->list, ticket);
}

static gw_status start_weighted(struct gw_client *client, struct room *room, struct gw_ticket **ticket)
{
	const struct gw_neighbours_spec spec = {.etype = FIXTURE_CITES, .fanout = 3, .rule = {.weight = "weight"}};
	return gw_neighbours_start(client, &spec, 1, 2, room->ids, IDS, &room->list, ticket);
}

static gw_status start_out(struct gw_client *client, struct room *room, struct gw_ticket **ticket)
{
	const struct gw_neighbours_spec spec = {
		.etype = FIXTURE_WRITES, .fanout = GW_ALL_NEIGHBOURS, .direction = GW_OUT};
	return gw_neighbours_start(client, &spec, 1, 2, room->ids, IDS, &room->list, ticket);
}

static gw_status start_batch(struct gw_client *client, struct room *room, struct gw_ticket **ticket)
{
	struct plan plan;
	make_plan(client, &plan, false, false);
	return gw_sample_start(client, &plan.spec, 1, 2, room->ids, IDS, &room->batch, ticket);
}

static gw_status start_node_ids(struct gw_client *client, struct room *room, struct gw_ticket **ticket)
{
	uint32_t author = 0;
	must(gw_node_type(client, "author", &author));
	const struct gw_orig_ids ids = {.count = IDS, .dtype = GW_INT64, .numbers = room->ids};
	static uint64_t missing;
	return gw_node_ids_start(client, author, &ids, room->found[0], &missing, ticket);
}

static const struct operation {
	gw_status (*start)(struct gw_client *client, struct room *room, struct gw_ticket **ticket);
	enum { PAPERS, AUTHORS, LINKS } of; /* its ids */
} operations[] = {
	{start_gather, PAPERS},    {start_degrees, PAPERS},  {start_find, LINKS},  {start_edge_ids, PAPERS},
	{start_in, PAPERS},        {start_weighted, PAPERS}, {start_out, AUTHORS}, {start_batch, PAPERS},
	{start_node_ids, AUTHORS}, {start_subgraph, PAPERS},
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

/* Ids of both parts. */
static void room_begin(struct room *room, const struct setup *setup, const struct operation *operation)
{
	const struct gw_graph_meta *meta = setup->fixture.schema;
	const uint64_t counts[] = {[PAPERS] = SETUP_SCALE,
				   [AUTHORS] = meta->ntypes[meta->etypes[FIXTURE_WRITES].src].count,
				   [LINKS] = setup->fixture.edges[FIXTURE_CITES].count};
	*room = (struct room){.list = NULL};
	for (uint64_t i = 0; i < IDS; i++)
		room->ids[i] = (int64_t)(i * counts[operation->of] / IDS);
}

static void room_end(struct room *room)
{
	gw_edge_list_free(room->list);
	if (room->batch)
		gw_minibatch_release(room->batch);
}

static void half_answered_operations_end_once(void **state)
{
	(void)state;
	static const char *const ways[] = {"reads", "requests"};
	struct setup setup;
	struct relay relay;
	if (cluster_is_rdma())
		skip(); /* a relay works only over TCP */
	setup_begin_open(&setup, 290, PARTS, SETUP_SCALE);
	relay_begin(&relay, &setup.cluster.addresses[1]);
	const char *list[PARTS] = {setup.cluster.list[0], relay.text};
	for (size_t k = 0; k < 2 * OPERATIONS; k++) {
		const struct gw_client_options options = {.servers = list,
							  .server_count = PARTS,
							  .threads = 1,
							  .insecure = true,
							  .transport = "tcp",
							  .neighbours = ways[k % 2]};
		const struct operation *operation = &operations[k / 2];
		struct gw_client *client = open_client(&options);
		struct gw_ticket *ticket;
		struct room room, again;
		int64_t of_part_0 = 0, degree;
		room_begin(&room, &setup, operation);
		room_begin(&again, &setup, operation);
		must(operation->start(client, &again, &ticket)); /* opens the connections */
		must(gw_wait(ticket, -1));
		room_end(&again);
		relay_hold_after(&relay, 0);
		must(operation->start(client, &room, &ticket));
		/* Each answer of server 0 comes behind the operation's answer, and before the next one. */
		for (int step = 0; step < STEPS; step++)
			must(gw_degrees(client, FIXTURE_CITES, &of_part_0, 1, &degree));
		assert_int_equal(gw_wait(ticket, 0), GW_AGAIN);
		gw_cancel(ticket);
		relay_pass(&relay);
		room_begin(&again, &setup, operation);
		must(operation->start(client, &again, &ticket));
		must(gw_wait(ticket, -1));
		room_end(&again);
		gw_client_close(client);
	}
	relay_end(&relay);
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(half_answered_operations_end_once)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
