/* Progress: a bar that fits the terminal, lines elsewhere, and no output for short work. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "core/system/progress.h"

#define TEXT_BYTES 4096

/* The stderr of a child that reports progress: at the start, when it is due, at the end. */
static void write_progress(int to, uint64_t total)
{
	struct gw_progress progress;
	dup2(to, STDERR_FILENO);
	gw_progress_begin(&progress, "streaming", "batches", total);
	progress.next_ns = UINT64_MAX; /* prevents output by time */
	gw_progress_update(&progress, 1000);
	progress.next_ns = 0; /* now */
	gw_progress_update(&progress, 123456);
	gw_progress_end(&progress, 234567);
	gw_progress_end(&progress, 345678); /* no line to end */
}

static void collect(int from, int to, uint64_t total, char text[TEXT_BYTES])
{
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		write_progress(to, total);
		_exit(0);
	}
	close(to);
	size_t used = 0;
	for (ssize_t n; used < TEXT_BYTES - 1 && (n = read(from, text + used, TEXT_BYTES - 1 - used)) > 0;)
		used += (size_t)n;
	text[used] = 0;
	close(from);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void on_terminal(unsigned short columns, uint64_t total, char text[TEXT_BYTES])
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	if (master < 0 || grantpt(master) || unlockpt(master))
		skip();
	int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	const struct winsize size = {.ws_col = columns, .ws_row = 24};
	assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
	collect(master, slave, total, text);
}

static void bar_fits_the_terminal(void **state)
{
	(void)state;
	static const unsigned short widths[] = {0, 10, 40, 80, 200};
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		char text[TEXT_BYTES];
		on_terminal(widths[i], 1000000, text);
		size_t width = widths[i] ? widths[i] : 80, draws = 0;
		for (char *at = strstr(text, "\r\033[K"), *next; at; at = next, draws++) {
			at += strlen("\r\033[K");
			next = strstr(at, "\r\033[K");
			assert_true((next ? (size_t)(next - at) : strlen(at)) < width);
		}
		assert_int_equal(draws, 2); /* drawn once, then removed */
		assert_null(strchr(text, '\n'));
		assert_string_equal(text + strlen(text) - 4, "\r\033[K");
		assert_int_equal(strchr(text, '#') != NULL, width == 200);
		assert_int_equal(strstr(text, "123 k of 1.00 M (12 %) batches") != NULL, width >= 80);
	}
}

static void lines_elsewhere(void **state)
{
	(void)state;
	char text[TEXT_BYTES];
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	collect(ends[0], ends[1], 1000000, text);
	char *second = strchr(text, '\n');
	assert_non_null(second);
	assert_non_null(strstr(text, "streaming 123 k of 1.00 M (12 %) batches, "));
	assert_non_null(strstr(second, "streaming 235 k of 1.00 M (23 %) batches, "));
	assert_null(strchr(text, '\r'));
	assert_ptr_equal(strchr(second + 1, '\n'), text + strlen(text) - 1);
	assert_int_equal(pipe(ends), 0);
	collect(ends[0], ends[1], 0, text); /* an unknown total */
	assert_non_null(strstr(text, "streaming 123 k batches, "));
	assert_int_equal(pipe(ends), 0);
	collect(ends[0], ends[1], 200000, text); /* the announced total is too low */
	assert_non_null(strstr(text, "streaming 123 k of 200 k (62 %) batches, "));
	assert_non_null(strstr(text, "streaming 235 k batches, "));
}

static void short_work_prints_nothing(void **state)
{
	(void)state;
	struct gw_progress progress;
	gw_progress_begin(&progress, "loading", "B", 10);
	gw_progress_update(&progress, 5);
	assert_false(progress.drawn);
	gw_progress_end(&progress, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bar_fits_the_terminal),
		cmocka_unit_test(lines_elsewhere),
		cmocka_unit_test(short_work_prints_nothing),
	};
	return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
