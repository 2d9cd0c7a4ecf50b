/* See drawn.h. */
#include "test/support/drawn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include <graphwire/edges.h>

#include "core/numbers/digest.h"
#include "core/numbers/rng.h"
#include "test/support/must.h"

static void add_digest(struct drawn *drawn, uint64_t digest)
{
	assert_true(drawn->count < DIGESTS_MAX);
	drawn->digests[drawn->count++] = digest;
}

static void add_list(struct drawn *drawn, struct gw_edge_list *list)
{
	uint64_t digest = gw_digest_add(0, list->offsets, (list->question_count + 1) * 8);
	digest = gw_digest_add(digest, list->src, list->edge_count * 8);
	digest = gw_digest_add(digest, list->dst, list->edge_count * 8);
	digest = gw_digest_add(digest, list->edge_ids, list->edge_count * 8);
	add_digest(drawn, digest);
	gw_edge_list_free(list);
}

/* Nodes of all parts, and their times. */
static int64_t seeds[SEEDS], until[SEEDS], since[SEEDS];

void drawn_begin(void)
{
	for (uint32_t i = 0; i < SEEDS; i++) {
		seeds[i] = (int64_t)((uint64_t)i * SETUP_SCALE / SEEDS);
		until[i] = (int64_t)(gw_mix64(i) % 40);
		since[i] = until[i] - (int64_t)(gw_mix64(i + 99) % 30);
	}
}

static void add_batch(struct drawn *drawn, struct gw_client *client, const struct gw_sample_spec *spec, bool times)
{
	const struct gw_seeds list = {
		.count = SEEDS, .ids = seeds, .times = times ? until : NULL, .times_from = times ? since : NULL};
	struct gw_minibatch *batch;
	struct gw_ticket *ticket;
	for (uint64_t stream = 0; stream < 2; stream++) {
		must(gw_sample_lists_start(client, spec, 5, stream, &list, 1, &batch, &ticket));
		must(gw_wait(ticket, -1));
		assert_true(batch->edge_count > 0);
		add_digest(drawn, gw_minibatch_digest(batch));
		gw_minibatch_release(batch);
	}
}

/* Uniform and by weight, with replacement and without, all neighbours, disjoint; by time. */
void draw_batches(struct drawn *drawn, struct gw_client *client)
{
	static const struct gw_edge_rule by_weight[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = {.weight = "weight"}};
	static const struct gw_edge_rule by_time[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = {.time = "year"}};
	static const struct gw_edge_rule last[GW_FIXTURE_ETYPES] = {
		[FIXTURE_CITES] = {.time = "year", .pick = GW_PICK_LAST}};
	static const struct gw_edge_rule *const rules[] = {NULL, by_weight, by_time, last};
	for (uint32_t r = 0; r < 4; r++) {
		struct gw_sample_spec spec = {.hops = 2, .fanouts = all_fanouts, .rules = rules[r]};
		add_batch(drawn, client, &spec, r >= 2);
		spec.replace = true;
		add_batch(drawn, client, &spec, r >= 2);
		spec.replace = false;
		spec.disjoint = true;
		add_batch(drawn, client, &spec, r >= 2);
	}
	struct gw_edge_seeds edges = {.etype = FIXTURE_WRITES,
				      .negatives = GW_NEGATIVES_DST,
				      .negatives_each = 2,
				      .no_true_edges = true,
				      .exclude = GW_EXCLUDE_EDGES | GW_EXCLUDE_ENDS | GW_EXCLUDE_REVERSE};
	struct gw_sample_spec of_edges = {.hops = 2, .fanouts = all_fanouts, .edges = &edges};
	add_batch(drawn, client, &of_edges, false);
}

static void ask_about_edges(struct drawn *drawn, struct gw_client *client)
{
	struct gw_edge_list *list;
	int64_t src[SEEDS], dst[SEEDS], degrees[SEEDS];
	bool found[SEEDS];
	for (int fanout = GW_ALL_NEIGHBOURS; fanout <= 3; fanout += 4) {
		struct gw_neighbours_spec spec = {.etype = FIXTURE_CITES, .fanout = fanout};
		must(gw_neighbours(client, &spec, 8, 1, seeds, SEEDS, &list));
		add_list(drawn, list);
		spec = (struct gw_neighbours_spec){.etype = FIXTURE_WRITES, .direction = GW_OUT, .fanout = fanout};
		must(gw_neighbours(client, &spec, 8, 1, seeds, SEEDS / 2, &list));
		add_list(drawn, list);
	}
	must(gw_degrees(client, FIXTURE_CITES, seeds, SEEDS, degrees));
	add_digest(drawn, gw_digest_add(0, degrees, sizeof(degrees)));
	must(gw_out_degrees(client, FIXTURE_WRITES, seeds, SEEDS / 2, degrees));
	add_digest(drawn, gw_digest_add(0, degrees, sizeof(degrees) / 2));
	must(gw_find_edges(client, FIXTURE_CITES, seeds, SEEDS, src, dst));
	add_digest(drawn, gw_digest_add(gw_digest_add(0, src, sizeof(src)), dst, sizeof(dst)));
	must(gw_edge_ids(client, FIXTURE_CITES, src, dst, SEEDS, &list));
	add_list(drawn, list);
	must(gw_has_edges(client, FIXTURE_CITES, dst, src, SEEDS, found));
	add_digest(drawn, gw_digest_add(0, found, sizeof(found)));
	const struct gw_subgraph_spec among = {
		.etype = FIXTURE_CITES, .src = {.count = SEEDS, .ids = src}, .dst = {.count = SEEDS, .ids = dst}};
	must(gw_subgraph(client, &among, &list));
	assert_true(list->edge_count > 0);
	add_list(drawn, list);
}

void draw_all(struct drawn *drawn, struct gw_client *client)
{
	drawn->count = 0;
	draw_batches(drawn, client);
	ask_about_edges(drawn, client);
}

void expect_same(const struct drawn *got, const struct drawn *expected)
{
	assert_int_equal(got->count, expected->count);
	for (uint32_t i = 0; i < got->count; i++) {
		if (got->digests[i] != expected->digests[i])
			fail_msg("draw %u: other bytes", i);
	}
}
