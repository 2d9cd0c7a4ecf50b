/* Reads at offsets beyond 2^32 of a region that is longer than memory: its ends have bytes, the rest is untouched.
 * Ranges of one frame that lie close together, far apart, and at both ends of the region, in any order. Over TCP, both
 * drivers. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/transport_bed.h"

#define REGION_BYTES ((9ull << 30) + 4096)
#define ROW          40u
#define ROWS         600u
#define SPANS        300u

static uint64_t some_place(uint64_t random)
{
	const uint64_t within = random % (BED_END_BYTES - 2 * ROW);
	return random >> 32 & 1 ? within : REGION_BYTES - BED_END_BYTES + within;
}

static void expect_bytes(const struct one *one, uint64_t at, uint64_t from, uint64_t bytes)
{
	assert_memory_equal(one->landing + at, one->bed.memory + from, bytes);
}

static void rows_beyond_4_gib(void **state)
{
	const struct bed_options options = {.bytes = REGION_BYTES, .sparse = true};
	static uint64_t remote[ROWS];
	struct one one;
	gw_one_begin(&one, state, &options, ROWS * ROW);
	assert_int_equal(one.region.bytes, REGION_BYTES);
	for (int far = 0; far < 2; far++) {
		for (uint32_t i = 0; i < ROWS; i++) {
			uint64_t random = gw_mix64(i + 1);
			/* At the far end alone, the offsets from the first one have 4 bytes. */
			remote[i] = far ? REGION_BYTES - BED_END_BYTES + random % (BED_END_BYTES - ROW)
					: some_place(random);
		}
		struct gw_read_set set = {.cookie = &set};
		const struct gw_gather gather = {.remote = remote, .row_bytes = ROW, .stride = ROW};
		memset(one.landing, 0, ROWS * ROW);
		gw_bed_gather(one.endpoint, &set, &one.region, one.buffer, &gather, ROWS);
		gw_one_wait_ok(&one, &set);
		for (uint32_t i = 0; i < ROWS; i++)
			expect_bytes(&one, (uint64_t)i * ROW, remote[i], ROW);
	}
	gw_one_end(&one);
}

static void spans_beyond_4_gib(void **state)
{
	const struct bed_options options = {.bytes = REGION_BYTES, .sparse = true};
	static struct gw_span spans[SPANS];
	struct one one;
	gw_one_begin(&one, state, &options, SPANS * 2 * ROW);
	for (uint32_t i = 0; i < SPANS; i++)
		spans[i] = (struct gw_span){.remote = some_place(gw_mix64(i * 3)),
					    .local = (uint64_t)i * 2 * ROW,
					    .bytes = 1 + (uint32_t)(gw_mix64(i) % (2 * ROW - 1))};
	struct gw_read_set set = {.cookie = &set};
	gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, spans, SPANS);
	gw_one_wait_ok(&one, &set);
	for (uint32_t i = 0; i < SPANS; i++)
		expect_bytes(&one, spans[i].local, spans[i].remote, spans[i].bytes);
	gw_one_end(&one);
}

/* The last byte of the region is readable, the next one is not. */
static void the_end_of_the_region(void **state)
{
	const struct bed_options options = {.bytes = REGION_BYTES, .sparse = true};
	struct gw_span span = {.remote = REGION_BYTES - ROW, .bytes = ROW};
	struct one one;
	gw_one_begin(&one, state, &options, 4096);
	struct gw_read_set set = {.cookie = &set};
	gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, &span, 1);
	gw_one_wait_ok(&one, &set);
	expect_bytes(&one, 0, span.remote, ROW);
	struct gw_read_set past = {.cookie = &past};
	span.remote++;
	gw_bed_readv(one.endpoint, &past, &one.region, one.buffer, &span, 1);
	gw_one_expect_failure(&one, &past, GW_RANGE);
	gw_one_end(&one);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(rows_beyond_4_gib)},
		{BED_TEST(spans_beyond_4_gib)},
		{BED_TEST(the_end_of_the_region)},
	};
	return gw_bed_run_tcp("regions beyond 4 GiB", tests, sizeof(tests) / sizeof(tests[0]));
}
