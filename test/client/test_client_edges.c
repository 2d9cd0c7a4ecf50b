/* Calls about edges compared with the edge list of the graph: ends, ids of pairs, degrees, neighbours; in memory, over
 * both drivers of TCP, from mapped memory and over RDMA; in one part and in three; calls in the background; every
 * wrong argument; a server that lies; and memory that is short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "sampler/pick.h"
#include "test/support/alloc_fault.h"
#include "test/support/client_setup.h"

#define QUESTIONS 40000 /* needs more than two calls to a server */
#define PAIRS     20000 /* three edges each: too many for one reply */

/* --- Paths to the edges. --- */

static void with_each_way(uint64_t seed, void (*body)(struct gw_client *client, const struct setup *setup))
{
	static const char *const offers[] = {NULL, NULL, "shm"};
	for (size_t w = 0; w < (cluster_is_rdma() ? 1 : 3); w++) { /* over RDMA the other paths do not exist */
		struct setup setup;
		uint32_t parts = w == 1 ? 1 : 3;
		cluster_offer(offers[w]);
		setup_begin(&setup, seed, parts, w == 1 ? "epoll" : NULL);
		const struct gw_client_options ways[] = {
			{.part_config = setup.fixture.folder, .threads = 1},
			{.part_config = setup.fixture.folder, .threads = 2, .neighbours = "reads"},
			{.servers = setup.cluster.list,
			 .server_count = parts,
			 .threads = 3,
			 .tcp_driver = w == 1 ? "epoll" : NULL},
			{.servers = setup.cluster.list,
			 .server_count = parts,
			 .threads = 1,
			 .neighbours = "requests",
			 .order = "always"},
		};
		for (size_t i = w ? 2 : 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			struct gw_client *client = open_client(&ways[i]);
			if (ways[i].servers)
				expect_transport(client, cluster_is_rdma() ? "verbs" : offers[w] ? offers[w] : "tcp");
			body(client, &setup);
			gw_client_close(client);
		}
		setup_end(&setup);
	}
	cluster_offer(NULL);
}

/* --- The edge list. --- */

/* Ascending. Returns their number. */
static uint64_t list_pair(const struct gw_fixture_edges *edges, uint64_t src, uint64_t dst, int64_t *ids)
{
	uint64_t n = 0;
	for (uint64_t i = edges->indptr[dst]; i < edges->indptr[dst + 1]; i++) {
		if (edges->src[i] == src)
			ids[n++] = (int64_t)i;
	}
	return n;
}

static uint64_t most_parallel(const struct gw_fixture_edges *edges, uint64_t *count)
{
	uint64_t best = 0;
	int64_t *ids = malloc((edges->count + 1) * sizeof(*ids));
	*count = 0;
	for (uint64_t i = 0; i < edges->count; i++) {
		uint64_t n = list_pair(edges, edges->src[i], edges->dst[i], ids);
		best = n > *count ? i : best;
		*count = n > *count ? n : *count;
	}
	free(ids);
	return best;
}

static void make_pairs(const struct setup *setup, uint32_t etype, uint64_t n, int64_t *src, int64_t *dst)
{
	const struct gw_fixture_edges *edges = &setup->fixture.edges[etype];
	const struct gw_graph_meta *meta = setup->fixture.schema;
	uint64_t sources = meta->ntypes[meta->etypes[etype].src].count;
	uint64_t targets = meta->ntypes[meta->etypes[etype].dst].count;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t edge = gw_mix64(i + 77) % edges->count;
		src[i] = (int64_t)(i % 3 ? edges->src[edge] : gw_mix64(i) % sources);
		dst[i] = (int64_t)(i % 3 == 1 ? gw_mix64(i + 1) % targets : edges->dst[edge]);
	}
}

/* --- Ends. --- */

