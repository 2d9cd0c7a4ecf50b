/* Threads of the library: the signals that they block; and the signal mask of the starting thread is unchanged. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/system/thread.h"

static void *look(void *context)
{
	pthread_sigmask(SIG_BLOCK, NULL, context);
	return context;
}

static void only_its_own_signals_are_delivered(void **state)
{
	static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL}, others[] = {SIGTERM, SIGINT, SIGCHLD, SIGUSR1};
	sigset_t inside, before, after;
	pthread_t thread;
	void *result;
	(void)state;
	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	assert_int_equal(gw_thread_start(&thread, look, &inside), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &inside);
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	for (int i = 0; i < 4; i++) {
		assert_int_equal(sigismember(&inside, own[i]), 0);
		assert_int_equal(sigismember(&inside, others[i]), 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_its_own_signals_are_delivered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
