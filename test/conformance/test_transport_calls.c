/* Two-sided calls, and the limits of reads and calls: one suite over every backend. Requests are answered once and are
 * bounded, and a full queue accepts nothing. A deadline, a cancel or a close ends open work, and nothing is written
 * after that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/many.h"
#include "test/support/transport_bed.h"

static void requests(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 64);
	uint8_t *bytes = malloc(GW_REQUEST_BYTES_MAX + 1);
	for (uint32_t i = 0; i <= GW_REQUEST_BYTES_MAX; i++)
		bytes[i] = (uint8_t)(i ^ (i >> 8));
	for (uint32_t n = 0; n <= GW_REQUEST_BYTES_MAX; n = n * 3 + 1) {
		struct gw_completion echo = gw_one_call(&one, BED_OP_ECHO, 0, bytes, n);
		assert_int_equal(echo.status, GW_OK);
		assert_int_equal(echo.reply_bytes, n);
		assert_memory_equal(echo.reply, bytes, n);
	}
	struct gw_completion longest = gw_one_call(&one, BED_OP_ECHO, 0, bytes, GW_REQUEST_BYTES_MAX);
	assert_int_equal(longest.status, GW_OK);
	assert_memory_equal(longest.reply, bytes, GW_REQUEST_BYTES_MAX);
	assert_int_equal(gw_endpoint_request(one.endpoint, BED_OP_ECHO, 0, bytes, GW_REQUEST_BYTES_MAX + 1,
					     GW_NO_DEADLINE, NULL),
			 GW_LIMIT);
	struct gw_completion failed = gw_one_call(&one, BED_OP_FAIL, 0, bytes, 4);
	assert_int_equal(failed.status, GW_NOT_FOUND);
	assert_non_null(strstr(failed.text, "no such thing"));
	assert_int_equal(failed.reply_bytes, 0);
	assert_int_equal(gw_one_call(&one, 63, 0, NULL, 0).status, GW_UNSUPPORTED);
	assert_int_equal(gw_one_call(&one, GW_OPS_MAX, 0, NULL, 0).status, GW_UNSUPPORTED);
	assert_int_equal(gw_one_call(&one, BED_OP_ECHO, 0, bytes, 5).status, GW_OK);
	free(bytes);
	gw_one_end(&one);
}

static void large_replies(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 1 << 20);
	static const uint32_t sizes[] = {0, 1, 200000, 262144, 300000, 20000000};
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		/* Reads before and after the reply arrive completely. */
		struct gw_span span = {s, 0, 300000};
		struct gw_read_set before = {.cookie = &before, .deadline_ns = GW_NO_DEADLINE};
		struct gw_read_set after = {.cookie = &after, .deadline_ns = GW_NO_DEADLINE};
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
	assert_int_equal(gw_one_call(&one, BED_OP_LARGE, 0, &too_much, 4).status, GW_LIMIT);
	gw_one_end(&one);
}

/* A repeat of the last numbered call is answered from the replay cache, also over a new connection. */
static void a_repeat_is_applied_once(void **state)
{
	struct one one;
	uint32_t sum;
	gw_one_begin(&one, state, NULL, 64);
	for (int round = 0; round < 3; round++) {
		struct gw_completion first = gw_one_call(&one, BED_OP_COUNT, 9, NULL, 0);
		assert_int_equal(first.status, GW_OK);
		assert_int_equal(first.reply_bytes, 4);
		memcpy(&sum, first.reply, 4);
		assert_int_equal(sum, 1);
		gw_endpoint_close(one.endpoint);
		struct gw_connect_options connect = gw_bed_options(&one.bed);
		assert_int_equal(gw_bed_connect(one.group, &connect, &one.endpoint), GW_OK);
	}
	struct gw_completion next = gw_one_call(&one, BED_OP_COUNT, 10, NULL, 0);
	memcpy(&sum, next.reply, 4);
	assert_int_equal(sum, 2);
	assert_int_equal(gw_one_call(&one, BED_OP_COUNT, 9, NULL, 0).status, GW_INVALID);
	assert_int_equal(gw_one_call(&one, BED_OP_COUNT, 0, NULL, 0).status, GW_OK);
	assert_int_equal(atomic_load(&one.bed.applied), 3);
	/* A failure is remembered like a success. */
	assert_int_equal(gw_one_call(&one, BED_OP_FAIL, 11, NULL, 0).status, GW_NOT_FOUND);
	assert_int_equal(gw_one_call(&one, BED_OP_FAIL, 11, NULL, 0).status, GW_NOT_FOUND);
	/* Another client has sequences of its own. */
	gw_endpoint_close(one.endpoint);
	struct gw_connect_options other = gw_bed_options(&one.bed);
	other.client_uuid[0] = 99;
	assert_int_equal(gw_bed_connect(one.group, &other, &one.endpoint), GW_OK);
	struct gw_completion theirs = gw_one_call(&one, BED_OP_COUNT, 9, NULL, 0);
	memcpy(&sum, theirs.reply, 4);
	assert_int_equal(sum, 4);
	gw_one_end(&one);
}

