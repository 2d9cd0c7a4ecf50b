/* A queue of lines for a reader that stops: no call waits for it, lines stay whole and in order, and the lost ones are
 * counted at their place. */
#include <errno.h>
#include <fcntl.h>
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

#include "core/errors/lines.h"
#include "core/numbers/rng.h"

#define LIMIT_S    120 /* ends a test that hangs */
#define DRAIN_MS   60000
#define RING_BYTES 5000
#define FIT        44  /* lines of 93 bytes and more: the ring has room for them, and a pipe of a page does not */
#define MANY       200 /* more than both have room for */

static size_t describe(char *out, uint64_t lost)
{
	return (size_t)sprintf(out, "lost %llu\n", (unsigned long long)lost);
}

/* Each test has its own queue, because a queue's thread never ends. */
#define QUEUE(name)                                                                                                    \
	static char name##_ring[RING_BYTES];                                                                           \
	static struct gw_lines name = GW_LINES(-1, name##_ring, describe)

/* A pipe of one page; the queue writes to it. Its end for writing is not closed on exec, as stderr is not. */
static int open_pipe(struct gw_lines *lines)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) > 0);
	lines->fd = ends[1];
	return ends[0];
}

static void put_number(struct gw_lines *lines, unsigned number, size_t bytes)
{
	char line[GW_LINES_BYTES_MAX];
	int n = sprintf(line, "%u ", number);
	memset(line + n, 'x', bytes);
	strcpy(line + n + bytes, "\n");
	gw_lines_put(lines, line, strlen(line));
}

struct seen {
	unsigned next; /* number of the next line, if none is lost */
	unsigned lost, whole;
};

/* Reads whole lines until `lines` of them have come or the pipe ends. Each has the next number, after those that a line
 * "lost" counts. */
static void check_read(FILE *from, struct seen *seen, unsigned until)
{
	static char line[GW_LINES_BYTES_MAX + 1];
	while (seen->next < until && fgets(line, sizeof(line), from)) {
		unsigned number;
		assert_non_null(strchr(line, '\n'));
		if (sscanf(line, "lost %u", &number) == 1) {
			assert_true(number > 0);
			seen->lost += number;
			seen->next += number;
			continue;
		}
		assert_int_equal(sscanf(line, "%u ", &number), 1);
		assert_int_equal(number, seen->next);
		size_t text = strcspn(line, " ") + 1;
		assert_int_equal(strspn(line + text, "x"), strlen(line + text) - 1);
		seen->next++;
		seen->whole++;
	}
}

static void lost_lines_are_counted_in_their_place(void **state)
{
	(void)state;
	QUEUE(lines);
	alarm(LIMIT_S);
	FILE *from = fdopen(open_pipe(&lines), "r");
	struct gw_draws draws = gw_draws_begin(41, 0);
	struct seen seen = {0};
	unsigned put = 0;
	for (int round = 0; round < 20; round++) {
		for (unsigned i = 0, burst = 300 + gw_draw_below(&draws, 300); i < burst; i++)
			put_number(&lines, put++, gw_draw_below(&draws, i % 50 == 0 ? 2000 : 100));
		check_read(from, &seen, put);
		assert_int_equal(seen.next, put);
		assert_int_equal(gw_lines_drain(&lines, DRAIN_MS), 0);
	}
	assert_int_equal(seen.whole + seen.lost, put);
	assert_true(seen.lost > 20 && seen.whole > 20 * 30);
	fclose(from);
}

static void a_reader_that_reads_gets_all(void **state)
{
	(void)state;
	QUEUE(lines);
	alarm(LIMIT_S);
	int from = open_pipe(&lines);
	char text[64];
	for (unsigned i = 0; i < 2000; i++) {
		put_number(&lines, i, 0);
		assert_int_equal(gw_lines_drain(&lines, DRAIN_MS), 0);
		ssize_t bytes = read(from, text, sizeof(text));
		assert_true(bytes >= 3 && text[bytes - 1] == '\n');
		assert_int_equal(strtoul(text, NULL, 10), i);
	}
	close(from);
}

