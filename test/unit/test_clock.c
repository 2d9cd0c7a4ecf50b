/* Deadlines, waits for them, and a clock that excludes the time during which the process is suspended. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/system/futex.h"

#define READERS  4
#define STOP_NS  (1500 * GW_NS_PER_MS)
#define JUMP_NS  (1200 * GW_NS_PER_MS) /* the jump of a clock that does not stop */
#define TICK_NS  (1ull << GW_CLOCK_TICK_BITS)
#define ATTEMPTS 20 /* on a machine that does not run this process for a second */

/* Deadlines: "never" is never reached, whatever the arithmetic. */
static void deadlines(void **state)
{
	(void)state;
	uint64_t before = gw_now_ns();
	assert_true(gw_deadline_ns(-1) == GW_NO_DEADLINE);
	assert_true(gw_deadline_ns(INT64_MIN) == GW_NO_DEADLINE);
	assert_true(gw_deadline_ns(INT64_MAX) == GW_NO_DEADLINE);
	uint64_t now = gw_deadline_ns(0), later = gw_deadline_ns(3600000);
	assert_true(now >= before && now <= gw_now_ns());
	assert_true(later >= before + 3600000 * GW_NS_PER_MS && later < GW_NO_DEADLINE);
	int64_t most_ms = (int64_t)(UINT64_MAX / GW_NS_PER_MS);
	assert_true(gw_deadline_ns(most_ms) == GW_NO_DEADLINE);
	assert_true(gw_monotonic_of(GW_NO_DEADLINE) == GW_NO_DEADLINE);
}

static void waits_end(void **state)
{
	(void)state;
	_Atomic uint32_t word = 5;
	uint32_t waits = 0;
	uint64_t deadline = gw_deadline_ns(20);
	for (; gw_now_ns() < deadline; waits++)
		gw_futex_wait(&word, 5, deadline);
	assert_in_range(waits, 1,
			10); /* after a pause the kernel's clock differs from ours; its deadline was converted */
	gw_futex_wait(&word, 4, GW_NO_DEADLINE);
	assert_int_equal(word, 5);
}

static void sleep_ns(uint64_t ns)
{
	struct timespec time = gw_timespec(ns);
	nanosleep(&time, NULL);
}

static uint64_t taken_off(void)
{
	return gw_clock_taken_off(atomic_load(&gw_clock_word));
}

/* Made-up times, compared with the rule: while a waiter attends, time between two looks beyond a second is subtracted,
 * except the tick of the last look. The clock never goes back. */
static void made_up_pauses(void **state)
{
	(void)state;
	const uint64_t kept = atomic_load(&gw_clock_word);
	/* Far in the future, so that the thread's own looks are earlier. */
	uint64_t at = gw_monotonic_ns() + 3600 * GW_NS_PER_SECOND, off = taken_off(), shown = 0, pauses = 0;
	assert_int_equal(gw_clock_attend(), GW_OK);
	gw_clock_leave();
	gw_clock_look(at); /* no attendant: no pause */
	assert_true(taken_off() == off);
	assert_int_equal(gw_clock_attend(), GW_OK);
	atomic_store(&gw_clock_word, off >> GW_CLOCK_TICK_BITS << 32 | (uint32_t)(at >> GW_CLOCK_TICK_BITS));
	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t word = gw_mix64(i), before = at >> GW_CLOCK_TICK_BITS;
		at += word % 16 ? word % (900 * GW_NS_PER_MS) : word % (100 * GW_NS_PER_SECOND);
		uint64_t gap = (at >> GW_CLOCK_TICK_BITS) - before;
		bool pause = gap > GW_NS_PER_SECOND / TICK_NS;
		off += pause ? (gap - 1) * TICK_NS : 0;
		pauses += pause;
		gw_clock_look(at);
		gw_clock_look(at - word % (5 * GW_NS_PER_SECOND)); /* of a slow thread */
		assert_true(taken_off() == off);
		assert_true(gap == 0 || at - off >= shown);
		shown = (at >> GW_CLOCK_TICK_BITS << GW_CLOCK_TICK_BITS) + TICK_NS - 1 - off; /* the end of the tick */
	}
	assert_in_range(pauses, 100, 20000);
	gw_clock_leave();
	atomic_store(&gw_clock_word, kept);
}

/* --- A process that is stopped. --- */