static void check_ends(struct gw_client *client, const struct setup *setup)
{
	int64_t *ids = malloc(QUESTIONS * 8), *src = malloc(QUESTIONS * 8), *dst = malloc(QUESTIONS * 8);
	for (uint32_t e = 0; e < GW_FIXTURE_ETYPES; e++) {
		const struct gw_fixture_edges *edges = &setup->fixture.edges[e];
		uint64_t n = e == FIXTURE_CITES ? QUESTIONS : edges->count;
		assert_true(edges->count > 0 && edges->count <= QUESTIONS);
		for (uint64_t i = 0; i < n; i++)
			ids[i] = (int64_t)(n == QUESTIONS ? gw_mix64(i) % edges->count : i);
		if (gw_find_edges(client, e, ids, n, src, dst) != GW_OK)
			fail_msg("%s", gw_last_error());
		for (uint64_t i = 0; i < n; i++) {
			assert_int_equal(src[i], edges->src[ids[i]]);
			assert_int_equal(dst[i], edges->dst[ids[i]]);
		}
	}
	assert_int_equal(gw_find_edges(client, 0, NULL, 0, NULL, NULL), GW_OK);
	free(ids);
	free(src);
	free(dst);
}

static void ends_are_those_of_the_edge_list(void **state)
{
	(void)state;
	with_each_way(17, check_ends);
}

/* --- Pairs. --- */

static void compare_ids(const struct gw_fixture_edges *edges, const struct gw_edge_list *list, const int64_t *src,
			const int64_t *dst, uint64_t n)
{
	int64_t *ids = malloc((edges->count + 1) * sizeof(*ids));
	assert_int_equal(list->question_count, n);
	for (uint64_t i = 0, at = 0, count = 0; i < n; i++) {
		if (i == 0 || src[i] != src[i - 1] || dst[i] != dst[i - 1])
			count = list_pair(edges, (uint64_t)src[i], (uint64_t)dst[i], ids);
		assert_int_equal(list->offsets[i], at);
		assert_int_equal(list->offsets[i + 1], at + count);
		for (uint64_t j = 0; j < count; j++, at++) {
			assert_int_equal(list->edge_ids[at], ids[j]);
			assert_int_equal(list->src[at], src[i]);
			assert_int_equal(list->dst[at], dst[i]);
		}
	}
	assert_int_equal(list->edge_count, list->offsets[n]);
	free(ids);
}

static void check_pairs(struct gw_client *client, const struct setup *setup)
{
	int64_t *src = malloc(PAIRS * 8), *dst = malloc(PAIRS * 8);
	bool *has = malloc(PAIRS);
	uint64_t most = 0;
	for (uint32_t e = 0; e < GW_FIXTURE_ETYPES; e++) {
		const struct gw_fixture_edges *edges = &setup->fixture.edges[e];
		uint64_t n = 2000, parallel, edge = most_parallel(edges, &parallel);
		make_pairs(setup, e, n, src, dst);
		/* One pair so often that its edges do not fit into a reply. */
		for (; parallel >= 3 && n < PAIRS; n++) {
			src[n] = (int64_t)edges->src[edge];
			dst[n] = (int64_t)edges->dst[edge];
		}
		most = parallel > most ? parallel : most;
		struct gw_edge_list *list;
		if (gw_edge_ids(client, e, src, dst, n, &list) != GW_OK)
			fail_msg("%s", gw_last_error());
		compare_ids(edges, list, src, dst, n);
		assert_int_equal(gw_has_edges(client, e, src, dst, n, has), GW_OK);
		uint64_t yes = 0;
		for (uint64_t i = 0; i < n; i++) {
			assert_int_equal(has[i], list->offsets[i + 1] > list->offsets[i]);
			yes += has[i];
		}
		assert_true(yes > 500 && yes < n);
		gw_edge_list_free(list);
	}
	assert_true(most >= 3);
	free(src);
	free(dst);
	free(has);
}

static void pairs_have_the_edges_of_the_edge_list(void **state)
{
	(void)state;
	with_each_way(18, check_pairs);
}

/* --- Degrees and neighbours. --- */

