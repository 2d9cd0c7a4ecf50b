/* Reads, one suite over every backend. A read equals memcpy, an impossible read fails with a reason, a set completes
 * once, and nothing else is written. Rows, spans, empty and huge ranges, bad ranges, several calls for one set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/many.h"
#include "test/support/transport_bed.h"

#define LANDING_BYTES (48u << 20)

/* Compares the entire receive buffer, so bytes outside of the rows are checked too. */
static void random_gather(struct one *one, uint64_t *seed, uint32_t row_bytes, uint32_t n, bool with_rows)
{
	uint32_t stride = row_bytes + (gw_below(seed, 2) ? 0 : (uint32_t)gw_below(seed, 9));
	uint64_t local = gw_below(seed, 50);
	uint64_t *remote = calloc(n, sizeof(*remote));
	uint32_t *rows = calloc(n, sizeof(*rows));
	memset(one->landing, 0xaa, one->landing_bytes);
	memset(one->expected, 0xaa, one->landing_bytes);
	for (uint32_t i = 0; i < n; i++) {
		remote[i] = gw_below(seed, one->bed.bytes - row_bytes + 1);
		rows[i] = i;
	}
	for (uint32_t i = n; with_rows && i > 1; i--) {
		uint32_t j = (uint32_t)gw_below(seed, i), row = rows[j];
		rows[j] = rows[i - 1];
		rows[i - 1] = row;
	}
	for (uint32_t i = 0; i < n; i++)
		memcpy(one->expected + local + (uint64_t)rows[i] * stride, one->bed.memory + remote[i], row_bytes);
	struct gw_gather gather = {.remote = remote,
				   .rows = with_rows ? rows : NULL,
				   .local = local,
				   .row_bytes = row_bytes,
				   .stride = stride};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_gather(one->endpoint, &set, &one->region, one->buffer, &gather, n);
	gw_one_wait_ok(one, &set);
	assert_memory_equal(one->landing, one->expected, one->landing_bytes);
	free(remote);
	free(rows);
}

static void gathers_equal_memcpy(void **state)
{
	static const uint32_t sizes[] = {1, 3, 4, 8, 12, 16, 17, 100, 400, 512, 2047, 2048, 4100, 70000};
	struct one one;
	uint64_t seed = 1;
	gw_one_begin(&one, state, NULL, 1 << 20);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t most = (uint32_t)((one.landing_bytes - 64) / (sizes[i] + 9));
		for (int round = 0; round < 6; round++) {
			uint32_t n = 1 + (uint32_t)gw_below(&seed, most < 3000 ? most : 3000);
			random_gather(&one, &seed, sizes[i], n, round & 1);
		}
		random_gather(&one, &seed, sizes[i], 1, true);
	}
	gw_one_end(&one);
}

static void random_readv(struct one *one, uint64_t *seed, uint32_t n, uint32_t bytes_max)
{
	struct gw_span *spans = calloc(n, sizeof(*spans));
	memset(one->landing, 0x55, one->landing_bytes);
	memset(one->expected, 0x55, one->landing_bytes);
	uint64_t local = 0;
	bool packed = gw_below(seed, 2);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t bytes = gw_below(seed, 5) ? (uint32_t)gw_below(seed, bytes_max + 1) : 0;
		local += packed ? 0 : gw_below(seed, 7);
		spans[i] = (struct gw_span){gw_below(seed, one->bed.bytes - bytes + 1), local, bytes};
		local += bytes;
		assert_true(local <= one->landing_bytes);
	}
	/* In any order. */
	for (uint32_t i = n; i > 1 && gw_below(seed, 4); i--) {
		uint32_t j = (uint32_t)gw_below(seed, i);
		struct gw_span span = spans[j];
		spans[j] = spans[i - 1];
		spans[i - 1] = span;
	}
	for (uint32_t i = 0; i < n; i++)
		memcpy(one->expected + spans[i].local, one->bed.memory + spans[i].remote, spans[i].bytes);
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one->endpoint, &set, &one->region, one->buffer, spans, n);
	gw_one_wait_ok(one, &set);
	assert_memory_equal(one->landing, one->expected, one->landing_bytes);
	free(spans);
}

static void readvs_equal_memcpy(void **state)
{
	struct one one;
	uint64_t seed = 2;
	gw_one_begin(&one, state, NULL, 1 << 20);
	for (int round = 0; round < 20; round++) {
		random_readv(&one, &seed, 1 + (uint32_t)gw_below(&seed, 2000), 400);
		random_readv(&one, &seed, 1 + (uint32_t)gw_below(&seed, 60), 16000);
		random_readv(&one, &seed, 1 + (uint32_t)gw_below(&seed, 3), 300000);
	}
	gw_one_end(&one);
}

