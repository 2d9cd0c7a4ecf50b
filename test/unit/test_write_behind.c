/* Files written in the background: their bytes and digests equal the data's, for lengths around every multiple of a
 * chunk. A failure is reported again by later calls, and ends the write. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/graph/npy.h"
#include "core/numbers/rng.h"
#include "tensors/array_file.h"
#include "test/support/alloc_fault.h"
#include "test/support/scratch.h"

#define CHUNK ((size_t)GW_DIGEST_CHUNK)
#define MOST  (2 * CHUNK + 3 * 4096 + 5)

static char scratch[64];
static uint8_t *data;

static void begin_scratch(bool in_memory)
{
	snprintf(scratch, sizeof(scratch), "/tmp/gw-test-write-behind-XXXXXX");
	if (in_memory)
		gw_scratch_make_in_memory("write-behind", scratch);
	else
		gw_scratch_make(scratch);
}

/* In odd pieces. */
static void check_array(struct gw_write_behind *writer, uint64_t bytes, size_t piece)
{
	char path[96], name[104];
	const uint64_t shape[1] = {bytes};
	struct gw_array_out *out;
	struct gw_array_in *in;
	struct gw_npy_file file;
	uint64_t digest = 0;
	snprintf(path, sizeof(path), "%s/array", scratch);
	snprintf(name, sizeof(name), "%s.npy", path);
	assert_int_equal(gw_array_out_begin(writer, path, GW_UINT8, 1, shape, &out), GW_OK);
	for (uint64_t at = 0, n; at < bytes; at += n) {
		n = bytes - at < piece ? bytes - at : piece;
		assert_int_equal(gw_array_out_append(out, data + at, n), GW_OK);
	}
	assert_int_equal(gw_array_out_end(out, &digest), GW_OK);
	assert_int_equal(gw_npy_open(name, &file), GW_OK);
	assert_int_equal(file.npy.data_bytes, bytes);
	assert_memory_equal(file.data, data, bytes);
	gw_npy_close(&file);

	uint64_t digests[4], count = gw_digest_count(bytes);
	for (uint64_t i = 0; i < count; i++)
		digests[i] = gw_digest(data + i * CHUNK, bytes - i * CHUNK < CHUNK ? bytes - i * CHUNK : CHUNK);
	assert_int_equal(digest, gw_digest(digests, count * sizeof(*digests)));
	assert_int_equal(gw_array_in_open(path, GW_UINT8, 1, shape, digest, &in), GW_OK);
	gw_array_in_close(in);
}

static void every_length(void **state)
{
	(void)state;
	const uint64_t lengths[] = {0, 1, 4095, 4096, 4097, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, MOST};
	for (int in_memory = 0; in_memory < 2; in_memory++) {
		struct gw_write_behind *writer;
		begin_scratch(in_memory);
		assert_int_equal(gw_write_behind_create(&writer), GW_OK);
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
			check_array(writer, lengths[i], 700001);
		check_array(writer, CHUNK + 1, CHUNK + 1);
		gw_write_behind_destroy(writer);
		assert_int_equal(gw_remove_tree(scratch), GW_OK);
	}
}

static void other_lengths_than_announced(void **state)
{
	(void)state;
	const uint64_t shape[1] = {100};
	char path[96];
	struct gw_write_behind *writer;
	struct gw_array_out *out;
	uint64_t digest;
	begin_scratch(true);
	snprintf(path, sizeof(path), "%s/array", scratch);
	assert_int_equal(gw_write_behind_create(&writer), GW_OK);
	const size_t wrong[] = {99, 101, 10000};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(gw_array_out_begin(writer, path, GW_UINT8, 1, shape, &out), GW_OK);
		assert_int_equal(gw_array_out_append(out, data, wrong[i]), GW_OK);
		assert_int_equal(gw_array_out_end(out, &digest), GW_INVALID);
	}
	/* Dropped while a chunk is being written. */
	const uint64_t large[1] = {MOST};
	assert_int_equal(gw_array_out_begin(writer, path, GW_UINT8, 1, large, &out), GW_OK);
	assert_int_equal(gw_array_out_append(out, data, CHUNK + 1), GW_OK);
	gw_array_out_drop(out);
	gw_write_behind_destroy(writer);
	assert_int_equal(gw_remove_tree(scratch), GW_OK);
}

/* The first failure stays, with its text, for every later call; no byte is written after it. */
static void a_full_disk(void **state)
{
	(void)state;
	struct gw_write_behind *writer;
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC), ends[2];
	char byte;
	assert_true(full >= 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(gw_write_behind_create(&writer), GW_OK);
	const struct gw_write_chunk bad = {.path = "full", .fd = full, .data = data, .bytes = 10};
	const struct gw_write_chunk good = {.path = "pipe", .fd = ends[1], .data = data, .bytes = 1};
	assert_int_equal(gw_write_behind_put(writer, &good), GW_OK);
	assert_int_equal(gw_write_behind_flush(writer), GW_OK);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(gw_write_behind_put(writer, &bad), GW_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(gw_write_behind_put(writer, &good), GW_NO_SPACE);
		assert_non_null(strstr(gw_last_error(), "full"));
	}
	assert_int_equal(gw_write_behind_flush(writer), GW_NO_SPACE);
	gw_write_behind_destroy(writer);
	assert_int_equal(read(ends[0], &byte, 1), -1);
	close(full);
	close(ends[0]);
	close(ends[1]);
}

static gw_status write_one(void *context)
{
	const uint64_t shape[1] = {CHUNK + 1};
	struct gw_write_behind *writer;
	struct gw_array_out *out;
	uint64_t digest;
	gw_status status = gw_write_behind_create(&writer);
	if (status == GW_OK)
		status = gw_array_out_begin(writer, context, GW_UINT8, 1, shape, &out);
	if (status == GW_OK) {
		status = gw_array_out_append(out, data, CHUNK + 1);
		if (status == GW_OK)
			status = gw_array_out_end(out, &digest);
		else
			gw_array_out_drop(out);
	}
	gw_write_behind_destroy(writer);
	return status;
}

static void allocations_fail(void **state)
{
	(void)state;
	char path[96];
	begin_scratch(true);
	snprintf(path, sizeof(path), "%s/array", scratch);
	assert_true(gw_fault_each(write_one, path) > 0);
	assert_int_equal(gw_remove_tree(scratch), GW_OK);
}

static int begin(void **state)
{
	(void)state;
	data = malloc(MOST);
	for (size_t i = 0; data && i < MOST; i += 8) {
		uint64_t word = gw_mix64(i);
		memcpy(data + i, &word, MOST - i < 8 ? MOST - i : 8);
	}
	return data ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	free(data);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length),
		cmocka_unit_test(other_lengths_than_announced),
		cmocka_unit_test(a_full_disk),
		cmocka_unit_test(allocations_fail),
	};
	return cmocka_run_group_tests_name("write_behind", tests, begin, end);
}
