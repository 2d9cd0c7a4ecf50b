/* The transport contract, one suite over every backend: what is read equals memcpy, what cannot be read says so, a
 * group completes once, and nothing is written after that. A new backend is a row in test/support/transport_bed.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/rng.h"
#include "test/support/alloc_fault.h"
#include "test/support/transport_bed.h"

#define LANDING_BYTES (48u << 20)

/* A bed with one client and a buffer. */
struct one {
	struct bed bed;
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
	struct gw_buffer *buffer;
	uint8_t *landing, *expected;
	uint64_t landing_bytes;
	struct gw_region region;
};

static void one_begin(struct one *one, void **state, const struct bed_options *options, uint64_t landing_bytes)
{
	memset(one, 0, sizeof(*one));
	gw_bed_begin(&one->bed, *state, options);
	one->group = gw_bed_group(one->bed.kind);
	one->landing_bytes = landing_bytes;
	one->landing = calloc(1, landing_bytes);
	one->expected = calloc(1, landing_bytes);
	assert_non_null(one->landing);
	assert_non_null(one->expected);
	assert_int_equal(gw_buffer_register(one->group, one->landing, landing_bytes, &one->buffer), GW_OK);
	struct gw_connect_options connect = gw_bed_options(&one->bed);
	assert_int_equal(gw_bed_connect(one->group, &connect, &one->endpoint), GW_OK);
	assert_int_equal(one->endpoint->state, GW_ENDPOINT_OPEN);
	one->region = one->endpoint->peer.regions[0];
}

static void one_end(struct one *one)
{
	gw_endpoint_close(one->endpoint);
	gw_buffer_release(one->buffer);
	gw_poll_group_destroy(one->group);
	gw_bed_end(&one->bed);
	free(one->landing);
	free(one->expected);
}

static void wait_ok(struct one *one, struct gw_group *group)
{
	struct gw_completion completion = gw_bed_wait(one->group, group->cookie);
	if (completion.status)
		print_error("%s\n", completion.text);
	assert_int_equal(completion.status, GW_OK);
	assert_string_equal(completion.text, "");
}

static void nothing_more(struct one *one, uint64_t ms)
{
	struct gw_completion completion;
	uint64_t end = gw_now_ns() + ms * GW_NS_PER_MS;
	while (gw_now_ns() < end)
		assert_int_equal(gw_poll_group_poll(one->group, &completion, 1, 2 * GW_NS_PER_MS), 0);
}

static uint64_t below(uint64_t *seed, uint64_t bound)
{
	*seed = gw_mix64(*seed + 0x9e3779b97f4a7c15ull);
	return *seed % bound;
}

static void hello(void **state)
{
	struct one one;
	one_begin(&one, state, NULL, 64);
	const struct gw_peer *peer = &one.endpoint->peer;
	assert_int_equal(peer->graph_id, 77);
	assert_int_equal(peer->incarnation, 5);
	assert_int_equal(peer->part, 1);
	assert_int_equal(peer->parts, 3);
	assert_int_equal(peer->region_count, 3);
	assert_int_equal(peer->regions[0].bytes, one.bed.bytes);
	assert_int_equal(peer->regions[1].bytes, 0);
	assert_int_equal(peer->regions[2].id, 2);
	assert_int_equal(peer->regions[2].kind, GW_REGION_VERSIONED);
	const uint8_t *map = gw_endpoint_map(one.endpoint, &one.region);
	if (one.bed.kind->network)
		assert_null(map);
	else
		assert_ptr_equal(map, one.bed.memory);
	one_end(&one);
}

/* A random gather against memcpy; the whole landing area is compared, so bytes that belong to nobody are checked too.
 */
static void random_gather(struct one *one, uint64_t *seed, uint32_t row_bytes, uint32_t n, bool with_rows)
{
	uint32_t stride = row_bytes + (below(seed, 2) ? 0 : (uint32_t)below(seed, 9));
	uint64_t local = below(seed, 50);
	uint64_t *remote = calloc(n, sizeof(*remote));
	uint32_t *rows = calloc(n, sizeof(*rows));
	memset(one->landing, 0xaa, one->landing_bytes);
	memset(one->expected, 0xaa, one->landing_bytes);
	for (uint32_t i = 0; i < n; i++) {
		remote[i] = below(seed, one->bed.bytes - row_bytes + 1);
		rows[i] = i;
	}
	for (uint32_t i = n; with_rows && i > 1; i--) {
		uint32_t j = (uint32_t)below(seed, i), row = rows[j];
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
	struct gw_group group = {.cookie = &group, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_gather(one->endpoint, &group, &one->region, one->buffer, &gather, n);
	wait_ok(one, &group);
	assert_memory_equal(one->landing, one->expected, one->landing_bytes);
	free(remote);
	free(rows);
}

static void gathers_equal_memcpy(void **state)
{
	static const uint32_t sizes[] = {1, 3, 4, 8, 12, 16, 17, 100, 400, 512, 2047, 2048, 4100, 70000};
	struct one one;
	uint64_t seed = 1;
	one_begin(&one, state, NULL, 1 << 20);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t most = (uint32_t)((one.landing_bytes - 64) / (sizes[i] + 9));
		for (int round = 0; round < 6; round++) {
			uint32_t n = 1 + (uint32_t)below(&seed, most < 3000 ? most : 3000);
			random_gather(&one, &seed, sizes[i], n, round & 1);
		}
		random_gather(&one, &seed, sizes[i], 1, true);
	}
	one_end(&one);
}

static void random_readv(struct one *one, uint64_t *seed, uint32_t n, uint32_t bytes_max)
{
	struct gw_span *spans = calloc(n, sizeof(*spans));
	memset(one->landing, 0x55, one->landing_bytes);
	memset(one->expected, 0x55, one->landing_bytes);
	uint64_t local = 0;
	bool packed = below(seed, 2);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t bytes = below(seed, 5) ? (uint32_t)below(seed, bytes_max + 1) : 0;
		local += packed ? 0 : below(seed, 7);
		spans[i] = (struct gw_span){below(seed, one->bed.bytes - bytes + 1), local, bytes};
		local += bytes;
		assert_true(local <= one->landing_bytes);
	}
	/* In any order. */
	for (uint32_t i = n; i > 1 && below(seed, 4); i--) {
		uint32_t j = (uint32_t)below(seed, i);
		struct gw_span span = spans[j];
		spans[j] = spans[i - 1];
		spans[i - 1] = span;
	}
	for (uint32_t i = 0; i < n; i++)
		memcpy(one->expected + spans[i].local, one->bed.memory + spans[i].remote, spans[i].bytes);
	struct gw_group group = {.cookie = &group, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one->endpoint, &group, &one->region, one->buffer, spans, n);
	wait_ok(one, &group);
	assert_memory_equal(one->landing, one->expected, one->landing_bytes);
	free(spans);
}