struct reader {
	pthread_t thread;
	_Atomic uint64_t *readings;
	uint64_t longest_ns;
};

static atomic_bool readers_end;

static void *read_clock(void *argument)
{
	struct reader *self = argument;
	uint64_t last = gw_now_ns();
	while (!atomic_load(&readers_end)) {
		uint64_t now = gw_now_ns();
		if (now < last) /* it went back */
			self->longest_ns = UINT64_MAX;
		if (now - last > self->longest_ns)
			self->longest_ns = now - last;
		last = now;
		atomic_fetch_add(self->readings, 1);
		if (*self->readings % 64 == 0)
			sched_yield();
	}
	return NULL;
}

static int read_while_stopped(int stopped, int go_on)
{
	struct reader readers[READERS] = {0};
	static _Atomic uint64_t readings;
	char byte = 1;
	if (gw_clock_attend() != GW_OK)
		return 2;
	uint64_t before = taken_off();
	for (int i = 0; i < READERS; i++) {
		readers[i].readings = &readings;
		if (pthread_create(&readers[i].thread, NULL, read_clock, &readers[i]) != 0)
			return 3;
	}
	while (atomic_load(&readings) < 1000)
		sched_yield();
	if (write(stopped, &byte, 1) != 1 || read(go_on, &byte, 1) != 1)
		return 4;
	atomic_store(&readers_end, true);
	bool jumped = false;
	for (int i = 0; i < READERS; i++) {
		pthread_join(readers[i].thread, NULL);
		jumped |= readers[i].longest_ns >= JUMP_NS;
	}
	gw_now_ns(); /* all readers may have ended before one looked again */
	uint64_t off = taken_off() - before;
	gw_clock_leave();
	return jumped ? 5 : off < STOP_NS - 100 * GW_NS_PER_MS || off > 100 * GW_NS_PER_SECOND ? 6 : 0;
}

static void the_clock_stops_with_its_process(void **state)
{
	(void)state;
	int stopped[2], go_on[2], status;
	char byte = 1;
	assert_int_equal(pipe(stopped), 0);
	assert_int_equal(pipe(go_on), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(read_while_stopped(stopped[1], go_on[0]));
	assert_int_equal(read(stopped[0], &byte, 1), 1);
	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_true(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	sleep_ns(STOP_NS);
	assert_int_equal(kill(child, SIGCONT), 0);
	assert_int_equal(write(go_on[1], &byte, 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	for (int i = 0; i < 2; i++) {
		close(stopped[i]);
		close(go_on[i]);
	}
}

/* Only the clock's own thread looks: a process that idles for more than a second counts as running. */
static void an_idle_process(void **state)
{
	(void)state;
	uint64_t off = 0, after = 1;
	assert_int_equal(gw_clock_attend(), GW_OK);
	assert_int_equal(gw_clock_attend(), GW_OK);
	gw_clock_leave();
	for (int i = 0; i < ATTEMPTS && off != after; i++) {
		off = taken_off();
		sleep_ns(1100 * GW_NS_PER_MS);
		gw_now_ns();
		after = taken_off();
	}
	assert_true(off == after);
	gw_clock_leave();
	/* Without attendants this thread does not exist: no time is subtracted. */
	sleep_ns(1100 * GW_NS_PER_MS);
	gw_now_ns();
	assert_true(taken_off() == after);
}

static void a_forked_process_starts_a_new_thread(void **state)
{
	(void)state;
	int status;
	assert_int_equal(gw_clock_attend(), GW_OK);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		uint64_t off = taken_off(), far = gw_monotonic_ns() + 100 * GW_NS_PER_SECOND;
		gw_clock_look(far);
		bool well = taken_off() == off;
#if defined(__SANITIZE_THREAD__) /* such a child may start no threads */
		_exit(!well);
#endif
		well &= gw_clock_attend() == GW_OK;
		gw_clock_look(far);
		well &= taken_off() > off;
		gw_clock_leave();
		_exit(!well);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	gw_clock_leave();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deadlines),       cmocka_unit_test(waits_end),
		cmocka_unit_test(made_up_pauses),  cmocka_unit_test(the_clock_stops_with_its_process),
		cmocka_unit_test(an_idle_process), cmocka_unit_test(a_forked_process_starts_a_new_thread),
		cmocka_unit_test(deadlines),       cmocka_unit_test(waits_end),
	};
	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
