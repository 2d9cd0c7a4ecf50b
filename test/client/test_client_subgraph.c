/* The edges among nodes compared with the edge list of the graph: over every path, with and without groups, with ids
 * that repeat and edges that are held out; sets that need several requests; the bytes of the answers; servers that lie;
 * and memory that is short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "protocol/ops.h"
#include "protocol/subgraph_call.h"
#include "test/support/alloc_fault.h"
#include "test/support/client_setup.h"
#include "test/support/many.h"
#include "test/support/must.h"
#include "transport/service/service_backend.h"

#define NODES 150

/* --- Paths to the lists. --- */

static void with_each_path(uint64_t seed, void (*body)(struct gw_client *client, const struct setup *setup))
{
	static const char *const offers[] = {NULL, "shm"};
	for (uint32_t i = 0; i < (cluster_is_rdma() ? 2 : 4); i++) { /* over RDMA there is no other offer */
		struct setup setup;
		uint32_t parts = i % 2 ? 5 : 1;
		cluster_offer(offers[i / 2]);
		setup_begin(&setup, seed, parts, i == 1 ? "epoll" : NULL);
		const struct gw_client_options ways[] = {
			{.part_config = setup.fixture.folder, .threads = 1},
			{.part_config = setup.fixture.folder, .threads = 2, .neighbours = "reads"},
			{.servers = setup.cluster.list, .server_count = parts, .threads = 2},
			{.servers = setup.cluster.list, .server_count = parts, .threads = 1, .neighbours = "requests"},
			{.servers = setup.cluster.list, .server_count = parts, .threads = 1, .neighbours = "reads"},
		};
		for (size_t w = i < 2 ? 0 : 2; w < sizeof(ways) / sizeof(ways[0]); w++) {
			struct gw_client *client = open_client(&ways[w]);
			body(client, &setup);
			gw_client_close(client);
		}
		setup_end(&setup);
	}
	cluster_offer(NULL);
}

/* --- The edge list. --- */

/* Nodes of a type, in so many groups. Some repeat; in a group, too, if repeats. */
struct nodes {
	int64_t ids[NODES];
	uint32_t groups[NODES];
	struct gw_subgraph_nodes list;
};

static void make_nodes(struct nodes *nodes, uint64_t seed, uint64_t count, uint32_t groups, bool repeats)
{
	for (uint32_t i = 0; i < NODES; i++) {
		/* Low ids have most edges. */
		uint64_t id = gw_mix64(seed + i) % (i % 2 ? count : count / 10 + 1);
		nodes->ids[i] = (int64_t)(repeats && i % 7 == 6 ? (uint64_t)nodes->ids[i - 3] : id);
		nodes->groups[i] = groups ? UINT32_MAX / groups * (uint32_t)(gw_mix64(seed + i / 3) % groups) : 0;
	}
	nodes->list =
		(struct gw_subgraph_nodes){.count = NODES, .ids = nodes->ids, .groups = groups ? nodes->groups : NULL};
}

/* The first row of an id in a group; NODES: there is none. */
static uint32_t row_of(const struct nodes *nodes, uint64_t id, uint32_t group)
{
	uint32_t row = 0;
	while (row < NODES && !((uint64_t)nodes->ids[row] == id && nodes->groups[row] == group))
		row++;
	return row;
}

/* held_each: edges whose ids it divides are held out; 0: none are. Adds their number to *held. */
static uint64_t compare(const struct gw_fixture_edges *edges, const struct nodes *src, const struct nodes *dst,
			uint64_t held_each, uint64_t *held, const struct gw_edge_list *list)
{
	uint64_t at = 0;
	assert_int_equal(list->question_count, NODES);
	for (uint32_t i = 0; i < NODES; i++) {
		assert_int_equal(list->offsets[i], at);
		for (uint64_t e = edges->indptr[dst->ids[i]]; e < edges->indptr[dst->ids[i] + 1]; e++) {
			uint32_t row = row_of(src, edges->src[e], dst->groups[i]);
			if (row == NODES)
				continue;
			if (held_each && e % held_each == 0) {
				++*held;
				continue;
			}
			assert_true(at < list->edge_count);
			assert_int_equal(list->src[at], row);
			assert_int_equal(list->dst[at], i);
			assert_int_equal(list->edge_ids[at], e);
			at++;
		}
	}
	assert_int_equal(list->offsets[NODES], at);
	assert_int_equal(list->edge_count, at);
	return at;
}

