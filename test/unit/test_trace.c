/* The trace of a process: its file is JSON whatever ends the process, spans of threads nest, what is lost is counted,
 * and a file that cannot be written costs one line of the log. Each trace has a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/errors/log.h"
#include "core/system/clock.h"
#include "core/system/trace.h"
#include "core/system/trace_file.h"
#include "test/support/scratch.h"
#include "test/support/trace_events.h"

#define LIMIT_S 120 /* ends a test that hangs */
#define THREADS 6
#define SPANS   300
#define MANY    20000000ull /* the writer cannot write so many in time */
#define LONG_NAME                                                                                                      \
	"\"quoted\" \\ \n \x01 \xff \xe2\x82 \xc3\xa9 and more than eighty bytes, 0123456789 0123456789 0123456789"

static char folder[] = "/tmp/gw-test-trace-XXXXXX";
static char path[128];
static atomic_uint log_lines;

static void count_line(void *context, enum gw_log_level level, const char *line)
{
	(void)context;
	(void)level;
	(void)line;
	atomic_fetch_add(&log_lines, 1);
}

/* Runs a body in a child with a trace to a file of this name; returns the status of waitpid, and the child's id. */
static int trace_in_child(const char *pattern, void (*body)(void), pid_t *id)
{
	snprintf(path, sizeof(path), "%s/%s", folder, pattern);
	setenv("GRAPHWIRE_TRACE", path, 1);
	fflush(stdout);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		alarm(LIMIT_S);
		gw_log_set_sink(count_line, NULL);
		gw_trace_open();
		body();
		exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	if (id)
		*id = child;
	return status;
}

/* ---- spans of threads ---- */

static void *spans_of_thread(void *context)
{
	const char *name = context;
	for (unsigned i = 0; i < SPANS; i++) {
		uint64_t outer = gw_trace_begin(), inner = gw_trace_begin();
		gw_trace_end(inner, name);
		gw_trace_end(outer, "outer");
	}
	return NULL;
}

static void spans_of_threads(void)
{
	pthread_t threads[THREADS];
	for (unsigned round = 0; round < 3; round++) { /* later threads take the rings of earlier ones */
		for (unsigned i = 0; i < THREADS; i++)
			if (pthread_create(&threads[i], NULL, spans_of_thread, i % 2 ? "inner" : LONG_NAME) != 0)
				_exit(1);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
}

static void spans_of_threads_nest(void **state)
{
	(void)state;
	assert_int_equal(trace_in_child("spans.json", spans_of_threads, NULL), 0);
	json_t *events = trace_events_read(path, true), *event;
	size_t i;
	assert_int_equal(trace_events_count(events, "X", "outer"), 3 * THREADS * SPANS);
	assert_int_equal(trace_events_count(events, "X", "inner"), 3 * THREADS / 2 * SPANS);
	assert_int_equal(trace_events_check_nests(events), 3 * THREADS);
	json_array_foreach(events, i, event)
	{
		const char *name = trace_event_text(event, "name");
		if (name[0] != '"')
			continue;
		assert_non_null(
			strstr(name, "\"quoted\" \\ \n \x01 \xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd \xc3\xa9 and"));
		assert_null(strstr(name, "0123456789 0123456789 0123456789"));
	}
	json_decref(events);
}

/* ---- what is lost ---- */

static const struct gw_trace_form form = {"form # of #", "test", {"one", NULL, "three"}, "text"};
static _Atomic uint64_t *shared_counts; /* put, lost */

static void put_until_one_is_lost(void)
{
	struct gw_trace_event begin = {
		.kind = GW_TRACE_BEGIN, .form = &form, .id = gw_trace_id(), .numbers = {1, 2, 3}, .text = "static"};
	struct gw_trace_event point = begin, end = begin;
	point.kind = GW_TRACE_POINT;
	end.kind = GW_TRACE_END;
	begin.at_ns = point.at_ns = gw_trace_clock();
	if (!gw_trace_put(&begin))
		_exit(1);
	while (gw_trace_put(&point) && shared_counts[0] < MANY)
		shared_counts[0]++;
	end.at_ns = gw_trace_clock();
	shared_counts[1] = gw_trace_put(&end); /* has room that no other event may take */
}

static void lost_events_are_counted(void **state)
{
	(void)state;
	char counts[128];
	snprintf(counts, sizeof(counts), "%s/counts", folder);
	int fd = open(counts, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 4096), 0);
	shared_counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(shared_counts, MAP_FAILED);
	close(fd);
	assert_int_equal(trace_in_child("lost.json", put_until_one_is_lost, NULL), 0);
	assert_int_equal(shared_counts[1], 1);
	json_t *events = trace_events_read(path, true), *event;
	assert_int_equal(trace_events_count(events, "i", "form 1 of 2"), shared_counts[0]);
	assert_int_equal(trace_events_count(events, "b", "form 1 of 2"), 1);
	assert_int_equal(trace_events_count(events, "e", "form 1 of 2"), 1);
	assert_int_equal(trace_events_count(events, "i", "1 events are lost"), shared_counts[0] < MANY);
	size_t i;
	json_array_foreach(events, i, event)
	{
		const json_t *arguments = json_object_get(event, "args");
		if (strcmp(trace_event_text(event, "ph"), "b") != 0)
			continue;
		assert_int_equal(trace_event_number(arguments, "one"), 1);
		assert_int_equal(trace_event_number(arguments, "three"), 3);
		assert_string_equal(trace_event_text(arguments, "text"), "static");
		assert_int_equal(json_object_size(arguments), 3);
	}
	json_decref(events);
	munmap(shared_counts, 4096);
}

/* ---- ends of a process ---- */

