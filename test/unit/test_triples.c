/* Batches of triples compared with the definition, triple by triple. Every epoch has each triple once. Any step alone
 * equals the same step after those before it. Orders and negatives are uniform. Bad options, bad ids and short memory
 * give errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <graphwire/triples.h>

#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "test/support/chi_square.h"

enum { TRIPLES = 103, ENTITIES = 40, RELATIONS = 5, OTHERS = 3 };

static const int64_t others[OTHERS] = {3, 36, 39};

struct fixture {
	int64_t head[TRIPLES], relation[TRIPLES], tail[TRIPLES];
	struct gw_triples_options options;
};

static void fixture_make(struct fixture *fixture)
{
	for (uint64_t i = 0; i < TRIPLES; i++) {
		fixture->head[i] = (int64_t)(gw_mix64(i + 1) % ENTITIES);
		fixture->relation[i] = (int64_t)(gw_mix64(i + 1000) % RELATIONS);
		fixture->tail[i] = (int64_t)(gw_mix64(i + 2000) % ENTITIES);
	}
	fixture->options = (struct gw_triples_options){.count = TRIPLES,
						       .head = fixture->head,
						       .relation = fixture->relation,
						       .tail = fixture->tail,
						       .batch_size = 20,
						       .chunk_size = 5,
						       .negatives = 7,
						       .negative_begin = 10,
						       .negative_end = 30,
						       .seed = 4,
						       .stream = 2,
						       .others = others,
						       .other_count = OTHERS};
}

static bool is_drawn_from(const struct fixture *fixture, int64_t id)
{
	for (uint32_t i = 0; i < OTHERS; i++) {
		if (others[i] == id)
			return true;
	}
	return id >= fixture->options.negative_begin && id < fixture->options.negative_end;
}

/* Rows lead back to the triples, ids are unique, and positives come first. */
static void check_batch(const struct fixture *fixture, const struct gw_triple_batch *batch)
{
	bool seen[ENTITIES] = {false}, related[RELATIONS] = {false};
	for (uint64_t i = 0; i < batch->entity_count; i++) {
		assert_in_range(batch->entities[i], 0, ENTITIES - 1);
		assert_false(seen[batch->entities[i]]);
		seen[batch->entities[i]] = true;
	}
	for (uint64_t i = 0; i < batch->relation_count; i++) {
		assert_false(related[batch->relations[i]]);
		related[batch->relations[i]] = true;
	}
	for (uint64_t i = 0; i < batch->count; i++) {
		int64_t at = batch->positions[i];
		assert_true(batch->head_rows[i] < batch->positive_count && batch->tail_rows[i] < batch->positive_count);
		assert_int_equal(batch->entities[batch->head_rows[i]], fixture->head[at]);
		assert_int_equal(batch->relations[batch->relation_rows[i]], fixture->relation[at]);
		assert_int_equal(batch->entities[batch->tail_rows[i]], fixture->tail[at]);
	}
	assert_int_equal(batch->negative_count, batch->count / batch->chunk_size * fixture->options.negatives);
	for (uint64_t i = 0; i < batch->negative_count; i++)
		assert_true(is_drawn_from(fixture, batch->entities[batch->negative_rows[i]]));
}

