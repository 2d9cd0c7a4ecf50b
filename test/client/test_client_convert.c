/* Rows that are fetched in another type than they are stored in: the same bytes as by a conversion after the fetch, for
 * single calls, batches and rows that change, over every path; and what cannot be converted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/convert.h"
#include "core/numbers/dtype.h"
#include "core/numbers/rng.h"
#include "test/support/client_paths.h"

static const gw_dtype targets[] = {0, GW_FLOAT16, GW_BFLOAT16, GW_FLOAT32, GW_FLOAT64, GW_INT64};

/* The caller frees it. */
static void *converted(const struct gw_tensor *tensor, gw_dtype to, const void *rows, uint64_t n)
{
	const struct gw_conversion c = gw_conversion_of(tensor->dtype, to ? to : tensor->dtype, tensor->numbers);
	void *out = malloc(n * c.to_bytes + 1);
	assert_non_null(out);
	gw_convert_rows(&c, rows, out, n);
	return out;
}

static void gather_all(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n)
{
	uint8_t *stored = malloc(n * tensor->row_bytes + 1), *rows = malloc(n * tensor->numbers * 8 + 8);
	assert_true(stored && rows);
	assert_int_equal(gw_gather(client, tensor, ids, n, stored), GW_OK);
	for (size_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t++) {
		uint64_t bytes = gw_converted_bytes(tensor, targets[t]) * n;
		memset(rows, 0xa5, n * tensor->numbers * 8 + 8);
		gw_status status = gw_gather_as(client, tensor, targets[t], ids, n, rows);
		if (gw_converted_bytes(tensor, targets[t]) == 0) {
			expect(status, GW_UNSUPPORTED, tensor->name);
			continue;
		}
		assert_int_equal(status, GW_OK);
		void *expected = converted(tensor, targets[t], stored, n);
		assert_memory_equal(rows, expected, bytes);
		if (targets[t]) /* as stored, an int8_row is longer than its numbers */
			assert_int_equal(rows[bytes], 0xa5);
		free(expected);
	}
	free(stored);
	free(rows);
}

static void calls(const struct ways *ways)
{
	uint64_t seed = 5;
	for (uint32_t w = 0; w < ways->count; w++) {
		struct gw_client *client = ways->clients[w];
		const struct gw_tensor *tensor;
		for (uint32_t t = 0; (tensor = gw_tensor_at(client, t)); t++) {
			static const uint64_t counts[] = {0, 1, 2, 77, 700, 5000};
			for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
				const uint64_t n = tensor->shape[0] ? counts[c] : 0;
				int64_t *ids = malloc(n * sizeof(*ids) + 1);
				for (uint64_t i = 0; i < n; i++) /* of the longest list, most are duplicates */
					ids[i] = (int64_t)(gw_mix64(seed++) %
							   (n > 4000 ? tensor->shape[0] / 8 + 1 : tensor->shape[0]));
				gather_all(client, tensor, ids, n);
				free(ids);
			}
		}
	}
}

/* Memory of this process, mapped memory, and sockets. */
static void over_paths(uint64_t seed, void (*body)(const struct ways *ways))
{
	struct ways ways;
	paths_of_parts(seed, body);
	for (uint32_t parts = 1; parts <= 3; parts += 2) {
		paths_begin(&ways, seed, parts, "shm", NULL);
		body(&ways);
		paths_end(&ways);
	}
}

/* Rows in the order of their addresses, adjacent ones as spans. */
static void calls_in_order(const struct ways *ways)
{
	struct gw_client_options options = {.part_config = ways->setup.fixture.folder, .threads = 1, .order = "always"};
	struct ways ordered = {.clients = {open_client(&options)}, .count = 1};
	calls(&ordered);
	gw_client_close(ordered.clients[0]);
}

static void rows_of_calls(void **state)
{
	(void)state;
	over_paths(31, calls);
	paths_of_parts(31, calls_in_order);
}

