/* Error texts: one line per thread, context before the cause, bounded lengths. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/errors/status.h"

static void test_every_status_has_a_text(void **state)
{
	(void)state;
	for (int i = 0; i < GW_STATUS_COUNT; i++) {
		assert_string_not_equal(gw_status_text((gw_status)i), "unknown status");
		for (int j = 0; j < i; j++)
			assert_string_not_equal(gw_status_text((gw_status)i), gw_status_text((gw_status)j));
	}
	assert_string_equal(gw_status_text(GW_STATUS_COUNT), "unknown status");
	assert_string_equal(gw_status_text((gw_status)-1), "unknown status");
}

static void test_context_comes_first(void **state)
{
	(void)state;
	assert_int_equal(gw_fail(GW_FORMAT, "row %d: %s", 7, "id out of range"), GW_FORMAT);
	assert_int_equal(gw_context(GW_FORMAT, "part%d", 2), GW_FORMAT);
	assert_string_equal(gw_last_error(), "part2: row 7: id out of range");
}

static void test_advice_comes_last(void **state)
{
	(void)state;
	char text[GW_ERROR_TEXT_MAX + 64];
	gw_fail(GW_FORMAT, "indptr.npy: truncated");
	assert_int_equal(gw_advise(GW_FORMAT, "copy it again"), GW_FORMAT);
	gw_context(GW_FORMAT, "part 2");
	assert_string_equal(gw_last_error(), "part 2: indptr.npy: truncated; copy it again");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	gw_fail(GW_IO, "%s", text);
	gw_advise(GW_IO, "no room for this"); /* nor beyond it */
	assert_int_equal(strlen(gw_last_error()), GW_ERROR_TEXT_MAX - 1);
}

static void test_errno_text_and_status(void **state)
{
	(void)state;
	assert_int_equal(gw_fail_errno(GW_IO, EACCES, "open %s", "x"), GW_IO);
	assert_string_equal(gw_last_error(), "open x: Permission denied");
	assert_int_equal(gw_fail_errno(GW_IO, ENOSPC, "write"), GW_NO_SPACE);
	assert_int_equal(gw_fail_errno(GW_IO, EDQUOT, "write"), GW_NO_SPACE);
	assert_int_equal(gw_fail_errno(GW_IO, ENOMEM, "map"), GW_NO_MEMORY);
	assert_int_equal(gw_fail_errno(GW_IO, EMFILE, "open"), GW_LIMIT);
	assert_int_equal(gw_fail_errno(GW_IO, ENFILE, "open"), GW_LIMIT);
	assert_int_equal(gw_fail_errno(GW_UNSUPPORTED, ENOMEM, "map"), GW_UNSUPPORTED);
}

static void test_long_text_is_cut(void **state)
{
	(void)state;
	char text[3 * GW_ERROR_TEXT_MAX];
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	gw_fail(GW_IO, "%s", text);
	assert_int_equal(strlen(gw_last_error()), GW_ERROR_TEXT_MAX - 1);
	gw_fail_errno(GW_IO, EIO, "%s", text);
	gw_context(GW_IO, "%s", text);
	assert_int_equal(strlen(gw_last_error()), GW_ERROR_TEXT_MAX - 1);
	gw_fail_text(GW_IO, text);
	assert_int_equal(strlen(gw_last_error()), GW_ERROR_TEXT_MAX - 1);
}

static void test_text_is_one_plain_line(void **state)
{
	(void)state;
	gw_fail(GW_FORMAT, "name \"%s\"", "a\nb\x1b[31m\x7f\tc \xc3\xa9");
	gw_context(GW_FORMAT, "%s", "file\r\n");
	assert_string_equal(gw_last_error(), "file\?\?: name \"a?b?[31m\?\?c \xc3\xa9\"");
	gw_fail_text(GW_FORMAT, "from a peer\n");
	assert_string_equal(gw_last_error(), "from a peer?");
}

/* C1 controls in UTF-8 are not letters; letters with similar bytes are. */
static void test_text_without_terminal_codes(void **state)
{
	(void)state;
	gw_fail(GW_FORMAT, "%s",
		"a\xc2\x9b"
		"31m\xc2\x80\xc2\xa0\xc3\x9f\xc2");
	assert_string_equal(gw_last_error(), "a\?\?31m\?\?\xc2\xa0\xc3\x9f\xc2");
}

static void test_text_of_the_old_text(void **state)
{
	(void)state;
	gw_fail(GW_IO, "first");
	gw_fail(GW_IO, "second: %s; %s", gw_last_error(), gw_last_error());
	assert_string_equal(gw_last_error(), "second: first; first");
	gw_context(GW_IO, "third: %s", gw_last_error());
	assert_string_equal(gw_last_error(), "third: second: first; first: second: first; first");
	gw_fail_errno(GW_IO, EIO, "%.5s", gw_last_error());
	assert_string_equal(gw_last_error(), "third: Input/output error");
	gw_fail_text(GW_IO, gw_last_error() + 7);
	assert_string_equal(gw_last_error(), "Input/output error");
}

static void test_kept_text_comes_back(void **state)
{
	(void)state;
	struct gw_error_kept outer, inner;
	gw_fail(GW_IO, "to be told");
	const char *text = gw_last_error();
	gw_error_keep(&outer);
	gw_fail(GW_CANCELLED, "the endpoint was closed, and more is said about that");
	gw_error_keep(&inner);
	gw_fail(GW_IO, "x");
	gw_error_restore(&inner);
	assert_string_equal(gw_last_error(), "the endpoint was closed, and more is said about that");
	gw_error_restore(&outer);
	assert_string_equal(text, "to be told");
}

static void *fail_elsewhere(void *unused)
{
	(void)unused;
	gw_fail(GW_IO, "another thread");
	return NULL;
}

static void test_text_belongs_to_its_thread(void **state)
{
	(void)state;
	gw_fail(GW_IO, "this thread");
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
	pthread_join(thread, NULL);
	assert_string_equal(gw_last_error(), "this thread");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_status_has_a_text),     cmocka_unit_test(test_context_comes_first),
		cmocka_unit_test(test_errno_text_and_status),       cmocka_unit_test(test_long_text_is_cut),
		cmocka_unit_test(test_text_belongs_to_its_thread),  cmocka_unit_test(test_text_is_one_plain_line),
		cmocka_unit_test(test_text_without_terminal_codes), cmocka_unit_test(test_text_of_the_old_text),
		cmocka_unit_test(test_advice_comes_last),           cmocka_unit_test(test_kept_text_comes_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
