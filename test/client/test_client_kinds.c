/* Every kind of sampling by a client: the same bytes from memory, by reads and by requests, over every transport, in
 * one part and in three, by one thread and by four; in groups and without; with servers that answer no sample request.
 * test/conformance/test_draw_kinds.c compares the drivers of the sampler; this test compares all that is around them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/digest.h"
#include "core/numbers/rng.h"
#include "core/numbers/time_key.h"
#include "protocol/ops.h"
#include "sampler/picks.h"
#include "test/support/alloc_fault.h"
#include "test/support/client_setup.h"
#include "test/support/every_second.h"
#include "test/support/hop_ask.h"
#include "test/support/must.h"
#include "transport/service/service_backend.h"

#define SEED    51
#define KINDS   3
#define AT_ONCE 6 /* mini-batches */

static const struct gw_sampling_kind *const kinds[KINDS] = {&gw_sample_uniform, &gw_sample_weighted,
							    &sample_every_second};
/* Sanitizers run some of the fanouts: all use the same threads. */
#if defined(__SANITIZE_THREAD__)
#define QUESTIONS 200
static const int32_t fanouts[] = {5, GW_FANOUT_ALL}, group_fanouts[] = {5, 9000};
#elif defined(__SANITIZE_ADDRESS__)
#define QUESTIONS 700
static const int32_t fanouts[] = {5, GW_FANOUT_ALL, 0, 300}, group_fanouts[] = {5, 9000, GW_FANOUT_ALL};
#else
#define QUESTIONS 700
static const int32_t fanouts[] = {5, GW_FANOUT_ALL, 0, 1, 33, 300}, group_fanouts[] = {5, 1, 33, 9000, GW_FANOUT_ALL};
#endif
#define FANOUTS (sizeof(fanouts) / sizeof(fanouts[0]))

/* Over RDMA the devices and the processor may be emulated: the first fanouts and few questions pass through all code.
 */
static size_t fanout_count(void)
{
	return cluster_is_rdma() ? 2 : FANOUTS;
}

static uint64_t question_count(void)
{
	return cluster_is_rdma() ? 60 : QUESTIONS;
}

/* --- Graphs and clients. --- */

static void bed_begin(struct setup *setup, uint32_t parts, const char *offer)
{
	cluster_offer(offer);
	gw_fixture_begin(&setup->fixture, SEED, SETUP_SCALE, parts);
	fixture_add_hub(&setup->fixture);
	gw_fixture_write(&setup->fixture);
	cluster_begin(&setup->cluster, setup->fixture.folder, parts, NULL);
	cluster_offer(NULL);
}

/* By memory, by reads of the own memory, by reads and by requests; over TCP and mapped memory, or over RDMA. */
static void with_each_client(uint32_t parts, void (*body)(struct gw_client *client, const struct setup *setup))
{
	static const char *const offers[] = {NULL, "shm"};
	for (size_t o = 0; o < (cluster_is_rdma() ? 1 : 2); o++) { /* by RDMA there is no other way */
		struct setup setup;
		bed_begin(&setup, parts, offers[o]);
		const char *const *list = setup.cluster.list;
		const struct gw_client_options ways[] = {
			{.part_config = setup.fixture.folder, .threads = 4},
			{.part_config = setup.fixture.folder,
			 .threads = 1,
			 .neighbours = "reads",
			 .dense_bytes_max = 1},
			{.servers = list, .server_count = parts, .threads = 1},
			{.servers = list, .server_count = parts, .threads = 4, .neighbours = "reads"},
			{.servers = list, .server_count = parts, .threads = 4, .neighbours = "requests"},
		};
		for (size_t i = o ? 2 : 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			struct gw_client *client = open_client(&ways[i]);
			body(client, &setup);
			gw_client_close(client);
		}
		setup_end(&setup);
	}
}

/* The rules of all edge types: cites by this kind. */
struct rules {
	struct gw_edge_rule of_types[GW_FIXTURE_ETYPES];
};

