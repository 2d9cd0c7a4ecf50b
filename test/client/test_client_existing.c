/* Negatives that exist at the times of their edges: they are those of the definition, over every path and from loaders;
 * all nodes that exist are equally likely, also if they are few; what cannot be drawn is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/batch_oracle.h"
#include "test/support/chi_square.h"
#include "test/support/client_paths.h"
#include "test/support/client_setup.h"
#include "test/support/many.h"
#include "test/support/must.h"

#define SEED  8
#define COUNT 40 /* edges of a batch */

static const int32_t one_hop[GW_FIXTURE_ETYPES] = {2, 2, 2, 2};

static const struct {
	const char *offer, *driver;
	uint32_t parts;
	bool on_disk; /* the times and their indexes stay on the disk of servers */
} beds[] = {{NULL, "epoll", 1, false}, {NULL, NULL, 3, false}, {NULL, NULL, 8, false},
	    {"shm", NULL, 2, false},   {NULL, NULL, 3, true},  {"shm", NULL, 1, true}};

static void with_paths(void (*body)(const struct ways *ways))
{
	for (size_t i = 0; i < sizeof(beds) / sizeof(beds[0]) && (i == 0 || !cluster_is_rdma()); i++) {
		struct ways ways;
		if (beds[i].on_disk) {
			cluster_leave_on_disk("born");
			cluster_leave_on_disk("gone");
		}
		paths_begin(&ways, SEED + i, beds[i].parts, beds[i].offer, beds[i].driver);
		body(&ways);
		if (beds[i].on_disk) {
			struct gw_disk_counts counts;
			gw_disk_counts(ways.setup.cluster.servers[0]->disk, &counts);
			assert_true(counts.rows > 0);
		}
		paths_end(&ways);
		cluster_leave_on_disk(NULL);
	}
}

/* --- The definition. --- */

/* A time that nodes have, or one between two of them, before which one node exists at least. */
static double time_of(uint64_t i, bool real)
{
	static const double few[] = {GW_FIXTURE_BORN_1, GW_FIXTURE_BORN_5, GW_FIXTURE_BORN_51, 1e15};
	uint64_t word = gw_mix64(i / 2 + 99);
	double time = word % 3 ? (double)(word / 3 % 44) - 2 : few[word / 3 % 4];
	return real && i % 2 ? time + 0.5 : time;
}

static void set_time(void *times, uint64_t at, double time, bool real)
{
	if (real)
		((double *)times)[at] = time;
	else
		((int64_t *)times)[at] = (int64_t)time;
}

/* Some end at the first node of their type, at a time when no other exists. */
static void make_seeds(const struct ways *ways, uint32_t etype, bool real, int64_t *ids, void *times)
{
	const struct gw_fixture *fixture = &ways->setup.fixture;
	const struct gw_fixture_edges *edges = &fixture->edges[etype];
	uint64_t first, *nodes = malloc(SETUP_SCALE * sizeof(*nodes));
	batch_oracle_existing(fixture, fixture->schema->etypes[etype].dst, GW_FIXTURE_BORN_1, nodes);
	first = nodes[0];
	free(nodes);
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t degree = edges->indptr[first + 1] - edges->indptr[first];
		bool alone = i % 8 == 0 && degree > 0;
		ids[i] = (int64_t)(alone ? edges->indptr[first] + i % degree : gw_mix64(i + 31) % edges->count);
		set_time(times, i, alone ? GW_FIXTURE_BORN_1 : time_of(i + etype, real), real);
	}
}

