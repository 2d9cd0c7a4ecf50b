/* Counts of reads and calls per connection and thread: their sum is exact while connections read, begin and end; and
 * the list of clients. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transport/service/task.h"

#define THREADS 4
#define ROUNDS  20
#define READS   1000

static struct gw_service *service;

/* One connection after another, each with reads of 1, 2, 3 ranges of 10 bytes. */
static void *read_on(void *argument)
{
	(void)argument;
	for (int round = 0; round < ROUNDS; round++) {
		struct gw_service_peer reads = {.scheme = (uint32_t)round % GW_SERVICE_SCHEMES};
		gw_service_peer_begin(service, &reads);
		for (uint64_t i = 0; i < READS; i++)
			gw_count_read(&reads, i % 3 + 1, 10 * (i % 3 + 1));
		gw_service_peer_end(service, &reads);
		gw_service_peer_end(service, &reads); /* twice is allowed */
	}
	return NULL;
}

static void sums_are_exact(void **state)
{
	(void)state;
	struct gw_service_identity identity = {.parts = 1};
	struct gw_service_counters counters = {0};
	struct gw_service_peer open = {0};
	pthread_t threads[THREADS];
	uint64_t before = 0;
	assert_int_equal(gw_service_create(&identity, NULL, &service), GW_OK);
	gw_service_peer_begin(service, &open);
	gw_count_read(&open, 5, 50);
	for (int t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, read_on, NULL), 0);
	for (int i = 0; i < 100; i++) {
		gw_service_counters(service, &counters);
		assert_true(counters.reads >= before); /* none is lost or counted twice */
		before = counters.reads;
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	uint64_t ranges = 0;
	for (uint64_t i = 0; i < READS; i++)
		ranges += i % 3 + 1;
	ranges = ranges * ROUNDS * THREADS + 5;
	gw_service_counters(service, &counters);
	assert_int_equal(counters.reads, THREADS * ROUNDS * READS + 1);
	assert_int_equal(counters.read_ranges, ranges);
	assert_int_equal(counters.read_bytes, 10 * ranges);
	gw_service_peer_end(service, &open);
	gw_service_counters(service, &counters);
	assert_int_equal(counters.read_bytes, 10 * ranges);
	gw_service_destroy(service);
}

/* --- Calls. --- */

enum { OP_FAILS = 3, OP_ADDS = 7, CALLS = 500 };

static gw_status add_bytes(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)context;
	uint64_t *runs = gw_reply_work(reply, sizeof(*runs), NULL);
	if (!runs || !gw_reply_extend(reply, call->byte_count))
		return GW_NO_MEMORY;
	return ++*runs < 3 ? GW_AGAIN : GW_OK;
}

static gw_status fail_at_once(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)context;
	(void)call;
	gw_reply_extend(reply, 5);
	return gw_fail(GW_INVALID, "as it should");
}

static void call_once(struct gw_service_peer *peer, uint16_t op, uint32_t thread)
{
	struct gw_call call = {
		.op = op, .bytes = (const uint8_t *)"abc", .byte_count = 3, .thread = thread, .peer = peer};
	struct gw_task task;
	gw_task_begin(&task, service, &call, NULL, 0, 1 << 20);
	while (gw_task_run(&task) == GW_AGAIN)
		;
	gw_task_end(&task);
	gw_task_end(&task);
}

static void *call_on(void *argument)
{
	const uint32_t thread = (uint32_t)(uintptr_t)argument;
	struct gw_service_peer peer = {.scheme = thread % 2};
	gw_service_peer_begin(service, &peer);
	for (int i = 0; i < CALLS; i++)
		call_once(&peer, i % 5 ? OP_ADDS : OP_FAILS, thread);
	gw_service_peer_end(service, &peer);
	return NULL;
}

static uint64_t count_of(const struct gw_latency *latency)
{
	uint64_t count = 0;
	for (int i = 0; i < GW_LATENCY_BUCKETS; i++)
		count += latency->buckets[i];
	return count;
}