static void readvs_equal_memcpy(void **state)
{
	struct one one;
	uint64_t seed = 2;
	one_begin(&one, state, NULL, 1 << 20);
	for (int round = 0; round < 20; round++) {
		random_readv(&one, &seed, 1 + (uint32_t)below(&seed, 2000), 400);
		random_readv(&one, &seed, 1 + (uint32_t)below(&seed, 60), 16000);
		random_readv(&one, &seed, 1 + (uint32_t)below(&seed, 3), 300000);
	}
	one_end(&one);
}

static void empty_reads(void **state)
{
	struct one one;
	one_begin(&one, state, NULL, 64);
	struct gw_group none = {.cookie = &none, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &none, &one.region, one.buffer, NULL, 0, true), 0);
	wait_ok(&one, &none);
	struct gw_gather gather = {.stride = 4, .row_bytes = 4};
	struct gw_group no_rows = {.cookie = &no_rows, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_gather(one.endpoint, &no_rows, &one.region, one.buffer, &gather, 0, true), 0);
	wait_ok(&one, &no_rows);
	/* Empty ranges are legal up to the very end of region and buffer. */
	struct gw_span spans[] = {{0, 0, 0}, {one.bed.bytes, 64, 0}, {5, 7, 0}};
	struct gw_group empty = {.cookie = &empty, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one.endpoint, &empty, &one.region, one.buffer, spans, 3);
	wait_ok(&one, &empty);
	uint64_t remote[2] = {0, 0};
	struct gw_gather zero = {.remote = remote};
	struct gw_group rows = {.cookie = &rows, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_gather(one.endpoint, &rows, &one.endpoint->peer.regions[1], one.buffer, &zero, 2);
	wait_ok(&one, &rows);
	for (int i = 0; i < 64; i++)
		assert_int_equal(one.landing[i], 0);
	one_end(&one);
}

static void huge_reads(void **state)
{
	struct bed_options options = {.bytes = 40u << 20};
	struct one one;
	uint64_t seed = 3;
	one_begin(&one, state, &options, LANDING_BYTES);
	struct gw_span whole = {1, 3, (40u << 20) - 1};
	struct gw_group group = {.cookie = &group, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one.endpoint, &group, &one.region, one.buffer, &whole, 1);
	wait_ok(&one, &group);
	assert_memory_equal(one.landing + 3, one.bed.memory + 1, whole.bytes);
	random_gather(&one, &seed, 64 << 10, 600, true);
	random_gather(&one, &seed, 20 << 20, 2, false);
	random_gather(&one, &seed, 8, 50000, true);
	random_gather(&one, &seed, 8, 200000, false);
	random_readv(&one, &seed, 40000, 16);
	one_end(&one);
}

static void expect_failure(struct one *one, struct gw_group *group, gw_status status)
{
	struct gw_completion completion = gw_bed_wait(one->group, group->cookie);
	assert_int_equal(completion.status, status);
	assert_true(strlen(completion.text) > 0);
}

static void past_the_end(void **state)
{
	struct one one;
	one_begin(&one, state, NULL, 4096);
	uint64_t end = one.bed.bytes;
	const struct gw_span bad[] = {
		{end, 0, 1},        {end - 3, 0, 4},    {UINT64_MAX, 0, 1}, {UINT64_MAX - 3, 0, 8},
		{0, 4096, 1},       {0, 4093, 4},       {0, UINT64_MAX, 1}, {0, UINT64_MAX - 2, 4},
		{0, 0, UINT32_MAX}, {end - 4, 4093, 4}, {end + 1, 0, 0}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct gw_span spans[2] = {{0, 0, 16}, bad[i]};
		struct gw_group group = {.cookie = &group, .deadline_ns = GW_NO_DEADLINE};
		/* A failed group accepts everything. */
		assert_int_equal(gw_endpoint_readv(one.endpoint, &group, &one.region, one.buffer, spans, 2, false), 2);
		assert_int_equal(gw_endpoint_readv(one.endpoint, &group, &one.region, one.buffer, spans, 1, true), 1);
		expect_failure(&one, &group, GW_RANGE);
	}
	uint64_t remote[3] = {0, 5, end - 7};
	uint32_t rows[3] = {0, 1, 2};
	struct gw_gather gather = {.remote = remote, .rows = rows, .row_bytes = 8, .stride = 8};
	struct gw_group past = {.cookie = &past, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_gather(one.endpoint, &past, &one.region, one.buffer, &gather, 3, true), 3);
	expect_failure(&one, &past, GW_RANGE);
	remote[2] = end - 8;
	rows[1] = 4096 / 8;
	struct gw_group row = {.cookie = &row, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_gather(one.endpoint, &row, &one.region, one.buffer, &gather, 3, true), 3);
	expect_failure(&one, &row, GW_RANGE);
	rows[1] = UINT32_MAX;
	gather.stride = UINT32_MAX;
	struct gw_group wild = {.cookie = &wild, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_gather(one.endpoint, &wild, &one.region, one.buffer, &gather, 3, true), 3);
	expect_failure(&one, &wild, GW_RANGE);
	gather.stride = 7;
	struct gw_group narrow = {.cookie = &narrow, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_gather(one.endpoint, &narrow, &one.region, one.buffer, &gather, 3, true), 3);
	expect_failure(&one, &narrow, GW_INVALID);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(one.landing[i], 0);
	/* Right up to the end is fine, and the endpoint has survived all that. */
	struct gw_span last = {end - 4096, 0, 4096};
	struct gw_group good = {.cookie = &good, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one.endpoint, &good, &one.region, one.buffer, &last, 1);
	wait_ok(&one, &good);
	assert_memory_equal(one.landing, one.bed.memory + end - 4096, 4096);
	one_end(&one);
}