static struct gw_held_out *hold_out(struct gw_client *client, uint32_t etype, uint64_t edges, uint64_t each)
{
	int64_t *ids = malloc((edges / each + 1) * sizeof(*ids));
	struct gw_held_out_list list = {.etype = etype, .ids = ids};
	struct gw_held_out *held_out;
	for (uint64_t e = 0; e < edges; e += each)
		ids[list.count++] = (int64_t)e;
	must(gw_held_out_open(client, &list, 1, &held_out));
	free(ids);
	return held_out;
}

static void check_subgraphs(struct gw_client *client, const struct setup *setup)
{
	static const uint32_t groups[] = {0, 1, 4, 60};
	const struct gw_graph_meta *meta = setup->fixture.schema;
	uint64_t edges = 0, held = 0;
	for (uint32_t i = 0; i < 8 * GW_FIXTURE_ETYPES; i += gw_many_step() == 1 ? 1 : 3) {
		uint32_t e = i / 8;
		const struct gw_edge_type *type = &meta->etypes[e];
		struct gw_held_out *held_out = i % 2 ? hold_out(client, e, type->count, 3) : NULL;
		struct gw_edge_list *list;
		struct nodes src = {0}, dst = {0};
		make_nodes(&src, i, meta->ntypes[type->src].count, groups[i / 2 % 4], true);
		make_nodes(&dst, type->src == type->dst ? i : i + 1000, meta->ntypes[type->dst].count,
			   groups[i / 2 % 4], true);
		const struct gw_subgraph_spec spec = {
			.etype = e, .src = src.list, .dst = dst.list, .held_out = held_out};
		if (gw_subgraph(client, &spec, &list) != GW_OK)
			fail_msg("%s", gw_last_error());
		edges += compare(&setup->fixture.edges[e], &src, &dst, held_out ? 3 : 0, &held, list);
		gw_edge_list_free(list);
		gw_held_out_close(held_out);
	}
	assert_true(edges > 3000 / gw_many_step() && held > 500 / gw_many_step());
	struct gw_edge_list *list;
	must(gw_subgraph(client, &(struct gw_subgraph_spec){.etype = FIXTURE_CITES}, &list));
	assert_int_equal(list->edge_count + list->question_count, 0);
	gw_edge_list_free(list);
}

static void subgraphs_are_those_of_the_edge_list(void **state)
{
	(void)state;
	with_each_path(31, check_subgraphs);
}

/* --- Answers: their bytes, and lies. --- */

/* Stands before a server's handler. */
struct witness {
	gw_handler truth;
	void *context;
	_Atomic uint64_t requests, asked, answered; /* bytes of requests and of answers */
	_Atomic uint32_t lie;                       /* 0: the truth */
};

static gw_status tell_lie(uint32_t lie, struct gw_subgraph_call call, struct gw_reply *reply);

static gw_status answer_before_witness(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct witness *witness = context;
	uint32_t lie = atomic_load(&witness->lie), bytes;
	struct gw_subgraph_call head;
	memcpy(&head, call->bytes, sizeof(head));
	if (lie)
		return tell_lie(lie, head, reply);
	gw_status status = witness->truth(witness->context, call, reply);
	if (status == GW_AGAIN)
		return status;
	gw_reply_data(reply, &bytes);
	atomic_fetch_add(&witness->requests, 1);
	atomic_fetch_add(&witness->asked, call->byte_count);
	atomic_fetch_add(&witness->answered, bytes);
	return status;
}

static void witness_begin(const struct setup *setup, uint32_t part, struct witness *witness)
{
	struct gw_service *service = setup->cluster.servers[part]->service;
	memset(witness, 0, sizeof(*witness));
	witness->truth = service->handlers[GW_OP_SUBGRAPH].call;
	witness->context = service->handlers[GW_OP_SUBGRAPH].context;
	service->handlers[GW_OP_SUBGRAPH].context = witness;
	service->handlers[GW_OP_SUBGRAPH].call = answer_before_witness;
}