/* Returns how many negatives are edges. */
static uint64_t check_batch(const struct ways *ways, const struct gw_sample_spec *spec, const struct gw_seeds *seeds)
{
	const uint32_t lists = spec->edge_type_count ? spec->edge_type_count : 1;
	uint64_t digest = 0, true_edges = 0;
	for (uint32_t i = 0; i < ways->count; i++) {
		struct gw_minibatch *batch;
		if (gw_sample_lists(ways->clients[i], spec, SEED, 3, seeds, lists, &batch) != GW_OK)
			fail_msg("way %u: %s", i, gw_last_error());
		if (i == 0) {
			const struct batch_oracle oracle = {&ways->setup.fixture, spec, batch, SEED, 3};
			batch_oracle_ends(&oracle);
			digest = gw_minibatch_digest(batch);
		}
		if (gw_minibatch_digest(batch) != digest)
			fail_msg("way %u: another batch", i);
		true_edges += batch->edges[0].true_edges;
		gw_minibatch_release(batch);
	}
	return true_edges;
}

static void check_negatives(const struct ways *ways)
{
	static const uint32_t etypes[] = {FIXTURE_WRITES, FIXTURE_CITES, FIXTURE_KNOWS};
	int64_t ids[COUNT], times[COUNT];
	uint64_t true_edges = 0;
	for (uint32_t variant = 0; variant < 48; variant += gw_many_step() == 1 ? 1 : 5) {
		struct gw_edge_seeds edges = {.etype = etypes[variant / 8 % 3],
					      .negatives = variant & 1 ? GW_NEGATIVES_SRC : GW_NEGATIVES_DST,
					      .negatives_each = 1 + variant % 3,
					      .no_true_edges = variant & 2,
					      .exist_time = "born",
					      .exist_end = variant < 24 ? NULL : "gone"};
		const struct gw_sample_spec spec = {.hops = 1,
						    .fanouts = one_hop,
						    .edges = &edges,
						    .real_times = variant & 4,
						    .strict_times = variant % 3 == 0,
						    .disjoint = variant % 5 == 0};
		const struct gw_seeds seeds = {.type = edges.etype, .count = COUNT, .ids = ids, .times = times};
		const struct gw_fixture_edges *made = &ways->setup.fixture.edges[edges.etype];
		if (variant % 7 == 0) { /* places of pairs, which are the edges in their order */
			edges.src = (const int64_t *)made->src;
			edges.dst = (const int64_t *)made->dst;
			edges.pair_count = made->count;
		}
		make_seeds(ways, edges.etype, spec.real_times, ids, times);
		true_edges += check_batch(ways, &spec, &seeds);
	}
	assert_true(true_edges > 0);
}

/* Negatives of one type exist at their times, by different features; those of another are any nodes. */
static void check_several(const struct ways *ways)
{
	int64_t ids[3][COUNT], times[3][COUNT];
	const struct gw_edge_seeds edges[] = {
		{.etype = FIXTURE_WRITES,
		 .negatives = GW_NEGATIVES_SRC,
		 .negatives_each = 2,
		 .exist_time = "born",
		 .exist_end = "gone"},
		{.etype = FIXTURE_KNOWS, .negatives = GW_NEGATIVES_DST, .negatives_each = 1},
		{.etype = FIXTURE_CITES, .negatives = GW_NEGATIVES_DST, .negatives_each = 3, .exist_time = "born"},
	};
	struct gw_seeds seeds[3];
	for (uint32_t t = 0; t < 3; t++) {
		make_seeds(ways, edges[t].etype, true, ids[t], times[t]);
		seeds[t] = (struct gw_seeds){.type = edges[t].etype, .count = COUNT, .ids = ids[t], .times = times[t]};
	}
	const struct gw_sample_spec spec = {
		.hops = 1, .fanouts = one_hop, .edges = edges, .edge_type_count = 3, .real_times = true};
	check_batch(ways, &spec, seeds);
}

static void negatives_are_those_of_the_definition(void **state)
{
	(void)state;
	with_paths(check_negatives);
	with_paths(check_several);
}

/* --- The law. --- */

#define EACH    50
#define STREAMS 10