/* The edges of a node from the edge list, in stored order: in-edges by id, out-edges by destination. */
static uint64_t list_around(const struct gw_fixture_edges *edges, enum gw_direction direction, uint64_t node,
			    uint64_t *ids)
{
	uint64_t n = 0;
	for (uint64_t i = 0; i < edges->count; i++) {
		if ((direction == GW_IN ? edges->dst[i] : edges->src[i]) == node)
			ids[n++] = i;
	}
	return n;
}

static void check_list(const struct gw_fixture_edges *edges, const struct gw_neighbours_spec *spec,
		       const struct gw_edge_list *list, const int64_t *ids, uint64_t n, uint64_t key)
{
	struct gw_pick_scratch scratch = {0};
	struct gw_pick_rule rule = {.key = key, .fanout = spec->fanout, .replace = spec->replace};
	uint64_t *around = malloc((edges->count + 1) * 8), *picks = malloc((edges->count + 100) * 8), at = 0;
	assert_int_equal(list->question_count, n);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t degree = list_around(edges, spec->direction, (uint64_t)ids[i], around);
		uint64_t count = gw_pick_count(&rule, degree);
		assert_int_equal(list->offsets[i], at);
		assert_int_equal(list->offsets[i + 1], at + count);
		assert_int_equal(gw_pick(&rule, (uint64_t)ids[i], degree, &scratch, picks), GW_OK);
		for (uint64_t j = 0; j < count; j++, at++) {
			uint64_t edge = around[picks[j]];
			assert_int_equal(list->edge_ids[at], edge);
			assert_int_equal(list->src[at], edges->src[edge]);
			assert_int_equal(list->dst[at], edges->dst[edge]);
		}
	}
	assert_int_equal(list->edge_count, at);
	gw_pick_scratch_free(&scratch);
	free(around);
	free(picks);
}

static void check_around(struct gw_client *client, const struct setup *setup, struct gw_neighbours_spec spec)
{
	const struct gw_fixture_edges *edges = &setup->fixture.edges[spec.etype];
	const struct gw_edge_type *type = &setup->fixture.schema->etypes[spec.etype];
	uint64_t nodes = setup->fixture.schema->ntypes[spec.direction == GW_IN ? type->dst : type->src].count;
	int64_t ids[60], degrees[60];
	uint64_t *around = malloc((edges->count + 1) * 8);
	for (uint64_t i = 0; i < 60; i++)
		ids[i] = (int64_t)(gw_mix64(i / 2 + spec.etype) % nodes); /* each twice */
	gw_status status = spec.direction == GW_IN ? gw_degrees(client, spec.etype, ids, 60, degrees)
						   : gw_out_degrees(client, spec.etype, ids, 60, degrees);
	assert_int_equal(status, GW_OK);
	for (uint64_t i = 0; i < 60; i++)
		assert_int_equal(degrees[i], list_around(edges, spec.direction, (uint64_t)ids[i], around));
	static const int32_t fanouts[] = {GW_ALL_NEIGHBOURS, 0, 1, 4};
	for (size_t f = 0; f < 8; f++) {
		struct gw_edge_list *list;
		spec.fanout = fanouts[f % 4];
		spec.replace = f >= 4;
		uint32_t hop = spec.direction == GW_IN ? 0 : GW_DRAW_OUT_HOP;
		if (gw_neighbours(client, &spec, 5, f, ids, 60, &list) != GW_OK)
			fail_msg("%s", gw_last_error());
		check_list(edges, &spec, list, ids, 60, gw_draw_key(5, f, GW_DRAW_NEIGHBOURS, hop, spec.etype));
		gw_edge_list_free(list);
	}
	free(around);
}

static void check_neighbours(struct gw_client *client, const struct setup *setup)
{
	for (uint32_t e = 0; e < GW_FIXTURE_ETYPES; e++)
		check_around(client, setup, (struct gw_neighbours_spec){.etype = e});
	check_around(client, setup, (struct gw_neighbours_spec){.etype = FIXTURE_WRITES, .direction = GW_OUT});
}