static void each_epoch_walks_every_triple_once(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_make(&fixture);
	struct gw_triples *triples;
	assert_int_equal(gw_triples_open(&fixture.options, &triples), GW_OK);
	assert_int_equal(gw_triples_steps(triples), 5); /* 103 = 5 * 20 + 3; the last 3 are not a full batch */
	int64_t before[2] = {-1, -1};
	for (uint64_t epoch = 0; epoch < 3; epoch++) {
		uint32_t walked[2][TRIPLES] = {{0}};
		int64_t first[2] = {0};
		for (uint64_t step = epoch * 10; step < epoch * 10 + 10; step++) {
			struct gw_triple_batch *batch;
			assert_int_equal(gw_triples_batch(triples, step, &batch), GW_OK);
			assert_int_equal(batch->corrupt_head, step % 2);
			assert_int_equal(batch->count, 20);
			check_batch(&fixture, batch);
			for (uint64_t i = 0; i < batch->count; i++)
				walked[step % 2][batch->positions[i]]++;
			first[step % 2] += batch->positions[0] * (int64_t)(step + 1);
			gw_triple_batch_free(batch);
		}
		for (uint32_t side = 0; side < 2; side++) {
			uint64_t sum = 0;
			for (uint64_t i = 0; i < TRIPLES; i++) {
				assert_true(walked[side][i] <= 1);
				sum += walked[side][i];
			}
			assert_int_equal(sum, 100);
			assert_true(first[side] != before[side]); /* shuffled anew */
			before[side] = first[side];
		}
		assert_true(first[0] != first[1]);
	}
	gw_triples_close(triples);
}

static uint64_t sum_of(const struct gw_triple_batch *batch)
{
	uint64_t sum = batch->entity_count;
	for (uint64_t i = 0; i < batch->entity_count; i++)
		sum = gw_mix64(sum ^ (uint64_t)batch->entities[i]);
	for (uint64_t i = 0; i < batch->count; i++)
		sum = gw_mix64(sum ^ (uint64_t)batch->positions[i] ^ (uint64_t)batch->relation_rows[i] << 32);
	for (uint64_t i = 0; i < batch->negative_count; i++)
		sum = gw_mix64(sum ^ batch->negative_rows[i]);
	return sum;
}

static uint64_t sum_of_step(const struct gw_triples_options *options, uint64_t step)
{
	struct gw_triples *triples;
	struct gw_triple_batch *batch;
	assert_int_equal(gw_triples_open(options, &triples), GW_OK);
	assert_int_equal(gw_triples_batch(triples, step, &batch), GW_OK);
	uint64_t sum = sum_of(batch);
	gw_triple_batch_free(batch);
	gw_triples_close(triples);
	return sum;
}

static void a_step_depends_on_its_key_alone(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_make(&fixture);
	struct gw_triples *triples;
	assert_int_equal(gw_triples_open(&fixture.options, &triples), GW_OK);
	for (uint64_t step = 0; step < 30; step++) {
		struct gw_triple_batch *batch;
		assert_int_equal(gw_triples_batch(triples, step, &batch), GW_OK);
		assert_int_equal(sum_of(batch), sum_of_step(&fixture.options, step));
		gw_triple_batch_free(batch);
	}
	gw_triples_close(triples);
	struct gw_triples_options other = fixture.options;
	other.seed++;
	assert_true(sum_of_step(&other, 3) != sum_of_step(&fixture.options, 3));
	other = fixture.options;
	other.stream++;
	assert_true(sum_of_step(&other, 3) != sum_of_step(&fixture.options, 3));
}

static void few_triples_are_one_chunk(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_make(&fixture);
	static const struct {
		uint64_t count;
		uint32_t batch_size, chunk_size;
		uint64_t steps, batch, chunk, last;
	} cases[] = {
		{3, 20, 5, 1, 3, 3, 3},    {19, 20, 5, 1, 15, 5, 15},   {103, 10, 50, 10, 10, 10, 10},
		{58, 20, 5, 3, 20, 5, 15}, {60, 20, 20, 3, 20, 20, 20}, {1, 1, 1, 1, 1, 1, 1},
	};
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		fixture.options.count = cases[c].count;
		fixture.options.batch_size = cases[c].batch_size;
		fixture.options.chunk_size = cases[c].chunk_size;
		struct gw_triples *triples;
		assert_int_equal(gw_triples_open(&fixture.options, &triples), GW_OK);
		assert_int_equal(gw_triples_steps(triples), cases[c].steps);
		for (uint64_t step = 0; step < 2 * cases[c].steps; step++) {
			struct gw_triple_batch *batch;
			assert_int_equal(gw_triples_batch(triples, step, &batch), GW_OK);
			bool last = step / 2 == cases[c].steps - 1;
			assert_int_equal(batch->count, last ? cases[c].last : cases[c].batch);
			assert_int_equal(batch->chunk_size, cases[c].chunk);
			check_batch(&fixture, batch);
			gw_triple_batch_free(batch);
		}
		gw_triples_close(triples);
	}
}