static void unknown_and_stale_regions(void **state)
{
	struct one one;
	one_begin(&one, state, NULL, 64);
	struct gw_span span = {0, 0, 8};
	struct gw_region region = one.region;
	region.id = 3;
	struct gw_group unknown = {.cookie = &unknown, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &unknown, &region, one.buffer, &span, 1, true), 1);
	expect_failure(&one, &unknown, GW_RANGE);
	region = one.region;
	region.generation ^= 2;
	struct gw_group stale = {.cookie = &stale, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &stale, &region, one.buffer, &span, 1, true), 1);
	expect_failure(&one, &stale, GW_STALE);
	/* A caller's region that claims more than there is convinces nobody. */
	region = one.region;
	region.bytes = UINT64_MAX;
	span.remote = one.bed.bytes;
	struct gw_group lie = {.cookie = &lie, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &lie, &region, one.buffer, &span, 1, true), 1);
	expect_failure(&one, &lie, GW_RANGE);
	one_end(&one);
}

/* Destinations that overlap are legal: which of the reads wins is open, the rest of memory is not. */
static void overlapping_destinations(void **state)
{
	struct one one;
	one_begin(&one, state, NULL, 4096);
	struct gw_span spans[] = {{0, 100, 1000}, {5000, 600, 1000}, {9000, 100, 10}};
	struct gw_group group = {.cookie = &group, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one.endpoint, &group, &one.region, one.buffer, spans, 3);
	wait_ok(&one, &group);
	for (uint32_t i = 0; i < 4096; i++) {
		bool legal = i < 100 || i >= 1600 ? one.landing[i] == 0 : false;
		for (int s = 0; s < 3; s++)
			if (i >= spans[s].local && i < spans[s].local + spans[s].bytes)
				legal |= one.landing[i] == one.bed.memory[spans[s].remote + i - spans[s].local];
		assert_true(legal);
	}
	one_end(&one);
}

/* One group of several calls of both forms, over two regions. */
static void groups_of_many_calls(void **state)
{
	struct one one;
	one_begin(&one, state, NULL, 4096);
	struct gw_group group = {.cookie = &group, .deadline_ns = gw_now_ns() + 10 * GW_NS_PER_SECOND};
	uint64_t remote[2] = {8, 4000};
	struct gw_gather gather = {.remote = remote, .local = 1000, .row_bytes = 100, .stride = 200};
	struct gw_span span = {10, 2000, 500};
	assert_int_equal(gw_endpoint_gather(one.endpoint, &group, &one.region, one.buffer, &gather, 2, false), 2);
	nothing_more(&one, 20);
	assert_int_equal(
		gw_endpoint_readv(one.endpoint, &group, &one.endpoint->peer.regions[2], one.buffer, &span, 1, false),
		1);
	nothing_more(&one, 20);
	assert_int_equal(gw_endpoint_readv(one.endpoint, &group, &one.region, one.buffer, NULL, 0, true), 0);
	wait_ok(&one, &group);
	assert_memory_equal(one.landing + 1000, one.bed.memory + 8, 100);
	assert_memory_equal(one.landing + 1200, one.bed.memory + 4000, 100);
	assert_memory_equal(one.landing + 2000, one.bed.memory + one.bed.bytes - 1000 + 10, 500);
	nothing_more(&one, 20);
	one_end(&one);
}

#define MANY 300

static void many_in_flight(void **state)
{
	struct one one;
	struct gw_group groups[MANY];
	static uint64_t remote[MANY][40];
	uint8_t seen[MANY] = {0};
	uint64_t seed = 4;
	uint32_t posted = 0, completed = 0;
	bool refused = false;
	one_begin(&one, state, NULL, MANY * 40 * 64);
	memset(groups, 0, sizeof(groups));
	while (completed < MANY) {
		while (posted < MANY) {
			struct gw_group *group = &groups[posted];
			group->cookie = group;
			group->deadline_ns = GW_NO_DEADLINE;
			for (int i = 0; i < 40 && !group->next && !group->frames_open; i++)
				remote[posted][i] = below(&seed, one.bed.bytes - 64);
			struct gw_gather gather = {
				.remote = remote[posted], .local = posted * 40 * 64, .row_bytes = 64, .stride = 64};
			size_t taken =
				gw_endpoint_gather(one.endpoint, group, &one.region, one.buffer, &gather, 40, true);
			assert_true(taken == 0 || taken == 40);
			refused |= taken == 0;
			if (taken == 0)
				break;
			posted++;
		}
		struct gw_completion completions[7];
		size_t n = gw_poll_group_poll(one.group, completions, 7, 5 * GW_NS_PER_SECOND);
		for (size_t i = 0; i < n; i++) {
			size_t which = (size_t)((struct gw_group *)completions[i].cookie - groups);
			assert_int_equal(completions[i].status, GW_OK);
			assert_int_equal(seen[which]++, 0);
			completed++;
		}
	}
	for (int g = 0; g < MANY; g++)
		for (int i = 0; i < 40; i++)
			assert_memory_equal(one.landing + (g * 40 + i) * 64, one.bed.memory + remote[g][i], 64);
	assert_true(refused || !one.bed.kind->network);
	nothing_more(&one, 10);
	one_end(&one);
}

/* A server that does not answer takes only so much; what was refused finds room when it answers again. */
static void backpressure(void **state)
{
	struct one one;
	one_begin(&one, state, NULL, 4 << 20);
	if (!one.bed.kind->network) {
		one_end(&one);
		return;
	}
	gw_bed_pause(&one.bed);
	uint32_t n = 200000, accepted = 0, completed = 0;
	uint64_t *remote = calloc(n, sizeof(*remote));
	struct gw_group *smalls = calloc(1000, sizeof(*smalls));
	for (uint32_t i = 0; i < n; i++)
		remote[i] = (uint64_t)i * 5;
	struct gw_gather gather = {.remote = remote, .row_bytes = 16, .stride = 16};
	struct gw_group group = {.cookie = &group, .deadline_ns = GW_NO_DEADLINE};
	struct gw_span small = {77, 4000000, 16};
	uint32_t taken = (uint32_t)gw_endpoint_gather(one.endpoint, &group, &one.region, one.buffer, &gather, n, true);
	while (accepted < 1000 &&
	       gw_endpoint_readv(one.endpoint, &smalls[accepted], &one.region, one.buffer, &small, 1, true) == 1)
		accepted++;
	assert_in_range(accepted, 0, 999);
	gw_bed_resume(&one.bed);
	while (completed < accepted + 1) {
		gather.remote = remote + taken;
		gather.local = (uint64_t)taken * 16;
		if (taken < n)
			taken += (uint32_t)gw_endpoint_gather(one.endpoint, &group, &one.region, one.buffer, &gather,
							      n - taken, true);
		struct gw_completion completion;
		if (gw_poll_group_poll(one.group, &completion, 1, 5 * GW_NS_PER_SECOND)) {
			assert_int_equal(completion.status, GW_OK);
			completed++;
		}
	}
	assert_int_equal(taken, n);
	for (uint32_t i = 0; i < n; i++)
		assert_memory_equal(one.landing + i * 16ull, one.bed.memory + remote[i], 16);
	free(remote);
	free(smalls);
	one_end(&one);
}