static void neighbours_are_those_of_the_edge_list(void **state)
{
	(void)state;
	with_each_way(19, check_neighbours);
}

/* More ids than one call carries, in random order and with duplicates: an id has the same picks at every position. */
static void check_many(struct gw_client *client, const struct setup *setup)
{
	const struct gw_fixture_edges *edges = &setup->fixture.edges[FIXTURE_CITES];
	const struct gw_edge_type *type = &setup->fixture.schema->etypes[FIXTURE_CITES];
	uint64_t nodes = setup->fixture.schema->ntypes[type->dst].count;
	int64_t *ids = malloc(QUESTIONS * sizeof(*ids));
	for (uint64_t i = 0; i < QUESTIONS; i++)
		ids[i] = (int64_t)(gw_mix64(i) % nodes);
	for (int32_t fanout = GW_ALL_NEIGHBOURS; fanout < 4; fanout += 4) {
		struct gw_neighbours_spec spec = {.etype = FIXTURE_CITES, .fanout = fanout};
		struct gw_pick_rule rule = {.key = gw_draw_key(5, 6, GW_DRAW_NEIGHBOURS, 0, FIXTURE_CITES),
					    .fanout = fanout};
		struct gw_pick_scratch scratch = {0};
		struct gw_edge_list *list;
		assert_int_equal(gw_neighbours(client, &spec, 5, 6, ids, QUESTIONS, &list), GW_OK);
		uint64_t at = 0, *picks = malloc((edges->count + 100) * 8);
		for (uint64_t i = 0; i < QUESTIONS; i++) {
			uint64_t first = edges->indptr[ids[i]], degree = edges->indptr[ids[i] + 1] - first;
			uint64_t count = gw_pick_count(&rule, degree);
			assert_int_equal(list->offsets[i], at);
			assert_int_equal(gw_pick(&rule, (uint64_t)ids[i], degree, &scratch, picks), GW_OK);
			for (uint64_t j = 0; j < count; j++, at++) {
				assert_int_equal(list->edge_ids[at], first + picks[j]);
				assert_int_equal(list->src[at], edges->src[first + picks[j]]);
				assert_int_equal(list->dst[at], ids[i]);
			}
		}
		assert_int_equal(list->offsets[QUESTIONS], at);
		assert_int_equal(list->edge_count, at);
		gw_edge_list_free(list);
		gw_pick_scratch_free(&scratch);
		free(picks);
	}
	ids[QUESTIONS - 2] = (int64_t)nodes; /* reached after the other ids were sent */
	struct gw_neighbours_spec spec = {.etype = FIXTURE_CITES, .fanout = 3};
	struct gw_edge_list *list;
	assert_int_equal(gw_neighbours(client, &spec, 5, 6, ids, QUESTIONS, &list), GW_RANGE);
	assert_non_null(strstr(gw_last_error(), "position 39998"));
	assert_null(list);
	free(ids);
}

static void many_ids_are_asked_about_in_pieces(void **state)
{
	(void)state;
	with_each_way(23, check_many);
}

static void a_sampled_hop_is_a_mini_batchs_first(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 20, 2, NULL);
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 2, .threads = 1};
	struct gw_client *client = open_client(&options);
	int64_t seeds[40];
	for (int i = 0; i < 40; i++)
		seeds[i] = 7 * i;
	int32_t fanouts[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = 3};
	struct gw_sample_spec spec = {.hops = 1, .fanouts = fanouts};
	struct gw_neighbours_spec hop = {.etype = FIXTURE_CITES, .fanout = 3};
	struct gw_minibatch *batch;
	struct gw_edge_list *list;
	assert_int_equal(gw_sample(client, &spec, 3, 4, seeds, 40, &batch), GW_OK);
	assert_int_equal(gw_neighbours(client, &hop, 3, 4, seeds, 40, &list), GW_OK);
	assert_true(list->edge_count > 40);
	assert_int_equal(list->edge_count, batch->edge_count);
	assert_memory_equal(list->edge_ids, batch->blocks[0]->edges[0].edge_ids, list->edge_count * 8);
	gw_edge_list_free(list);
	gw_minibatch_release(batch);
	gw_client_close(client);
	setup_end(&setup);
}