/* counts: by node. */
static void count_negatives(struct gw_client *client, const struct gw_edge_seeds *edges, const void *time, bool real,
			    uint32_t *counts)
{
	const struct gw_sample_spec spec = {
		.hops = 1, .fanouts = (const int32_t[GW_FIXTURE_ETYPES]){0}, .edges = edges, .real_times = real};
	int64_t ids[COUNT], times[COUNT];
	for (int64_t i = 0; i < COUNT; i++) {
		ids[i] = 7 * i;
		memcpy(&times[i], time, sizeof(times[i]));
	}
	const struct gw_seeds seeds = {.type = edges->etype, .count = COUNT, .ids = ids, .times = times};
	for (uint64_t stream = 0; stream < STREAMS / gw_many_step(); stream++) {
		struct gw_minibatch *batch;
		must(gw_sample_lists(client, &spec, SEED, stream, &seeds, 1, &batch));
		const int64_t *nodes = batch->nodes[edges->negatives == GW_NEGATIVES_SRC];
		for (uint64_t i = 0; i < COUNT * EACH; i++)
			counts[nodes[batch->edges[0].negative_rows[i]]]++;
		gw_minibatch_release(batch);
	}
}

/* Returns how many nodes are eligible. */
static uint64_t check_law(struct gw_client *client, const struct gw_fixture *fixture, bool author, double time,
			  bool real, bool ends)
{
	static uint64_t nodes[SETUP_SCALE];
	const struct gw_edge_seeds edges = {.etype = FIXTURE_WRITES,
					    .negatives = author ? GW_NEGATIVES_SRC : GW_NEGATIVES_DST,
					    .negatives_each = EACH,
					    .exist_time = "born",
					    .exist_end = ends ? "gone" : NULL};
	uint32_t counts[SETUP_SCALE] = {0}, of_eligible[SETUP_SCALE], all = 0;
	uint64_t n = ends ? batch_oracle_living(fixture, author, time, nodes)
			  : batch_oracle_existing(fixture, author, time, nodes);
	const int64_t whole = (int64_t)time;
	count_negatives(client, &edges, real ? (const void *)&time : &whole, real, counts);
	for (uint64_t i = 0; i < n; i++)
		all += of_eligible[i] = counts[nodes[i]];
	assert_int_equal(all, STREAMS / gw_many_step() * COUNT * EACH); /* no other node */
	if (n > 1)
		assert_equally_likely(of_eligible, n, "negatives", n);
	return n;
}

static void check_laws(const struct ways *ways)
{
	static const int times[] = {GW_FIXTURE_BORN_1, GW_FIXTURE_BORN_5, GW_FIXTURE_BORN_51, 20, 1000};
	static const uint64_t eligible[] = {1, 5, 51};
	for (uint32_t i = 0; i < 20; i++) {
		const bool author = i & 1, ends = i >= 10;
		const uint32_t t = i % 5;
		uint64_t n =
			check_law(ways->clients[i % ways->count], &ways->setup.fixture, author, times[t], i % 3, ends);
		assert_true(ends || (t < 3 ? n == eligible[t] : n > 100));
		assert_true(!ends || t < 4 || n < 20); /* most negatives come of the exact pass */
	}
}

static void all_that_exist_are_equally_likely(void **state)
{
	(void)state;
	with_paths(check_laws);
}

/* --- Loaders. --- */

