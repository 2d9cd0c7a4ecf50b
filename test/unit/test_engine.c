/* Engines: a thread that waits for a job is woken when the job ends, however the engine moves between threads. A
 * thread that does not sleep is not woken. The engine's thread ends when it is stopped, whatever it is doing then.
 *
 * Some tests step a thread (test/support/stepped.h). This file replaces the C library's functions that show where the
 * threads are: the system call that sleeps, and those that start a thread and wait for its end. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/engine/engine.h"
#include "core/system/clock.h"
#include "test/support/alloc_fault.h"
#include "test/support/stepped.h"

#define THREADS 4
#define JOBS    500

static struct gw_client client;
static struct gw_engine engine;

static int set_up(void **state)
{
	(void)state;
	client = (struct gw_client){.timeout_ms = 1000000, .server_count = 0};
	return gw_engine_open(&engine, &client, 0) == GW_OK && gw_engine_start_thread(&engine) == GW_OK ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	gw_engine_close(&engine);
	return 0;
}

static void start_and_end(struct gw_job *job)
{
	gw_job_end(job, GW_OK);
}

static void start_and_stay_until_cancelled(struct gw_job *job)
{
	(void)job;
}

static void end_cancelled(struct gw_job *job)
{
	gw_job_end(job, gw_fail(GW_CANCELLED, "cancelled"));
}

static void *submit_and_wait(void *argument)
{
	uintptr_t number = (uintptr_t)argument;
	for (uintptr_t i = 0; i < JOBS; i++) {
		bool stays = (i + number) % 5 == 0;
		struct gw_job job = {.start = stays ? start_and_stay_until_cancelled : start_and_end,
				     .cancel = end_cancelled};
		gw_engine_submit(&engine, &job, i % 2);
		if (i % 3 == 0)
			gw_job_wait(&job, 0);
		if (i % 7 == 0)
			gw_job_wait(&job, gw_now_ns() + 1000);
		if (stays)
			gw_job_cancel(&job);
		gw_job_wait(&job, GW_NO_DEADLINE);
		assert_int_equal(job.status, stays ? GW_CANCELLED : GW_OK);
	}
	return NULL;
}

static void a_waiting_thread_is_woken(void **state)
{
	(void)state;
	pthread_t threads[THREADS];
	for (uintptr_t t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, submit_and_wait, (void *)t), 0);
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	assert_int_equal(engine.jobs_open, 0);
}

struct shared {
	struct gw_job job;
	_Atomic uint32_t waiting;
};

static void *wait_too(void *argument)
{
	struct shared *shared = argument;
	atomic_fetch_add(&shared->waiting, 1);
	gw_job_wait(&shared->job, GW_NO_DEADLINE);
	return NULL;
}

static void all_waiting_threads_are_woken(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct shared shared = {.job = {.start = start_and_stay_until_cancelled, .cancel = end_cancelled}};
		pthread_t threads[THREADS];
		gw_engine_submit(&engine, &shared.job, false);
		for (int t = 0; t < THREADS; t++)
			assert_int_equal(pthread_create(&threads[t], NULL, wait_too, &shared), 0);
		while (atomic_load(&shared.waiting) < THREADS)
			usleep(100);
		gw_job_cancel(&shared.job);
		for (int t = 0; t < THREADS; t++)
			pthread_join(threads[t], NULL);
	}
}

/* From here on, a wake of this word kills the process. */
static void forbid_wake(const void *word)
{
	uint64_t address = (uintptr_t)word;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 6),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)address, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (uint32_t)FUTEX_CMD_MASK),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAKE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(77);
}

static void no_thread_is_woken_in_vain(void **state)
{
	(void)state;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct gw_engine own;
		struct gw_job job = {.start = start_and_end, .cancel = end_cancelled};
		if (gw_engine_open(&own, &client, 1) != GW_OK)
			_exit(1);
		forbid_wake(&job.ended);
		gw_engine_submit(&own, &job, true);
		gw_job_wait(&job, GW_NO_DEADLINE);
		_exit(job.status == GW_OK ? 0 : 1);
	}
	int how;
	assert_int_equal(waitpid(child, &how, 0), child);
	if (WIFEXITED(how) && WEXITSTATUS(how) == 77)
		skip(); /* no seccomp here */
	assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

/* --- Every moment at which another thread may act. --- */

/* A stepped thread, and another thread that acts once: before the chosen instruction, or when the stepped thread is
 * about to sleep. */
static struct {
	unsigned long at;
	bool starts;                        /* the next thread that is started is the stepped one */
	atomic_bool now;                    /* the other thread must act */
	atomic_bool acted;                  /* it has done all that wakes the stepped thread */
	atomic_bool reached;                /* the stepped thread has come to the chosen instruction */
	atomic_bool lost;                   /* it is about to sleep, and no wake would follow */
	void *(*thread_run)(void *context); /* the stepped thread's function */
	void *thread_context;
} stepping;

