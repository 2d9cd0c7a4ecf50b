/* Draws by time by a client: exactly the eligible edges, and the same bytes from memory, by reads and by requests, over
 * TCP, mapped memory and RDMA, in one part and in three; by reads alone where a fence exists. Lists that are sorted by
 * the time and others, with ends and without. test/oracle/test_temporal.c has the law. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/id_index.h"
#include "core/graph/times.h"
#include "core/numbers/digest.h"
#include "core/numbers/rng.h"
#include "core/numbers/time_key.h"
#include "protocol/ops.h"
#include "sampler/picks.h"
#include "test/support/client_setup.h"
#include "test/support/hop_ask.h"
#include "test/support/many.h"
#include "test/support/must.h"
#include "transport/service/service_backend.h"

#define QUESTIONS 400
#define GROUPS    40

/* cites is sorted by year, from -20 to 19, and has a fence; "gone" is an end from -15 to 24, "weight" from 0 to 2. */
static const struct gw_edge_rule rules[] = {
	{.time = "year"},
	{.time = "year", .pick = GW_PICK_LAST},
	{.time = "year", .end = "gone"},
	{.time = "year", .end = "gone", .pick = GW_PICK_LAST},
	{.time = "weight"},
	{.time = "weight", .pick = GW_PICK_LAST},
};
#define RULES (sizeof(rules) / sizeof(rules[0]))

static const int32_t fanouts[] = {5, GW_FANOUT_ALL, 1, 70};
#define FANOUTS (sizeof(fanouts) / sizeof(fanouts[0]))

/* --- A graph with a fence and ends. --- */

static int64_t gone_at(uint64_t edge)
{
	return (int64_t)(gw_mix64(edge + 5) % 40) - 15;
}

static gw_status write_ends(const struct gw_fixture *fixture, struct gw_writer *writer)
{
	const struct gw_edge_type *type = &fixture->schema->etypes[FIXTURE_CITES];
	gw_status status = GW_OK;
	for (uint32_t p = 0; p < fixture->schema->num_parts && status == GW_OK; p++) {
		uint64_t from = type->starts[p], count = type->starts[p + 1] - from;
		int64_t *ends = malloc(count * 8 + 8);
		assert_non_null(ends);
		for (uint64_t i = 0; i < count; i++)
			ends[i] = gone_at(from + i);
		status = gw_writer_array(writer, p, "edge/paper__cites__paper/gone", GW_INT64, 1, &count, ends);
		free(ends);
	}
	return status;
}

static void timed_begin(struct setup *setup, uint32_t parts, const char *offer)
{
	struct gw_writer *writer;
	uint64_t bytes = 0;
	gw_fixture_begin(&setup->fixture, 61, SETUP_SCALE, parts);
	fixture_add_hub(&setup->fixture);
	must(gw_writer_open(setup->fixture.folder, setup->fixture.schema, false, &writer));
	gw_writer_set_minor(writer, GW_FORMAT_MINOR_TIMES);
	must(gw_fixture_fill(&setup->fixture, writer));
	must(write_ends(&setup->fixture, writer));
	must(gw_id_index_write(writer, 1, 0));
	must(gw_times_write(writer, NULL, 0, 1, &bytes));
	must(gw_writer_commit(writer, NULL));
	cluster_offer(offer);
	cluster_begin(&setup->cluster, setup->fixture.folder, parts, NULL);
	cluster_offer(NULL);
}

/* --- Draws. --- */

struct questions {
	uint64_t nodes[QUESTIONS];
	uint32_t groups[QUESTIONS];
	double until[GROUPS], from[GROUPS];
	int64_t until_keys[GROUPS], from_keys[GROUPS];
};

/* The times of groups; every third has a window. Some lie between the times of whole columns, if the law is not strict:
 * strict ends need the key before the time. */
static void make_questions(struct questions *questions, const struct gw_edge_columns *columns, bool strict)
{
	bool real = gw_time_is_real(columns->sampling.forms[GW_COLUMN_TIME].dtype);
	for (uint32_t i = 0; i < QUESTIONS; i++) {
		questions->nodes[i] = i < GROUPS ? FIXTURE_HUB : gw_mix64(i) % (SETUP_SCALE / 2);
		questions->groups[i] = i < 200 ? i % GROUPS : i / 60;
	}
	for (uint32_t g = 0; g < GROUPS; g++) {
		double time = g * 11 % 44 - 22 + (strict ? 0 : 0.5 * (g % 2)), length = g % 3 ? 1000 : g;
		questions->until[g] = real ? time / 22 + 1 : time;
		questions->from[g] = questions->until[g] - (real ? length / 22 : length);
		const struct gw_time until = {true, {.real = questions->until[g]}};
		const struct gw_time from = {true, {.real = questions->from[g]}};
		const struct gw_time_range range = gw_time_range_of(real, g % 3 ? NULL : &from, &until, strict);
		questions->until_keys[g] = range.until;
		questions->from_keys[g] = range.from;
	}
}

static struct hop_ask ask_of(struct gw_client *client, uint32_t number, struct questions *questions)
{
	const uint32_t rule = number % RULES, rest = number / RULES;
	bool strict = rest / 2 % 2;
	struct hop_ask ask = {
		.etype = FIXTURE_CITES,
		.draw = {.rule = {.key = 99, .fanout = fanouts[rest / 4], .replace = rest % 2}},
		.frontier = {.nodes = questions->nodes, .groups = questions->groups, .n = QUESTIONS},
	};
	must(gw_edge_columns_find(client, FIXTURE_CITES, &rules[rule], &ask.columns));
	assert_int_equal(ask.columns->by_request, rule >= 4);
	make_questions(questions, ask.columns, strict);
	gw_draw_set(&ask.draw, &ask.columns->sampling);
	ask.draw.groups = (struct gw_groups){
		.count = GROUPS, .from = questions->from_keys, .until = questions->until_keys, .strict_ends = strict};
	return ask;
}
#define ASKS (RULES * FANOUTS * 4)

