/* The cost of draws by reads, exactly: round trips, ranges and bytes of a mini-batch, counted where the client posts
 * them and at the simulated device (fabric.h). What they must be is computed from the graph and the picks:
 *
 *   a hop:     degree records, once for each node type and part: two rows of the offset table for each node
 *   uniform:   the neighbours of the picks
 *   weighted:  with replacement, one table entry for each draw; then the neighbours
 *
 * A round trip is a set of reads of one part; those of one step run at the same time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/link/link_ops.h"
#include "core/graph/book.h"
#include "core/numbers/rng.h"
#include "test/fabric/fabric.h"
#include "test/support/client_setup.h"
#include "test/support/hop_ask.h"
#include "test/support/must.h"
#include "test/support/transport_bed.h"

#define PARTS          3
#define SPAN_BYTES_MAX (1u << 20) /* client/batch/hop_reads.c */

struct cost {
	uint64_t sets, ranges, bytes;
};

/* --- What the client posts. --- */

static struct cost posted;
static const struct gw_transport *counted; /* the transport behind `counting` */
static struct gw_transport counting;

static size_t count_read(struct gw_endpoint *endpoint, struct gw_read_set *set, const struct gw_region *region,
			 struct gw_buffer *buffer, const struct gw_reads *reads, bool last)
{
	posted.sets += set->frames_open == 0;
	size_t accepted = counted->read(endpoint, set, region, buffer, reads, last);
	posted.ranges += accepted;
	for (size_t i = 0; i < accepted; i++)
		posted.bytes += reads->gather ? reads->gather->row_bytes : reads->spans[i].bytes;
	return accepted;
}

/* From now on counts what this client, whose links are open, posts. gap: the cost of a range in bytes; negative: that
 * of the transport. */
__attribute__((no_sanitize_thread)) static void count_reads(struct gw_client *client, int32_t gap)
{
	assert_int_equal(client->engine_count, 1);
	for (uint32_t p = 0; p < PARTS; p++) {
		struct gw_link *link = client->engines[0].part_links[p];
		assert_int_equal(link->state, GW_LINK_OPEN);
		if (!counted) {
			counted = link->endpoint->transport;
			counting = *counted;
			counting.read = count_read;
		}
		link->endpoint->transport = &counting;
	}
	counting.range_cost_bytes = gap < 0 ? counted->range_cost_bytes : (uint32_t)gap;
}

/* --- What it must post. --- */

/* One set of reads: single entries of an array, in this order. */
static void expect_entries(struct cost *cost, const uint64_t *firsts, uint64_t n, uint64_t width, uint64_t gap)
{
	uint64_t begin = 0, end = 0;
	bool any = false;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = firsts[i] * width;
		if (any && at + width == end)
			continue; /* the same entry again */
		if (any && at >= end && at - end <= gap && at + width - begin <= SPAN_BYTES_MAX) {
			cost->bytes += at + width - end;
		} else {
			cost->ranges++;
			cost->bytes += width;
			begin = at;
		}
		end = at + width;
		any = true;
	}
	cost->sets += any;
}

struct bill {
	const struct setup *setup;
	const struct gw_sample_spec *spec;
	const struct gw_minibatch *batch;
	uint64_t gap;
	struct cost records, columns, neighbours; /* filled in */
	uint64_t picks;
};

static const struct gw_graph_meta *meta_of(const struct bill *bill)
{
	return bill->setup->fixture.schema;
}

static uint32_t owner_of(const struct bill *bill, uint32_t ntype, int64_t node)
{
	return gw_book_owner(meta_of(bill)->ntypes[ntype].starts, PARTS, (uint64_t)node);
}

static const struct gw_adjacency *adjacency_of(const struct bill *bill, uint32_t etype, uint32_t part)
{
	return gw_part_adjacency(bill->setup->cluster.servers[part]->part, etype);
}

static int32_t fanout_of(const struct bill *bill, uint32_t hop, uint32_t etype)
{
	return bill->spec->fanouts[hop * GW_FIXTURE_ETYPES + etype];
}