static void requests_are_bounded(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 64);
	uint32_t open = 0;
	gw_status status = GW_OK;
	while (open < 1000) {
		status = gw_endpoint_request(one.endpoint, BED_OP_ECHO, 0, "x", 1, GW_NO_DEADLINE, NULL);
		if (status != GW_OK)
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
	assert_int_equal(gw_one_call(&one, BED_OP_ECHO, 0, "x", 1).status, GW_OK);
	gw_one_end(&one);
}

/* --- Limits. --- */

/* A server that does not answer accepts a bounded amount. Refused calls find room when it answers again. */
static void backpressure(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 4 << 20);
	if (gw_bed_is_mapped(one.bed.kind)) {
		gw_one_end(&one);
		return;
	}
	gw_bed_pause(&one.bed);
	uint32_t n = gw_many(200000), accepted = 0, completed = 0;
	uint64_t *remote = calloc(n, sizeof(*remote));
	struct gw_read_set *smalls = calloc(1000, sizeof(*smalls));
	for (uint32_t i = 0; i < n; i++)
		remote[i] = (uint64_t)i * 5;
	struct gw_gather gather = {.remote = remote, .row_bytes = 16, .stride = 16};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	struct gw_span small = {77, 4000000, 16};
	uint32_t taken = (uint32_t)gw_endpoint_gather(one.endpoint, &set, &one.region, one.buffer, &gather, n, true);
	while (accepted < 1000 &&
	       gw_endpoint_readv(one.endpoint, &smalls[accepted], &one.region, one.buffer, &small, 1, true) == 1)
		accepted++;
	assert_in_range(accepted, 0, 999);
	gw_bed_resume(&one.bed);
	while (completed < accepted + 1) {
		gather.remote = remote + taken;
		gather.local = (uint64_t)taken * 16;
		if (taken < n)
			taken += (uint32_t)gw_endpoint_gather(one.endpoint, &set, &one.region, one.buffer, &gather,
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
	gw_one_end(&one);
}

static void nothing_is_written_while_polling(struct one *one)
{
	memset(one->landing, 0xee, one->landing_bytes);
	memset(one->expected, 0xee, one->landing_bytes);
	gw_one_nothing_more(one, 150);
	assert_memory_equal(one->landing, one->expected, one->landing_bytes);
}

static void deadlines(void **state)
{
	uint32_t bytes = gw_many(40u << 20);
	struct bed_options options = {.bytes = bytes};
	struct one one;
	gw_one_begin(&one, state, &options, bytes);
	bool network = one.bed.kind->network;
	/* The deadline has already passed. A server at work might answer before the first poll. */
	struct gw_span whole = {0, 0, bytes};
	struct gw_read_set over = {.cookie = &over, .deadline_ns = gw_now_ns() - 1};
	if (network)
		gw_bed_pause(&one.bed);
	assert_int_equal(gw_endpoint_readv(one.endpoint, &over, &one.region, one.buffer, &whole, 1, true), 1);
	gw_one_expect_failure(&one, &over, GW_DEADLINE);
	if (network)
		gw_bed_resume(&one.bed);
	nothing_is_written_while_polling(&one);
	/* The deadline passes at several points of the answer. */
	for (uint64_t us = 100; us <= 12800 && network; us *= 2) {
		struct gw_read_set set = {.cookie = &set, .deadline_ns = gw_now_ns() + us * 1000};
		gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, &whole, 1);
		struct gw_completion completion = gw_bed_wait(one.group, &set);
		assert_true(completion.status == GW_OK || completion.status == GW_DEADLINE);
		nothing_is_written_while_polling(&one);
	}
	gw_one_read_works(&one);
	if (network) {
		/* No answer arrives at all, for a read and a request. */
		gw_bed_pause(&one.bed);
		uint64_t begun = gw_now_ns();
		struct gw_read_set set = {.cookie = &set, .deadline_ns = begun + 50 * GW_NS_PER_MS};
		gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, &whole, 1);
		struct gw_completion completion = gw_bed_wait(one.group, &set);
		assert_true(completion.status == GW_DEADLINE || (one.bed.kind->one_sided && !completion.status));
		uint64_t took = gw_now_ns() - begun;
		assert_in_range(took, one.bed.kind->one_sided ? 0 : 50 * GW_NS_PER_MS, 100 * GW_NS_PER_SECOND);
		assert_int_equal(gw_endpoint_request(one.endpoint, BED_OP_ECHO, 0, "x", 1,
						     gw_now_ns() + 30 * GW_NS_PER_MS, &one),
				 GW_OK);
		assert_int_equal(gw_bed_wait(one.group, &one).status, GW_DEADLINE);
		gw_bed_resume(&one.bed);
		nothing_is_written_while_polling(&one);
		gw_one_read_works(&one);
	}
	gw_one_end(&one);
}