/* --- In the background; wrong arguments; a lost server. --- */

static void tickets_give_the_same(void **state)
{
	(void)state;
	enum { N = 300 };
	struct setup setup;
	setup_begin(&setup, 21, 2, NULL);
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 2, .threads = 2};
	struct gw_client *client = open_client(&options);
	const struct gw_fixture_edges *edges = &setup.fixture.edges[FIXTURE_CITES];
	int64_t ids[N], src[N], dst[N], found_src[N], found_dst[N], degrees[N];
	bool has[N];
	struct gw_ticket *tickets[6];
	struct gw_edge_list *list = NULL, *around = NULL, *cancelled = NULL;
	for (int i = 0; i < N; i++)
		ids[i] = i;
	make_pairs(&setup, FIXTURE_CITES, N, src, dst);
	struct gw_neighbours_spec hop = {.etype = FIXTURE_CITES, .fanout = GW_ALL_NEIGHBOURS};
	assert_int_equal(gw_find_edges_start(client, FIXTURE_CITES, ids, N, found_src, found_dst, &tickets[0]), GW_OK);
	assert_int_equal(gw_edge_ids_start(client, FIXTURE_CITES, src, dst, N, &list, &tickets[1]), GW_OK);
	assert_int_equal(gw_has_edges_start(client, FIXTURE_CITES, src, dst, N, has, &tickets[2]), GW_OK);
	assert_int_equal(gw_degrees_start(client, FIXTURE_CITES, ids, N, degrees, &tickets[3]), GW_OK);
	assert_int_equal(gw_neighbours_start(client, &hop, 0, 0, ids, N, &around, &tickets[4]), GW_OK);
	assert_int_equal(gw_neighbours_start(client, &hop, 0, 0, ids, N, &cancelled, &tickets[5]), GW_OK);
	gw_cancel(tickets[5]);
	for (int i = 0; i < 5; i++)
		assert_int_equal(gw_wait(tickets[i], -1), GW_OK);
	assert_null(cancelled);
	compare_ids(edges, list, src, dst, N);
	for (int i = 0; i < N; i++) {
		assert_int_equal(found_src[i], edges->src[i]);
		assert_int_equal(found_dst[i], edges->dst[i]);
		assert_int_equal(has[i], list->offsets[i + 1] > list->offsets[i]);
		assert_int_equal(degrees[i], edges->indptr[i + 1] - edges->indptr[i]);
		assert_int_equal(around->offsets[i + 1] - around->offsets[i], degrees[i]);
	}
	gw_edge_list_free(list);
	gw_edge_list_free(around);

	/* A server is away: the call waits, and ends when it is cancelled. */
	cluster_kill(&setup.cluster, 1);
	int64_t last = (int64_t)edges->count - 1;
	assert_int_equal(gw_find_edges_start(client, FIXTURE_CITES, &last, 1, src, dst, &tickets[0]), GW_OK);
	expect(gw_wait(tickets[0], 50), GW_AGAIN, "50 ms");
	gw_cancel(tickets[0]);
	cluster_revive(&setup.cluster, 1);
	assert_int_equal(gw_find_edges(client, FIXTURE_CITES, &last, 1, src, dst), GW_OK);
	assert_int_equal(dst[0], edges->dst[last]);
	gw_client_close(client);
	setup_end(&setup);
}