static void batches(const struct ways *ways)
{
	static const gw_dtype asked[][4] = {{GW_FLOAT16, GW_FLOAT32, 0, GW_FLOAT64},
					    {GW_BFLOAT16, GW_FLOAT16, 0, GW_FLOAT16},
					    {GW_FLOAT64, GW_BFLOAT16, 0, GW_BFLOAT16}};
	int64_t seeds[90];
	for (int i = 0; i < 90; i++)
		seeds[i] = (int64_t)(gw_mix64((uint64_t)i) % (SETUP_SCALE / 2));
	for (size_t a = 0; a < sizeof(asked) / sizeof(asked[0]); a++) {
		uint64_t digest = 0;
		for (uint32_t w = 0; w < ways->count; w++) {
			struct gw_minibatch *stored, *batch;
			struct plan plan;
			make_plan(ways->clients[w], &plan, false, false);
			assert_int_equal(gw_sample(ways->clients[w], &plan.spec, 1, 2, seeds, 90, &stored), GW_OK);
			for (int f = 0; f < 4; f++)
				plan.fetches[f].convert = asked[a][f];
			assert_int_equal(gw_sample(ways->clients[w], &plan.spec, 1, 2, seeds, 90, &batch), GW_OK);
			for (int f = 0; f < 4; f++) {
				const struct gw_tensor *tensor = plan.fetches[f].tensor;
				uint64_t n = stored->row_counts[f];
				void *expected = converted(tensor, asked[a][f], stored->rows[f], n);
				assert_int_equal(batch->row_counts[f], n);
				assert_memory_equal(batch->rows[f], expected,
						    n * gw_converted_bytes(tensor, asked[a][f]));
				free(expected);
			}
			assert_true(gw_minibatch_digest(batch) != gw_minibatch_digest(stored));
			assert_true(w == 0 || gw_minibatch_digest(batch) == digest);
			digest = gw_minibatch_digest(batch);
			gw_minibatch_release(stored);
			gw_minibatch_release(batch);
		}
	}
}

static void rows_of_batches(void **state)
{
	(void)state;
	over_paths(32, batches);
}

static void impossible_types(const struct ways *ways)
{
	struct gw_client *client = ways->clients[0];
	struct gw_minibatch *batch;
	struct plan plan;
	float rows[64];
	const int64_t id = 0, wrong = 1 << 30;
	const struct gw_tensor *label = node_tensor(client, "paper", "label"),
			       *feat = node_tensor(client, "paper", "feat");
	make_plan(client, &plan, false, false);
	plan.fetches[2].convert = GW_FLOAT32;
	expect(gw_sample(client, &plan.spec, 1, 2, &id, 1, &batch), GW_UNSUPPORTED,
	       "fetch 2: \"label\" is of int64: its rows cannot be fetched as float32");
	expect(gw_gather_as(client, feat, GW_INT8_ROW, &id, 1, rows), GW_UNSUPPORTED, "feat");
	expect(gw_gather_as(client, feat, GW_DTYPE_COUNT, &id, 1, rows), GW_UNSUPPORTED, "feat");
	expect(gw_gather_as(client, feat, GW_INT32, &id, 1, rows), GW_UNSUPPORTED, "cannot be fetched as int32");
	expect(gw_gather_as(client, feat, GW_FLOAT16, &wrong, 1, rows), GW_RANGE, "id");
	expect(gw_gather_as(client, feat, GW_FLOAT64, &wrong, 1, rows), GW_RANGE, "id");
	assert_int_equal(gw_converted_bytes(label, GW_FLOAT32), 0);
	assert_int_equal(gw_converted_bytes(feat, GW_FLOAT16), 10);
	assert_int_equal(feat->original, GW_FLOAT32);
	assert_int_equal(feat->numbers, 5);
	assert_int_equal(node_tensor(client, "author", "q")->numbers, 4);
	assert_int_equal(node_tensor(client, "author", "half")->numbers, 4);
}

static void what_cannot_be_converted(void **state)
{
	(void)state;
	paths_of_parts(33, impossible_types);
}

/* A client whose memory runs short reports it, whichever allocation fails. */
static gw_status convert_some(struct gw_client *client)
{
	struct gw_minibatch *batch;
	struct plan plan;
	const int64_t ids[] = {1, 0, 1};
	uint16_t rows[3 * 5];
	make_plan(client, &plan, false, false);
	plan.fetches[0].convert = GW_FLOAT16;
	plan.fetches[1].convert = GW_FLOAT64;
	gw_status status = gw_gather_as(client, plan.fetches[0].tensor, GW_BFLOAT16, ids, 3, rows);
	if (status == GW_OK)
		status = gw_sample(client, &plan.spec, 1, 2, ids, 2, &batch);
	if (status == GW_OK)
		gw_minibatch_release(batch);
	return status;
}

static void memory_runs_short(void **state)
{
	(void)state;
	assert_true(in_short_memory(34, 20, 1, convert_some) > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_calls),
		cmocka_unit_test(rows_of_batches),
		cmocka_unit_test(what_cannot_be_converted),
		cmocka_unit_test(memory_runs_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
