/* The log: levels, one plain line per event, errno unchanged, complete lines from several threads. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/errors/log.h"

static char last_line[4096];
static int last_level, lines;

static void keep(void *context, enum gw_log_level level, const char *line)
{
	assert_ptr_equal(context, &lines);
	snprintf(last_line, sizeof(last_line), "%s", line);
	last_level = (int)level;
	lines++;
}

static int set_up(void **state)
{
	(void)state;
	lines = 0;
	gw_log_set_sink(keep, &lines);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	gw_log_set_sink(NULL, NULL);
	gw_log_set_level(GW_LOG_WARN);
	return 0;
}

static void levels(void **state)
{
	(void)state;
	for (int limit = GW_LOG_ERROR; limit <= GW_LOG_DEBUG; limit++) {
		gw_log_set_level((enum gw_log_level)limit);
		lines = 0;
		for (int level = GW_LOG_ERROR; level <= GW_LOG_DEBUG; level++)
			gw_log((enum gw_log_level)level, "line of level %d", level);
		assert_int_equal(lines, limit + 1);
		assert_int_equal(last_level, limit);
	}
	assert_string_equal(last_line, "line of level 3");
}

static void lines_are_plain_and_bounded(void **state)
{
	(void)state;
	gw_log(GW_LOG_ERROR, "client \"%s\"", "x\nerror: forged\x1b[2J");
	assert_string_equal(last_line, "client \"x?error: forged?[2J\"");
	char text[9000];
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	gw_log(GW_LOG_ERROR, "%s", text);
	assert_int_equal(strlen(last_line), 2047);
}

static void errno_stays(void **state)
{
	(void)state;
	errno = EXDEV;
	gw_log(GW_LOG_ERROR, "%s", "a line");
	gw_log(GW_LOG_DEBUG, "%s", "none");
	assert_int_equal(errno, EXDEV);
}

#define THREADS 8
#define LINES   200

static void *write_lines(void *context)
{
	for (int i = 0; i < LINES; i++)
		gw_log(GW_LOG_ERROR, "thread %c says %s.", *(char *)context, "something that is not short at all");
	return NULL;
}

/* In a child, whose stderr is a pipe and whose level comes from the environment. */
static void write_to_stderr(const char *level, int fd)
{
	char names[THREADS] = "abcdefgh";
	pthread_t threads[THREADS];
	dup2(fd, STDERR_FILENO);
	setenv("GRAPHWIRE_LOG", level, 1);
	gw_log(GW_LOG_WARN, "only for who wants warnings");
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, write_lines, &names[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	errno = EXDEV;
	gw_log(GW_LOG_ERROR, "the end");
	_exit(errno == EXDEV ? 0 : 1);
}

/* Returns the number of lines. */
static int check_lines(FILE *from)
{
	char line[256];
	int count = 0;
	for (; fgets(line, sizeof(line), from); count++) {
		int used = 0;
		unsigned year, month, day, h, m, s, ms;
		assert_int_equal(
			sscanf(line, "%4u-%2u-%2uT%2u:%2u:%2u.%3uZ %n", &year, &month, &day, &h, &m, &s, &ms, &used),
			7);
		assert_int_equal(used, 25);
		char *text = line + used, *end = strchr(text, '\n');
		assert_non_null(end);
		*end = 0;
		if (strncmp(text, "error thread ", 13) == 0)
			assert_string_equal(text + 14, " says something that is not short at all.");
		else
			assert_true(strcmp(text, "error the end") == 0 ||
				    strcmp(text, "warn only for who wants warnings") == 0);
	}
	return count;
}

static int run_child(const char *level)
{
	int ends[2], status;
	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		write_to_stderr(level, ends[1]);
	close(ends[1]);
	FILE *from = fdopen(ends[0], "r");
	int count = check_lines(from);
	fclose(from);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return count;
}

/* This test must be first: the environment is read once, before a level is set. */
static void stderr_of_many_threads(void **state)
{
	(void)state;
	assert_int_equal(run_child("error"), THREADS * LINES + 1);
	assert_int_equal(run_child("warn"), THREADS * LINES + 2);
	assert_int_equal(run_child("nonsense"), THREADS * LINES + 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stderr_of_many_threads),
		TEST(levels),
		TEST(lines_are_plain_and_bounded),
		TEST(errno_stays),
	};
	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