static void wrong_questions_are_named(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 22, 2, NULL);
	struct gw_client_options options = {.servers = setup.cluster.list, .server_count = 2, .threads = 1};
	struct gw_client *client = open_client(&options);
	const struct gw_graph_info *info = gw_client_graph(client);
	int64_t papers = (int64_t)info->ntypes[0].count, edges = (int64_t)info->etypes[FIXTURE_CITES].count;
	int64_t ids[] = {0, edges}, src[] = {0, 0, -1}, dst[] = {0, papers, 0}, out[3];
	bool has[3];
	struct gw_edge_list *list;
	expect(gw_find_edges(client, 99, ids, 1, out, out), GW_RANGE, "edge type 99");
	expect(gw_find_edges(client, FIXTURE_CITES, ids, 2, out, out), GW_RANGE, "position 1");
	expect(gw_has_edges(client, FIXTURE_CITES, src, dst, 2, has), GW_RANGE, "destination");
	expect(gw_edge_ids(client, FIXTURE_CITES, src + 2, dst, 1, &list), GW_RANGE, "source -1");
	assert_null(list);
	expect(gw_edge_ids(client, FIXTURE_CITES, src, dst, 1ull << 32, &list), GW_LIMIT, "2^32");
	expect(gw_degrees(client, 99, ids, 1, out), GW_RANGE, "edge type 99");
	expect(gw_degrees(client, FIXTURE_CITES, dst, 2, out), GW_RANGE, "position 1");
	expect(gw_out_degrees(client, FIXTURE_CITES, ids, 1, out), GW_UNSUPPORTED, "--transpose");
	struct gw_neighbours_spec spec = {.etype = FIXTURE_CITES, .direction = GW_OUT, .fanout = 3};
	expect(gw_neighbours(client, &spec, 0, 0, ids, 1, &list), GW_UNSUPPORTED, "paper:cites:paper");
	spec.direction = GW_IN;
	spec.fanout = -2;
	expect(gw_neighbours(client, &spec, 0, 0, ids, 1, &list), GW_INVALID, "fanout -2");
	spec.fanout = 3;
	spec.direction = (enum gw_direction)5;
	expect(gw_neighbours(client, &spec, 0, 0, ids, 1, &list), GW_INVALID, "direction 5");
	spec.direction = GW_IN;
	expect(gw_neighbours(client, &spec, 0, 0, dst, 2, &list), GW_RANGE, "position 1");
	assert_null(list);
	gw_edge_list_free(NULL);
	gw_client_close(client);
	setup_end(&setup);
}

/* --- A server that lies. --- */

/* Sets every id of an array to an invalid one. No call runs meanwhile, which the thread sanitizer does not see. */
__attribute__((no_sanitize_thread)) static void spoil(const void *ids, uint64_t count, uint8_t width)
{
	volatile uint8_t *bytes = (volatile uint8_t *)(uintptr_t)ids;
	for (uint64_t i = 0; i < count * width; i++)
		bytes[i] = 0xff;
}

static void expect_no_list(struct gw_client *client, struct gw_neighbours_spec spec, const char *text)
{
	int64_t ids[40];
	struct gw_edge_list *list;
	for (int64_t i = 0; i < 40; i++)
		ids[i] = i;
	expect(gw_neighbours(client, &spec, 5, 6, ids, 40, &list), GW_PROTOCOL, text);
	assert_null(list);
	spec.etype = FIXTURE_WRITTEN_BY;
	spec.direction = GW_IN;
	assert_int_equal(gw_neighbours(client, &spec, 5, 6, ids, 40, &list), GW_OK); /* correct answers still arrive */
	gw_edge_list_free(list);
}