/* The rule by which a client draws with a kind. */
static struct gw_edge_rule rule_of(const struct gw_sampling_kind *kind)
{
	return (struct gw_edge_rule){.weight = kind == &gw_sample_uniform ? NULL : "weight"};
}

static struct rules rules_of(struct gw_client *client, const struct gw_sampling_kind *kind)
{
	const struct rules rules = {.of_types = {[FIXTURE_CITES] = rule_of(kind)}};
	const struct gw_edge_columns *columns;
	if (kind != &gw_sample_uniform)
		must(hop_columns(client, FIXTURE_CITES, rule_of(kind), kind, &columns));
	return rules;
}

/* --- Digests of draws. --- */

static uint64_t lists_digest(struct gw_client *client, const struct gw_neighbours_spec *spec, uint64_t stream)
{
	int64_t ids[QUESTIONS];
	struct gw_edge_list *list;
	uint64_t questions = question_count();
	for (uint64_t i = 0; i < questions; i++)
		ids[i] = (int64_t)(i < SETUP_SCALE / 2 ? i : gw_mix64(i) % (SETUP_SCALE / 2)); /* some of them twice */
	must(gw_neighbours(client, spec, 8, stream, ids, questions, &list));
	uint64_t digest = gw_digest_add(0, list->offsets, (questions + 1) * 8);
	digest = gw_digest_add(digest, list->src, list->edge_count * 8);
	digest = gw_digest_add(digest, list->dst, list->edge_count * 8);
	digest = gw_digest_add(digest, list->edge_ids, list->edge_count * 8);
	gw_edge_list_free(list);
	return digest;
}

static uint64_t batches_digest(struct gw_client *client, const struct gw_sample_spec *spec)
{
	static const int64_t seeds[] = {FIXTURE_HUB, 0, 300, 7, 2, 599, FIXTURE_HUB, 200, 201, 450};
	struct gw_minibatch *batches[AT_ONCE];
	struct gw_ticket *tickets[AT_ONCE];
	uint64_t digest = 0;
	for (uint64_t i = 0; i < AT_ONCE; i++)
		must(gw_sample_start(client, spec, 9, i, seeds, 4 + i, &batches[i], &tickets[i]));
	for (uint64_t i = 0; i < AT_ONCE; i++) {
		must(gw_wait(tickets[i], -1));
		uint64_t each = gw_minibatch_digest(batches[i]);
		digest = gw_digest_add(digest, &each, sizeof(each));
		gw_minibatch_release(batches[i]);
	}
	return digest;
}

#define DIGESTS (KINDS * FANOUTS * 2 * 4 + FANOUTS * 2)

/* All draws through the public calls. */
static uint32_t draw_everything(struct gw_client *client, uint64_t digests[DIGESTS])
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < KINDS; k++) {
		const struct rules rules = rules_of(client, kinds[k]);
		for (size_t f = 0; f < fanout_count(); f++) {
			for (int replace = 0; replace < 2; replace++) {
				const struct gw_neighbours_spec list = {.etype = FIXTURE_CITES,
									.fanout = fanouts[f],
									.replace = replace,
									.rule = rules.of_types[FIXTURE_CITES]};
				const int32_t hops[3 * GW_FIXTURE_ETYPES] = {2, 2, fanouts[f],         0, 1, 2, 4, 2,
									     0, 3, fanouts[f] ? 1 : 0, 1};
				struct gw_sample_spec batch = {
					.hops = 3, .fanouts = hops, .replace = replace, .rules = rules.of_types};
				digests[n++] = lists_digest(client, &list, f);
				digests[n++] = batches_digest(client, &batch);
				batch.frontier = GW_FRONTIER_NEW;
				digests[n++] = batches_digest(client, &batch);
				batch.disjoint = true;
				digests[n++] = batches_digest(client, &batch);
			}
		}
	}
	for (size_t f = 0; f < fanout_count(); f++) {
		for (int replace = 0; replace < 2; replace++) {
			const struct gw_neighbours_spec list = {
				.etype = FIXTURE_WRITES, .direction = GW_OUT, .fanout = fanouts[f], .replace = replace};
			digests[n++] = lists_digest(client, &list, 77);
		}
	}
	assert_true(n <= DIGESTS);
	return n;
}

