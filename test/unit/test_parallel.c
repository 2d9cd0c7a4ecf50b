/* The parallel loop: every item once, the failure of the lowest chunk with its text, and thread numbers. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/system/parallel.h"

#define ITEMS 10000u

struct tally {
	atomic_uint seen[ITEMS];
	uint64_t grain;
	unsigned threads;
	atomic_uint bad;
	uint64_t fail_from; /* items from here on fail */
};

static gw_status count_items(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct tally *tally = context;
	if (thread >= tally->threads || begin >= end || end - begin > tally->grain || begin % tally->grain)
		atomic_fetch_add(&tally->bad, 1);
	for (uint64_t i = begin; i < end; i++)
		atomic_fetch_add(&tally->seen[i], 1);
	return GW_OK;
}

static struct tally tally;

static void every_item_once(void **state)
{
	(void)state;
	static const uint64_t sizes[] = {1, 2, 63, 64, 65, 9999, ITEMS}, grains[] = {1, 7, 64, ITEMS, UINT64_MAX};
	static const unsigned threads[] = {1, 2, 3, 16, 1000};
	for (size_t s = 0; s < 7; s++)
		for (size_t g = 0; g < 5; g++)
			for (size_t t = 0; t < 5; t++) {
				memset(&tally, 0, sizeof(tally));
				tally.grain = grains[g];
				tally.threads = threads[t];
				assert_int_equal(gw_parallel_for(threads[t], sizes[s], grains[g], count_items, &tally),
						 GW_OK);
				assert_int_equal(tally.bad, 0);
				for (uint64_t i = 0; i < ITEMS; i++)
					assert_int_equal(tally.seen[i], i < sizes[s]);
			}
}

static gw_status count_freely(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct tally *t = context;
	for (uint64_t i = begin; i < end; i++)
		atomic_fetch_add(&t->seen[i], 1);
	return GW_OK;
}

static void defaults(void **state)
{
	(void)state;
	memset(&tally, 0, sizeof(tally));
	assert_int_equal(gw_parallel_for(0, ITEMS, 0, count_freely, &tally), GW_OK);
	for (uint64_t i = 0; i < ITEMS; i++)
		assert_int_equal(tally.seen[i], 1);
	assert_int_equal(gw_parallel_for(4, 0, 10, count_freely, &tally), GW_OK);
	assert_int_equal(tally.seen[0], 1); /* no items: the body is not called */
	assert_true(gw_processors() >= 1);
}

static gw_status fail_dynamic(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct tally *t = context;
	for (uint64_t i = begin; i < end; i++) {
		atomic_fetch_add(&t->seen[i], 1);
		if (i < t->fail_from)
			continue;
		if (i == t->fail_from)
			sched_yield(); /* lets a later chunk fail first */
		return gw_fail(i == t->fail_from ? GW_RANGE : GW_IO, "item %u", (unsigned)i);
	}
	return GW_OK;
}

static void lowest_failure_wins(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads <= 8; threads++)
		for (int round = 0; round < 20; round++) {
			memset(&tally, 0, sizeof(tally));
			tally.fail_from = 137;
			gw_fail(GW_IO, "an older failure");
			assert_int_equal(gw_parallel_for(threads, ITEMS, 1, fail_dynamic, &tally), GW_RANGE);
			assert_string_equal(gw_last_error(), "item 137");
			for (uint64_t i = 0; i <= 137; i++)
				assert_int_equal(tally.seen[i], 1);
			assert_int_equal(tally.seen[ITEMS - 1], 0); /* the loop ended */
		}
}

/* Workers block signals, so the program's own threads get them; the caller's mask is unchanged. */
static atomic_uint unmasked_workers;

static gw_status look_at_mask(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)context, (void)begin, (void)end;
	sigset_t mask;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	if ((thread == 0) == (sigismember(&mask, SIGINT) == 1))
		atomic_fetch_add(&unmasked_workers, 1);
	sched_yield();
	return GW_OK;
}

static void workers_take_no_signals(void **state)
{
	(void)state;
	assert_int_equal(gw_parallel_for(4, 1000, 1, look_at_mask, NULL), GW_OK);
	assert_int_equal(unmasked_workers, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_item_once),
		cmocka_unit_test(defaults),
		cmocka_unit_test(lowest_failure_wins),
		cmocka_unit_test(workers_take_no_signals),
	};
	return cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
}