/* The caller's names and times do not outlive the call that opens the loader. */
static uint32_t run_epochs(struct gw_client *client, struct gw_loader_state start, uint64_t *digests)
{
	int64_t ids[COUNT], *times = malloc(COUNT * sizeof(*times));
	char *born = strdup("born"), *gone = strdup("gone");
	struct gw_edge_seeds edges = {.etype = FIXTURE_WRITES,
				      .negatives = GW_NEGATIVES_SRC,
				      .negatives_each = 3,
				      .no_true_edges = true,
				      .exist_time = born,
				      .exist_end = gone};
	for (int64_t i = 0; i < COUNT; i++) {
		ids[i] = 5 * i;
		times[i] = (int64_t)time_of((uint64_t)i, false);
	}
	const struct gw_seeds seeds = {.type = FIXTURE_WRITES, .count = COUNT, .ids = ids, .times = times};
	const struct gw_loader_options options = {.spec = {.hops = 1, .fanouts = one_hop, .edges = &edges},
						  .lists = &seeds,
						  .list_count = 1,
						  .batch_size = 7,
						  .shuffle = true,
						  .seed = 4,
						  .start = start};
	struct gw_loader *loader = paths_loader(client, &options);
	memset(born, 'x', 4);
	memset(gone, 'x', 4);
	memset(times, 0xff, COUNT * sizeof(*times));
	free(born);
	free(gone);
	free(times);
	uint32_t n = 0;
	for (uint32_t ends = 0; ends < 2;) {
		struct gw_minibatch *batch;
		gw_status status = gw_loader_next(loader, &batch, -1);
		ends += status == GW_END;
		if (status == GW_END)
			continue;
		must(status);
		digests[n++] = gw_minibatch_digest(batch);
		gw_minibatch_release(batch);
	}
	gw_loader_close(loader);
	return n;
}

static void check_loaders(const struct ways *ways)
{
	uint64_t digests[64], others[64];
	uint32_t n = run_epochs(ways->clients[0], (struct gw_loader_state){0}, digests);
	assert_int_equal(n, 12);
	for (uint32_t i = 1; i < ways->count; i++) {
		assert_int_equal(run_epochs(ways->clients[i], (struct gw_loader_state){0}, others), n);
		assert_memory_equal(digests, others, n * sizeof(*digests));
	}
	assert_int_equal(run_epochs(ways->clients[1], (struct gw_loader_state){.step = 4}, others), n - 4);
	assert_memory_equal(digests + 4, others, (n - 4) * sizeof(*digests));
}

static void loaders_give_the_same_bytes(void **state)
{
	(void)state;
	with_paths(check_loaders);
}

/* --- The reverse of a target link. --- */

/* Whether a target of the batch, or its reverse, is the edge. */
static bool is_target(const struct gw_fixture_edges *edges, const int64_t *ids, uint64_t edge)
{
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t src = edges->src[ids[i]], dst = edges->dst[ids[i]];
		if (edge == (uint64_t)ids[i] || (edges->src[edge] == dst && edges->dst[edge] == src))
			return true;
	}
	return false;
}

/* All edges that the group of each destination may see, less the targets and their reverses. Returns how many of these
 * it could see. */
static uint64_t check_seen(const struct ways *ways, const struct gw_minibatch *batch, const int64_t *ids)
{
	const struct gw_fixture_edges *edges = &ways->setup.fixture.edges[FIXTURE_CITES];
	const struct gw_block_edges *drawn = NULL;
	const int64_t *times = batch->seed_times;
	uint64_t kept_out = 0, at = 0;
	for (uint32_t i = 0; i < batch->blocks[0]->edges_count; i++) {
		if (batch->blocks[0]->edges[i].etype == FIXTURE_CITES)
			drawn = &batch->blocks[0]->edges[i];
	}
	assert_non_null(drawn);
	for (uint64_t row = 0; row < drawn->dst_count; row++) {
		/* Groups are sources, destinations, then two negatives of each. */
		uint64_t group = batch->groups[0][row], node = (uint64_t)batch->nodes[0][row];
		int64_t time = times[group < 2 * COUNT ? group % COUNT : (group - 2 * COUNT) / 2];
		for (uint64_t e = edges->indptr[node]; e < edges->indptr[node + 1]; e++) {
			bool target = is_target(edges, ids, e);
			kept_out += target && edges->time[e] <= time;
			if (!target && edges->time[e] <= time)
				assert_int_equal(drawn->edge_ids[at++], e);
		}
		assert_int_equal(drawn->indptr[row + 1], at);
	}
	return kept_out;
}