static uint64_t expected[DIGESTS];
static uint32_t expected_count; /* 0: none yet */

static void compare_everything(struct gw_client *client, const struct setup *setup)
{
	uint64_t digests[DIGESTS];
	(void)setup;
	uint32_t n = draw_everything(client, digests);
	assert_true(expected_count == 0 || expected_count == n);
	for (uint32_t i = 0; i < expected_count; i++) {
		if (digests[i] != expected[i])
			fail_msg("draw %u by %s, neighbours %d: other bytes", i, gw_part_transport(client, 0),
				 (int)client->neighbours);
	}
	memcpy(expected, digests, n * sizeof(*digests));
	expected_count = n;
}

static void every_way_draws_the_same(void **state)
{
	(void)state;
	with_each_client(1, compare_everything);
	with_each_client(3, compare_everything);
	/* The draws differ from each other where they should: most of them do. */
	uint32_t distinct = 0;
	for (uint32_t i = 0; i < expected_count; i++) {
		uint32_t first = 0;
		while (expected[first] != expected[i])
			first++;
		distinct += first == i;
	}
	assert_true(distinct > expected_count / 2);
}

/* --- Groups. --- */

struct grouped {
	uint64_t nodes[QUESTIONS];
	uint32_t groups[QUESTIONS];
};

/* Walkers of eight groups at the hub, then others in long and short runs of groups. */
static void make_grouped(struct grouped *grouped)
{
	for (uint32_t i = 0; i < QUESTIONS; i++) {
		grouped->nodes[i] = i < 8 ? FIXTURE_HUB : gw_mix64(i) % (SETUP_SCALE / 2);
		grouped->groups[i] = i < 8 ? i : i < 300 ? (uint32_t)(gw_mix64(i + 5) % 7) : i / 90;
	}
	grouped->groups[QUESTIONS - 1] = UINT32_MAX;
}

static const int64_t from[] = {-5, 0, INT64_MIN}, until[] = {7, 0, INT64_MAX};

static struct hop_ask grouped_ask(struct gw_client *client, const struct gw_sampling_kind *kind, int32_t fanout,
				  bool replace, const struct grouped *grouped)
{
	struct hop_ask ask = {
		.etype = FIXTURE_CITES,
		.draw = {.rule = {.key = 1234, .fanout = fanout, .replace = replace}, .kind = kind},
		.frontier = {.nodes = grouped->nodes, .groups = grouped->groups, .n = question_count()},
	};
	if (kind != &gw_sample_uniform) {
		must(hop_columns(client, FIXTURE_CITES, rule_of(kind), kind, &ask.columns));
		gw_draw_set(&ask.draw, &ask.columns->sampling);
	}
	return ask;
}

static uint64_t ask_digest(struct gw_client *client, const struct hop_ask *ask)
{
	struct gw_picks picks = {0};
	must(hop_ask(client, ask, &picks));
	assert_int_equal(picks.dst_count, ask->frontier.n);
	uint64_t digest = gw_digest_add(0, picks.counts.data, picks.dst_count * 4);
	digest = gw_digest_add(digest, picks.positions.data, picks.edge_count * 8);
	digest = gw_digest_add(digest, picks.neighbours.data, picks.edge_count * 8);
	gw_picks_free(&picks);
	return digest;
}

/* Fanouts above SLICE_WORK of server/answer_sample.c: lists that a server draws piece by piece. */
#define GROUP_FANOUTS (sizeof(group_fanouts) / sizeof(group_fanouts[0]))
static size_t group_fanout_count(void)
{
	return cluster_is_rdma() ? 1 : GROUP_FANOUTS;
}