/* A client that asks over the network, and a list of all papers, last first. */
struct scene {
	struct setup setup;
	struct witness witnesses[3];
	struct gw_client *client;
	struct gw_subgraph_nodes papers;
	uint32_t parts;
};

static void scene_begin(struct scene *scene, uint64_t seed, uint32_t parts, uint64_t scale)
{
	scene->parts = parts;
	setup_begin_open(&scene->setup, seed, parts, scale);
	for (uint32_t p = 0; p < parts; p++)
		witness_begin(&scene->setup, p, &scene->witnesses[p]);
	const struct gw_client_options options = {.servers = scene->setup.cluster.list,
						  .server_count = parts,
						  .threads = 1,
						  .insecure = true,
						  .neighbours = "requests"};
	scene->client = open_client(&options);
	int64_t *ids = malloc(scale * sizeof(*ids));
	for (uint64_t i = 0; i < scale; i++)
		ids[i] = (int64_t)(scale - 1 - i);
	scene->papers = (struct gw_subgraph_nodes){.count = scale, .ids = ids};
}

static void scene_end(struct scene *scene)
{
	free((void *)(uintptr_t)scene->papers.ids);
	gw_client_close(scene->client);
	setup_end(&scene->setup);
}

static uint64_t sum_of(struct scene *scene, size_t field)
{
	uint64_t sum = 0;
	for (uint32_t p = 0; p < scene->parts; p++)
		sum += atomic_exchange((_Atomic uint64_t *)(void *)((uint8_t *)&scene->witnesses[p] + field), 0);
	return sum;
}
#define SUM(scene, field) sum_of(scene, offsetof(struct witness, field))

/* Whole types, and nodes in groups, among which few edges are. */
static void answers_are_short(void **state)
{
	(void)state;
	struct scene scene;
	scene_begin(&scene, 32, 3, SETUP_SCALE);
	uint32_t groups[SETUP_SCALE];
	for (uint32_t i = 0; i < SETUP_SCALE; i++)
		groups[i] = i / 40;
	for (uint32_t grouped = 0; grouped < 2; grouped++) {
		struct gw_subgraph_spec spec = {.etype = FIXTURE_CITES, .src = scene.papers, .dst = scene.papers};
		struct gw_edge_list *list;
		if (grouped)
			spec.src.groups = spec.dst.groups = groups;
		must(gw_subgraph(scene.client, &spec, &list));
		uint64_t requests = SUM(&scene, requests), edges = list->edge_count;
		assert_true(grouped ? edges > 100 && edges < 1000
				    : edges == scene.setup.fixture.edges[FIXTURE_CITES].count);
		assert_true(requests <= 3);
		assert_in_range(SUM(&scene, answered), edges * 3, edges * 8 + 8 * requests);
		assert_true(SUM(&scene, asked) <=
			    8 * SETUP_SCALE + 4 * SETUP_SCALE * (requests - 1) + requests * (48 + 16 * 8));
		gw_edge_list_free(list);
	}
	scene_end(&scene);
}

/* Destinations with many edges, so often that an answer is full. */
static void full_answers_are_continued(void **state)
{
	(void)state;
	enum { REPEATS = 20000 };
	struct scene scene;
	scene_begin(&scene, 33, 1, SETUP_SCALE);
	const struct gw_fixture_edges *edges = &scene.setup.fixture.edges[FIXTURE_CITES];
	int64_t *ids = malloc(REPEATS * sizeof(*ids));
	for (int64_t i = 0; i < REPEATS; i++)
		ids[i] = i % 3;
	const struct gw_subgraph_spec spec = {
		.etype = FIXTURE_CITES, .src = scene.papers, .dst = {.count = REPEATS, .ids = ids}};
	struct gw_edge_list *list;
	assert_true(edges->indptr[3] - edges->indptr[0] > 75);
	must(gw_subgraph(scene.client, &spec, &list));
	assert_true(SUM(&scene, requests) > 1);
	for (uint64_t i = 0, at = 0; i < REPEATS; i++) {
		for (uint64_t e = edges->indptr[ids[i]]; e < edges->indptr[ids[i] + 1]; e++, at++) {
			assert_int_equal(list->edge_ids[at], e);
			assert_int_equal(list->dst[at], i);
			assert_int_equal(scene.papers.ids[list->src[at]], edges->src[e]);
		}
		assert_int_equal(list->offsets[i + 1], at);
	}
	gw_edge_list_free(list);
	free(ids);
	scene_end(&scene);
}