/* --- Requests. --- */

static struct gw_completion call(struct one *one, uint16_t op, uint64_t sequence, const void *bytes, uint32_t n)
{
	assert_int_equal(
		gw_endpoint_request(one->endpoint, op, sequence, bytes, n, GW_NO_DEADLINE, (void *)(uintptr_t)op),
		GW_OK);
	return gw_bed_wait(one->group, (void *)(uintptr_t)op);
}

static void requests(void **state)
{
	struct one one;
	one_begin(&one, state, NULL, 64);
	uint8_t *bytes = malloc(GW_REQUEST_BYTES_MAX + 1);
	for (uint32_t i = 0; i <= GW_REQUEST_BYTES_MAX; i++)
		bytes[i] = (uint8_t)(i ^ (i >> 8));
	for (uint32_t n = 0; n <= GW_REQUEST_BYTES_MAX; n = n * 3 + 1) {
		struct gw_completion echo = call(&one, BED_OP_ECHO, 0, bytes, n);
		assert_int_equal(echo.status, GW_OK);
		assert_int_equal(echo.reply_bytes, n);
		assert_memory_equal(echo.reply, bytes, n);
	}
	struct gw_completion longest = call(&one, BED_OP_ECHO, 0, bytes, GW_REQUEST_BYTES_MAX);
	assert_int_equal(longest.status, GW_OK);
	assert_memory_equal(longest.reply, bytes, GW_REQUEST_BYTES_MAX);
	assert_int_equal(gw_endpoint_request(one.endpoint, BED_OP_ECHO, 0, bytes, GW_REQUEST_BYTES_MAX + 1,
					     GW_NO_DEADLINE, NULL),
			 GW_LIMIT);
	struct gw_completion failed = call(&one, BED_OP_FAIL, 0, bytes, 4);
	assert_int_equal(failed.status, GW_NOT_FOUND);
	assert_non_null(strstr(failed.text, "no such thing"));
	assert_int_equal(failed.reply_bytes, 0);
	assert_int_equal(call(&one, 63, 0, NULL, 0).status, GW_UNSUPPORTED);
	assert_int_equal(call(&one, GW_OPS_MAX, 0, NULL, 0).status, GW_UNSUPPORTED);
	assert_int_equal(call(&one, BED_OP_ECHO, 0, bytes, 5).status, GW_OK);
	free(bytes);
	one_end(&one);
}

static void large_replies(void **state)
{
	struct one one;
	one_begin(&one, state, NULL, 1 << 20);
	static const uint32_t sizes[] = {0, 1, 200000, 262144, 300000, 20000000};
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		/* Reads before and behind it come through whole. */
		struct gw_span span = {s, 0, 300000};
		struct gw_group before = {.cookie = &before, .deadline_ns = GW_NO_DEADLINE};
		struct gw_group after = {.cookie = &after, .deadline_ns = GW_NO_DEADLINE};
		gw_bed_readv(one.endpoint, &before, &one.region, one.buffer, &span, 1);
		assert_int_equal(gw_endpoint_request(one.endpoint, BED_OP_LARGE, 0, &sizes[s], 4, GW_NO_DEADLINE, &one),
				 GW_OK);
		span.local = 500000;
		gw_bed_readv(one.endpoint, &after, &one.region, one.buffer, &span, 1);
		int left = 3;
		while (left) {
			struct gw_completion completion;
			if (!gw_poll_group_poll(one.group, &completion, 1, 5 * GW_NS_PER_SECOND))
				continue;
			left--;
			assert_int_equal(completion.status, GW_OK);
			if (completion.cookie != &one)
				continue;
			assert_int_equal(completion.reply_bytes, sizes[s]);
			for (uint32_t i = 0; i < sizes[s]; i += 1 + i / 1000)
				assert_int_equal(completion.reply[i], (uint8_t)(i * 7));
		}
		assert_memory_equal(one.landing, one.bed.memory + s, 300000);
		assert_memory_equal(one.landing + 500000, one.bed.memory + s, 300000);
	}
	uint32_t too_much = GW_REPLY_BYTES_MAX + 1;
	assert_int_equal(call(&one, BED_OP_LARGE, 0, &too_much, 4).status, GW_LIMIT);
	one_end(&one);
}

/* A repeat of the last sequenced call is answered from memory, over a new connection too. */
static void a_repeat_is_applied_once(void **state)
{
	struct one one;
	uint32_t sum;
	one_begin(&one, state, NULL, 64);
	for (int round = 0; round < 3; round++) {
		struct gw_completion first = call(&one, BED_OP_COUNT, 9, NULL, 0);
		assert_int_equal(first.status, GW_OK);
		assert_int_equal(first.reply_bytes, 4);
		memcpy(&sum, first.reply, 4);
		assert_int_equal(sum, 1);
		gw_endpoint_close(one.endpoint);
		struct gw_connect_options connect = gw_bed_options(&one.bed);
		assert_int_equal(gw_bed_connect(one.group, &connect, &one.endpoint), GW_OK);
	}
	struct gw_completion next = call(&one, BED_OP_COUNT, 10, NULL, 0);
	memcpy(&sum, next.reply, 4);
	assert_int_equal(sum, 2);
	assert_int_equal(call(&one, BED_OP_COUNT, 9, NULL, 0).status, GW_INVALID);
	assert_int_equal(call(&one, BED_OP_COUNT, 0, NULL, 0).status, GW_OK);
	assert_int_equal(atomic_load(&one.bed.applied), 3);
	/* A failure is remembered like a success. */
	assert_int_equal(call(&one, BED_OP_FAIL, 11, NULL, 0).status, GW_NOT_FOUND);
	assert_int_equal(call(&one, BED_OP_FAIL, 11, NULL, 0).status, GW_NOT_FOUND);
	/* Another client has sequences of its own. */
	gw_endpoint_close(one.endpoint);
	struct gw_connect_options other = gw_bed_options(&one.bed);
	other.client_uuid[0] = 99;
	assert_int_equal(gw_bed_connect(one.group, &other, &one.endpoint), GW_OK);
	struct gw_completion theirs = call(&one, BED_OP_COUNT, 9, NULL, 0);
	memcpy(&sum, theirs.reply, 4);
	assert_int_equal(sum, 4);
	one_end(&one);
}