static void check_targets(const struct ways *ways)
{
	static const int32_t all_of_cites[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = GW_ALL_NEIGHBOURS};
	const struct gw_fixture_edges *cites = &ways->setup.fixture.edges[FIXTURE_CITES];
	const struct gw_edge_seeds edges = {.etype = FIXTURE_CITES,
					    .negatives = GW_NEGATIVES_DST,
					    .negatives_each = 2,
					    .exclude = GW_EXCLUDE_EDGES | GW_EXCLUDE_REVERSE_TYPE,
					    .reverse_etype = FIXTURE_CITES,
					    .exist_time = "born"};
	const struct gw_edge_rule rules[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = {.time = "year"}};
	const struct gw_sample_spec spec = {.hops = 1, .fanouts = all_of_cites, .edges = &edges, .rules = rules};
	int64_t ids[COUNT], times[COUNT];
	for (uint64_t i = 0; i < COUNT; i++) {
		ids[i] = (int64_t)(gw_mix64(i) % cites->count);
		times[i] = cites->time[ids[i]] + (int64_t)(i % 3);
	}
	const struct gw_seeds seeds = {.type = FIXTURE_CITES, .count = COUNT, .ids = ids, .times = times};
	for (uint32_t i = 0; i < ways->count; i++) {
		struct gw_minibatch *batch;
		must(gw_sample_lists(ways->clients[i], &spec, SEED, i, &seeds, 1, &batch));
		assert_true(check_seen(ways, batch, ids) >= COUNT);
		gw_minibatch_release(batch);
	}
	check_batch(ways, &spec, &seeds);
}

static void targets_and_their_reverses_are_not_seen(void **state)
{
	(void)state;
	with_paths(check_targets);
}

/* --- Refusals. --- */

static void expect_no_batch(struct gw_client *client, const struct gw_edge_seeds *edges, const struct gw_seeds *seeds,
			    bool real, gw_status status, const char *text)
{
	const struct gw_sample_spec spec = {.hops = 1, .fanouts = one_hop, .edges = edges, .real_times = real};
	struct gw_minibatch *batch;
	expect(gw_sample_lists(client, &spec, 1, 1, seeds, 1, &batch), status, text);
	assert_null(batch);
	if (status == GW_NOT_FOUND && strstr(text, "seed "))
		return; /* a loader finds it with the batch */
	const struct gw_loader_options options = {.spec = spec, .lists = seeds, .list_count = 1, .batch_size = 2};
	struct gw_loader *loader;
	expect(gw_loader_open(client, &options, &loader), status, text);
	assert_null(loader);
}

