/* gw_lookahead_…: batches and gathers whose order the caller decides have the bytes of those without look-ahead, over
 * epochs that end early and batches that never come; wrong calls are refused. test/adapters/test_pyg_lookahead.py
 * compares what they fetch with the definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <graphwire/graphwire.h>

#include "test/support/client_setup.h"

#define BATCHES 12

/* The batches of a loader without look-ahead. */
struct ordered {
	struct plan plan;
	struct gw_ordered_batch batches[BATCHES];
	struct gw_seeds lists[BATCHES];
	uint64_t digests[BATCHES];
};

static struct gw_client *tcp_client(const struct setup *setup, uint32_t threads)
{
	const struct gw_client_options options = {.servers = setup->cluster.list,
						  .server_count = setup->cluster.parts,
						  .threads = threads,
						  .transport = cluster_is_rdma() ? "verbs" : "tcp",
						  .neighbours = "requests"};
	return open_client(&options);
}

static void ordered_begin(struct ordered *ordered, struct gw_client *client)
{
	struct gw_loader *loader;
	make_plan(client, &ordered->plan, false, false);
	const struct gw_loader_options options = {
		.spec = ordered->plan.spec, .batch_size = 40, .shuffle = true, .seed = 5};
	assert_int_equal(gw_loader_open(client, &options, &loader), GW_OK);
	for (uint32_t k = 0; k < BATCHES; k++) {
		struct gw_minibatch *batch;
		assert_int_equal(gw_loader_next(loader, &batch, -1), GW_OK);
		const uint64_t bytes = batch->seed_count * sizeof(int64_t);
		int64_t *ids = malloc(bytes);
		assert_non_null(ids);
		memcpy(ids, batch->seeds, bytes);
		ordered->digests[k] = gw_minibatch_digest(batch);
		ordered->lists[k] =
			(struct gw_seeds){.type = ordered->plan.spec.ntype, .ids = ids, .count = batch->seed_count};
		ordered->batches[k] = (struct gw_ordered_batch){5, batch->stream, &ordered->lists[k], 1};
		gw_minibatch_release(batch);
	}
	gw_loader_close(loader);
}

static void ordered_end(struct ordered *ordered)
{
	for (uint32_t k = 0; k < BATCHES; k++)
		free((void *)(uintptr_t)ordered->lists[k].ids);
}

static struct gw_lookahead *look_of(struct gw_client *client, const struct ordered *ordered, uint32_t lookahead,
				    uint64_t cache_bytes)
{
	struct gw_lookahead *look;
	const struct gw_lookahead_options options = {.fetches = ordered->plan.spec.fetches,
						     .fetch_count = ordered->plan.spec.fetch_count,
						     .lookahead = lookahead,
						     .cache_bytes = cache_bytes};
	assert_int_equal(gw_lookahead_open(client, &options, &look), GW_OK);
	return look;
}

static void begin(struct gw_lookahead *look, const struct ordered *ordered, uint64_t count)
{
	struct gw_ticket *ticket;
	assert_int_equal(gw_lookahead_begin(look, &ordered->plan.spec, ordered->batches, count, &ticket), GW_OK);
	assert_int_equal(gw_wait(ticket, -1), GW_OK);
}

/* Epochs of several lengths, the batches started in turned order, as far as the window takes them. */
static void batches_are_those_without(void **state)
{
	(void)state;
	struct setup setup;
	struct ordered ordered;
	setup_begin(&setup, 61, 3, NULL);
	struct gw_client *client = tcp_client(&setup, 3);
	ordered_begin(&ordered, client);
	for (uint32_t run = 0; run < 8; run++) {
		struct gw_lookahead *look = look_of(client, &ordered, 1 + run % 4, run % 2 ? 3000 : 0);
		for (uint32_t length = BATCHES; length >= 3; length /= 2) {
			struct gw_minibatch *got[BATCHES];
			struct gw_ticket *tickets[BATCHES];
			begin(look, &ordered, run % 3 ? BATCHES : 2);
			for (uint32_t k = length; k-- > 0;) {
				if (k % 5 == 4) /* one that never comes */
					assert_int_equal(gw_lookahead_pass(look, k), GW_OK);
				else
					assert_int_equal(gw_lookahead_sample_start(look, k, &ordered.plan.spec,
										   &ordered.batches[k], &got[k],
										   &tickets[k]),
							 GW_OK);
			}
			assert_int_equal(gw_lookahead_is_idle(look),
					 run == 0 || run == 4); /* those have nothing to do */
			for (uint32_t k = 0; k < length; k++) {
				if (k % 5 == 4)
					continue;
				if (k == 3) { /* started again, as after a failure */
					gw_cancel(tickets[k]);
					assert_int_equal(gw_lookahead_sample_start(look, k, &ordered.plan.spec,
										   &ordered.batches[k], &got[k],
										   &tickets[k]),
							 GW_OK);
				}
				assert_int_equal(gw_wait(tickets[k], -1), GW_OK);
				assert_true(gw_minibatch_digest(got[k]) == ordered.digests[k]);
				gw_minibatch_release(got[k]);
			}
			assert_true(gw_lookahead_is_idle(look));
		}
		gw_lookahead_close(look);
	}
	ordered_end(&ordered);
	gw_client_close(client);
	setup_end(&setup);
}