static void requests_are_bounded(void **state)
{
	struct one one;
	one_begin(&one, state, NULL, 64);
	uint32_t open = 0;
	gw_status status = GW_OK;
	while (open < 1000) {
		status = gw_endpoint_request(one.endpoint, BED_OP_ECHO, 0, "x", 1, GW_NO_DEADLINE, NULL);
		if (status)
			break;
		open++;
	}
	assert_int_equal(status, GW_AGAIN);
	assert_in_range(open, 1, 64);
	while (open) {
		struct gw_completion completion;
		if (gw_poll_group_poll(one.group, &completion, 1, GW_NS_PER_SECOND)) {
			assert_int_equal(completion.status, GW_OK);
			open--;
		}
	}
	assert_int_equal(call(&one, BED_OP_ECHO, 0, "x", 1).status, GW_OK);
	one_end(&one);
}

/* --- Ends. --- */

/* Fills the landing area and sees that nothing changes it for a while of polling. */
static void nothing_is_written(struct one *one)
{
	memset(one->landing, 0xee, one->landing_bytes);
	memset(one->expected, 0xee, one->landing_bytes);
	nothing_more(one, 150);
	assert_memory_equal(one->landing, one->expected, one->landing_bytes);
}

static void read_works(struct one *one)
{
	struct gw_span span = {12, 0, 64};
	struct gw_group group = {.cookie = &group, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one->endpoint, &group, &one->region, one->buffer, &span, 1);
	wait_ok(one, &group);
	assert_memory_equal(one->landing, one->bed.memory + 12, 64);
}

static void deadlines(void **state)
{
	struct bed_options options = {.bytes = 40u << 20};
	struct one one;
	one_begin(&one, state, &options, 40u << 20);
	bool network = one.bed.kind->network;
	/* Already over. */
	struct gw_span whole = {0, 0, 40u << 20};
	struct gw_group over = {.cookie = &over, .deadline_ns = gw_now_ns() - 1};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &over, &one.region, one.buffer, &whole, 1, true), 1);
	expect_failure(&one, &over, GW_DEADLINE);
	nothing_is_written(&one);
	/* While the answer is under way: at several points of it. */
	for (uint64_t us = 100; us <= 12800 && network; us *= 2) {
		struct gw_group group = {.cookie = &group, .deadline_ns = gw_now_ns() + us * 1000};
		gw_bed_readv(one.endpoint, &group, &one.region, one.buffer, &whole, 1);
		struct gw_completion completion = gw_bed_wait(one.group, &group);
		assert_true(completion.status == GW_OK || completion.status == GW_DEADLINE);
		nothing_is_written(&one);
	}
	read_works(&one);
	if (network) {
		/* Nothing comes at all, for a read and a request. */
		gw_bed_pause(&one.bed);
		uint64_t begun = gw_now_ns();
		struct gw_group group = {.cookie = &group, .deadline_ns = begun + 50 * GW_NS_PER_MS};
		gw_bed_readv(one.endpoint, &group, &one.region, one.buffer, &whole, 1);
		expect_failure(&one, &group, GW_DEADLINE);
		uint64_t took = gw_now_ns() - begun;
		assert_in_range(took, 50 * GW_NS_PER_MS, 5 * GW_NS_PER_SECOND);
		assert_int_equal(gw_endpoint_request(one.endpoint, BED_OP_ECHO, 0, "x", 1,
						     gw_now_ns() + 30 * GW_NS_PER_MS, &one),
				 GW_OK);
		assert_int_equal(gw_bed_wait(one.group, &one).status, GW_DEADLINE);
		gw_bed_resume(&one.bed);
		nothing_is_written(&one);
		read_works(&one);
	}
	one_end(&one);
}

static void cancels(void **state)
{
	struct bed_options options = {.bytes = 40u << 20};
	struct one one;
	one_begin(&one, state, &options, 40u << 20);
	struct gw_span whole = {0, 0, 40u << 20};
	for (uint64_t us = 0; us <= 6400; us = us * 2 + 50) {
		struct gw_group group = {.cookie = &group, .deadline_ns = GW_NO_DEADLINE};
		struct gw_group bystander = {.cookie = &group, .deadline_ns = GW_NO_DEADLINE};
		struct gw_span small = {9, 0, 4096};
		gw_bed_readv(one.endpoint, &group, &one.region, one.buffer, &whole, 1);
		struct gw_completion completion;
		uint64_t end = gw_now_ns() + us * 1000;
		size_t n = 0;
		while (gw_now_ns() < end && !n)
			n = gw_poll_group_poll(one.group, &completion, 1, 0);
		gw_endpoint_cancel(one.endpoint, &group);
		gw_bed_readv(one.endpoint, &bystander, &one.region, one.buffer, &small, 1);
		if (!n)
			completion = gw_bed_wait(one.group, &group);
		assert_true(completion.status == GW_CANCELLED || completion.status == GW_OK);
		/* Twice, and after the end, does nothing. */
		gw_endpoint_cancel(one.endpoint, &group);
		assert_int_equal(gw_bed_wait(one.group, &group).status, GW_OK);
		assert_memory_equal(one.landing, one.bed.memory + 9, 4096);
		nothing_is_written(&one);
	}
	/* A group that still waits for its last read ends too. */
	struct gw_group half = {.cookie = &half, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &half, &one.region, one.buffer, &whole, 1, false), 1);
	gw_endpoint_cancel(one.endpoint, &half);
	struct gw_completion completion = gw_bed_wait(one.group, &half);
	assert_int_equal(completion.status, GW_CANCELLED);
	read_works(&one);
	one_end(&one);
}

