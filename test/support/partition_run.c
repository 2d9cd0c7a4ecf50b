/* See partition_run.h. */
#include "test/support/partition_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/tools.h"

#define WORDS_MAX 24

void partition_begin(struct gw_fixture *fixture, uint64_t seed, uint64_t scale)
{
	gw_fixture_begin(fixture, seed, scale, 1);
	gw_fixture_write(fixture);
}

int partition_run(const char *root, const char *in, const char *out, const char *const *words)
{
	char text[WORDS_MAX + 4][256], path[300];
	char *argv[WORDS_MAX + 5];
	int argc = 0;
	const char *first[] = {"partition", in, "--out", out};
	for (int i = 0; i < 4; i++)
		snprintf(text[argc++], sizeof(text[0]), "%s", first[i]);
	for (int i = 0; words[i]; i++)
		snprintf(text[argc++], sizeof(text[0]), "%s", words[i]);
	for (int i = 0; i < argc; i++)
		argv[i] = text[i];
	argv[argc] = NULL;
	fflush(NULL);
	int saved[2] = {dup(1), dup(2)};
	snprintf(path, sizeof(path), "%s/stdout", root);
	assert_non_null(freopen(path, "w", stdout));
	snprintf(path, sizeof(path), "%s/stderr", root);
	assert_non_null(freopen(path, "w", stderr));
	int status = gw_tool_partition(argc, argv);
	fflush(NULL);
	dup2(saved[0], 1);
	dup2(saved[1], 2);
	close(saved[0]);
	close(saved[1]);
	return status;
}

void partition_text(const char *root, const char *name, char *text, size_t room)
{
	char path[300];
	snprintf(path, sizeof(path), "%s/%s", root, name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, room - 1, file)] = '\0';
	fclose(file);
}

void partition_run_ok(const char *root, const char *in, const char *out, const char *const *words)
{
	char text[2048];
	if (partition_run(root, in, out, words) != 0) {
		partition_text(root, "stderr", text, sizeof(text));
		fail_msg("%s", text);
	}
}

void partition_expect_error(struct gw_fixture *fixture, const char *in, const char *out, const char *const *words,
			    int status, const char *told)
{
	char text[4096];
	assert_int_equal(partition_run(fixture->root, in, out, words), status);
	partition_text(fixture->root, "stderr", text, sizeof(text));
	if (!strstr(text, told))
		fail_msg("\"%s\" does not tell of \"%s\"", text, told);
	assert_non_null(strchr(text, '\n'));
	assert_string_equal(strchr(text, '\n'), "\n"); /* one line */
}