/* Files are checked when they are loaded; a peer's answers must be checked too. */
static void neighbours_that_do_not_exist_are_not_believed(void **state)
{
	(void)state;
	static const char *const ways[] = {"reads", "requests"};
	for (size_t w = 0; w < 2; w++) {
		struct setup setup;
		setup_begin(&setup, 24, 1, NULL);
		const struct gw_part *part = setup.cluster.servers[0]->part;
		const struct gw_adjacency *in = gw_part_adjacency(part, FIXTURE_CITES);
		const struct gw_adjacency *out = gw_part_out_adjacency(part, FIXTURE_WRITES);
		struct gw_client_options options = {
			.servers = setup.cluster.list, .server_count = 1, .threads = 1, .neighbours = ways[w]};
		struct gw_client *client = open_client(&options);
		int32_t fanouts[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = 3};
		struct gw_sample_spec hop = {.hops = 1, .fanouts = fanouts};
		struct gw_minibatch *batch;
		int64_t seed = 7;
		spoil(in->indices, in->edges, in->index_bytes);
		for (int32_t fanout = GW_ALL_NEIGHBOURS; fanout < 4; fanout += 4) {
			struct gw_neighbours_spec spec = {.etype = FIXTURE_CITES, .fanout = fanout};
			expect_no_list(client, spec, "a list has node");
		}
		expect(gw_sample(client, &hop, 5, 6, &seed, 1, &batch), GW_RANGE, "is out of range");
		struct gw_neighbours_spec spec = {.etype = FIXTURE_WRITES, .fanout = 3, .direction = GW_OUT};
		spoil(out->indices, out->edges, out->index_bytes);
		expect_no_list(client, spec, "a list has node");
		spoil(out->eid, out->edges, sizeof(*out->eid));
		expect_no_list(client, spec, w == 0 ? "a list has node" : "a reply picks position");
		gw_client_close(client);
		setup_end(&setup);
	}
}

/* --- Memory shortage. --- */

static struct gw_client *faulty_client;

static gw_status ask_everything(void *context)
{
	(void)context;
	int64_t ids[] = {5, 3, 1}, src[3], dst[3], degrees[3];
	struct gw_edge_list *list;
	gw_status status = gw_find_edges(faulty_client, FIXTURE_WRITES, ids, 3, src, dst);
	if (status == GW_OK)
		status = gw_edge_ids(faulty_client, FIXTURE_WRITES, src, dst, 3, &list);
	if (status != GW_OK)
		return status;
	gw_edge_list_free(list);
	struct gw_neighbours_spec spec = {.etype = FIXTURE_WRITES, .direction = GW_OUT, .fanout = GW_ALL_NEIGHBOURS};
	status = gw_neighbours(faulty_client, &spec, 0, 0, ids, 3, &list);
	if (status != GW_OK)
		return status;
	gw_edge_list_free(list);
	spec.direction = GW_IN;
	status = gw_neighbours(faulty_client, &spec, 0, 0, ids, 3, &list);
	if (status != GW_OK)
		return status;
	gw_edge_list_free(list);
	return gw_out_degrees(faulty_client, FIXTURE_WRITES, ids, 3, degrees);
}

/* With a new client, so that the buffers that a client keeps are allocated too. */
static gw_status ask_once(void *options)
{
	struct gw_client *client;
	gw_status status = gw_client_open(options, &client);
	if (status != GW_OK)
		return status;
	const int64_t ids[] = {5, 3, 1};
	struct gw_neighbours_spec spec = {.etype = FIXTURE_CITES, .fanout = 2};
	struct gw_edge_list *list;
	status = gw_neighbours(client, &spec, 0, 0, ids, 3, &list);
	if (status == GW_OK)
		gw_edge_list_free(list);
	gw_client_close(client);
	return status;
}

static void short_memory_is_an_error(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, 23, SETUP_SCALE, 2);
	gw_fixture_write(&fixture);
	struct gw_client_options options = {.part_config = fixture.folder, .threads = 1};
	faulty_client = open_client(&options);
	assert_int_equal(ask_everything(NULL), GW_OK);
	assert_true(gw_fault_each(ask_everything, NULL) > 10);
	gw_client_close(faulty_client);
	assert_true(gw_fault_each(ask_once, &options) > 10);
	gw_fixture_end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_those_of_the_edge_list),
		cmocka_unit_test(pairs_have_the_edges_of_the_edge_list),
		cmocka_unit_test(neighbours_are_those_of_the_edge_list),
		cmocka_unit_test(many_ids_are_asked_about_in_pieces),
		cmocka_unit_test(a_sampled_hop_is_a_mini_batchs_first),
		cmocka_unit_test(tickets_give_the_same),
		cmocka_unit_test(wrong_questions_are_named),
		cmocka_unit_test(neighbours_that_do_not_exist_are_not_believed),
		cmocka_unit_test(short_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