#define GROUP_DIGESTS (KINDS * GROUP_FANOUTS * 2 + GROUP_FANOUTS + KINDS)

#define MANY 20000 /* rows: more than one request has */

/* Rows whose groups differ from one request to the next. */
static uint64_t many_digest(struct gw_client *client, const struct gw_sampling_kind *kind,
			    const struct grouped *grouped)
{
	static uint64_t nodes[MANY];
	static uint32_t groups[MANY];
	struct hop_ask ask = grouped_ask(client, kind, 2, false, grouped);
	for (uint32_t i = 0; i < MANY; i++) {
		nodes[i] = gw_mix64(i) % (SETUP_SCALE / 2);
		groups[i] = i < MANY / 2 ? i : i / 1000;
	}
	ask.frontier.nodes = nodes;
	ask.frontier.groups = groups;
	ask.frontier.n = MANY;
	return ask_digest(client, &ask);
}

static uint64_t expected_groups[GROUP_DIGESTS];
static bool has_expected_groups;

static void compare_groups(struct gw_client *client, const struct setup *setup)
{
	struct grouped grouped;
	uint64_t digests[GROUP_DIGESTS];
	uint32_t n = 0, zeros[QUESTIONS] = {0}, small[QUESTIONS];
	(void)setup;
	make_grouped(&grouped);
	for (uint32_t i = 0; i < QUESTIONS; i++)
		small[i] = grouped.groups[i] % 3;
	for (uint32_t k = 0; k < KINDS; k++) {
		for (size_t f = 0; f < group_fanout_count(); f++) {
			for (int replace = 0; replace < 2; replace++) {
				struct hop_ask ask = grouped_ask(client, kinds[k], group_fanouts[f], replace, &grouped);
				if (group_fanouts[f] > 1000)
					ask.frontier.n = 10;
				digests[n++] = ask_digest(client, &ask);
				/* Group 0 everywhere is no group. */
				ask.frontier.groups = zeros;
				uint64_t in_zero = ask_digest(client, &ask);
				ask.frontier.groups = NULL;
				assert_true(ask_digest(client, &ask) == in_zero);
				/* A table of times changes nothing for a kind without times. */
				ask.frontier.groups = small;
				uint64_t without = ask_digest(client, &ask);
				ask.draw.groups = (struct gw_groups){.count = 3, .from = from, .until = until};
				assert_true(ask_digest(client, &ask) == without);
			}
		}
	}
	for (size_t f = 0; f < group_fanout_count(); f++) {
		struct hop_ask ask = grouped_ask(client, &gw_sample_uniform, group_fanouts[f], true, &grouped);
		ask.etype = FIXTURE_WRITES;
		ask.direction = GW_OUT;
		ask.frontier.n = group_fanouts[f] > 1000 ? 10 : question_count();
		digests[n++] = ask_digest(client, &ask);
	}
	for (uint32_t k = 0; k < KINDS && !cluster_is_rdma(); k++)
		digests[n++] = many_digest(client, kinds[k], &grouped);
	assert_true(n <= GROUP_DIGESTS);
	for (uint32_t i = 0; has_expected_groups && i < n; i++) {
		if (digests[i] != expected_groups[i])
			fail_msg("draw %u in groups by %s, neighbours %d: other bytes", i, gw_part_transport(client, 0),
				 (int)client->neighbours);
	}
	memcpy(expected_groups, digests, n * sizeof(*digests));
	has_expected_groups = true;
}

static void groups_draw_the_same_by_every_way(void **state)
{
	(void)state;
	with_each_client(1, compare_groups);
	with_each_client(3, compare_groups);
}

/* --- Values of groups. --- */

#define SEEDS        40
#define TIME_DIGESTS (2 * 2 * GROUP_FANOUTS * 2)

static uint64_t expected_times[TIME_DIGESTS];
static bool has_expected_times;

