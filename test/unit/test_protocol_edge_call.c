/* Edge requests and replies: every malformed length, count and number is refused before its use. A reply with any
 * wrong bit decodes to possible values, or is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "protocol/edge_call.h"

#define NUMBERS_MAX 16

/* --- Calls. --- */

static gw_status parse_call(const struct gw_edge_call *call, size_t bytes)
{
	uint8_t whole[sizeof(*call) + NUMBERS_MAX * 8] = {0};
	uint8_t *exact = malloc(bytes ? bytes : 1); /* so that a sanitizer detects a read past the end */
	memcpy(whole, call, sizeof(*call));
	memcpy(exact, whole, bytes);
	struct gw_edge_call out;
	const uint8_t *numbers;
	gw_status status = gw_edge_call_parse(exact, bytes, 4, &out, &numbers);
	if (status == GW_OK) {
		assert_memory_equal(&out, call, sizeof(out));
		assert_ptr_equal(numbers, exact + sizeof(out));
	}
	free(exact);
	return status;
}

static void calls_are_checked(void **state)
{
	(void)state;
	for (uint32_t ask = GW_EDGE_ENDS; ask <= GW_EDGE_IDS; ask++) {
		const struct gw_edge_call good = {.ask = ask, .etype = 3, .count = 2, .reply_bytes_max = 1000};
		size_t whole = sizeof(good) + 2ull * gw_edge_call_width(ask) * 8;
		assert_int_equal(parse_call(&good, whole), GW_OK);
		for (size_t n = 0; n < whole; n++)
			assert_int_equal(parse_call(&good, n), GW_PROTOCOL);
		assert_int_equal(parse_call(&good, whole + 1), GW_PROTOCOL);
		struct gw_edge_call call = good;
		call.etype = 4;
		assert_int_equal(parse_call(&call, whole), GW_RANGE);
		call = good;
		call.reply_bytes_max = (uint32_t)gw_edge_reply_bytes(ask, 2) + 7;
		assert_int_equal(parse_call(&call, whole), GW_RANGE);
		static const uint32_t counts[] = {0, 1, 3, GW_EDGE_QUERIES_MAX + 1, 1u << 29, UINT32_MAX};
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			call = good;
			call.count = counts[i];
			assert_int_equal(parse_call(&call, whole), GW_PROTOCOL);
		}
	}
	static const uint32_t asks[] = {0, 4, UINT32_MAX};
	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		const struct gw_edge_call call = {.ask = asks[i], .reply_bytes_max = 1000};
		assert_int_equal(parse_call(&call, sizeof(call)), GW_PROTOCOL);
	}
}

/* --- Replies. --- */

static const struct gw_edge_bounds bounds = {.rows = 10, .edges = 100, .sources = 20};

static gw_status parse_reply(uint32_t ask, uint32_t count, uint64_t from, struct gw_edge_reply head,
			     const uint64_t *numbers, uint64_t n)
{
	const struct gw_edge_call call = {.ask = ask, .count = count, .from = from};
	size_t bytes = sizeof(head) + n * 8;
	uint8_t *exact = malloc(bytes);
	memcpy(exact, &head, sizeof(head));
	memcpy(exact + sizeof(head), numbers, n * 8);
	struct gw_edge_reply out;
	const uint8_t *at;
	gw_status status = gw_edge_reply_parse(exact, bytes, &call, &bounds, &out, &at);
	for (size_t less = 0; less < bytes && status == GW_OK; less++) {
		uint8_t *part = malloc(less ? less : 1);
		memcpy(part, exact, less);
		assert_int_equal(gw_edge_reply_parse(part, less, &call, &bounds, &out, &at), GW_PROTOCOL);
		free(part);
	}
	free(exact);
	return status;
}