/* A cancelled request is over for its caller; its late answer disturbs nobody. */
static void requests_are_cancelled(void **state)
{
	struct one one;
	int cookie, other;
	one_begin(&one, state, NULL, 4096);
	gw_endpoint_request_cancel(one.endpoint, &cookie); /* unknown: nothing happens */
	if (one.bed.kind->network)
		gw_bed_pause(&one.bed);
	assert_int_equal(gw_endpoint_request(one.endpoint, BED_OP_ECHO, 0, "abc", 3, GW_NO_DEADLINE, &cookie), GW_OK);
	gw_endpoint_request_cancel(one.endpoint, &cookie);
	gw_status expected = one.bed.kind->network ? GW_CANCELLED : GW_OK; /* in memory it was complete */
	assert_int_equal(gw_bed_wait(one.group, &cookie).status, expected);
	gw_endpoint_request_cancel(one.endpoint, &cookie);
	assert_int_equal(gw_endpoint_request(one.endpoint, BED_OP_ECHO, 0, "defg", 4, GW_NO_DEADLINE, &other), GW_OK);
	gw_bed_resume(&one.bed);
	struct gw_completion completion = gw_bed_wait(one.group, &other);
	assert_int_equal(completion.status, GW_OK);
	assert_int_equal(completion.reply_bytes, 4);
	assert_memory_equal(completion.reply, "defg", 4);
	read_works(&one);
	one_end(&one);
}

static void closing_cancels(void **state)
{
	struct bed_options options = {.bytes = 40u << 20};
	struct one one;
	one_begin(&one, state, &options, 40u << 20);
	if (one.bed.kind->network)
		gw_bed_pause(&one.bed);
	struct gw_span whole = {0, 0, 40u << 20};
	struct gw_group group = {.cookie = &group, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &group, &one.region, one.buffer, &whole, 1, false), 1);
	gw_endpoint_close(one.endpoint);
	one.endpoint = NULL;
	gw_bed_resume(&one.bed);
	struct gw_completion completion = gw_bed_wait(one.group, &group);
	assert_int_equal(completion.status, GW_CANCELLED);
	nothing_is_written(&one);
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(one.group, &connect, &one.endpoint), GW_OK);
	read_works(&one);
	one_end(&one);
}

/* The server ends: what is open fails, what is asked later fails; one at the same place is another incarnation. */
static void losing_and_reconnecting(void **state)
{
	struct one one;
	one_begin(&one, state, NULL, 1 << 20);
	uint16_t port = one.bed.address.port;
	struct gw_span span = {0, 0, 1 << 20};
	struct gw_group open = {.cookie = &open, .deadline_ns = GW_NO_DEADLINE};
	if (one.bed.kind->network)
		gw_bed_pause(&one.bed);
	assert_int_equal(gw_endpoint_readv(one.endpoint, &open, &one.region, one.buffer, &span, 1, false), 1);
	gw_bed_end(&one.bed);
	/* Over a network the loss is noticed by polling. */
	struct gw_group later = {.cookie = &later, .deadline_ns = GW_NO_DEADLINE};
	for (int i = 0; i < 500 && one.endpoint->state != GW_ENDPOINT_LOST && one.bed.kind->network; i++)
		nothing_more(&one, 2);
	assert_int_equal(gw_endpoint_readv(one.endpoint, &later, &one.region, one.buffer, &span, 1, true), 1);
	expect_failure(&one, &later, GW_PEER_LOST);
	assert_int_equal(one.endpoint->state, GW_ENDPOINT_LOST);
	assert_int_equal(gw_endpoint_readv(one.endpoint, &open, &one.region, one.buffer, &span, 1, true), 1);
	expect_failure(&one, &open, GW_PEER_LOST);
	assert_int_equal(gw_endpoint_request(one.endpoint, BED_OP_ECHO, 0, NULL, 0, GW_NO_DEADLINE, &one), GW_OK);
	assert_int_equal(gw_bed_wait(one.group, &one).status, GW_PEER_LOST);
	gw_endpoint_close(one.endpoint);

	struct gw_connect_options nobody = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(one.group, &nobody, &one.endpoint), GW_PEER_LOST);
	gw_endpoint_close(one.endpoint);

	struct bed_options options = {.port = port, .incarnation = 6};
	gw_bed_begin(&one.bed, *state, &options);
	struct gw_connect_options again = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(one.group, &again, &one.endpoint), GW_OK);
	assert_int_equal(one.endpoint->peer.incarnation, 6);
	struct gw_group stale = {.cookie = &stale, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &stale, &one.region, one.buffer, &span, 1, true), 1);
	expect_failure(&one, &stale, GW_STALE);
	one.region = one.endpoint->peer.regions[0];
	read_works(&one);
	one_end(&one);
}

/* Stopped, a listener takes nobody new and goes on with the others. */
static void stop_and_drain(void **state)
{
	struct one one;
	one_begin(&one, state, NULL, 4096);
	gw_bed_pause(&one.bed);
	gw_listener_stop(one.bed.listener, false);
	gw_bed_resume(&one.bed);
	struct gw_endpoint *late = NULL;
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(one.group, &connect, &late), GW_PEER_LOST);
	gw_endpoint_close(late);
	read_works(&one);
	assert_int_equal(call(&one, BED_OP_ECHO, 0, "abc", 3).status, GW_OK);
	one_end(&one);
}

/* --- Who may connect. --- */

static gw_status try_connect(struct one *one, const char *key, uint64_t graph_id, const char *word)
{
	struct gw_connect_options connect = gw_bed_options(&one->bed);
	struct gw_endpoint *endpoint;
	connect.key = (const uint8_t *)key;
	connect.key_bytes = key ? (uint32_t)strlen(key) : 0;
	connect.graph_id = graph_id;
	gw_status status = gw_bed_connect(one->group, &connect, &endpoint);
	if (status && !strstr(gw_last_error(), word))
		print_error("\"%s\" lacks \"%s\"\n", gw_last_error(), word);
	assert_true(!status || strstr(gw_last_error(), word));
	assert_int_equal(endpoint->state, status ? GW_ENDPOINT_LOST : GW_ENDPOINT_OPEN);
	assert_true(!status || endpoint->peer.region_count == 0);
	gw_endpoint_close(endpoint);
	return status;
}

static void keys_and_graphs(void **state)
{
	struct one one;
	one_begin(&one, state, NULL, 4096);
	assert_int_equal(try_connect(&one, NULL, 77, ""), GW_OK);
	assert_int_equal(try_connect(&one, NULL, 78, "000000000000004d"), GW_WRONG_GRAPH);
	assert_int_equal(try_connect(&one, "a key too many", 0, "none to prove"), GW_REFUSED);
	read_works(&one);
	one_end(&one);

	struct bed_options options = {.key = "the right key of this test"};
	memset(&one, 0, sizeof(one));
	gw_bed_begin(&one.bed, *state, &options);
	one.group = gw_bed_group(one.bed.kind);
	assert_int_equal(try_connect(&one, options.key, 77, ""), GW_OK);
	assert_int_equal(try_connect(&one, options.key, 1, "graph"), GW_WRONG_GRAPH);
	assert_int_equal(try_connect(&one, "the wrong key of this test", 0, "another key"), GW_REFUSED);
	assert_int_equal(try_connect(&one, "the right key of this tes", 0, "another key"), GW_REFUSED);
	assert_int_equal(try_connect(&one, NULL, 0, "wants a key"), GW_REFUSED);
	struct gw_service_counters counters;
	gw_service_counters(one.bed.service, &counters);
	assert_in_range(counters.refused, 2, 4); /* a client without a key or with another graph may leave by itself */
	gw_poll_group_destroy(one.group);
	gw_bed_end(&one.bed);
}

