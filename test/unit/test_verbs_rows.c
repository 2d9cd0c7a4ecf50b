/* Mutable rows on a made-up device (test/support/verbs_reads.h), which reads their bytes in any pieces and order while
 * a writer writes. Accepted rows are complete, and rows that stay torn are listed. */
#include <stdio.h>
#ifndef GRAPHWIRE_VERBS
int main(void)
{
	printf("1..0 # SKIP built without RDMA\n");
	return 0;
}
#else
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/row_take.h"
#include "test/support/verbs_reads.h"

#define ROWS_MAX 600

/* --- Without a writer. --- */

static void rows_land_without_their_trailers(void **state)
{
	static const uint32_t sizes[] = {3, 12, 16, 100, 1600, 8000};
	uint64_t seed = 1;
	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (uint32_t sges = 1; sges <= VERBS_SGES_MAX; sges += sges == 1 ? 1 : 6)
			for (int bounce = 0; bounce < 2; bounce++) {
				struct side side;
				uint32_t bytes = sizes[s], apart = bytes + 5, rows = bytes > 4000 ? 8 : 40;
				uint64_t remote[ROWS_MAX], n = bounce ? 60000 / apart : 66000 / apart + 1;
				n = n < ROWS_MAX ? n : ROWS_MAX;
				side_begin(&side, bytes, rows, 12, sges);
				side_land(&side, bounce ? n * apart : 70000 + n * apart);
				for (uint64_t i = 0; i < n; i++) /* some of them consecutive */
					remote[i] = (i % 5 ? (remote[i - 1] / side.format.stride + 1) % rows
							   : gw_below(&seed, rows)) *
						    side.format.stride;
				assert_int_equal(side_gather(&side, remote, n, apart).status, GW_OK);
				for (uint64_t i = 0; i < n; i++) {
					const uint8_t *row = side.buffer.base + i * apart;
					assert_memory_equal(row, side.memory + remote[i], bytes);
					for (uint32_t at = bytes; at < apart; at++)
						assert_int_equal(row[at], 0);
				}
				side_release(&side);
				side_end(&side);
			}
}

/* --- A writer between any two bytes. --- */

static struct side *writing; /* whose rows `between` writes */

static bool payload_is_whole(const uint8_t *payload, uint32_t bytes)
{
	uint8_t expected[8192];
	uint64_t value = 0;
	memcpy(&value, payload, bytes < 8 ? bytes : 8);
	payload_make(expected, bytes, value);
	return memcmp(payload, expected, bytes) == 0;
}

static void row_write(struct side *side, uint32_t row, uint64_t value)
{
	uint8_t payload[8192], *at = side->memory + (uint64_t)row * side->format.stride;
	payload_make(payload, side->format.payload_bytes, value);
	uint64_t sequence = row_take(&side->format, at);
	gw_row_publish(&side->format, side->region.rows.seed, row, at, sequence, payload);
}

static uint64_t writer_seed, writer_one_in, writer_value;

static void write_now_and_then(void)
{
	if (gw_below(&writer_seed, writer_one_in) == 0)
		row_write(writing, (uint32_t)gw_below(&writer_seed, writing->rows), 1000 + writer_value++);
}

/* Except those that it lists. Returns how many it lists. */
static uint32_t check_rows(const struct side *side, const struct gw_completion *completion, uint64_t n, uint32_t apart)
{
	assert_int_equal(completion->status, completion->torn_count ? GW_AGAIN : GW_OK);
	for (uint32_t i = 0; i < completion->torn_count; i++)
		payload_make(side->buffer.base + completion->torn[i].local, side->format.payload_bytes, 0);
	for (uint64_t i = 0; i < n; i++)
		assert_true(payload_is_whole(side->buffer.base + i * apart, side->format.payload_bytes));
	return completion->torn_count;
}