static void replies_are_checked(void **state)
{
	(void)state;
	struct gw_edge_reply all = {.answered = 2}, none = {0};
	uint64_t ends[] = {9, 19, 0, 0};
	assert_int_equal(parse_reply(GW_EDGE_ENDS, 2, 0, all, ends, 4), GW_OK);
	ends[0] = 10;
	assert_int_equal(parse_reply(GW_EDGE_ENDS, 2, 0, all, ends, 4), GW_PROTOCOL);
	ends[0] = 9;
	ends[1] = 20;
	assert_int_equal(parse_reply(GW_EDGE_ENDS, 2, 0, all, ends, 4), GW_PROTOCOL);
	assert_int_equal(parse_reply(GW_EDGE_ENDS, 2, 0, none, ends, 4), GW_PROTOCOL);
	uint64_t counts[] = {100, 0, 5};
	assert_int_equal(parse_reply(GW_EDGE_COUNTS, 2, 0, all, counts, 2), GW_OK);
	assert_int_equal(parse_reply(GW_EDGE_COUNTS, 2, 0, all, counts, 3), GW_PROTOCOL);
	counts[0] = 101;
	assert_int_equal(parse_reply(GW_EDGE_COUNTS, 2, 0, all, counts, 2), GW_PROTOCOL);
	all.partial = 1;
	counts[0] = 1;
	assert_int_equal(parse_reply(GW_EDGE_COUNTS, 2, 0, all, counts, 2), GW_PROTOCOL);
}

static void lists_of_ids_are_checked(void **state)
{
	(void)state;
	/* Three pairs: two edges, no edge, and three edges of which the reply has one. */
	const uint64_t good[] = {2, 0, 1, 40, 41, 7};
	const struct gw_edge_reply head = {.answered = 2, .partial = 1, .total = 3};
	assert_int_equal(parse_reply(GW_EDGE_IDS, 3, 0, head, good, 6), GW_OK);
	assert_int_equal(parse_reply(GW_EDGE_IDS, 3, 40, head, good, 6), GW_OK);
	assert_int_equal(parse_reply(GW_EDGE_IDS, 3, 41, head, good, 6), GW_PROTOCOL);
	const struct {
		uint32_t at;
		uint64_t number;
	} wrong[] = {{0, 3}, {0, 1}, {0, UINT64_MAX}, {1, 1}, {2, 0}, {2, 2}, {3, 41}, {3, 100}, {4, 40}, {5, 100}};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint64_t numbers[6];
		memcpy(numbers, good, sizeof(numbers));
		numbers[wrong[i].at] = wrong[i].number;
		if (parse_reply(GW_EDGE_IDS, 3, 0, head, numbers, 6) != GW_PROTOCOL)
			fail_msg("case %zu was taken", i);
	}
	const struct gw_edge_reply heads[] = {
		{.answered = 3, .partial = 1, .total = 3}, {.answered = 4, .total = 3},
		{.answered = 1, .partial = 1, .total = 3}, {.answered = 2, .partial = 2, .total = 3},
		{.answered = 2, .partial = 1, .total = 2}, {.answered = 2, .partial = 1, .total = UINT64_MAX}};
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		assert_int_equal(parse_reply(GW_EDGE_IDS, 3, 0, heads[i], good, 6), GW_PROTOCOL);
	/* A reply without progress would be requested again for ever. */
	const uint64_t zeros[3] = {0};
	assert_int_equal(parse_reply(GW_EDGE_IDS, 3, 0, (struct gw_edge_reply){0}, zeros, 3), GW_PROTOCOL);
	assert_int_equal(parse_reply(GW_EDGE_IDS, 3, 0, (struct gw_edge_reply){.partial = 1}, zeros, 3), GW_PROTOCOL);
	assert_int_equal(parse_reply(GW_EDGE_IDS, 3, 0, (struct gw_edge_reply){.answered = 1}, zeros, 3), GW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_checked),
		cmocka_unit_test(replies_are_checked),
		cmocka_unit_test(lists_of_ids_are_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