/* The times of cites: its years, from -20 to 19, or its weights, from 0 to 2. */
static void compare_times(struct gw_client *client, const struct setup *setup)
{
	static const struct gw_edge_rule rules[] = {
		{.time = "year"},
		{.time = "year", .pick = GW_PICK_LAST},
		{.time = "weight"},
		{.time = "weight", .pick = GW_PICK_LAST},
	};
	struct grouped grouped;
	int64_t first[SEEDS], last[SEEDS];
	uint64_t digests[TIME_DIGESTS];
	uint32_t n = 0;
	(void)setup;
	make_grouped(&grouped);
	for (uint32_t i = 0; i < QUESTIONS; i++)
		grouped.groups[i] = i < 300 ? i % SEEDS : i / 90;
	for (uint32_t r = 0; r < 4; r++) {
		const struct gw_edge_columns *columns;
		must(gw_edge_columns_find(client, FIXTURE_CITES, &rules[r], &columns));
		for (uint32_t g = 0; g < SEEDS; g++) {
			const double spread = r < 2 ? 1 : 0.05, at = g * 11 % 44 * spread;
			const struct gw_time now = {true, {.real = r < 2 ? at - 22 : at}};
			const struct gw_time begin = {true, {.real = now.value.real - g * spread}};
			const struct gw_time_range range = gw_time_range_of(r > 1, g % 3 ? NULL : &begin, &now, g % 2);
			first[g] = range.from;
			last[g] = range.until;
		}
		for (size_t f = 0; f < 2 * group_fanout_count(); f++) {
			struct hop_ask ask = {
				.etype = FIXTURE_CITES,
				.draw = {.rule = {.key = 99, .fanout = group_fanouts[f / 2], .replace = f % 2}},
				.columns = columns,
				.frontier = {.nodes = grouped.nodes, .groups = grouped.groups, .n = question_count()},
			};
			gw_draw_set(&ask.draw, &columns->sampling);
			ask.draw.groups = (struct gw_groups){.count = SEEDS, .from = first, .until = last};
			if (ask.draw.rule.fanout > 1000)
				ask.frontier.n = 10;
			digests[n++] = ask_digest(client, &ask);
		}
	}
	assert_true(n <= TIME_DIGESTS);
	for (uint32_t i = 0; has_expected_times && i < n; i++) {
		if (digests[i] != expected_times[i])
			fail_msg("draw %u by time by %s, neighbours %d: other bytes", i, gw_part_transport(client, 0),
				 (int)client->neighbours);
	}
	memcpy(expected_times, digests, n * sizeof(*digests));
	has_expected_times = true;
}

static void times_draw_the_same_by_every_way(void **state)
{
	(void)state;
	with_each_client(1, compare_times);
	with_each_client(3, compare_times);
}

/* Walkers at one node choose for themselves. */
static void check_walkers(struct gw_client *client, const struct setup *setup)
{
	struct grouped grouped;
	(void)setup;
	make_grouped(&grouped);
	for (uint32_t k = 0; k < 2; k++) {
		struct gw_picks picks = {0};
		struct hop_ask ask = grouped_ask(client, kinds[k], 5, false, &grouped);
		ask.frontier.n = 8;
		must(hop_ask(client, &ask, &picks));
		assert_int_equal(picks.edge_count, 8 * 5);
		const uint64_t *edges = picks.positions.data;
		for (uint32_t i = 0; i < 8; i++) {
			for (uint32_t j = 0; j < i; j++)
				assert_memory_not_equal(edges + i * 5, edges + j * 5, 5 * sizeof(*edges));
		}
		gw_picks_free(&picks);
	}
}

static void walkers_choose_for_themselves(void **state)
{
	(void)state;
	with_each_client(1, check_walkers);
}