#if !defined(__SANITIZE_THREAD__) /* a child may start no threads there */
static void a_child_begins_with_an_empty_queue(void **state)
{
	(void)state;
	QUEUE(lines);
	alarm(LIMIT_S);
	FILE *from = fdopen(open_pipe(&lines), "r");
	for (unsigned i = 0; i < MANY; i++)
		put_number(&lines, i, 90);
	assert_int_equal(gw_lines_drain(&lines, 1), ETIMEDOUT);
	pid_t child = fork();
	if (child == 0) {
		char text[16];
		int own = open_pipe(&lines);
		alarm(LIMIT_S);
		put_number(&lines, 7, 0);
		bool good = gw_lines_drain(&lines, DRAIN_MS) == 0 && read(own, text, sizeof(text)) == 3;
		_exit(good && memcmp(text, "7 \n", 3) == 0 ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	struct seen seen = {0};
	check_read(from, &seen, MANY);
	assert_int_equal(seen.whole + seen.lost, MANY);
	fclose(from);
}

#endif

/* With the descriptor closed, its number goes to a private file. Lines do not, and are counted until the number is a
 * standard descriptor again. */
static void a_private_descriptor_gets_no_line(void **state)
{
	(void)state;
	QUEUE(lines);
	alarm(LIMIT_S);
	FILE *from = fdopen(open_pipe(&lines), "r");
	int kept = fcntl(lines.fd, F_DUPFD_CLOEXEC, 0);
	close(lines.fd);
	put_number(&lines, 0, 0);
	assert_int_equal(gw_lines_drain(&lines, DRAIN_MS), EBADF);
	assert_int_equal(dup3(kept, lines.fd, O_CLOEXEC), lines.fd);
	put_number(&lines, 1, 0);
	assert_int_equal(gw_lines_drain(&lines, DRAIN_MS), EBADF);
	assert_int_equal(dup2(kept, lines.fd), lines.fd);
	put_number(&lines, 2, 0);
	assert_int_equal(gw_lines_drain(&lines, DRAIN_MS), 0);
	struct seen seen = {0};
	check_read(from, &seen, 3);
	assert_int_equal(seen.lost, 2);
	fclose(from);
	close(kept);
	put_number(&lines, 3, 0); /* SIGPIPE would end this program */
	assert_int_equal(gw_lines_drain(&lines, DRAIN_MS), EPIPE);
}

#if !defined(__SANITIZE_THREAD__)
/* Runs in a child, which exits with lines that its pipe has no room for. */
static void fill_and_exit(struct gw_lines *lines, uint32_t exit_ms)
{
	gw_lines_limit_exit(exit_ms);
	for (unsigned i = 0; i < FIT; i++)
		put_number(lines, i, 90);
	exit(0);
}

static void the_last_lines_get_out_at_the_exit(void **state)
{
	(void)state;
	QUEUE(lines);
	alarm(LIMIT_S);
	for (int reads = 0; reads < 2; reads++) {
		FILE *from = fdopen(open_pipe(&lines), "r");
		fflush(NULL);
		pid_t child = fork();
		if (child == 0)
			fill_and_exit(&lines, reads ? DRAIN_MS : 10);
		close(lines.fd);
		struct seen seen = {0};
		int status;
		if (reads)
			check_read(from, &seen, FIT);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_int_equal(seen.whole, reads ? FIT : 0);
		fclose(from);
	}
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_lines_are_counted_in_their_place),
		cmocka_unit_test(a_reader_that_reads_gets_all),
		cmocka_unit_test(a_private_descriptor_gets_no_line),
#if !defined(__SANITIZE_THREAD__)
		cmocka_unit_test(a_child_begins_with_an_empty_queue),
		cmocka_unit_test(the_last_lines_get_out_at_the_exit),
#endif
	};
	return cmocka_run_group_tests_name("queue of lines", tests, NULL, NULL);
}
