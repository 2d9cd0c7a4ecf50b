/* Runs that are written through buffers and read back, compared with plain arrays; in memory and in a file; with
 * buffers of one page and of more, and items that are longer than a buffer. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "core/errors/status.h"
#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "tools/builder/run_reader.h"
#include "tools/builder/run_writer.h"

#define RUNS  7u
#define ITEMS 60000u /* of 40 bytes: more than the memory that a block takes without a file */
#define BYTES 40u

struct runs_bed {
	struct gw_spill spill;
	uint8_t *expected;
	uint64_t starts[RUNS + 1];
	uint8_t run_of[ITEMS];
};

static uint64_t word(uint64_t i, uint64_t salt)
{
	return gw_philox(salt, i, 0).word[0];
}

/* Runs of uneven lengths, the third of which is empty. */
static void make_runs(struct runs_bed *bed, uint64_t budget, uint64_t salt)
{
	uint64_t cursors[RUNS];
	memset(bed, 0, sizeof(*bed));
	assert_int_equal(gw_spill_open(&bed->spill, "/tmp/graph", budget), GW_OK);
	bed->expected = malloc((uint64_t)ITEMS * BYTES);
	for (uint64_t i = 0; i < ITEMS; i++) {
		uint64_t run = word(i, salt) % (RUNS * RUNS) / (word(i, salt + 1) % RUNS + 1);
		bed->run_of[i] = (uint8_t)(run == 2 ? 3 : run % RUNS == 2 ? 0 : run % RUNS);
		bed->starts[bed->run_of[i] + 1]++;
	}
	for (uint32_t run = 0; run < RUNS; run++)
		bed->starts[run + 1] += bed->starts[run];
	memcpy(cursors, bed->starts, sizeof(cursors));
	for (uint64_t i = 0; i < ITEMS; i++) {
		uint64_t at = cursors[bed->run_of[i]]++;
		for (uint32_t b = 0; b < BYTES; b++)
			bed->expected[at * BYTES + b] = (uint8_t)(i * 31 + b);
	}
}

static void end_runs(struct runs_bed *bed, void *block)
{
	gw_spill_give(block);
	gw_spill_close(&bed->spill);
	free(bed->expected);
}

static gw_status write_items(const struct runs_bed *bed, void *block, uint64_t memory)
{
	struct gw_run_writer writer;
	uint64_t cursors[RUNS];
	memcpy(cursors, bed->starts, sizeof(cursors));
	gw_status status = gw_run_writer_open(block, BYTES, bed->starts, RUNS, memory, &writer);
	for (uint64_t i = 0; i < ITEMS && status == GW_OK; i++)
		gw_run_writer_add(&writer, bed->run_of[i], bed->expected + cursors[bed->run_of[i]]++ * BYTES, BYTES);
	gw_status closed = gw_run_writer_close(&writer);
	return status != GW_OK ? status : closed;
}

static gw_status read_items(const struct runs_bed *bed, void *block, uint64_t memory)
{
	struct gw_run_reader reader;
	uint64_t cursors[RUNS];
	memcpy(cursors, bed->starts, sizeof(cursors));
	gw_status status = gw_run_reader_open(block, BYTES, bed->starts, RUNS, memory, &reader);
	for (uint64_t i = 0; i < ITEMS && status == GW_OK; i++)
		assert_memory_equal(gw_run_reader_next(&reader, bed->run_of[i]),
				    bed->expected + cursors[bed->run_of[i]]++ * BYTES, BYTES);
	gw_status closed = gw_run_reader_close(&reader);
	return status != GW_OK ? status : closed;
}

static const uint64_t memories[] = {1, RUNS * 4096 * 3, 64 << 20};

static void runs_are_those_of_arrays(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		struct runs_bed bed;
		gw_status status = GW_OK;
		make_runs(&bed, i % 2 ? 0 : UINT64_MAX, 11 + i);
		void *block = gw_spill_take(&bed.spill, (uint64_t)ITEMS * BYTES, &status);
		assert_int_equal(status, GW_OK);
		assert_int_equal(bed.spill.file_bytes > 0, i % 2);
		assert_int_equal(write_items(&bed, block, memories[i / 2]), GW_OK);
		assert_memory_equal(block, bed.expected, (uint64_t)ITEMS * BYTES);
		assert_int_equal(read_items(&bed, block, memories[2 - i / 2]), GW_OK);
		end_runs(&bed, block);
	}
}

static void items_longer_than_a_buffer(void **state)
{
	(void)state;
	struct gw_spill opened;
	gw_status status = GW_OK;
	assert_int_equal(gw_spill_open(&opened, "/tmp/graph", 0), GW_OK);
	const uint64_t room = 4 << 20, starts[2] = {0, room / 2};
	uint8_t *block = gw_spill_take(&opened, room, &status), *given = malloc(room);
	assert_int_equal(status, GW_OK);
	for (uint64_t i = 0; i < room; i++)
		given[i] = (uint8_t)word(i, 5);
	struct gw_run_writer writer;
	assert_int_equal(gw_run_writer_open(block, 1, starts, 2, 1, &writer), GW_OK);
	uint64_t at[2] = {starts[0], starts[1]};
	for (uint64_t i = 0; i < 200; i++) {
		uint64_t run = i % 2, bytes = word(i, 6) % (i % 3 ? 65536 : 100);
		if (at[run] + bytes > starts[run] + room / 2)
			continue;
		gw_run_writer_add(&writer, run, given + at[run], bytes);
		at[run] += bytes;
	}
	assert_int_equal(gw_run_writer_close(&writer), GW_OK);
	for (uint64_t run = 0; run < 2; run++)
		assert_memory_equal(block + starts[run], given + starts[run], at[run] - starts[run]);
	gw_spill_give(block);
	gw_spill_close(&opened);
	free(given);
}

struct written_bed {
	const struct runs_bed *bed;
	void *block;
};

static gw_status write_and_read(void *context)
{
	const struct written_bed *written = context;
	gw_status status = write_items(written->bed, written->block, 1);
	return status != GW_OK ? status : read_items(written->bed, written->block, 1);
}

static void shortage(void **state)
{
	(void)state;
	struct runs_bed bed;
	gw_status status = GW_OK;
	make_runs(&bed, UINT64_MAX, 3);
	struct written_bed written = {&bed, gw_spill_take(&bed.spill, (uint64_t)ITEMS * BYTES, &status)};
	assert_int_equal(status, GW_OK);
	assert_true(gw_fault_each(write_and_read, &written) > 0);
	end_runs(&bed, written.block);
}

/* No byte of a file may be written. */
static void errors_of_files(void **state)
{
	(void)state;
	struct runs_bed bed;
	gw_status status = GW_OK;
	struct rlimit before;
	make_runs(&bed, 0, 4);
	void *block = gw_spill_take(&bed.spill, (uint64_t)ITEMS * BYTES, &status);
	assert_int_equal(status, GW_OK);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	const struct rlimit none = {0, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	status = write_items(&bed, block, 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(status, GW_IO);
	assert_non_null(strstr(gw_last_error(), "/tmp/: a temporary file"));
	end_runs(&bed, block);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(runs_are_those_of_arrays),
					   cmocka_unit_test(items_longer_than_a_buffer), cmocka_unit_test(shortage),
					   cmocka_unit_test(errors_of_files)};
	return cmocka_run_group_tests_name("run_writer", tests, NULL, NULL);
}
