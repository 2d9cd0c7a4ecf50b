/* A log's sink: replaced while it runs, called by itself, and after a fork. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/errors/log.h"
#include "core/errors/status.h"

#define LIMIT_S 60 /* ends a child that hangs */

/* A sink whose first call stays until the test lets it go. */
struct slow {
	sem_t inside, go;
	atomic_bool called, done;
};

static void slow_sink(void *context, enum gw_log_level level, const char *line)
{
	struct slow *slow = context;
	(void)level;
	(void)line;
	if (atomic_exchange(&slow->called, true))
		return;
	sem_post(&slow->inside);
	sem_wait(&slow->go);
	atomic_store(&slow->done, true);
}

static void count_sink(void *context, enum gw_log_level level, const char *line)
{
	(void)level;
	(void)line;
	atomic_fetch_add((atomic_int *)context, 1);
}

static void *log_one_line(void *unused)
{
	(void)unused;
	gw_log(GW_LOG_ERROR, "one line");
	return NULL;
}

/* A thread stays in the slow sink when this returns. */
static void slow_begin(struct slow *slow, pthread_t *logs)
{
	sem_init(&slow->inside, 0, 0);
	sem_init(&slow->go, 0, 0);
	assert_int_equal(gw_log_set_sink(slow_sink, slow), GW_OK);
	assert_int_equal(pthread_create(logs, NULL, log_one_line, NULL), 0);
	sem_wait(&slow->inside);
}

struct replaced {
	struct slow slow;
	atomic_int count;
	bool done_at_return;
};

static void *replace_sink(void *context)
{
	struct replaced *replaced = context;
	gw_log_set_sink(count_sink, &replaced->count);
	replaced->done_at_return = atomic_load(&replaced->slow.done);
	return NULL;
}

/* The new sink gets lines at once, and gw_log_set_sink returns when the former sink has. */
static void replaced_while_it_runs(void **state)
{
	(void)state;
	struct replaced replaced = {.count = 0};
	pthread_t logs, replaces;
	slow_begin(&replaced.slow, &logs);
	assert_int_equal(pthread_create(&replaces, NULL, replace_sink, &replaced), 0);
	while (atomic_load(&replaced.count) == 0)
		gw_log(GW_LOG_ERROR, "for the former sink, and then for the new one");
	assert_false(atomic_load(&replaced.slow.done));
	sem_post(&replaced.slow.go);
	pthread_join(logs, NULL);
	pthread_join(replaces, NULL);
	assert_true(replaced.done_at_return);
	assert_int_equal(gw_log_set_sink(NULL, NULL), GW_OK);
}

/* Sinks come and go while threads log: each line reaches one sink, whose context is still there. */
#define THREADS 4
#define LINES   20000

struct context {
	atomic_bool alive;
	atomic_int *count;
};

static void alive_sink(void *given, enum gw_log_level level, const char *line)
{
	struct context *context = given;
	(void)level;
	(void)line;
	if (atomic_load(&context->alive))
		atomic_fetch_add(context->count, 1);
}

static void *log_many_lines(void *unused)
{
	(void)unused;
	for (int i = 0; i < LINES; i++)
		gw_log(GW_LOG_ERROR, "line %d", i);
	return NULL;
}

static void contexts_outlive_their_calls(void **state)
{
	(void)state;
	atomic_int count = 0;
	struct context contexts[3];
	pthread_t threads[THREADS];
	for (int i = 0; i < 3; i++)
		contexts[i] = (struct context){.alive = false, .count = &count};
	atomic_store(&contexts[0].alive, true);
	gw_log_set_sink(alive_sink, &contexts[0]);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, log_many_lines, NULL), 0);
	int now = 0;
	while (atomic_load(&count) < THREADS * LINES / 2) {
		int next = (now + 1) % 3;
		atomic_store(&contexts[next].alive, true);
		assert_int_equal(gw_log_set_sink(alive_sink, &contexts[next]), GW_OK);
		atomic_store(&contexts[now].alive, false); /* as if it were freed */
		now = next;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	gw_log_set_sink(NULL, NULL);
	assert_int_equal(count, THREADS * LINES);
}

struct own {
	int calls;
	gw_status set;
};

static void own_sink(void *context, enum gw_log_level level, const char *line)
{
	struct own *own = context;
	(void)level;
	(void)line;
	own->calls++;
	gw_log(GW_LOG_ERROR, "a line of the sink goes to stderr");
	own->set = gw_log_set_sink(NULL, NULL);
}

static void a_sink_that_logs(void **state)
{
	(void)state;
	struct own own = {0};
	gw_log_set_sink(own_sink, &own);
	gw_log(GW_LOG_ERROR, "one line");
	assert_int_equal(own.calls, 1);
	assert_int_equal(own.set, GW_INVALID);
	gw_log(GW_LOG_ERROR, "another line");
	assert_int_equal(own.calls, 2);
	assert_int_equal(gw_log_set_sink(NULL, NULL), GW_OK);
}

static void expect_child(pid_t child)
{
	int status;
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The child has no thread that stays in the sink, so it can replace the sink. Its lines go to the sink that it has. */
static void a_fork_while_a_sink_runs(void **state)
{
	(void)state;
	struct slow slow = {.called = false};
	pthread_t logs;
	slow_begin(&slow, &logs);
	pid_t child = fork();
	if (child == 0) {
		atomic_int count = 0;
		alarm(LIMIT_S);
		gw_log(GW_LOG_ERROR, "for the sink of the parent");
		if (gw_log_set_sink(count_sink, &count) != GW_OK)
			_exit(1);
		gw_log(GW_LOG_ERROR, "for the sink of the child");
		_exit(count == 1 && gw_log_set_sink(NULL, NULL) == GW_OK ? 0 : 2);
	}
	expect_child(child);
	sem_post(&slow.go);
	pthread_join(logs, NULL);
	assert_int_equal(gw_log_set_sink(NULL, NULL), GW_OK);
}

static void fork_sink(void *context, enum gw_log_level level, const char *line)
{
	(void)level;
	(void)line;
	*(pid_t *)context = fork();
}

/* The child continues in the sink and returns from it. */
static void a_sink_that_forks(void **state)
{
	(void)state;
	pid_t child = -1;
	gw_log_set_sink(fork_sink, &child);
	gw_log(GW_LOG_ERROR, "one line");
	if (child == 0) {
		atomic_int count = 0;
		alarm(LIMIT_S);
		gw_log_set_sink(count_sink, &count);
		gw_log(GW_LOG_ERROR, "for the sink of the child");
		_exit(count == 1 ? 0 : 1);
	}
	expect_child(child);
	assert_int_equal(gw_log_set_sink(NULL, NULL), GW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaced_while_it_runs), cmocka_unit_test(contexts_outlive_their_calls),
		cmocka_unit_test(a_sink_that_logs),       cmocka_unit_test(a_fork_while_a_sink_runs),
		cmocka_unit_test(a_sink_that_forks),
	};
	return cmocka_run_group_tests_name("log sinks", tests, NULL, NULL);
}