static void connections_are_limited(void **state)
{
	struct bed_options options = {.limits = {.connections = 3}};
	struct one one;
	struct gw_endpoint *endpoints[3];
	one_begin(&one, state, &options, 4096);
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(one.group, &connect, &endpoints[0]), GW_OK);
	assert_int_equal(gw_bed_connect(one.group, &connect, &endpoints[1]), GW_OK);
	assert_int_equal(gw_bed_connect(one.group, &connect, &endpoints[2]), GW_REFUSED);
	assert_non_null(strstr(gw_last_error(), "3 connections"));
	gw_endpoint_close(endpoints[2]);
	read_works(&one);
	gw_endpoint_close(endpoints[1]);
	/* Its place becomes free when the server notices. */
	gw_status status = GW_REFUSED;
	for (int i = 0; i < 200 && status; i++) {
		nothing_more(&one, 5);
		status = gw_bed_connect(one.group, &connect, &endpoints[1]);
		if (status)
			gw_endpoint_close(endpoints[1]);
	}
	assert_int_equal(status, GW_OK);
	gw_endpoint_close(endpoints[1]);
	gw_endpoint_close(endpoints[0]);
	one_end(&one);
}

/* --- Threads. --- */

static void *wake_later(void *group)
{
	nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
	gw_poll_group_wake(group);
	return NULL;
}

static void wake(void **state)
{
	struct one one;
	struct gw_completion completion;
	one_begin(&one, state, NULL, 64);
	for (int round = 0; round < 2; round++) {
		pthread_t thread;
		uint64_t begun = gw_now_ns();
		assert_int_equal(pthread_create(&thread, NULL, wake_later, one.group), 0);
		assert_int_equal(gw_poll_group_poll(one.group, &completion, 1, 20 * GW_NS_PER_SECOND), 0);
		assert_in_range(gw_now_ns() - begun, 0, 10 * GW_NS_PER_SECOND);
		pthread_join(thread, NULL);
	}
	/* One that comes before the poll counts for it. */
	gw_poll_group_wake(one.group);
	uint64_t begun = gw_now_ns();
	assert_int_equal(gw_poll_group_poll(one.group, &completion, 1, 20 * GW_NS_PER_SECOND), 0);
	assert_in_range(gw_now_ns() - begun, 0, 10 * GW_NS_PER_SECOND);
	one_end(&one);
}

struct user {
	struct bed *bed;
	uint32_t number;
};

static void *use(void *argument)
{
	struct user *user = argument;
	struct gw_poll_group *group = gw_bed_group(user->bed->kind);
	struct gw_connect_options connect = gw_bed_options(user->bed);
	struct gw_endpoint *endpoint;
	struct gw_buffer *buffer;
	uint64_t remote[200], seed = user->number;
	uint8_t *landing = malloc(200 * 100);
	connect.client_uuid[0] = (uint8_t)user->number;
	if (gw_bed_connect(group, &connect, &endpoint) || gw_buffer_register(group, landing, 200 * 100, &buffer))
		abort();
	for (uint32_t round = 1; round <= 100; round++) {
		for (int i = 0; i < 200; i++)
			remote[i] = below(&seed, user->bed->bytes - 100);
		struct gw_gather gather = {.remote = remote, .row_bytes = 100, .stride = 100};
		struct gw_group reads = {.cookie = &reads, .deadline_ns = GW_NO_DEADLINE};
		gw_bed_gather(endpoint, &reads, &endpoint->peer.regions[0], buffer, &gather, 200);
		if (gw_bed_wait(group, &reads).status)
			abort();
		for (int i = 0; i < 200; i++)
			if (memcmp(landing + i * 100, user->bed->memory + remote[i], 100) != 0)
				abort();
		if (gw_endpoint_request(endpoint, BED_OP_COUNT, round, NULL, 0, GW_NO_DEADLINE, user) ||
		    gw_bed_wait(group, user).status)
			abort();
	}
	gw_endpoint_close(endpoint);
	gw_buffer_release(buffer);
	gw_poll_group_destroy(group);
	free(landing);
	return NULL;
}

static void several_clients_and_server_threads(void **state)
{
	struct bed bed;
	struct bed_options options = {.threads = 3};
	pthread_t threads[4];
	struct user users[4];
	gw_bed_begin(&bed, *state, &options);
	for (uint32_t i = 0; i < 4; i++) {
		users[i] = (struct user){&bed, i + 1};
		assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
	}
	for (uint32_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&bed.applied), 400);
	struct gw_service_counters counters;
	gw_service_counters(bed.service, &counters);
	assert_int_equal(counters.connections_total, 4);
	assert_int_equal(counters.read_ranges, 4 * 100 * 200);
	assert_int_equal(counters.read_bytes, 4 * 100 * 200 * 100);
	assert_int_equal(counters.requests, 400);
	gw_bed_end(&bed);
}

/* A listener is closed by another thread while clients read: they lose it, and nothing else happens. */
static void *close_later(void *argument)
{
	struct bed *bed = argument;
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	gw_bed_end(bed);
	return NULL;
}

static void closing_under_load(void **state)
{
	struct one one;
	struct bed_options options = {.threads = 2};
	pthread_t thread;
	one_begin(&one, state, &options, 1 << 20);
	assert_int_equal(pthread_create(&thread, NULL, close_later, &one.bed), 0);
	gw_status status = GW_OK;
	for (uint32_t i = 0; !status; i++) {
		struct gw_span span = {i % 1000, 0, 1 << 19};
		struct gw_group group = {.cookie = &group, .deadline_ns = GW_NO_DEADLINE};
		gw_bed_readv(one.endpoint, &group, &one.region, one.buffer, &span, 1);
		status = gw_bed_wait(one.group, &group).status;
	}
	assert_int_equal(status, GW_PEER_LOST);
	pthread_join(thread, NULL);
	gw_endpoint_close(one.endpoint);
	gw_buffer_release(one.buffer);
	gw_poll_group_destroy(one.group);
	free(one.landing);
	free(one.expected);
}