static void empty_reads(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 64);
	struct gw_read_set none = {.cookie = &none, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &none, &one.region, one.buffer, NULL, 0, true), 0);
	gw_one_wait_ok(&one, &none);
	struct gw_gather gather = {.stride = 4, .row_bytes = 4};
	struct gw_read_set no_rows = {.cookie = &no_rows, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_gather(one.endpoint, &no_rows, &one.region, one.buffer, &gather, 0, true), 0);
	gw_one_wait_ok(&one, &no_rows);
	/* Empty ranges are legal up to the very end of region and buffer. */
	struct gw_span spans[] = {{0, 0, 0}, {one.bed.bytes, 64, 0}, {5, 7, 0}};
	struct gw_read_set empty = {.cookie = &empty, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one.endpoint, &empty, &one.region, one.buffer, spans, 3);
	gw_one_wait_ok(&one, &empty);
	uint64_t remote[2] = {0, 0};
	struct gw_gather zero = {.remote = remote};
	struct gw_read_set rows = {.cookie = &rows, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_gather(one.endpoint, &rows, &one.endpoint->peer.regions[1], one.buffer, &zero, 2);
	gw_one_wait_ok(&one, &rows);
	for (int i = 0; i < 64; i++)
		assert_int_equal(one.landing[i], 0);
	gw_one_end(&one);
}

static void huge_reads(void **state)
{
	struct bed_options options = {.bytes = 40u << 20};
	struct one one;
	uint64_t seed = 3;
	gw_one_begin(&one, state, &options, LANDING_BYTES);
	struct gw_span whole = {1, 3, (40u << 20) - 1};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, &whole, 1);
	gw_one_wait_ok(&one, &set);
	assert_memory_equal(one.landing + 3, one.bed.memory + 1, whole.bytes);
	random_gather(&one, &seed, 64 << 10, gw_many(600), true);
	random_gather(&one, &seed, 20 << 20, 2, false);
	random_gather(&one, &seed, 8, gw_many(50000), true);
	random_gather(&one, &seed, 8, gw_many(200000), false);
	random_readv(&one, &seed, gw_many(40000), 16);
	gw_one_end(&one);
}

static void past_the_end(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 4096);
	uint64_t end = one.bed.bytes;
	const struct gw_span bad[] = {
		{end, 0, 1},        {end - 3, 0, 4},    {UINT64_MAX, 0, 1}, {UINT64_MAX - 3, 0, 8},
		{0, 4096, 1},       {0, 4093, 4},       {0, UINT64_MAX, 1}, {0, UINT64_MAX - 2, 4},
		{0, 0, UINT32_MAX}, {end - 4, 4093, 4}, {end + 1, 0, 0}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct gw_span spans[2] = {{0, 0, 16}, bad[i]};
		struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
		/* A failed set accepts every read. */
		assert_int_equal(gw_endpoint_readv(one.endpoint, &set, &one.region, one.buffer, spans, 2, false), 2);
		assert_int_equal(gw_endpoint_readv(one.endpoint, &set, &one.region, one.buffer, spans, 1, true), 1);
		gw_one_expect_failure(&one, &set, GW_RANGE);
	}
	uint64_t remote[3] = {0, 5, end - 7};
	uint32_t rows[3] = {0, 1, 2};
	struct gw_gather gather = {.remote = remote, .rows = rows, .row_bytes = 8, .stride = 8};
	struct gw_read_set past = {.cookie = &past, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_gather(one.endpoint, &past, &one.region, one.buffer, &gather, 3, true), 3);
	gw_one_expect_failure(&one, &past, GW_RANGE);
	remote[2] = end - 8;
	rows[1] = 4096 / 8;
	struct gw_read_set row = {.cookie = &row, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_gather(one.endpoint, &row, &one.region, one.buffer, &gather, 3, true), 3);
	gw_one_expect_failure(&one, &row, GW_RANGE);
	rows[1] = UINT32_MAX;
	gather.stride = UINT32_MAX;
	struct gw_read_set wild = {.cookie = &wild, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_gather(one.endpoint, &wild, &one.region, one.buffer, &gather, 3, true), 3);
	gw_one_expect_failure(&one, &wild, GW_RANGE);
	gather.stride = 7;
	struct gw_read_set narrow = {.cookie = &narrow, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_gather(one.endpoint, &narrow, &one.region, one.buffer, &gather, 3, true), 3);
	gw_one_expect_failure(&one, &narrow, GW_INVALID);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(one.landing[i], 0);
	/* A read up to the very end works, and the endpoint has survived the failures. */
	struct gw_span last = {end - 4096, 0, 4096};
	struct gw_read_set good = {.cookie = &good, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one.endpoint, &good, &one.region, one.buffer, &last, 1);
	gw_one_wait_ok(&one, &good);
	assert_memory_equal(one.landing, one.bed.memory + end - 4096, 4096);
	gw_one_end(&one);
}

static void unknown_and_stale_regions(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 64);
	struct gw_span span = {0, 0, 8};
	struct gw_region region = one.region;
	region.id = 3;
	struct gw_read_set unknown = {.cookie = &unknown, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &unknown, &region, one.buffer, &span, 1, true), 1);
	gw_one_expect_failure(&one, &unknown, GW_RANGE);
	region = one.region;
	region.generation ^= 2;
	struct gw_read_set stale = {.cookie = &stale, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &stale, &region, one.buffer, &span, 1, true), 1);
	gw_one_expect_failure(&one, &stale, GW_STALE);
	/* A caller's region that claims too many bytes has no effect. */
	region = one.region;
	region.bytes = UINT64_MAX;
	span.remote = one.bed.bytes;
	struct gw_read_set lie = {.cookie = &lie, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &lie, &region, one.buffer, &span, 1, true), 1);
	gw_one_expect_failure(&one, &lie, GW_RANGE);
	gw_one_end(&one);
}