static void expect_records(struct bill *bill, uint32_t hop, uint32_t ntype)
{
	uint32_t etype = 0;
	while (etype < GW_FIXTURE_ETYPES &&
	       (meta_of(bill)->etypes[etype].dst != ntype || fanout_of(bill, hop, etype) == 0))
		etype++;
	for (uint32_t p = 0; p < PARTS && etype < GW_FIXTURE_ETYPES; p++) {
		const struct gw_adjacency *lists = adjacency_of(bill, etype, p);
		uint64_t rows = 0;
		for (uint64_t i = 0; i < bill->batch->blocks[hop]->dst_counts[ntype]; i++)
			rows += owner_of(bill, ntype, bill->batch->nodes[ntype][i]) == p;
		bill->records.sets += rows > 0;
		bill->records.ranges += rows;
		bill->records.bytes += rows * 2 * lists->columns * lists->indptr_bytes;
	}
}

/* The table entries of weighted draws with replacement: the columns by the law in sampler/kinds/weighted.c. */
static void expect_table(struct bill *bill, uint32_t hop, const struct gw_block_edges *edges, uint32_t part)
{
	const struct gw_adjacency *lists = adjacency_of(bill, edges->etype, part);
	uint32_t ntype = meta_of(bill)->etypes[edges->etype].dst;
	uint64_t key = gw_draw_key(5, 6, GW_DRAW_NEIGHBOURS, hop, edges->etype), n = 0;
	uint64_t fanout = (uint64_t)fanout_of(bill, hop, edges->etype);
	uint64_t *firsts = malloc((edges->dst_count * fanout + 1) * sizeof(*firsts));
	assert_non_null(firsts);
	for (uint64_t row = 0; row < edges->dst_count; row++) {
		int64_t node = bill->batch->nodes[ntype][row];
		uint64_t begin, end;
		if (owner_of(bill, ntype, node) != part)
			continue;
		gw_adjacency_list(lists, (uint64_t)node - lists->dst_start, &begin, &end);
		struct gw_draws draws = gw_draws_begin(key, (uint64_t)node);
		for (uint64_t d = 0; d < fanout && end > begin; d++) {
			uint64_t high = gw_draw32(&draws), w = high << 32 | gw_draw32(&draws);
			firsts[n++] = begin + (uint64_t)(((unsigned __int128)w * (end - begin)) >> 64);
		}
	}
	expect_entries(&bill->columns, firsts, n, 8, bill->gap);
	free(firsts);
}

static void expect_neighbours(struct bill *bill, const struct gw_block_edges *edges, uint32_t part)
{
	const struct gw_adjacency *lists = adjacency_of(bill, edges->etype, part);
	uint32_t ntype = meta_of(bill)->etypes[edges->etype].dst;
	uint64_t *firsts = malloc((edges->edge_count + 1) * sizeof(*firsts)), n = 0;
	assert_non_null(firsts);
	for (uint64_t row = 0; row < edges->dst_count; row++) {
		if (owner_of(bill, ntype, bill->batch->nodes[ntype][row]) != part)
			continue;
		for (int64_t e = edges->indptr[row]; e < edges->indptr[row + 1]; e++)
			firsts[n++] = (uint64_t)edges->edge_ids[e] - lists->edge_start;
	}
	bill->picks += n;
	expect_entries(&bill->neighbours, firsts, n, lists->index_bytes, bill->gap);
	free(firsts);
}

static struct cost bill_sum(struct bill *bill)
{
	for (uint32_t hop = 0; hop < bill->spec->hops; hop++) {
		const struct gw_block *block = bill->batch->blocks[hop];
		for (uint32_t t = 0; t < GW_FIXTURE_NTYPES; t++)
			expect_records(bill, hop, t);
		for (uint32_t i = 0; i < block->edges_count; i++) {
			for (uint32_t p = 0; p < PARTS; p++) {
				const struct gw_block_edges *edges = &block->edges[i];
				const char *weight = bill->spec->rules ? bill->spec->rules[edges->etype].weight : NULL;
				if (weight)
					expect_table(bill, hop, edges, p);
				expect_neighbours(bill, edges, p);
			}
		}
	}
	const struct cost *a = &bill->records, *b = &bill->columns, *c = &bill->neighbours;
	return (struct cost){a->sets + b->sets + c->sets, a->ranges + b->ranges + c->ranges,
			     a->bytes + b->bytes + c->bytes};
}

