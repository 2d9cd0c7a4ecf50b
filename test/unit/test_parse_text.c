/* Inputs as texts: plain, gzip in one or several streams, pipes; truncated, damaged, binary, or compressed in another
 * format. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/support/alloc_fault.h"
#include "test/support/import_bed.h"
#include "tools/builder/spill.h"
#include "tools/import/text.h"

static gw_status open_name(const char *name, struct gw_text *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", import_bed.root, name);
	return gw_text_open(path, NULL, text);
}

static char *slurp(const char *name, size_t *bytes)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", import_bed.root, name);
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	char *data = malloc(8 << 20);
	*bytes = fread(data, 1, 8 << 20, file);
	fclose(file);
	return data;
}

static char *long_text(size_t *bytes)
{
	size_t used = 0;
	char *text = malloc(6 << 20);
	for (unsigned i = 0; used < (5u << 20); i++)
		used += (size_t)sprintf(text + used, "%u\t%u\n", i, i * 2654435761u);
	*bytes = used;
	return text;
}

static void plain_and_gzip_are_one(void **state)
{
	(void)state;
	size_t bytes;
	char *data = long_text(&bytes);
	struct gw_text text;
	import_bed_file(&import_bed, "plain", data, bytes);
	import_bed_gzip(&import_bed, "packed.gz", data, bytes);
	assert_int_equal(open_name("plain", &text), GW_OK);
	assert_int_equal(text.bytes, bytes);
	assert_memory_equal(text.data, data, bytes);
	assert_false(text.inflated);
	gw_text_close(&text);
	assert_int_equal(open_name("packed.gz", &text), GW_OK);
	assert_int_equal(text.bytes, bytes);
	assert_memory_equal(text.data, data, bytes);
	assert_true(text.inflated);
	assert_true(text.file_bytes < bytes);
	gw_text_close(&text);
	free(data);
}

static void streams_in_a_row(void **state)
{
	(void)state;
	struct gw_text text;
	size_t a, b;
	import_bed_gzip(&import_bed, "a.gz", "one\n", 4);
	import_bed_gzip(&import_bed, "b.gz", "two\n", 4);
	char *first = slurp("a.gz", &a), *second = slurp("b.gz", &b);
	memcpy(first + a, second, b);
	memset(first + a + b, 0, 100); /* padding */
	import_bed_file(&import_bed, "both.gz", first, a + b + 100);
	assert_int_equal(open_name("both.gz", &text), GW_OK);
	assert_int_equal(text.bytes, 8);
	assert_memory_equal(text.data, "one\ntwo\n", 8);
	gw_text_close(&text);
	import_bed_gzip(&import_bed, "empty.gz", "", 0);
	assert_int_equal(open_name("empty.gz", &text), GW_OK);
	assert_int_equal(text.bytes, 0);
	gw_text_close(&text);
	free(first);
	free(second);
}

/* The CRC detects a flipped bit at the latest. */
static void truncated_and_damaged_gzip(void **state)
{
	(void)state;
	size_t bytes, plain_bytes;
	char *data = long_text(&plain_bytes);
	struct gw_text text;
	import_bed_gzip(&import_bed, "whole.gz", data, 20000);
	char *packed = slurp("whole.gz", &bytes);
	for (size_t cut = 3; cut < bytes; cut += 37) {
		import_bed_file(&import_bed, "cut.gz", packed, cut);
		assert_int_equal(open_name("cut.gz", &text), GW_FORMAT);
		assert_non_null(strstr(gw_last_error(), "cut.gz"));
		assert_null(text.data);
	}
	for (size_t at = 10; at < bytes; at += 101) {
		packed[at] ^= 0x10;
		import_bed_file(&import_bed, "bad.gz", packed, bytes);
		if (open_name("bad.gz", &text) == GW_OK) { /* the check covers the size field's upper bits too */
			fail_msg("a flipped bit at %zu of %zu went unnoticed", at, bytes);
		}
		packed[at] ^= 0x10;
	}
	free(packed);
	free(data);
}

static void expect_refused(const char *bytes, size_t count, gw_status status, const char *why)
{
	struct gw_text text;
	import_bed_file(&import_bed, "odd", bytes, count);
	assert_int_equal(open_name("odd", &text), status);
	assert_non_null(strstr(gw_last_error(), why));
	assert_null(text.name);
}