/* Overlapping destinations are legal: any of the reads may win, but the other memory is not changed. */
static void overlapping_destinations(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 4096);
	struct gw_span spans[] = {{0, 100, 1000}, {5000, 600, 1000}, {9000, 100, 10}};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, spans, 3);
	gw_one_wait_ok(&one, &set);
	for (uint32_t i = 0; i < 4096; i++) {
		bool legal = i < 100 || i >= 1600 ? one.landing[i] == 0 : false;
		for (int s = 0; s < 3; s++)
			if (i >= spans[s].local && i < spans[s].local + spans[s].bytes)
				legal |= one.landing[i] == one.bed.memory[spans[s].remote + i - spans[s].local];
		assert_true(legal);
	}
	gw_one_end(&one);
}

static void groups_of_many_calls(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 4096);
	struct gw_read_set set = {.cookie = &set, .deadline_ns = gw_now_ns() + 10 * GW_NS_PER_SECOND};
	uint64_t remote[2] = {8, 4000};
	struct gw_gather gather = {.remote = remote, .local = 1000, .row_bytes = 100, .stride = 200};
	struct gw_span span = {10, 2000, 500};
	assert_int_equal(gw_endpoint_gather(one.endpoint, &set, &one.region, one.buffer, &gather, 2, false), 2);
	gw_one_nothing_more(&one, 20);
	assert_int_equal(
		gw_endpoint_readv(one.endpoint, &set, &one.endpoint->peer.regions[2], one.buffer, &span, 1, false), 1);
	gw_one_nothing_more(&one, 20);
	assert_int_equal(gw_endpoint_readv(one.endpoint, &set, &one.region, one.buffer, NULL, 0, true), 0);
	gw_one_wait_ok(&one, &set);
	assert_memory_equal(one.landing + 1000, one.bed.memory + 8, 100);
	assert_memory_equal(one.landing + 1200, one.bed.memory + 4000, 100);
	assert_memory_equal(one.landing + 2000, one.bed.memory + one.bed.bytes - 1000 + 10, 500);
	gw_one_nothing_more(&one, 20);
	gw_one_end(&one);
}

#define MANY 300

static void many_in_flight(void **state)
{
	struct one one;
	struct gw_read_set sets[MANY];
	static uint64_t remote[MANY][40];
	uint8_t seen[MANY] = {0};
	uint64_t seed = 4;
	uint32_t posted = 0, completed = 0;
	bool refused = false;
	gw_one_begin(&one, state, NULL, MANY * 40 * 64);
	memset(sets, 0, sizeof(sets));
	while (completed < MANY) {
		while (posted < MANY) {
			struct gw_read_set *set = &sets[posted];
			set->cookie = set;
			set->deadline_ns = GW_NO_DEADLINE;
			for (int i = 0; i < 40 && !set->next && !set->frames_open; i++)
				remote[posted][i] = gw_below(&seed, one.bed.bytes - 64);
			struct gw_gather gather = {
				.remote = remote[posted], .local = posted * 40 * 64, .row_bytes = 64, .stride = 64};
			size_t taken =
				gw_endpoint_gather(one.endpoint, set, &one.region, one.buffer, &gather, 40, true);
			assert_true(taken == 0 || taken == 40);
			refused |= taken == 0;
			if (taken == 0)
				break;
			posted++;
		}
		struct gw_completion completions[7];
		size_t n = gw_poll_group_poll(one.group, completions, 7, 5 * GW_NS_PER_SECOND);
		for (size_t i = 0; i < n; i++) {
			size_t which = (size_t)((struct gw_read_set *)completions[i].cookie - sets);
			assert_int_equal(completions[i].status, GW_OK);
			assert_int_equal(seen[which]++, 0);
			completed++;
		}
	}
	for (int g = 0; g < MANY; g++)
		for (int i = 0; i < 40; i++)
			assert_memory_equal(one.landing + (g * 40 + i) * 64, one.bed.memory + remote[g][i], 64);
	assert_true(refused || gw_bed_is_mapped(one.bed.kind));
	gw_one_nothing_more(&one, 10);
	gw_one_end(&one);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(gathers_equal_memcpy)},
		{BED_TEST(readvs_equal_memcpy)},
		{BED_TEST(empty_reads)},
		{BED_TEST(huge_reads)},
		{BED_TEST(past_the_end)},
		{BED_TEST(unknown_and_stale_regions)},
		{BED_TEST(overlapping_destinations)},
		{BED_TEST(groups_of_many_calls)},
		{BED_TEST(many_in_flight)},
	};
	return gw_bed_run("transport reads", tests, sizeof(tests) / sizeof(tests[0]));
}