/* --- Memory shortage: server and client in one thread, so that allocations come in one order. --- */

struct life {
	const struct bed_kind *kind;
	struct gw_poll_group *group;
	struct gw_service *service;
	struct gw_listener *listener;
	struct gw_endpoint *endpoint;
	uint8_t memory[4096], landing[4096];
};

static gw_status echo(void *context, const struct gw_call *call_, struct gw_reply *reply, uint32_t thread)
{
	(void)context;
	(void)thread;
	uint8_t *room = gw_reply_extend(reply, call_->byte_count);
	if (!room)
		return GW_NO_MEMORY;
	memcpy(room, call_->bytes, call_->byte_count);
	return GW_OK;
}

static gw_status await(struct life *life, const void *cookie)
{
	struct gw_completion completion;
	uint64_t end = gw_now_ns() + 5 * GW_NS_PER_SECOND;
	while (gw_now_ns() < end)
		if (gw_poll_group_poll(life->group, &completion, 1, 10 * GW_NS_PER_MS) && completion.cookie == cookie)
			return completion.status ? gw_fail_text(completion.status, completion.text) : GW_OK;
	fail_msg("nothing completed");
	return GW_DEADLINE;
}

static gw_status live(struct life *life)
{
	struct gw_poll_group_options options = {.tcp_driver = life->kind->driver};
	struct gw_service_identity identity = {.graph_id = 1};
	struct gw_address address = {.host = "127.0.0.1"};
	struct gw_buffer *buffer;
	uint32_t id;
	strcpy(address.scheme, life->kind->scheme);
	gw_status status = gw_poll_group_create(&options, &life->group);
	if (!status)
		status = gw_service_create(&identity, NULL, &life->service);
	if (!status)
		status = gw_service_expose(life->service, life->memory, 4096, 0, GW_REGION_IMMUTABLE, &id);
	if (!status)
		status = gw_service_handle(life->service, 1, echo, NULL);
	if (!status)
		status = gw_service_key_set(life->service, (const uint8_t *)"0123456789abcdef", 16);
	if (!status)
		status = gw_listen(&life->group, 1, &address, life->service, &life->listener);
	if (!status)
		status = gw_buffer_register(life->group, life->landing, 4096, &buffer);
	if (status)
		return status;
	struct gw_connect_options connect = {.address = life->listener->address,
					     .key = (const uint8_t *)"0123456789abcdef",
					     .key_bytes = 16,
					     .deadline_ns = GW_NO_DEADLINE};
	status = gw_endpoint_connect(life->group, &connect, life, &life->endpoint);
	if (!status)
		status = await(life, life);
	if (status)
		return status;
	struct gw_span span = {0, 0, 4096};
	struct gw_group group = {.cookie = &group};
	assert_int_equal(
		gw_endpoint_readv(life->endpoint, &group, &life->endpoint->peer.regions[0], buffer, &span, 1, true), 1);
	status = await(life, &group);
	if (!status)
		assert_memory_equal(life->landing, life->memory, 4096);
	/* Larger than the first buffers of either side. */
	static uint8_t bytes[300000];
	if (!status)
		status = gw_endpoint_request(life->endpoint, 1, 5, bytes, sizeof(bytes), GW_NO_DEADLINE, &span);
	if (!status)
		status = await(life, &span);
	return status;
}

static gw_status live_and_end(void *context)
{
	struct life *life = context;
	life->group = NULL;
	life->service = NULL;
	life->listener = NULL;
	life->endpoint = NULL;
	memset(life->memory, 7, sizeof(life->memory));
	gw_status status = live(life);
	gw_endpoint_close(life->endpoint);
	gw_listener_free(life->listener);
	gw_poll_group_destroy(life->group);
	gw_service_destroy(life->service);
	/* The server's shortage ends its connection, which the client sees as a loss. */
	if (status && gw_fault_hit())
		status = gw_fail(GW_NO_MEMORY, "short of memory");
	return status;
}

static void memory_shortage(void **state)
{
	struct life *life = calloc(1, sizeof(*life));
	life->kind = *state;
	assert_true(gw_fault_each(live_and_end, life) > 5);
	assert_true(gw_fault_each_from(live_and_end, life) > 5);
	free(life);
}

/* --- */

/* clang-format off: one test a line */
#define EACH(X)                                                                                                        \
	X(hello)                                                                                                       \
	X(gathers_equal_memcpy)                                                                                        \
	X(readvs_equal_memcpy)                                                                                         \
	X(empty_reads)                                                                                                 \
	X(huge_reads)                                                                                                  \
	X(past_the_end)                                                                                                \
	X(unknown_and_stale_regions)                                                                                   \
	X(overlapping_destinations)                                                                                    \
	X(groups_of_many_calls)                                                                                        \
	X(many_in_flight)                                                                                              \
	X(backpressure)                                                                                                \
	X(requests)                                                                                                    \
	X(large_replies)                                                                                               \
	X(a_repeat_is_applied_once)                                                                                    \
	X(requests_are_bounded)                                                                                        \
	X(deadlines)                                                                                                   \
	X(cancels)                                                                                                     \
	X(requests_are_cancelled)                                                                                      \
	X(closing_cancels)                                                                                             \
	X(losing_and_reconnecting)                                                                                     \
	X(stop_and_drain)                                                                                              \
	X(keys_and_graphs)                                                                                             \
	X(connections_are_limited)                                                                                     \
	X(wake)                                                                                                        \
	X(several_clients_and_server_threads)                                                                          \
	X(closing_under_load)                                                                                          \
	X(memory_shortage)
/* clang-format on */

int main(void)
{
	static char names[200][80];
	static struct CMUnitTest tests[200];
	size_t n = 0;
	for (size_t b = 0; b < gw_bed_count; b++) {
		if (!gw_bed_possible(&gw_beds[b]))
			continue;
#define ROW(function)                                                                                                  \
	snprintf(names[n], sizeof(names[n]), "%s: %s", gw_beds[b].name, #function);                                    \
	tests[n] = (struct CMUnitTest){names[n], function, NULL, NULL, (void *)(uintptr_t)&gw_beds[b]};                \
	n++;
		EACH(ROW)
	}
	return _cmocka_run_group_tests("transport", tests, n, NULL, NULL);
}