static _Thread_local bool is_stepped;

static void begin_stepping(unsigned long at, bool starts)
{
	stepping.at = at;
	stepping.starts = starts;
	atomic_store(&stepping.now, false);
	atomic_store(&stepping.acted, false);
	atomic_store(&stepping.reached, false);
	atomic_store(&stepping.lost, false);
}

static void await(const atomic_bool *flag)
{
	while (!atomic_load(flag))
		nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
}

/* The stepped thread, between two instructions. */
static void let_act(void *context)
{
	(void)context;
	atomic_store(&stepping.reached, true);
	atomic_store(&stepping.now, true);
	await(&stepping.acted);
}

/* The stepped thread is about to sleep on this word, for ever. Returns whether it may. */
static bool may_sleep(const _Atomic uint32_t *word, uint32_t expected)
{
	if (!atomic_load(&stepping.acted)) {
		atomic_store(&stepping.now, true);
		return true;
	}
	if (atomic_load(word) == expected)
		atomic_store(&stepping.lost, true);
	return false;
}

/* Replaces the C library's function in this program. */
long syscall(long number, ...)
{
	typedef long (*caller)(long number, ...);
	static _Atomic(caller) real;
	long words[6];
	va_list arguments;
	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		words[i] = va_arg(arguments, long);
	va_end(arguments);
	if (!atomic_load(&real))
		atomic_store(&real, (caller)(uintptr_t)dlsym(RTLD_NEXT, "syscall"));
	bool sleeps = number == SYS_futex && (words[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && !words[3];
	if (is_stepped && sleeps && !may_sleep((const _Atomic uint32_t *)(uintptr_t)words[0], (uint32_t)words[2]))
		return 0;
	return atomic_load(&real)(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

static void run_thread(void *context)
{
	(void)context;
	stepping.thread_run(stepping.thread_context);
}

static void *step_thread(void *context)
{
	is_stepped = true;
	gw_stepped_run(stepping.at, run_thread, let_act, NULL);
	return context;
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*run)(void *context),
		   void *restrict context)
{
	typedef int (*creator)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	creator real = (creator)(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
	if (!stepping.starts)
		return real(thread, attributes, run, context);
	stepping.starts = false;
	stepping.thread_run = run;
	stepping.thread_context = context;
	return real(thread, attributes, step_thread, NULL);
}

/* The stopping thread has done all that ends the stepped one. */
int pthread_join(pthread_t thread, void **result)
{
	int (*real)(pthread_t, void **) = (int (*)(pthread_t, void **))(uintptr_t)dlsym(RTLD_NEXT, "pthread_join");
	atomic_store(&stepping.acted, true);
	return real(thread, result);
}

static void a_stop_is_obeyed_before_each_instruction(void **state)
{
	(void)state;
	if (!gw_stepped_can())
		skip();
	unsigned long at = 0, runs = 0;
	do {
		struct gw_engine own;
		begin_stepping(at, true);
		assert_int_equal(gw_engine_open(&own, &client, 1), GW_OK);
		assert_int_equal(gw_engine_start_thread(&own), GW_OK);
		await(&stepping.now);
		gw_engine_stop_thread(&own);
		gw_engine_close(&own);
		if (atomic_load(&stepping.lost))
			fail_msg("an order before instruction %lu is lost", at);
		at += gw_fault_step(runs++);
	} while (atomic_load(&stepping.reached));
	assert_true(at > 50);
}

static atomic_bool begun;

/* Runs in the engine's thread, which owns the engine meanwhile. */
static void start_and_end_later(struct gw_job *job)
{
	atomic_store(&begun, true);
	await(&stepping.now);
	gw_job_end(job, GW_OK);
	atomic_store(&stepping.acted, true);
}

static void wait_for(void *job)
{
	is_stepped = true;
	gw_job_wait(job, GW_NO_DEADLINE);
	is_stepped = false;
}

static void an_end_is_seen_before_each_instruction(void **state)
{
	(void)state;
	if (!gw_stepped_can())
		skip();
	unsigned long at = 0, runs = 0;
	bool reached;
	do {
		struct gw_job job = {.start = start_and_end_later, .cancel = end_cancelled};
		begin_stepping(at, false);
		atomic_store(&begun, false);
		gw_engine_submit(&engine, &job, false);
		await(&begun);
		reached = gw_stepped_run(at, wait_for, let_act, &job);
		if (atomic_load(&stepping.lost))
			fail_msg("an end before instruction %lu is lost", at);
		await(&stepping.acted);
		at += gw_fault_step(runs++);
	} while (reached);
	assert_true(at > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_waiting_thread_is_woken),
		cmocka_unit_test(all_waiting_threads_are_woken),
		cmocka_unit_test(no_thread_is_woken_in_vain),
		cmocka_unit_test(a_stop_is_obeyed_before_each_instruction),
		cmocka_unit_test(an_end_is_seen_before_each_instruction),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