/* A group past the table is refused by the server that is asked. */
static void groups_past_the_table_are_refused(void **state)
{
	(void)state;
	struct setup setup;
	struct grouped grouped;
	struct gw_picks picks = {0};
	bed_begin(&setup, 1, NULL);
	make_grouped(&grouped);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = 1, .threads = 1, .neighbours = "requests"};
	struct gw_client *client = open_client(&options);
	struct hop_ask ask = grouped_ask(client, &gw_sample_uniform, 5, false, &grouped);
	ask.draw.groups = (struct gw_groups){.count = 3, .from = from, .until = until};
	expect(hop_ask(client, &ask, &picks), GW_PROTOCOL, "group 3 of 3");
	ask.draw.groups = (struct gw_groups){0};
	must(hop_ask(client, &ask, &picks));
	gw_picks_free(&picks);
	gw_client_close(client);
	setup_end(&setup);
}

/* --- Servers that answer nothing. --- */

static gw_status never(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)context, (void)call, (void)reply;
	fprintf(stderr, "a sample request arrived\n");
	abort();
}

/* No call runs meanwhile, which the thread sanitizer does not see. */
__attribute__((no_sanitize_thread)) static void let_servers_sample(const struct setup *setup, gw_handler call)
{
	for (uint32_t p = 0; p < setup->cluster.parts; p++)
		setup->cluster.servers[p]->service->handlers[GW_OP_SAMPLE].call = call;
}

static void no_kind_needs_the_servers_code(void **state)
{
	(void)state;
	static const char *const offers[] = {NULL, "shm"};
	for (size_t o = 0; o < (cluster_is_rdma() ? 1 : 2); o++) {
		struct setup setup;
		bed_begin(&setup, 3, offers[o]);
		for (int any_way = 0; any_way < 2; any_way++) {
			struct gw_client_options options = {.servers = setup.cluster.list,
							    .server_count = 3,
							    .threads = 2,
							    .neighbours = any_way ? NULL : "reads"};
			if (any_way && !cluster_is_rdma() && !offers[o])
				continue; /* over TCP a client requests by itself */
			struct gw_client *client = open_client(&options);
			gw_handler truth = setup.cluster.servers[0]->service->handlers[GW_OP_SAMPLE].call;
			if (any_way) /* until a link is open, the client does not know that it can read */
				compare_everything(client, &setup);
			let_servers_sample(&setup, never);
			compare_everything(client, &setup);
			compare_times(client, &setup);
			let_servers_sample(&setup, truth);
			gw_client_close(client);
		}
		setup_end(&setup);
	}
}

/* --- Calls that no client makes. --- */

/* Out-lists have no columns: a server must not look for them. */
static void out_lists_by_weight_are_refused(void **state)
{
	(void)state;
	for (int requests = 0; requests < 2; requests++) {
		struct setup setup;
		struct grouped grouped;
		struct gw_picks picks = {0};
		struct gw_edge_list *list;
		bed_begin(&setup, 1, NULL);
		make_grouped(&grouped);
		struct gw_client_options options = {.servers = setup.cluster.list,
						    .server_count = 1,
						    .threads = 1,
						    .neighbours = requests ? "requests" : "reads"};
		struct gw_client *client = open_client(&options);
		for (uint32_t k = 1; k < KINDS && requests; k++) {
			struct hop_ask ask = grouped_ask(client, kinds[k], 5, true, &grouped);
			ask.etype = FIXTURE_WRITES;
			ask.direction = GW_OUT;
			expect(hop_ask(client, &ask, &picks), GW_UNSUPPORTED, "out-edges");
		}
		const struct gw_neighbours_spec spec = {
			.etype = FIXTURE_CITES, .direction = GW_OUT, .fanout = 3, .rule = {.weight = "weight"}};
		const int64_t id = 1;
		assert_int_equal(gw_neighbours(client, &spec, 0, 0, &id, 1, &list), GW_UNSUPPORTED);
		gw_picks_free(&picks);
		gw_client_close(client);
		setup_end(&setup);
	}
}

/* --- Memory that is short. --- */