static void calls_are_counted_by_operation_and_transport(void **state)
{
	(void)state;
	static struct gw_service_totals totals;
	struct gw_service_identity identity = {.parts = 1};
	struct gw_service_counters counters;
	pthread_t threads[THREADS];
	assert_int_equal(gw_service_create(&identity, NULL, &service), GW_OK);
	assert_int_equal(gw_service_handle(service, OP_ADDS, add_bytes, NULL), GW_OK);
	assert_int_equal(gw_service_handle(service, OP_FAILS, fail_at_once, NULL), GW_OK);
	for (uintptr_t t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, call_on, (void *)t), 0);
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	gw_service_totals(service, &totals);
	for (uint32_t op = 0; op < GW_SERVICE_OPS; op++) {
		const uint64_t share = op == OP_ADDS ? CALLS / 5 * 4 : op == OP_FAILS ? CALLS / 5 : 0;
		for (uint32_t scheme = 0; scheme < GW_SERVICE_SCHEMES; scheme++) {
			const struct gw_service_calls *calls = &totals.calls[op][scheme];
			const uint64_t all = scheme < 2 ? share * THREADS / 2 : 0;
			assert_int_equal(calls->requests, all);
			assert_int_equal(calls->errors, op == OP_FAILS ? all : 0);
			assert_int_equal(calls->received_bytes, 3 * all);
			assert_int_equal(calls->sent_bytes, op == OP_ADDS ? 9 * all : 0);
		}
		assert_int_equal(count_of(&totals.requests[op]), share * THREADS);
		assert_int_equal(count_of(&totals.slices[op]), (op == OP_ADDS ? 3 : 1) * share * THREADS);
		assert_true(totals.slices[op].ns <= totals.requests[op].ns);
	}
	gw_service_counters(service, &counters);
	assert_int_equal(counters.requests, CALLS * THREADS);
	assert_int_equal(counters.errors, CALLS * THREADS / 5);
	assert_int_equal(counters.deferred, 2 * CALLS * THREADS / 5 * 4);
	gw_service_destroy(service);
}

static void waiting_clients_come_first(void **state)
{
	(void)state;
	struct gw_service_identity identity = {.parts = 1};
	struct gw_service_peer peers[5] = {0};
	struct gw_service_peer_state states[5];
	assert_int_equal(gw_service_create(&identity, NULL, &service), GW_OK);
	for (int i = 0; i < 5; i++) {
		peers[i].client_uuid[0] = (uint8_t)i;
		gw_service_peer_begin(service, &peers[i]);
	}
	gw_service_peer_call(&peers[1], 9, 1);
	gw_service_peer_call(&peers[1], 8, gw_now_ns());
	gw_service_peer_called(&peers[1]);
	gw_service_peer_call(&peers[3], 4, 1);
	gw_service_peer_called(&peers[3]);
	assert_int_equal(gw_service_peers(service, states, 5), 5);
	assert_int_equal(states[0].client_uuid[0], 1);
	assert_int_equal(states[0].op, 9); /* the oldest one */
	assert_int_equal(states[0].calls_open, 1);
	assert_int_equal(states[0].calls, 2);
	assert_true(states[0].call_ns > 0);
	uint32_t seen = 0;
	for (int i = 0; i < 5; i++) {
		seen |= 1u << states[i].client_uuid[0];
		assert_true(i == 0 || (states[i].calls_open == 0 && states[i].call_ns == 0));
	}
	assert_int_equal(seen, 31);
	assert_int_equal(gw_service_peers(service, states, 2), 2);
	assert_int_equal(states[0].client_uuid[0], 1);
	for (int i = 0; i < 5; i++)
		gw_service_peer_end(service, &peers[i]);
	assert_int_equal(gw_service_peers(service, states, 5), 0);
	gw_service_destroy(service);
}

/* Each duration is in the first bucket whose bound is not below it. */
static void buckets_have_bounds(void **state)
{
	(void)state;
	for (uint32_t i = 0; i + 1 < GW_LATENCY_BUCKETS; i++) {
		assert_int_equal(gw_latency_bucket(gw_latency_bound_ns(i)), i);
		assert_int_equal(gw_latency_bucket(gw_latency_bound_ns(i) + 1), i + 1);
	}
	assert_int_equal(gw_latency_bucket(0), 0);
	assert_int_equal(gw_latency_bucket(UINT64_MAX), GW_LATENCY_BUCKETS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_exact),
		cmocka_unit_test(calls_are_counted_by_operation_and_transport),
		cmocka_unit_test(waiting_clients_come_first),
		cmocka_unit_test(buckets_have_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