static void flush_and_die(void)
{
	for (unsigned i = 0; i < 1000; i++)
		gw_trace_end(gw_trace_begin(), "before");
	gw_trace_flush();
	raise(SIGKILL);
}

/* Wherever the kernel stops a write, between two pages, the file has whole events. */
static void check_pages(const char *name)
{
	size_t bytes;
	char *text = trace_events_text(name, &bytes);
	for (size_t cut = 4096; cut < bytes; cut += 4096) {
		char after = text[cut];
		text[cut] = ']';
		json_t *events = json_loadb(text, cut + 1, 0, NULL);
		assert_non_null(events);
		json_decref(events);
		text[cut] = after;
	}
	assert_true(bytes > 4 * 4096);
	free(text);
}

static void a_killed_process_leaves_whole_events(void **state)
{
	(void)state;
	int status = trace_in_child("killed.json", flush_and_die, NULL);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	json_t *events = trace_events_read(path, false);
	assert_int_equal(trace_events_count(events, "X", "before"), 1000);
	json_decref(events);
	check_pages(path);
}

/* ---- forks, and names ---- */

static void fork_within(void)
{
	uint64_t began = gw_trace_begin();
	pid_t child = fork();
	if (child == 0) {
		alarm(LIMIT_S);
		gw_trace_end(gw_trace_begin(), "child");
		exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	gw_trace_end(began, "parent");
	char from[192], to[160];
	snprintf(from, sizeof(from), "%s.%d", path, (int)child);
	snprintf(to, sizeof(to), "%s.child", path);
	if (status != 0 || rename(from, to) != 0)
		_exit(2);
}

static void a_forked_child_has_a_file_of_its_own(void **state)
{
	(void)state;
#if defined(__SANITIZE_THREAD__) /* such a child may start no threads */
	skip();
#endif
	char childs[160];
	assert_int_equal(trace_in_child("fork.json", fork_within, NULL), 0);
	json_t *parent = trace_events_read(path, true);
	snprintf(childs, sizeof(childs), "%s.child", path);
	json_t *child = trace_events_read(childs, true);
	assert_int_equal(trace_events_count(parent, "X", "parent"), 1);
	assert_int_equal(trace_events_count(parent, "X", "child"), 0);
	assert_int_equal(trace_events_count(child, "X", "child"), 1);
	assert_int_equal(trace_events_count(child, "X", "parent"), 0);
	json_decref(parent);
	json_decref(child);
}

static void one_span(void)
{
	gw_trace_end(gw_trace_begin(), "one");
}

static void names_have_the_process_and_the_host(void **state)
{
	(void)state;
	struct utsname host;
	char expected[256];
	pid_t child;
	uname(&host);
	assert_int_equal(trace_in_child("t-%p-%h-100%%.json", one_span, &child), 0);
	snprintf(expected, sizeof(expected), "%s/t-%d-%s-100%%.json", folder, (int)child, host.nodename);
	json_t *events = trace_events_read(expected, true);
	assert_int_equal(trace_events_count(events, "X", "one"), 1);
	json_decref(events);
	assert_int_equal(trace_in_child("again.json", flush_and_die, NULL), SIGKILL);
	assert_int_equal(trace_in_child("again.json", one_span, NULL), 0);
	events = trace_events_read(path, true); /* replaces the longer file */
	assert_int_equal(trace_events_count(events, "X", "before"), 0);
	json_decref(events);
}

/* ---- files that cannot be written ---- */

static void expect_no_trace(void)
{
	if (gw_trace_begin() != 0 || gw_trace_is_on() || atomic_load(&log_lines) != 1)
		_exit(1);
	gw_trace_end(1, "nothing");
	gw_trace_flush();
	gw_trace_open();
	if (atomic_load(&log_lines) != 1)
		_exit(2);
}

static void a_file_that_cannot_be_opened_is_one_line(void **state)
{
	(void)state;
	char fifo[128];
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	static const char *const names[] = {"none/file.json", ".", "fifo"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(trace_in_child(names[i], expect_no_trace, NULL), 0);
}

static void put_more_than_fits(void)
{
	while (gw_trace_is_on()) {
		gw_trace_end(gw_trace_begin(), "before");
		gw_trace_flush();
	}
	gw_trace_end(gw_trace_begin(), "after");
	while (atomic_load(&log_lines) == 0) /* the line comes after the end */
		sched_yield();
	if (atomic_load(&log_lines) != 1)
		_exit(1);
}

static void a_full_disk_ends_the_trace_alone(void **state)
{
	(void)state;
	const struct rlimit small = {10000, RLIM_INFINITY};
	struct rlimit before;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	int status = trace_in_child("full.json", put_more_than_fits, NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(status, 0);
	json_t *events = trace_events_read(path, false);
	assert_true(trace_events_count(events, "X", "before") > 10);
	assert_int_equal(trace_events_count(events, "X", "after"), 0);
	json_decref(events);
}

static void without_the_variable_there_is_none(void **state)
{
	(void)state;
	unsetenv("GRAPHWIRE_TRACE");
	gw_trace_open();
	assert_int_equal(gw_trace_begin(), 0);
	assert_false(gw_trace_is_on());
	gw_trace_end(0, NULL);
	gw_trace_flush();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_of_threads_nest),
		cmocka_unit_test(lost_events_are_counted),
		cmocka_unit_test(a_killed_process_leaves_whole_events),
		cmocka_unit_test(a_forked_child_has_a_file_of_its_own),
		cmocka_unit_test(names_have_the_process_and_the_host),
		cmocka_unit_test(a_file_that_cannot_be_opened_is_one_line),
		cmocka_unit_test(a_full_disk_ends_the_trace_alone),
		cmocka_unit_test(without_the_variable_there_is_none),
	};
	alarm(4 * LIMIT_S);
	gw_scratch_make(folder);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