static uint64_t read_of(struct gw_client *client)
{
	struct gw_client_stats total;
	struct gw_link_stats links[64];
	uint64_t bytes = 0;
	uint32_t rows = gw_client_get_stats(client, &total, links, 64);
	for (uint32_t i = 0; i < rows; i++)
		bytes += links[i].read_bytes;
	return bytes;
}

#define LISTED 31 /* rows of a gather: 10 k to 10 k + 29, and the first one again */

/* Lists of rows that overlap. The window's definition says which rows each gather fetches. */
static void gathers_fetch_what_the_definition_says(void **state)
{
	(void)state;
	struct setup setup;
	struct ordered ordered;
	setup_begin(&setup, 62, 3, NULL);
	struct gw_client *client = tcp_client(&setup, 2);
	ordered_begin(&ordered, client);
	const struct gw_tensor *tensor = ordered.plan.spec.fetches[0].tensor;
	const uint64_t row_bytes = tensor->row_bytes;
	uint8_t *rows = malloc(LISTED * row_bytes), *plain = malloc(LISTED * row_bytes);
	assert_true(rows && plain);
	for (uint32_t lookahead = 2; lookahead <= 4; lookahead++) {
		struct gw_lookahead *look = look_of(client, &ordered, lookahead, 0);
		uint32_t by[100] = {0}; /* the gather that has fetched the row last, counted from 1 */
		begin(look, &ordered, 0);
		for (uint32_t k = 1; k <= 6; k++) {
			int64_t ids[LISTED];
			struct gw_ticket *ticket;
			uint64_t expected = 0;
			for (uint32_t i = 0; i < LISTED; i++) {
				const uint32_t id = 10 * (k - 1) + i % 30;
				ids[i] = id;
				if (by[id] && by[id] + lookahead > k)
					continue;
				by[id] = k;
				expected++;
			}
			const uint64_t before = read_of(client);
			assert_int_equal(gw_lookahead_gather_start(look, k - 1, 0, ids, LISTED, rows, &ticket), GW_OK);
			assert_int_equal(gw_wait(ticket, -1), GW_OK);
			assert_int_equal(read_of(client) - before, expected * row_bytes);
			assert_int_equal(gw_gather(client, tensor, ids, LISTED, plain), GW_OK);
			assert_memory_equal(rows, plain, LISTED * row_bytes);
		}
		gw_lookahead_close(look);
	}
	free(rows);
	free(plain);
	ordered_end(&ordered);
	gw_client_close(client);
	setup_end(&setup);
}

static void wrong_calls(void **state)
{
	(void)state;
	struct setup setup;
	struct ordered ordered;
	struct gw_lookahead *look;
	struct gw_ticket *ticket, *other;
	struct gw_minibatch *batch;
	int64_t id = 0;
	char row[4096];
	setup_begin(&setup, 63, 2, NULL);
	struct gw_client *client = tcp_client(&setup, 1);
	ordered_begin(&ordered, client);
	struct gw_lookahead_options options = {
		.fetches = ordered.plan.spec.fetches, .fetch_count = 1, .lookahead = 257};
	expect(gw_lookahead_open(client, &options, &look), GW_RANGE, "lookahead 257: at most 256");
	options.lookahead = 256;
	assert_int_equal(gw_lookahead_open(client, &options, &look), GW_OK);
	const struct gw_sample_spec *spec = &ordered.plan.spec;
	expect(gw_lookahead_begin(look, spec, NULL, 0, &ticket), GW_INVALID, "other fetches");
	expect(gw_lookahead_sample_start(look, 0, spec, &ordered.batches[0], &batch, &ticket), GW_INVALID,
	       "other fetches");
	expect(gw_lookahead_begin(look, NULL, ordered.batches, 1, &ticket), GW_INVALID, "no spec");
	expect(gw_lookahead_gather_start(look, 0, 1, &id, 1, row, &ticket), GW_RANGE, "fetch 1 of 1");
	expect(gw_lookahead_gather_start(look, 256, 0, &id, 1, row, &ticket), GW_RANGE, "batch 256: a batch 256 or");
	expect(gw_lookahead_pass(look, 256), GW_RANGE, "batch 256: a batch 256 or more before it");
	assert_int_equal(gw_lookahead_gather_start(look, 255, 0, &id, 1, row, &ticket), GW_OK); /* waits for 0 to 254 */
	expect(gw_lookahead_begin(look, NULL, NULL, 0, &other), GW_INVALID, "batches of the one before are under way");
	gw_cancel(ticket);
	assert_int_equal(gw_lookahead_begin(look, NULL, NULL, 0, &ticket), GW_OK);
	gw_cancel(ticket);
	gw_lookahead_close(look);
	/* Batches under way outlive it. */
	look = look_of(client, &ordered, 3, 1000);
	assert_int_equal(gw_lookahead_begin(look, spec, ordered.batches, BATCHES, &ticket), GW_OK);
	gw_cancel(ticket); /* the next call begins again, and the batch does not wait for ever */
	begin(look, &ordered, 1);
	assert_int_equal(gw_lookahead_sample_start(look, 0, spec, &ordered.batches[0], &batch, &ticket), GW_OK);
	assert_int_equal(gw_lookahead_sample_start(look, 2, spec, &ordered.batches[2], &batch, &other), GW_OK);
	gw_lookahead_close(look);
	gw_cancel(other);
	gw_cancel(ticket);
	gw_lookahead_close(NULL);
	ordered_end(&ordered);
	gw_client_close(client);
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_are_those_without),
		cmocka_unit_test(gathers_fetch_what_the_definition_says),
		cmocka_unit_test(wrong_calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