static uint64_t picks_digest(const struct gw_picks *picks)
{
	uint64_t digest = gw_digest_add(0, picks->counts.data, picks->dst_count * 4);
	digest = gw_digest_add(digest, picks->positions.data, picks->edge_count * 8);
	return gw_digest_add(digest, picks->neighbours.data, picks->edge_count * 8);
}

static bool sees(const struct gw_fixture_edges *edges, const struct gw_edge_rule *rule, bool strict,
		 const struct questions *questions, uint32_t group, uint64_t edge)
{
	double until = questions->until[group], time = (double)edges->time[edge];
	if (strict ? time >= until : time > until)
		return false;
	return (group % 3 || time >= questions->from[group]) && (!rule->end || (double)gone_at(edge) > until);
}

/* The years of every pick are eligible, and exactly as many edges as there must be. */
static void check_picks(const struct setup *setup, const struct hop_ask *ask, const struct questions *questions,
			const struct gw_edge_rule *rule, const struct gw_picks *picks)
{
	const struct gw_fixture_edges *edges = &setup->fixture.edges[FIXTURE_CITES];
	const uint64_t *positions = picks->positions.data;
	struct gw_pick_rule counts = ask->draw.rule;
	counts.replace = counts.replace && rule->pick != GW_PICK_LAST;
	for (uint32_t i = 0; i < QUESTIONS; i++) {
		uint64_t node = questions->nodes[i], eligible = 0;
		uint32_t group = questions->groups[i], count = ((const uint32_t *)picks->counts.data)[i];
		for (uint64_t e = edges->indptr[node]; e < edges->indptr[node + 1]; e++)
			eligible += sees(edges, rule, ask->draw.groups.strict_ends, questions, group, e);
		assert_int_equal(count, gw_pick_count(&counts, eligible));
		for (uint32_t j = 0; j < count; j++, positions++) {
			assert_in_range(*positions, edges->indptr[node], edges->indptr[node + 1] - 1);
			assert_true(sees(edges, rule, ask->draw.groups.strict_ends, questions, group, *positions));
		}
	}
}

static uint64_t digests[ASKS];
static bool has_digests;

static void draw_all(struct gw_client *client, const struct setup *setup, bool reads_only)
{
	for (uint32_t number = 0; number < (cluster_is_rdma() ? ASKS / 4 : ASKS);
	     number += gw_many_step() == 1 ? 1 : 5) {
		struct questions questions = {0};
		const struct gw_edge_rule *rule = &rules[number % RULES];
		struct hop_ask ask = ask_of(client, number, &questions);
		struct gw_picks picks = {0};
		if (reads_only && ask.columns->by_request)
			continue;
		must(hop_ask(client, &ask, &picks));
		assert_int_equal(picks.dst_count, QUESTIONS);
		if (strcmp(rule->time, "year") == 0)
			check_picks(setup, &ask, &questions, rule, &picks);
		uint64_t digest = picks_digest(&picks);
		if (has_digests && digests[number] != digest)
			fail_msg("draw %u by %s, neighbours %d: other bytes", number, gw_part_transport(client, 0),
				 (int)client->neighbours);
		digests[number] = digest;
		gw_picks_free(&picks);
	}
}

static void each_way_draws_the_same(uint32_t parts, const char *offer)
{
	struct setup setup;
	timed_begin(&setup, parts, offer);
	const char *const *list = setup.cluster.list;
	const struct gw_client_options ways[] = {
		{.part_config = setup.fixture.folder, .threads = 1},
		{.part_config = setup.fixture.folder, .threads = 1, .neighbours = "reads"},
		{.servers = list, .server_count = parts, .threads = 1},
		{.servers = list, .server_count = parts, .threads = 2, .neighbours = "reads"},
		{.servers = list, .server_count = parts, .threads = 2, .neighbours = "requests"},
	};
	for (size_t i = offer ? 2 : 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct gw_client *client = open_client(&ways[i]);
		draw_all(client, &setup, false);
		has_digests = true;
		gw_client_close(client);
	}
	setup_end(&setup);
}

static void times_draw_the_same_by_each_way(void **state)
{
	(void)state;
	each_way_draws_the_same(1, NULL);
	each_way_draws_the_same(3, NULL);
	if (!cluster_is_rdma())
		each_way_draws_the_same(3, "shm");
}

/* --- Servers that answer nothing. --- */

static gw_status never(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)context, (void)call, (void)reply;
	fprintf(stderr, "a sample request arrived\n");
	abort();
}

static void a_fence_needs_no_code_of_the_server(void **state)
{
	(void)state;
	struct setup setup;
	timed_begin(&setup, 1, NULL);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = 1, .threads = 1, .neighbours = "reads"};
	setup.cluster.servers[0]->service->handlers[GW_OP_SAMPLE].call = never;
	struct gw_client *client = open_client(&options);
	draw_all(client, &setup, true);
	gw_client_close(client);
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_draw_the_same_by_each_way),
		cmocka_unit_test(a_fence_needs_no_code_of_the_server),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