/* More groups, destinations and sources than one request may have. */
static void many_groups_are_asked_about_in_pieces(void **state)
{
	(void)state;
	enum { EACH = 4, ALL = EACH * (GW_SUBGRAPH_SECTIONS_MAX + 5000) };
	struct scene scene;
	scene_begin(&scene, 34, 2, SETUP_SCALE);
	const struct gw_fixture_edges *edges = &scene.setup.fixture.edges[FIXTURE_CITES];
	int64_t *ids = malloc(ALL * sizeof(*ids));
	uint32_t *groups = malloc(ALL * sizeof(*groups));
	for (uint32_t i = 0; i < ALL; i++) {
		groups[i] = i / EACH;
		ids[i] = (int64_t)(i % EACH * 50 + gw_mix64(i) % 50);
	}
	const struct gw_subgraph_nodes nodes = {.count = ALL, .ids = ids, .groups = groups};
	const struct gw_subgraph_spec spec = {.etype = FIXTURE_CITES, .src = nodes, .dst = nodes};
	struct gw_edge_list *list;
	must(gw_subgraph(scene.client, &spec, &list));
	assert_true(SUM(&scene, requests) > 1);
	uint64_t at = 0;
	for (uint32_t i = 0; i < ALL; i++) {
		for (uint64_t e = edges->indptr[ids[i]]; e < edges->indptr[ids[i] + 1]; e++) {
			uint32_t row = groups[i] * EACH + (uint32_t)(edges->src[e] / 50);
			if (edges->src[e] >= 50 * EACH || (uint64_t)ids[row] != edges->src[e])
				continue;
			assert_true(at < list->edge_count);
			assert_int_equal(list->edge_ids[at], e);
			assert_int_equal(list->src[at], row);
			assert_int_equal(list->dst[at++], i);
		}
	}
	assert_int_equal(list->edge_count, at);
	assert_true(at > ALL / 8);
	gw_edge_list_free(list);
	free(ids);
	free(groups);
	scene_end(&scene);
}

/* The sources of one group do not fit into a request: the edges of a destination come in pieces. */
static void many_sources_are_asked_about_in_pieces(void **state)
{
	(void)state;
	struct scene scene;
	if (cluster_is_rdma())
		skip(); /* a guest has little memory; the groups above make requests as long */
	scene_begin(&scene, 35, 2, GW_SUBGRAPH_SRCS_MAX + 1000);
	const struct gw_fixture_edges *edges = &scene.setup.fixture.edges[FIXTURE_CITES];
	const struct gw_subgraph_spec spec = {.etype = FIXTURE_CITES, .src = scene.papers, .dst = scene.papers};
	struct gw_edge_list *list;
	must(gw_subgraph(scene.client, &spec, &list));
	assert_true(SUM(&scene, requests) > 3);
	assert_int_equal(list->edge_count, edges->count);
	for (uint64_t i = 0, at = 0; i < scene.papers.count; i++) {
		for (uint64_t e = edges->indptr[scene.papers.ids[i]]; e < edges->indptr[scene.papers.ids[i] + 1]; e++) {
			if (list->edge_ids[at] != (int64_t)e || list->dst[at] != (int64_t)i ||
			    scene.papers.ids[list->src[at]] != (int64_t)edges->src[e])
				fail_msg("edge %llu", (unsigned long long)e);
			at++;
		}
	}
	gw_edge_list_free(list);
	scene_end(&scene);
}