/* --- Both. --- */

#define SEEDS 60

struct costs_bed {
	struct setup setup;
	struct gw_client *client;
	int64_t seeds[SEEDS];
};

static struct gw_minibatch *sample(const struct costs_bed *bed, const struct gw_sample_spec *spec, uint64_t n)
{
	struct gw_minibatch *batch;
	must(gw_sample(bed->client, spec, 5, 6, bed->seeds, n, &batch));
	return batch;
}

static void costs_begin(struct costs_bed *bed)
{
	static const int32_t warm[GW_FIXTURE_ETYPES] = {1, 1, 1, 1};
	static const struct gw_edge_rule rules[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = {.weight = "weight"}};
	const struct gw_sample_spec spec = {.hops = 1, .fanouts = warm, .rules = rules};
	counted = NULL;
	gw_fixture_begin(&bed->setup.fixture, 81, SETUP_SCALE, PARTS);
	fixture_add_hub(&bed->setup.fixture);
	gw_fixture_write(&bed->setup.fixture);
	cluster_begin(&bed->setup.cluster, bed->setup.fixture.folder, PARTS, NULL);
	const struct gw_client_options options = {
		.servers = bed->setup.cluster.list, .server_count = PARTS, .threads = 1, .neighbours = "reads"};
	bed->client = open_client(&options);
	expect_transport(bed->client, "verbs");
	for (uint64_t i = 0; i < SEEDS; i++)
		bed->seeds[i] = (int64_t)(i ? i * 9 : FIXTURE_HUB);
	gw_minibatch_release(sample(bed, &spec, SEEDS)); /* links open, buffers grow */
}

static void costs_end(struct costs_bed *bed)
{
	gw_client_close(bed->client);
	setup_end(&bed->setup);
}

/* The device moves the same bytes, in at most as many reads. */
static struct gw_minibatch *sample_counted(const struct costs_bed *bed, const struct gw_sample_spec *spec, uint64_t n,
					   struct cost *cost)
{
	struct fabric_reads before = fabric_reads();
	posted = (struct cost){0};
	struct gw_minibatch *batch = sample(bed, spec, n);
	struct fabric_reads after = fabric_reads();
	*cost = posted;
	assert_int_equal(after.bytes - before.bytes, posted.bytes);
	assert_in_range(after.reads - before.reads, posted.sets, posted.ranges);
	return batch;
}

static void print_cost(const char *what, const struct cost *cost, const struct bill *bill)
{
	double picks = bill->picks ? (double)bill->picks : 1;
	uint64_t drawn = cost->bytes - bill->records.bytes;
	print_message(
		"%-34s %6llu picks: %4llu round trips, %6llu ranges, %7llu bytes; without records %.2f bytes a pick\n",
		what, (unsigned long long)bill->picks, (unsigned long long)cost->sets, (unsigned long long)cost->ranges,
		(unsigned long long)cost->bytes, (double)drawn / picks);
}

static void expect_cost(const struct cost *got, const struct cost *wanted)
{
	assert_int_equal(got->sets, wanted->sets);
	assert_int_equal(got->ranges, wanted->ranges);
	assert_int_equal(got->bytes, wanted->bytes);
}

static void check_cost(const struct costs_bed *bed, const struct gw_sample_spec *spec, int32_t gap, const char *what)
{
	struct cost cost;
	count_reads(bed->client, gap);
	struct gw_minibatch *batch = sample_counted(bed, spec, SEEDS, &cost);
	struct bill bill = {.setup = &bed->setup, .spec = spec, .batch = batch, .gap = counting.range_cost_bytes};
	struct cost wanted = bill_sum(&bill);
	print_cost(what, &cost, &bill);
	expect_cost(&cost, &wanted);
	gw_minibatch_release(batch);
}