static void negatives_are_as_likely_as_any_other(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_make(&fixture);
	struct gw_triples *triples;
	assert_int_equal(gw_triples_open(&fixture.options, &triples), GW_OK);
	uint32_t counts[ENTITIES] = {0};
	enum { STEPS = 1000, DRAWS = STEPS * 28, RANGE = 20 + OTHERS };
	for (uint64_t step = 0; step < STEPS; step++) {
		struct gw_triple_batch *batch;
		assert_int_equal(gw_triples_batch(triples, step, &batch), GW_OK);
		for (uint64_t i = 0; i < batch->negative_count; i++)
			counts[batch->entities[batch->negative_rows[i]]]++;
		gw_triple_batch_free(batch);
	}
	double expected = (double)DRAWS / RANGE, square = 0;
	for (uint32_t i = 0; i < ENTITIES; i++) {
		if (is_drawn_from(&fixture, i))
			square += (counts[i] - expected) * (counts[i] - expected) / expected;
	}
	assert_true(square < 22 + 4 * 6.6); /* chi-square of 22 degrees of freedom: four standard deviations */
	gw_triples_close(triples);
}

/* The first two triples of an epoch of each side, and the differences of neighbours, of few triples. */
static void few_triples_come_in_every_order(void **state)
{
	(void)state;
	enum { EPOCHS = 4000, MOST = 16 };
	static const uint32_t sizes[] = {5, 8, MOST};
	struct fixture fixture;
	fixture_make(&fixture);
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		const uint32_t n = sizes[s];
		uint32_t pairs[2][MOST * MOST] = {{0}}, differences[2][MOST] = {{0}};
		fixture.options.count = fixture.options.batch_size = fixture.options.chunk_size = n;
		struct gw_triples *triples;
		assert_int_equal(gw_triples_open(&fixture.options, &triples), GW_OK);
		for (uint64_t step = 0; step < 2 * EPOCHS; step++) {
			struct gw_triple_batch *batch;
			assert_int_equal(gw_triples_batch(triples, step, &batch), GW_OK);
			const int64_t *at = batch->positions;
			pairs[step % 2][at[0] * n + at[1]]++;
			for (uint32_t i = 1; i < n; i++)
				differences[step % 2][(at[i] + n - at[i - 1]) % n]++;
			gw_triple_batch_free(batch);
		}
		for (uint32_t side = 0; side < 2; side++) {
			assert_pairs_equally_likely(pairs[side], n, "first two triples");
			assert_equally_likely(differences[side] + 1, n - 1, "differences of triples", n);
		}
		gw_triples_close(triples);
	}
}

/* Two negatives of a chunk, the first ones of two chunks, and those of two steps that follow each other, are
 * independent. */
static void pairs_of_negatives_are_equally_likely(void **state)
{
	(void)state;
	enum { STEPS = 8000, RANGE = 13 };
	struct fixture fixture;
	fixture_make(&fixture);
	fixture.options.negative_begin = 0;
	fixture.options.negative_end = RANGE;
	fixture.options.other_count = 0;
	struct gw_triples *triples;
	assert_int_equal(gw_triples_open(&fixture.options, &triples), GW_OK);
	uint32_t in_chunk[RANGE * RANGE] = {0}, in_batch[RANGE * RANGE] = {0}, in_steps[RANGE * RANGE] = {0};
	int64_t last = -1;
	for (uint64_t step = 0; step < STEPS; step++) {
		struct gw_triple_batch *batch;
		assert_int_equal(gw_triples_batch(triples, step, &batch), GW_OK);
		const uint32_t *rows = batch->negative_rows;
		int64_t first = batch->entities[rows[0]];
		in_chunk[first * RANGE + batch->entities[rows[1]]]++;
		in_batch[first * RANGE + batch->entities[rows[fixture.options.negatives]]]++;
		if (last >= 0)
			in_steps[last * RANGE + first]++;
		last = first;
		gw_triple_batch_free(batch);
	}
	assert_equally_likely(in_chunk, RANGE * RANGE, "negatives of a chunk", RANGE);
	assert_equally_likely(in_batch, RANGE * RANGE, "negatives of two chunks", RANGE);
	assert_equally_likely(in_steps, RANGE * RANGE, "negatives of two steps", RANGE);
	gw_triples_close(triples);
}