/* The call has two sections, of destinations 0 to 9 and 10 to 19 and as many sources each. */
static const struct lie {
	uint32_t answered, edge_count;
	uint32_t written; /* edges */
	struct gw_subgraph_edge edges[2];
	uint32_t cut; /* bytes that are missing at the end */
	const char *error;
} lies[] = {
	{21, 0, 0, {{0}}, 0, "answers 0 to 21 of 20"},
	{0, 0, 0, {{0}}, 0, "answers 0 to 0 of 20"},
	{20, 2, 1, {{.dst = 3}}, 0, "ends inside an edge"},
	{20, 1, 2, {{.dst = 3}, {.dst = 4}}, 0, "with 1 edges"},
	{20, 1, 1, {{.dst = 20}}, 0, "not asked about"},
	{3, 1, 1, {{.dst = 4}}, 0, "with 1 edges"},
	{20, 1, 1, {{.dst = 19, .src = 10}}, 0, "from source 10 of 10"},
	{20, 1, 1, {{.dst = 9, .src = UINT32_MAX}}, 0, "from source 4294967295 of 10"},
	{20, 1, 1, {{.dst = 3, .position = UINT64_MAX}}, 0, "position 18446744073709551615"},
	{20, 2, 2, {{.dst = 3, .position = 7}, {.dst = 3, .position = 7}}, 0, "position 7 of"},
	{20, 1, 1, {{.dst = 3, .position = 300}}, 1, "ends inside an edge"},
};

static gw_status tell_lie(uint32_t lie, struct gw_subgraph_call call, struct gw_reply *reply)
{
	const struct lie *told = &lies[lie - 1];
	const struct gw_subgraph_reply head = {told->answered, told->edge_count};
	uint8_t bytes[sizeof(head) + 2 * GW_SUBGRAPH_EDGE_MAX];
	uint32_t n = sizeof(head), before = call.first;
	memcpy(bytes, &head, sizeof(head));
	for (uint32_t i = 0; i < told->written; i++) {
		n += gw_subgraph_edge_print(&told->edges[i], before, bytes + n);
		before = told->edges[i].dst;
	}
	uint8_t *out = gw_reply_extend(reply, n - told->cut);
	if (!out)
		return GW_NO_MEMORY;
	memcpy(out, bytes, n - told->cut);
	return GW_OK;
}

static void no_lie_about_edges_is_believed(void **state)
{
	(void)state;
	struct scene scene;
	uint32_t groups[20];
	scene_begin(&scene, 36, 1, 20);
	for (uint32_t i = 0; i < 20; i++)
		groups[i] = i / 10;
	scene.papers.groups = groups;
	const struct gw_subgraph_spec spec = {.etype = FIXTURE_CITES, .src = scene.papers, .dst = scene.papers};
	struct gw_edge_list *list;
	for (uint32_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		atomic_store(&scene.witnesses[0].lie, i + 1);
		expect(gw_subgraph(scene.client, &spec, &list), GW_PROTOCOL, lies[i].error);
		assert_non_null(strstr(gw_last_error(), "part 0"));
		assert_null(strchr(gw_last_error(), '\n'));
		assert_null(list);
		atomic_store(&scene.witnesses[0].lie, 0);
		must(gw_subgraph(scene.client, &spec, &list));
		gw_edge_list_free(list);
	}
	scene_end(&scene);
}

/* --- In the background; wrong arguments; memory that is short. --- */

static void tickets_give_the_same(void **state)
{
	(void)state;
	struct scene scene;
	struct gw_edge_list *now, *later = NULL, *cancelled = NULL;
	struct gw_ticket *tickets[2];
	scene_begin(&scene, 37, 2, SETUP_SCALE);
	const struct gw_subgraph_spec spec = {.etype = FIXTURE_CITES, .src = scene.papers, .dst = scene.papers};
	must(gw_subgraph(scene.client, &spec, &now));
	must(gw_subgraph_start(scene.client, &spec, &later, &tickets[0]));
	must(gw_subgraph_start(scene.client, &spec, &cancelled, &tickets[1]));
	gw_cancel(tickets[1]);
	must(gw_wait(tickets[0], -1));
	assert_null(cancelled);
	assert_int_equal(later->edge_count, now->edge_count);
	assert_memory_equal(later->edge_ids, now->edge_ids, now->edge_count * 8);
	assert_memory_equal(later->src, now->src, now->edge_count * 8);
	gw_edge_list_free(now);
	gw_edge_list_free(later);
	scene_end(&scene);
}