static void none_is_torn(void **state)
{
	static const struct {
		uint32_t bytes, rows, one_in;
	} cases[] = {{40, 1, 40}, {40, 30, 10}, {1600, 4, 60}, {1600, 30, 400}, {5000, 2, 1500}};
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct side side;
		uint64_t remote[64], torn = 0, seed = c;
		side_begin(&side, cases[c].bytes, cases[c].rows, 13, c % 2 ? 2 : 8);
		side_land(&side, c % 2 ? 64ull * cases[c].bytes : 70000 + 64ull * cases[c].bytes);
		writing = &side;
		writer_seed = c;
		writer_one_in = cases[c].one_in;
		reads.between = write_now_and_then;
		for (int round = 0; round < 30; round++) {
			for (int i = 0; i < 64; i++)
				remote[i] = gw_below(&seed, cases[c].rows) * side.format.stride;
			struct gw_completion completion = side_gather(&side, remote, 64, cases[c].bytes);
			torn += check_rows(&side, &completion, 64, cases[c].bytes);
		}
		/* Rows that were torn once are read again, and leave nothing behind. */
		assert_in_range(torn, 0, 30 * 64);
		reads.between = NULL;
		assert_int_equal(side_gather(&side, remote, 64, cases[c].bytes).status, GW_OK);
		side_release(&side);
		side_end(&side);
	}
}

/* Torn once: read again, and complete. */
static bool torn_once;

static void write_once(void)
{
	if (!torn_once)
		row_write(writing, 2, 4242);
	torn_once = true;
}

static void what_was_torn_is_read_again(void **state)
{
	struct side side;
	uint8_t expected[400];
	(void)state;
	side_begin(&side, 400, 4, 20, 8);
	side_land(&side, 100000);
	writing = &side;
	torn_once = false;
	reads.between = write_once;
	uint64_t remote = 2ull * side.format.stride;
	assert_int_equal(side_gather(&side, &remote, 1, 400).status, GW_OK);
	payload_make(expected, 400, 4242);
	assert_memory_equal(side.buffer.base, expected, 400);
	assert_int_equal(reads.posted, 2);
	side_release(&side);
	side_end(&side);
}

/* Exactly the rows that are always being written are listed, once per range that reads them, after a bounded number of
 * reads. */
static void rows_that_stay_torn_are_listed(void **state)
{
	struct side side;
	uint64_t remote[ROWS_MAX], seed = 3;
	uint32_t held = 0;
	(void)state;
	side_begin(&side, 100, 30, 20, 8);
	side_land(&side, 100ull * ROWS_MAX + 70000);
	for (uint32_t i = 0; i < 30; i += 3)
		row_take(&side.format, side.memory + (uint64_t)i * side.format.stride);
	for (int i = 0; i < ROWS_MAX; i++) {
		uint64_t row = gw_below(&seed, 30);
		remote[i] = row * side.format.stride;
		held += row % 3 == 0;
	}
	struct gw_completion completion = side_gather(&side, remote, ROWS_MAX, 100);
	assert_int_equal(completion.status, GW_AGAIN);
	assert_int_equal(completion.torn_count, held);
	bool told[ROWS_MAX] = {0};
	for (uint32_t i = 0; i < held; i++) {
		uint64_t range = completion.torn[i].local / 100;
		assert_int_equal(completion.torn[i].local % 100, 0);
		assert_int_equal(completion.torn[i].remote, remote[range]);
		assert_int_equal(completion.torn[i].remote / side.format.stride % 3, 0);
		assert_false(told[range]);
		told[range] = true;
	}
	for (int i = 0; i < ROWS_MAX; i++)
		if (!told[i])
			assert_memory_equal(side.buffer.base + (size_t)i * 100, side.memory + remote[i], 100);
	assert_in_range(reads.posted, 0, ROWS_MAX + 20u * held);
	side_release(&side);
	side_end(&side);
}

/* A row of another generation's memory, or another row, has another hash. */
static void other_memory_is_no_row(void **state)
{
	struct side side;
	uint64_t remote = 0;
	(void)state;
	side_begin(&side, 64, 2, 20, 8);
	side_land(&side, 1000);
	memcpy(side.memory, side.memory + side.format.stride, side.format.stride);
	assert_int_equal(side_gather(&side, &remote, 1, 64).torn_count, 1);
	remote = side.format.stride;
	assert_int_equal(side_gather(&side, &remote, 1, 64).status, GW_OK);
	side.endpoint->regions[0].rows.seed++;
	assert_int_equal(side_gather(&side, &remote, 1, 64).torn_count, 1);
	side_release(&side);
	side_end(&side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_land_without_their_trailers), cmocka_unit_test(none_is_torn),
		cmocka_unit_test(what_was_torn_is_read_again),      cmocka_unit_test(rows_that_stay_torn_are_listed),
		cmocka_unit_test(other_memory_is_no_row),
	};
	return cmocka_run_group_tests_name("verbs rows", tests, NULL, NULL);
}
#endif