static void deadlines_under_load(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 4096);
	if (gw_bed_is_mapped(one.bed.kind)) {
		gw_one_end(&one);
		return;
	}
	gw_bed_pause(&one.bed);
	struct gw_span good = {0, 0, 4096}, bad = {one.bed.bytes, 0, 1};
	struct gw_read_set stuck = {.cookie = &stuck, .deadline_ns = gw_now_ns() + 50 * GW_NS_PER_MS};
	gw_bed_readv(one.endpoint, &stuck, &one.region, one.buffer, &good, 1);
	uint64_t end = gw_now_ns() + 100 * GW_NS_PER_SECOND;
	struct gw_completion completion = {0};
	while (completion.cookie != &stuck) {
		struct gw_read_set failed = {.cookie = &failed, .deadline_ns = GW_NO_DEADLINE};
		gw_bed_readv(one.endpoint, &failed, &one.region, one.buffer, &bad, 1);
		assert_int_equal(gw_poll_group_poll(one.group, &completion, 1, GW_NS_PER_SECOND), 1);
		assert_true(gw_now_ns() < end);
		if (completion.cookie == &stuck) /* the failed read completes later */
			assert_int_equal(gw_bed_wait(one.group, &failed).status, GW_RANGE);
	}
	gw_bed_resume(&one.bed);
	gw_one_read_works(&one);
	gw_one_end(&one);
}

static void cancels(void **state)
{
	uint32_t bytes = gw_many(40u << 20);
	struct bed_options options = {.bytes = bytes};
	struct one one;
	gw_one_begin(&one, state, &options, bytes);
	struct gw_span whole = {0, 0, bytes};
	for (uint64_t us = 0; us <= 6400; us = us * 2 + 50) {
		struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
		struct gw_read_set bystander = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
		struct gw_span small = {9, 0, 4096};
		gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, &whole, 1);
		struct gw_completion completion;
		uint64_t end = gw_now_ns() + us * 1000;
		size_t n = 0;
		while (gw_now_ns() < end && !n)
			n = gw_poll_group_poll(one.group, &completion, 1, 0);
		gw_endpoint_cancel(one.endpoint, &set);
		gw_bed_readv(one.endpoint, &bystander, &one.region, one.buffer, &small, 1);
		if (!n)
			completion = gw_bed_wait(one.group, &set);
		if (completion.status != GW_CANCELLED)
			assert_string_equal(completion.text, "");
		/* A second cancel, and one after the end, do nothing. */
		gw_endpoint_cancel(one.endpoint, &set);
		/* The other set may complete first: another queue pair of the device carried it. */
		gw_status other = gw_bed_wait(one.group, &set).status;
		assert_true(other == GW_OK || (completion.status == GW_OK && other == GW_CANCELLED));
		assert_memory_equal(one.landing, one.bed.memory + 9, 4096);
		nothing_is_written_while_polling(&one);
	}
	/* A set that still waits for its last read ends too. */
	struct gw_read_set half = {.cookie = &half, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &half, &one.region, one.buffer, &whole, 1, false), 1);
	gw_endpoint_cancel(one.endpoint, &half);
	struct gw_completion completion = gw_bed_wait(one.group, &half);
	assert_int_equal(completion.status, GW_CANCELLED);
	gw_one_read_works(&one);
	gw_one_end(&one);
}

static void closing_cancels(void **state)
{
	uint32_t bytes = gw_many(40u << 20);
	struct bed_options options = {.bytes = bytes};
	struct one one;
	gw_one_begin(&one, state, &options, bytes);
	if (one.bed.kind->network)
		gw_bed_pause(&one.bed);
	struct gw_span whole = {0, 0, bytes};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_readv(one.endpoint, &set, &one.region, one.buffer, &whole, 1, false), 1);
	gw_endpoint_close(one.endpoint);
	one.endpoint = NULL;
	gw_bed_resume(&one.bed);
	struct gw_completion completion = gw_bed_wait(one.group, &set);
	assert_int_equal(completion.status, GW_CANCELLED);
	nothing_is_written_while_polling(&one);
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(one.group, &connect, &one.endpoint), GW_OK);
	gw_one_read_works(&one);
	gw_one_end(&one);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(requests)},
		{BED_TEST(large_replies)},
		{BED_TEST(a_repeat_is_applied_once)},
		{BED_TEST(requests_are_bounded)},
		{BED_TEST(backpressure)},
		{BED_TEST(deadlines)},
		{BED_TEST(deadlines_under_load)},
		{BED_TEST(cancels)},
		{BED_TEST(closing_cancels)},
	};
	return gw_bed_run("transport calls", tests, sizeof(tests) / sizeof(tests[0]));
}