static void wrong_nodes_are_named(void **state)
{
	(void)state;
	struct scene scene;
	struct gw_edge_list *list;
	const int64_t wrong[] = {0, SETUP_SCALE}, negative = -1;
	const uint32_t groups[2] = {0};
	scene_begin(&scene, 38, 2, SETUP_SCALE);
	struct gw_subgraph_spec spec = {.etype = FIXTURE_CITES, .src = scene.papers, .dst = {.count = 2, .ids = wrong}};
	expect(gw_subgraph(scene.client, &spec, &list), GW_RANGE, "destination 600 at position 1");
	assert_null(list);
	spec.src = (struct gw_subgraph_nodes){.count = 1, .ids = &negative};
	expect(gw_subgraph(scene.client, &spec, &list), GW_RANGE, "source -1 at position 0");
	spec = (struct gw_subgraph_spec){.etype = 99};
	expect(gw_subgraph(scene.client, &spec, &list), GW_RANGE, "edge type 99");
	spec = (struct gw_subgraph_spec){.src = {.count = 2, .ids = wrong, .groups = groups}};
	expect(gw_subgraph(scene.client, &spec, &list), GW_INVALID, "only the sources have groups");
	spec = (struct gw_subgraph_spec){.dst = {.count = 1ull << 32}};
	expect(gw_subgraph(scene.client, &spec, &list), GW_LIMIT, "2^32");
	scene_end(&scene);
}

static gw_status use_subgraph(struct gw_client *client)
{
	int64_t ids[40];
	uint32_t groups[40];
	for (uint32_t i = 0; i < 40; i++) {
		ids[i] = i;
		groups[i] = i % 2;
	}
	const struct gw_subgraph_nodes nodes = {.count = 40, .ids = ids, .groups = groups};
	const struct gw_subgraph_spec spec = {.etype = FIXTURE_CITES, .src = nodes, .dst = nodes};
	struct gw_edge_list *list;
	gw_status status = gw_subgraph(client, &spec, &list);
	if (status == GW_OK)
		gw_edge_list_free(list);
	return status;
}

static void short_memory_is_an_error(void **state)
{
	(void)state;
	assert_true(in_short_memory(39, 60, 2, use_subgraph) > 10);
}

/* Of client and server alike; the client of a server that has no memory gets its error. */
static void short_memory_of_requests_is_an_error(void **state)
{
	(void)state;
	struct scene scene;
	unsigned long failed = 0;
	gw_fault_begin(GW_FAULT_NEVER);
	scene_begin(&scene, 40, 1, 60);
	must(use_subgraph(scene.client));
	for (unsigned long n = 1, hit = 1; hit; n += gw_fault_step(n)) {
		gw_fault_anywhere(n);
		gw_status status = use_subgraph(scene.client);
		hit = gw_fault_anywhere(GW_FAULT_NEVER);
		assert_true(status == GW_OK || status == GW_NO_MEMORY);
		failed += status == GW_NO_MEMORY;
	}
	assert_true(failed > 10);
	must(use_subgraph(scene.client));
	scene_end(&scene);
	assert_int_equal(gw_fault_end(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(subgraphs_are_those_of_the_edge_list),
		cmocka_unit_test(answers_are_short),
		cmocka_unit_test(full_answers_are_continued),
		cmocka_unit_test(many_groups_are_asked_about_in_pieces),
		cmocka_unit_test(many_sources_are_asked_about_in_pieces),
		cmocka_unit_test(no_lie_about_edges_is_believed),
		cmocka_unit_test(tickets_give_the_same),
		cmocka_unit_test(wrong_nodes_are_named),
		cmocka_unit_test(short_memory_is_an_error),
		cmocka_unit_test(short_memory_of_requests_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