static void bad_options_are_refused(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_make(&fixture);
	for (uint32_t c = 0; c < 11; c++) {
		struct gw_triples_options options = fixture.options;
		struct gw_triples *triples = (void *)&options;
		switch (c) {
		case 0:
			options.count = 0;
			break;
		case 1:
			options.tail = NULL;
			break;
		case 2:
			options.batch_size = 0;
			break;
		case 3:
			options.chunk_size = 0;
			break;
		case 4:
			options.batch_size = 22;
			break;
		case 5:
			options.negatives = 0;
			break;
		case 6:
			options.negatives = 1u << 23;
			break;
		case 7:
			options.negative_end = 10;
			break;
		case 8:
			options.others = NULL;
			break;
		case 9:
			options.other_count = (1ull << 62) + 1;
			break;
		default:
			options.negative_begin = -1;
			break;
		}
		assert_int_equal(gw_triples_open(&options, &triples), GW_INVALID);
		assert_null(triples);
		assert_true(gw_last_error()[0]);
	}
	fixture.head[17] = -1;
	struct gw_triples *triples;
	assert_int_equal(gw_triples_open(&fixture.options, &triples), GW_OK);
	uint32_t refused = 0;
	for (uint64_t step = 0; step < 10; step++) {
		struct gw_triple_batch *batch;
		gw_status status = gw_triples_batch(triples, step, &batch);
		assert_true(status == GW_OK || status == GW_RANGE);
		refused += status == GW_RANGE;
		gw_triple_batch_free(batch);
	}
	assert_in_range(refused, 1, 2); /* once per epoch of each side, unless it is among the last three */
	gw_triples_close(triples);
	fixture.head[17] = 1;
	static const int64_t bad[] = {-1};
	fixture.options.others = bad;
	fixture.options.other_count = 1;
	fixture.options.negative_end = 11; /* every second draw is the invalid id */
	struct gw_triple_batch *batch;
	assert_int_equal(gw_triples_open(&fixture.options, &triples), GW_OK);
	assert_int_equal(gw_triples_batch(triples, 0, &batch), GW_RANGE);
	assert_null(batch);
	gw_triples_close(triples);
}

static gw_status batch_once(void *context)
{
	struct fixture *fixture = context;
	struct gw_triples *triples;
	struct gw_triple_batch *batch = NULL;
	gw_status status = gw_triples_open(&fixture->options, &triples);
	if (status == GW_OK)
		status = gw_triples_batch(triples, 5, &batch);
	gw_triple_batch_free(batch);
	gw_triples_close(triples);
	return status;
}

static void short_memory_is_an_error(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_make(&fixture);
	assert_true(gw_fault_each(batch_once, &fixture) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_epoch_walks_every_triple_once),
		cmocka_unit_test(a_step_depends_on_its_key_alone),
		cmocka_unit_test(few_triples_are_one_chunk),
		cmocka_unit_test(negatives_are_as_likely_as_any_other),
		cmocka_unit_test(few_triples_come_in_every_order),
		cmocka_unit_test(pairs_of_negatives_are_equally_likely),
		cmocka_unit_test(bad_options_are_refused),
		cmocka_unit_test(short_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