static gw_status draw_once(struct gw_client *client, const struct gw_sampling_kind *kind)
{
	static const int32_t hops[2 * GW_FIXTURE_ETYPES] = {1, 0, 9, 0, 0, 0, 3, 2};
	static const int64_t seeds[] = {FIXTURE_HUB, 0, 2, 7};
	struct grouped grouped;
	struct gw_minibatch *batch = NULL;
	struct gw_picks picks = {0};
	struct rules rules = {0};
	const struct gw_edge_columns *columns = NULL;
	gw_status status = GW_OK;
	if (kind != &gw_sample_uniform) {
		status = hop_columns(client, FIXTURE_CITES, rule_of(kind), kind, &columns);
		rules.of_types[FIXTURE_CITES] = rule_of(kind);
	}
	const struct gw_sample_spec spec = {
		.hops = 2, .fanouts = hops, .rules = rules.of_types, .frontier = GW_FRONTIER_NEW};
	if (status == GW_OK)
		status = gw_sample(client, &spec, 1, 2, seeds, 4, &batch);
	gw_minibatch_release(batch);
	if (status != GW_OK)
		return status;
	make_grouped(&grouped);
	for (uint32_t i = 0; i < 30; i++)
		grouped.nodes[i] %= FIXTURE_HUB + 150;
	struct hop_ask ask = {
		.etype = FIXTURE_CITES,
		.draw = {.rule = {.key = 1, .fanout = 3}, .kind = kind, .groups = {0}},
		.columns = columns,
		.frontier = {.nodes = grouped.nodes, .groups = grouped.groups, .n = 30},
	};
	if (columns)
		gw_draw_set(&ask.draw, &columns->sampling);
	status = hop_ask(client, &ask, &picks);
	gw_picks_free(&picks);
	return status;
}

/* Draws with each allocation failing in turn. Every run has a client of its own, so that nothing is kept. */
static void draw_in_short_memory(const struct gw_client_options *options, const struct gw_sampling_kind *kind)
{
	unsigned long runs = 0;
	for (unsigned long n = 1;; n += gw_fault_step(++runs)) {
		gw_fault_begin(GW_FAULT_NEVER);
		struct gw_client *client = open_client(options);
		gw_fault_here(n);
		gw_status status = draw_once(client, kind);
		bool met = gw_fault_here(GW_FAULT_NEVER);
		if (status != GW_OK && (!met || status != GW_NO_MEMORY))
			fail_msg("allocation %lu failing: %s", n, gw_last_error());
		gw_client_close(client);
		assert_int_equal(gw_fault_end(), 0);
		if (!met)
			break;
	}
	assert_true(runs > 10);
}

/* By memory, and by reads of the client's own memory: this thread runs the engine. */
static void short_memory_is_an_error(void **state)
{
	(void)state;
	if (cluster_is_rdma())
		skip(); /* it opens no connection */
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, SEED, FIXTURE_HUB + 150, 2);
	fixture_add_hub(&fixture);
	gw_fixture_write(&fixture);
	for (uint32_t k = 0; k < KINDS; k++) {
		struct gw_client_options options = {.part_config = fixture.folder, .threads = 1, .neighbours = "reads"};
		draw_in_short_memory(&options, kinds[k]);
		options.neighbours = NULL;
		if (kinds[k] == &gw_sample_weighted)
			draw_in_short_memory(&options, kinds[k]);
	}
	gw_fixture_end(&fixture);
}

static int try_kind(void **state)
{
	(void)state;
	gw_sampling_kind_try(&sample_every_second);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_way_draws_the_same),
		cmocka_unit_test(groups_draw_the_same_by_every_way),
		cmocka_unit_test(walkers_choose_for_themselves),
		cmocka_unit_test(times_draw_the_same_by_every_way),
		cmocka_unit_test(groups_past_the_table_are_refused),
		cmocka_unit_test(no_kind_needs_the_servers_code),
		cmocka_unit_test(out_lists_by_weight_are_refused),
		cmocka_unit_test(short_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, try_kind, NULL);
}
