/* Counts of reads per connection and thread: their sum is exact while connections read, begin and end. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transport/service/service_backend.h"

#define THREADS 4
#define ROUNDS  20
#define READS   1000

static struct gw_service *service;

/* One connection after another, each with reads of 1, 2, 3 ranges of 10 bytes. */
static void *read_on(void *argument)
{
	(void)argument;
	for (int round = 0; round < ROUNDS; round++) {
		struct gw_service_reads reads = {0};
		gw_service_reads_begin(service, &reads);
		for (uint64_t i = 0; i < READS; i++)
			gw_count_read(&reads, i % 3 + 1, 10 * (i % 3 + 1));
		gw_service_reads_end(service, &reads);
		gw_service_reads_end(service, &reads); /* twice is allowed */
	}
	return NULL;
}

static void sums_are_exact(void **state)
{
	(void)state;
	struct gw_service_identity identity = {.parts = 1};
	struct gw_service_counters counters = {0};
	struct gw_service_reads open = {0};
	pthread_t threads[THREADS];
	uint64_t before = 0;
	assert_int_equal(gw_service_create(&identity, NULL, &service), GW_OK);
	gw_service_reads_begin(service, &open);
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
	gw_service_reads_end(service, &open);
	gw_service_counters(service, &counters);
	assert_int_equal(counters.read_bytes, 10 * ranges);
	gw_service_destroy(service);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_exact)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