static void uniform_draws_read_offsets_and_neighbours(void **state)
{
	(void)state;
	static const int32_t all[2 * GW_FIXTURE_ETYPES] = {4, 3, 15, 2, 3, 2, GW_ALL_NEIGHBOURS, 3};
	static const int32_t one[2 * GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = 10, [4 + FIXTURE_CITES] = 5};
	struct costs_bed bed;
	costs_begin(&bed);
	for (int replace = 0; replace < 2; replace++) {
		struct gw_sample_spec spec = {.hops = 2, .fanouts = all, .replace = replace};
		check_cost(&bed, &spec, -1, "uniform, 4 edge types, gaps read");
		check_cost(&bed, &spec, 0, "uniform, 4 edge types");
		spec.fanouts = one;
		check_cost(&bed, &spec, -1, "uniform, 1 edge type, gaps read");
		check_cost(&bed, &spec, 0, "uniform, 1 edge type");
	}
	costs_end(&bed);
}

/* One edge type: two more round trips than a hop's records and neighbours need would show here. */
static void weighted_draws_read_an_entry_and_a_neighbour(void **state)
{
	(void)state;
	static const int32_t one[2 * GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = 10, [4 + FIXTURE_CITES] = 5};
	static const int32_t few[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = 5};
	static const struct gw_edge_rule rules[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = {.weight = "weight"}};
	struct costs_bed bed;
	costs_begin(&bed);
	struct gw_sample_spec spec = {.hops = 2, .fanouts = one, .replace = true, .rules = rules};
	check_cost(&bed, &spec, -1, "weighted, with replacement, gaps read");
	check_cost(&bed, &spec, 0, "weighted, with replacement");
	/* Of a long list, whose draws differ: 8 bytes of the table and 4 of the neighbours for each pick. */
	struct cost cost;
	spec = (struct gw_sample_spec){.hops = 1, .fanouts = few, .replace = true, .rules = rules};
	struct gw_minibatch *batch = sample_counted(&bed, &spec, 1, &cost);
	struct bill bill = {.setup = &bed.setup, .spec = &spec, .batch = batch};
	bill_sum(&bill);
	print_cost("weighted, with replacement, the hub", &cost, &bill);
	assert_int_equal(bill.picks, 5);
	assert_int_equal(cost.sets, 3);
	assert_int_equal(cost.bytes, bill.records.bytes + 12 * bill.picks);
	gw_minibatch_release(batch);
	costs_end(&bed);
}

/* Without replacement: how much more depends on the repeats, so the numbers are printed. */
static void draws_without_replacement_cost_little_more(void **state)
{
	(void)state;
	static const int32_t one[2 * GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = 10, [4 + FIXTURE_CITES] = 5};
	static const struct gw_edge_rule rules[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = {.weight = "weight"}};
	struct costs_bed bed;
	costs_begin(&bed);
	const struct gw_sample_spec spec = {.hops = 2, .fanouts = one, .rules = rules};
	for (int32_t gap = -1; gap < 1; gap++) {
		struct cost cost;
		count_reads(bed.client, gap);
		struct gw_minibatch *batch = sample_counted(&bed, &spec, SEEDS, &cost);
		const struct gw_sample_spec uniform = {.hops = 2, .fanouts = one};
		struct bill bill = {
			.setup = &bed.setup, .spec = &uniform, .batch = batch, .gap = counting.range_cost_bytes};
		bill_sum(&bill);
		print_cost(gap ? "weighted, without, gaps read" : "weighted, without", &cost, &bill);
		/* In each hop and part: records, at most three rounds of columns, neighbours. */
		assert_in_range(cost.sets, 1, 2 * PARTS * 6);
		gw_minibatch_release(batch);
	}
	costs_end(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uniform_draws_read_offsets_and_neighbours),
		cmocka_unit_test(weighted_draws_read_an_entry_and_a_neighbour),
		cmocka_unit_test(draws_without_replacement_cost_little_more),
	};
	return cmocka_run_group_tests_name("the cost of draws by reads", tests, NULL, NULL);
}