static void check_refusals(const struct ways *ways)
{
	static const int64_t ids[] = {3, 4, 5}, times[] = {50, GW_FIXTURE_BORN_1 - 1, 1}, from[3] = {0}, few[] = {1, 2};
	static const double late = NAN, real_times[] = {50, -INFINITY, 1};
	const struct gw_edge_seeds good = {.etype = FIXTURE_WRITES,
					   .negatives = GW_NEGATIVES_DST,
					   .negatives_each = 2,
					   .exist_time = "born",
					   .exist_end = "gone"};
	const struct gw_seeds seeds = {.type = FIXTURE_WRITES, .count = 3, .ids = ids, .times = times};
	const struct gw_seeds none = {.type = FIXTURE_WRITES, .count = 3, .ids = ids};
	struct gw_client *client = ways->clients[ways->count - 1];
	struct gw_edge_seeds edges = good;
	expect_no_batch(client, &edges, &none, false, GW_INVALID, "nodes that exist at these times");
	const struct gw_seeds window = {
		.type = FIXTURE_WRITES, .count = 3, .ids = ids, .times = times, .times_from = from};
	expect_no_batch(client, &edges, &window, false, GW_INVALID, "begin of windows");
	const struct gw_seeds nan = {.type = FIXTURE_WRITES, .count = 1, .ids = ids, .times = &late};
	expect_no_batch(client, &edges, &nan, true, GW_INVALID, "not a number");
	expect_no_batch(
		client, &edges, &seeds, false, GW_NOT_FOUND,
		"a negative for edge 4 of author:writes:paper, seed 1 of the batch, time -1001: no node of paper");
	const struct gw_seeds early = {.type = FIXTURE_WRITES, .count = 3, .ids = ids, .times = real_times};
	expect_no_batch(client, &edges, &early, true, GW_NOT_FOUND, "seed 1 of the batch, time -inf: ");
	edges.exist_time = NULL;
	expect_no_batch(client, &edges, &seeds, false, GW_INVALID, "exist_end \"gone\", and no exist_time");
	edges = (struct gw_edge_seeds){.etype = FIXTURE_WRITES, .exist_time = "born"};
	expect_no_batch(client, &edges, &seeds, false, GW_INVALID, "no negatives");
	edges = good;
	edges.negative_ids = few;
	edges.negative_id_count = 2;
	expect_no_batch(client, &edges, &seeds, false, GW_UNSUPPORTED, "give one of them");
	edges = good;
	edges.exist_time = "lost";
	expect_no_batch(client, &edges, &seeds, false, GW_NOT_FOUND, "paper has no such feature");
	edges.exist_time = "year";
	expect_no_batch(client, &edges, &seeds, false, GW_NOT_FOUND, "a feature of the edges paper:cites:paper");
	edges.exist_time = "feat";
	expect_no_batch(client, &edges, &seeds, false, GW_UNSUPPORTED, "a time is one int64");
	edges.exist_time = "label";
	expect_no_batch(client, &edges, &seeds, false, GW_UNSUPPORTED, "graphwire partition --time label");
	edges = good;
	edges.exist_end = "train_mask";
	expect_no_batch(client, &edges, &seeds, false, GW_UNSUPPORTED, "\"train_mask\" of paper: a time is one int64");
	const struct gw_seeds empty = {.type = FIXTURE_WRITES, .ids = ids, .times = times};
	check_batch(ways, &(struct gw_sample_spec){.hops = 1, .fanouts = one_hop, .edges = &good}, &empty);
}

static void what_cannot_be_drawn_is_named(void **state)
{
	(void)state;
	with_paths(check_refusals);
}

static void times_that_change_are_refused(void **state)
{
	static const int64_t ids[] = {3}, times[] = {50};
	static const char *const changing[] = {"paper/born", "paper/gone"};
	const struct gw_edge_seeds edges = {.etype = FIXTURE_WRITES,
					    .negatives = GW_NEGATIVES_DST,
					    .negatives_each = 2,
					    .exist_time = "born",
					    .exist_end = "gone"};
	const struct gw_seeds seeds = {.type = FIXTURE_WRITES, .count = 1, .ids = ids, .times = times};
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct setup setup;
		cluster_serve_mutable(changing[i]);
		setup_begin(&setup, SEED, 2, NULL);
		cluster_serve_mutable(NULL);
		struct gw_client *client =
			open_client(&(struct gw_client_options){.servers = setup.cluster.list, .server_count = 2});
		expect_no_batch(client, &edges, &seeds, false, GW_UNSUPPORTED, "it is served as mutable rows");
		gw_client_close(client);
		setup_end(&setup);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(negatives_are_those_of_the_definition),
		cmocka_unit_test(all_that_exist_are_equally_likely),
		cmocka_unit_test(loaders_give_the_same_bytes),
		cmocka_unit_test(targets_and_their_reverses_are_not_seen),
		cmocka_unit_test(what_cannot_be_drawn_is_named),
		cmocka_unit_test(times_that_change_are_refused),
	};
	return cmocka_run_group_tests(tests, gw_fixture_times_set_up, gw_fixture_times_tear_down);
}