static void what_is_no_text(void **state)
{
	(void)state;
	struct gw_text text;
	expect_refused("PAR1abc", 7, GW_UNSUPPORTED, "Parquet");
	expect_refused("\x28\xb5\x2f\xfd....", 8, GW_UNSUPPORTED, "zstd");
	expect_refused("BZh9....", 8, GW_UNSUPPORTED, "bzip2");
	expect_refused("\xfd"
		       "7zXZ...",
		       8, GW_UNSUPPORTED, "xz");
	expect_refused("PK\x03\x04....", 8, GW_UNSUPPORTED, "npz");
	expect_refused("\x93NUMPY..", 8, GW_UNSUPPORTED, "npy");
	expect_refused("1 2\n3\0 4\n", 9, GW_FORMAT, "offset 5");
	assert_int_equal(open_name("missing", &text), GW_NOT_FOUND);
	assert_int_equal(gw_text_open(import_bed.root, NULL, &text), GW_INVALID);
	assert_non_null(strstr(gw_last_error(), "folder"));
	import_bed_file(&import_bed, "empty", "", 0);
	assert_int_equal(open_name("empty", &text), GW_OK);
	assert_int_equal(text.bytes, 0);
	gw_text_close(&text);
}

struct feeder {
	int fd;
	const char *data;
	size_t bytes;
};

static void *feed(void *argument)
{
	struct feeder *feeder = argument;
	for (size_t done = 0; done < feeder->bytes;) {
		ssize_t wrote = write(feeder->fd, feeder->data + done, feeder->bytes - done);
		if (wrote <= 0)
			break;
		done += (size_t)wrote;
	}
	close(feeder->fd);
	return NULL;
}

static void pipes(void **state)
{
	(void)state;
	size_t bytes, packed_bytes;
	char *data = long_text(&bytes);
	import_bed_gzip(&import_bed, "piped.gz", data, bytes);
	char *packed = slurp("piped.gz", &packed_bytes);
	/* In memory, in a file from the start, from the second growth on, and in memory that is the spill's again. */
	static const uint64_t budgets[] = {0, 0, 5u << 20, 1u << 30};
	for (int i = 0; i < 8; i++) {
		int ends[2], compressed = i % 2, kind = i / 2;
		pthread_t thread;
		struct gw_text text;
		struct gw_spill spill;
		assert_int_equal(gw_spill_open(&spill, import_bed.root, budgets[kind]), GW_OK);
		assert_int_equal(pipe(ends), 0);
		struct feeder feeder = {
			.fd = ends[1], .data = compressed ? packed : data, .bytes = compressed ? packed_bytes : bytes};
		assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
		assert_int_equal(gw_text_open_fd("a pipe", ends[0], kind ? &spill : NULL, &text), GW_OK);
		pthread_join(thread, NULL);
		close(ends[0]);
		assert_int_equal(text.bytes, bytes);
		assert_memory_equal(text.data, data, bytes);
		uint64_t in_files = kind == 1 && compressed ? packed_bytes + bytes : kind == 1 || kind == 2 ? bytes : 0;
		assert_int_equal(spill.file_bytes, in_files);
		assert_int_equal(spill.budget < budgets[kind], kind == 3);
		gw_text_close(&text);
		assert_int_equal(spill.budget, budgets[kind]);
		gw_spill_close(&spill);
	}
	free(packed);
	free(data);
}

static gw_status open_packed(void *context)
{
	struct gw_text text;
	gw_status status = open_name(context, &text);
	if (status == GW_OK)
		gw_text_close(&text);
	return status;
}

static void shortage(void **state)
{
	(void)state;
	char name[] = "short.gz";
	import_bed_gzip(&import_bed, name, "1 2\n", 4);
	assert_true(gw_fault_each(open_packed, name) > 0);
}

static void utf8(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t good;
	} cases[] = {
		{"", 0},
		{"plain text of more than eight bytes", 35},
		{"caf\xc3\xa9 and more text", 19},
		{"\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf", 11},
		{"Jos\xe9", 3}, /* Latin-1 */
		{"12345678\xe9 12345678", 8},
		{"a\xc3", 1},                /* cut off */
		{"a\x80", 1},                /* no beginning */
		{"\xc0\xaf", 0},             /* overlong */
		{"\xe0\x80\xaf", 0},         /* likewise */
		{"x\xed\xa0\x80", 1},        /* a surrogate */
		{"\xf4\x90\x80\x80", 0},     /* beyond the last Unicode character */
		{"\xf8\x88\x80\x80\x80", 0}, /* five bytes */
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(gw_text_utf8(cases[i].text, strlen(cases[i].text)), cases[i].good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_and_gzip_are_one),
		cmocka_unit_test(streams_in_a_row),
		cmocka_unit_test(truncated_and_damaged_gzip),
		cmocka_unit_test(what_is_no_text),
		cmocka_unit_test(pipes),
		cmocka_unit_test(shortage),
		cmocka_unit_test(utf8),
	};
	return cmocka_run_group_tests_name("parse_text", tests, import_bed_set_up, import_bed_tear_down);
}
