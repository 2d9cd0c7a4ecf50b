/* Negatives that exist at the times of their edges: they are those of the definition, over every path and from loaders;
 * all nodes that exist are equally likely, also if they are few; an index that is not in order is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/part.h"
#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "test/support/batch_oracle.h"
#include "test/support/chi_square.h"
#include "test/support/client_paths.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"

#define SEED  8
#define COUNT 40 /* edges of a batch */

static const int32_t one_hop[GW_FIXTURE_ETYPES] = {2, 2, 2, 2};

static int give_times(void **state)
{
	(void)state;
	gw_fixture_give_times(true);
	return 0;
}

static int take_times(void **state)
{
	(void)state;
	gw_fixture_give_times(false);
	return 0;
}

static const struct {
	const char *offer, *driver;
	uint32_t parts;
} beds[] = {{NULL, "epoll", 1}, {NULL, NULL, 3}, {NULL, NULL, 8}, {"shm", NULL, 2}};

static void with_paths(void (*body)(const struct ways *ways))
{
	for (size_t i = 0; i < sizeof(beds) / sizeof(beds[0]) && (i == 0 || !cluster_is_rdma()); i++) {
		struct ways ways;
		paths_begin(&ways, SEED + i, beds[i].parts, beds[i].offer, beds[i].driver);
		body(&ways);
		paths_end(&ways);
	}
}

/* --- The definition. --- */

/* A time that nodes have, or one between two of them, before which one node exists at least. */
static double time_of(uint64_t i, bool real)
{
	static const double few[] = {GW_FIXTURE_BORN_1, GW_FIXTURE_BORN_5, GW_FIXTURE_BORN_51, 1e15};
	uint64_t word = gw_mix64(i / 2 + 99);
	double time = word % 3 ? (double)(word / 3 % 44) - 2 : few[word / 3 % 4];
	return real && word % 5 == 0 ? time + 0.5 : time;
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
	uint64_t digest = 0, true_edges = 0;
	for (uint32_t i = 0; i < ways->count; i++) {
		struct gw_minibatch *batch;
		if (gw_sample_lists(ways->clients[i], spec, SEED, 3, seeds, 1, &batch) != GW_OK)
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
	for (uint32_t variant = 0; variant < 48; variant++) {
		const struct gw_edge_seeds edges = {.etype = etypes[variant / 8 % 3],
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
		make_seeds(ways, edges.etype, spec.real_times, ids, times);
		true_edges += check_batch(ways, &spec, &seeds);
	}
	assert_true(true_edges > 0);
}

static void negatives_are_those_of_the_definition(void **state)
{
	(void)state;
	with_paths(check_negatives);
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
	for (uint64_t stream = 0; stream < STREAMS; stream++) {
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
	assert_int_equal(all, STREAMS * COUNT * EACH); /* no other node */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(negatives_are_those_of_the_definition),
		cmocka_unit_test(all_that_exist_are_equally_likely),
	};
	return cmocka_run_group_tests(tests, give_times, take_times);
}
