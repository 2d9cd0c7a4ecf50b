/* Id requests and replies: every malformed length, count and number is refused before it is used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/id_call.h"

static gw_status parse_call(const struct gw_id_call *call, size_t bytes)
{
	uint8_t whole[sizeof(*call) + 64] = {0},
				      *exact = malloc(bytes ? bytes : 1); /* a sanitizer sees a read past it */
	memcpy(whole, call, sizeof(*call));
	memcpy(exact, whole, bytes);
	struct gw_id_call out;
	const uint8_t *keys;
	gw_status status = gw_id_call_parse(exact, bytes, 4, &out, &keys);
	if (status == GW_OK) {
		assert_memory_equal(&out, call, sizeof(out));
		assert_ptr_equal(keys, exact + sizeof(out));
	}
	free(exact);
	return status;
}

static void calls_are_checked(void **state)
{
	(void)state;
	for (uint32_t form = GW_IDS_DENSE; form <= GW_IDS_TEXTS; form++) {
		const struct gw_id_call good = {.ntype = 3, .form = form, .count = 2};
		size_t whole = sizeof(good) + 2 * gw_id_key_words((enum gw_id_form)form) * 8;
		assert_int_equal(parse_call(&good, whole), GW_OK);
		for (size_t n = 0; n < whole; n++)
			assert_int_equal(parse_call(&good, n), GW_PROTOCOL);
		assert_int_equal(parse_call(&good, whole + 1), GW_PROTOCOL);
		struct gw_id_call call = good;
		call.ntype = 4;
		assert_int_equal(parse_call(&call, whole), GW_RANGE);
		call = good;
		call.zero = 1;
		assert_int_equal(parse_call(&call, whole), GW_PROTOCOL);
		static const uint32_t counts[] = {0, 1, 3, GW_ID_KEYS_MAX + 1, 1u << 28, UINT32_MAX};
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			call = good;
			call.count = counts[i];
			assert_int_equal(parse_call(&call, whole), GW_PROTOCOL);
		}
	}
	static const uint32_t forms[] = {GW_IDS_NONE, GW_IDS_TEXTS + 1, UINT32_MAX};
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const struct gw_id_call call = {.form = forms[i]};
		assert_int_equal(parse_call(&call, sizeof(call)), GW_PROTOCOL);
	}
}

static void replies_are_checked(void **state)
{
	(void)state;
	static const struct {
		uint64_t nodes[2];
		size_t bytes;
		bool good;
	} cases[] = {
		{{0, 9}, 16, true},
		{{GW_ID_MISSING, GW_ID_SHARED | 9}, 16, true},
		{{0, 10}, 16, false},
		{{GW_ID_SHARED | 10, 0}, 16, false},
		{{GW_ID_MISSING - 1, 0}, 16, false},
		{{0, 0}, 15, false},
		{{0, 0}, 8, false},
		{{0, 0}, 0, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t out[2];
		uint8_t *exact = malloc(cases[i].bytes + 1);
		memcpy(exact, cases[i].nodes, cases[i].bytes);
		gw_status status = gw_id_reply_parse(exact, cases[i].bytes, 2, 10, out);
		assert_int_equal(status, cases[i].good ? GW_OK : GW_PROTOCOL);
		if (status == GW_OK)
			assert_memory_equal(out, cases[i].nodes, sizeof(out));
		free(exact);
	}
	assert_int_equal(gw_id_reply_parse(NULL, 0, 0, 10, NULL), GW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(calls_are_checked), cmocka_unit_test(replies_are_checked)};
	return cmocka_run_group_tests_name("protocol_id_call", tests, NULL, NULL);
}
