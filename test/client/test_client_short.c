/* Short calls beside a loader. The answers to all that the loader has asked are held back, and short calls of the same
 * client are answered nevertheless: samples and gathers, from any thread, awaited at once or later. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/engine/engine.h"
#include "core/system/clock.h"
#include "test/support/line.h"
#include "test/support/must.h"

#define SCALE   3000 /* papers: more than a short gather's */
#define CALLERS 4
#define CALLS   20
#define WAIT_MS 60000 /* for what does not come without an engine of its own */

struct bed {
	struct line line;
	struct plan plan;
	uint64_t digests[CALLS], epoch[EPOCH_MAX];
	uint32_t batches;
	struct gw_loader *loader;
};

static int64_t seed_of(uint32_t call)
{
	return (int64_t)(call * 97 % SCALE);
}

/* With a loader whose answers are held: its connection has got the last byte that it gets. */
static void bed_begin(struct bed *bed)
{
	struct gw_minibatch *batch;
	line_begin(&bed->line, SCALE, (struct gw_client_options){.timeout_ms = LONG_MS, .transport = "tcp"});
	make_plan(bed->line.client, &bed->plan, false, false);
	for (uint32_t i = 0; i < CALLS; i++) {
		int64_t seed = seed_of(i);
		must(gw_sample(bed->line.client, &bed->plan.spec, 1, i, &seed, 1, &batch));
		bed->digests[i] = gw_minibatch_digest(batch);
		gw_minibatch_release(batch);
	}
	bed->batches = run_epoch(bed->line.client, &bed->plan, 0, bed->epoch);
	line_hold(&bed->line, 1000);
	bed->loader = open_loader(bed->line.client, &bed->plan, (struct gw_loader_state){0});
	while (atomic_load(&bed->line.relay.answer_bytes) < (uint64_t)atomic_load(&bed->line.relay.answer_bytes_max))
		sleep_ms(1);
	struct gw_client *client = bed->line.client;
	while (gw_engine_for_call(client, true) != &client->engines[client->engine_count])
		sleep_ms(1); /* it connects */
}

static void bed_end(struct bed *bed)
{
	struct gw_minibatch *batch;
	relay_pass(&bed->line.relay);
	for (uint32_t i = 0; i < bed->batches; i++) {
		must(gw_loader_next(bed->loader, &batch, -1));
		assert_int_equal(gw_minibatch_digest(batch), bed->epoch[i]);
		gw_minibatch_release(batch);
	}
	gw_loader_close(bed->loader);
	line_end(&bed->line);
}

/* Waits with a limit, for the test to fail rather than hang. */
static void must_come(struct gw_ticket *ticket)
{
	gw_status status = gw_wait(ticket, WAIT_MS);
	if (status == GW_AGAIN)
		gw_cancel(ticket);
	must(status);
}

static void sample_one(struct bed *bed, uint32_t call)
{
	struct gw_minibatch *batch;
	struct gw_ticket *ticket;
	int64_t seed = seed_of(call);
	must(gw_sample_start(bed->line.client, &bed->plan.spec, 1, call, &seed, 1, &batch, &ticket));
	must_come(ticket);
	assert_int_equal(gw_minibatch_digest(batch), bed->digests[call]);
	gw_minibatch_release(batch);
}

static void gather_some(struct bed *bed, uint64_t first, uint64_t n)
{
	uint64_t row_bytes = bed->line.feat->row_bytes;
	uint8_t *out = calloc(n, row_bytes);
	struct gw_ticket *ticket;
	assert_non_null(out);
	must(gw_gather_start(bed->line.client, bed->line.feat, bed->line.ids + first, n, out, &ticket));
	must_come(ticket);
	assert_memory_equal(out, bed->line.expected + first * row_bytes, n * row_bytes);
	free(out);
}

static void short_calls_do_not_wait_for_a_loader(void **state)
{
	(void)state;
	struct bed bed;
	struct gw_minibatch *batch;
	struct gw_ticket *ticket;
	if (cluster_is_rdma())
		skip(); /* a relay works only over TCP */
	bed_begin(&bed);
	for (uint32_t i = 0; i < CALLS; i++) {
		sample_one(&bed, i);
		gather_some(&bed, i, i % 2 ? 1 : GW_SHORT_ROWS);
	}
	/* In the calling thread. */
	int64_t seed = seed_of(3);
	must(gw_sample(bed.line.client, &bed.plan.spec, 1, 3, &seed, 1, &batch));
	assert_int_equal(gw_minibatch_digest(batch), bed.digests[3]);
	gw_minibatch_release(batch);
	/* A long one waits with the loader, so that it does not delay short ones. */
	must(gw_gather_start(bed.line.client, bed.line.feat, bed.line.ids, bed.line.n, bed.line.out, &ticket));
	sample_one(&bed, 4);
	assert_int_equal(gw_wait(ticket, 0), GW_AGAIN);
	assert_int_equal(gw_loader_next(bed.loader, &batch, 0), GW_AGAIN);
	relay_pass(&bed.line.relay);
	must(gw_wait(ticket, -1));
	assert_memory_equal(bed.line.out, bed.line.expected, bed.line.n * bed.line.feat->row_bytes);
	bed_end(&bed);
}

static void *call_often(void *context)
{
	struct bed *bed = context;
	for (uint32_t i = 0; i < CALLS; i++) {
		sample_one(bed, i);
		gather_some(bed, 7 * i, 5);
	}
	return NULL;
}

static void so_do_those_of_many_threads(void **state)
{
	(void)state;
	struct bed bed;
	pthread_t threads[CALLERS];
	if (cluster_is_rdma())
		skip();
	bed_begin(&bed);
	for (uint32_t i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, call_often, &bed), 0);
	for (uint32_t i = 0; i < CALLERS; i++)
		pthread_join(threads[i], NULL);
	bed_end(&bed);
}

/* The client keeps as many connections as before. */
static void without_a_loader_calls_open_no_connection(void **state)
{
	(void)state;
	struct line line;
	struct plan plan;
	struct gw_minibatch *batch;
	if (cluster_is_rdma())
		skip();
	line_begin(&line, SETUP_SCALE, (struct gw_client_options){.timeout_ms = LONG_MS, .transport = "tcp"});
	make_plan(line.client, &plan, false, false);
	gw_loader_close(open_loader(line.client, &plan, (struct gw_loader_state){0}));
	int64_t seed = 5;
	must(gw_sample(line.client, &plan.spec, 1, 2, &seed, 1, &batch));
	gw_minibatch_release(batch);
	assert_int_equal(atomic_load(&line.relay.accepted), 1);
	line_end(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_calls_do_not_wait_for_a_loader),
		cmocka_unit_test(so_do_those_of_many_threads),
		cmocka_unit_test(without_a_loader_calls_open_no_connection),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
