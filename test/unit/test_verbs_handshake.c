/* The RDMA hello: the decoded values of well-formed questions, tokens and answers. All others are refused: every
 * length, every count, every field that could give a client an invalid key. */
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

#include "transport/verbs/handshake.h"
#include "transport/verbs/verbs.h"

/* The plain rule of versions: what a question in these versions and of this length gives. */
static gw_status question_status(uint32_t newest, uint32_t oldest, uint32_t n)
{
	const bool ranges = newest >= HANDSHAKE_RANGES_FIRST && n >= 24;
	if (n < 4 || (ranges && (!oldest || oldest > newest)))
		return GW_PROTOCOL;
	oldest = ranges ? oldest : newest;
	if (oldest > HANDSHAKE_VERSION || newest < HANDSHAKE_OLDEST)
		return GW_VERSION;
	const uint32_t length = newest < HANDSHAKE_RANGES_FIRST ? 16 : 24;
	return n == length || (newest > HANDSHAKE_VERSION && n > length) ? GW_OK : GW_PROTOCOL;
}

static gw_status ask_with(const struct handshake_question *question, uint32_t n, struct handshake_question *out)
{
	uint8_t *memory = calloc(1, n + 1); /* at an odd address, and no byte longer */
	assert_non_null(memory);
	memcpy(memory + 1, question, n < sizeof(*question) ? n : sizeof(*question));
	gw_status status = gw_handshake_question(memory + 1, n, out);
	free(memory);
	return status;
}

static void questions(void **state)
{
	(void)state;
	struct handshake_question good, out;
	static_assert(sizeof(good) == 24, "no padding, and the same in every later version");
	for (uint32_t i = 0; i < 8 * 8; i++) {
		gw_handshake_ask(false, 3, &good);
		good.version = i % 8;
		good.oldest = i / 8;
		for (uint32_t n = 0; n < 40; n++) {
			gw_status expected = question_status(good.version, good.oldest, n);
			assert_int_equal(ask_with(&good, n, &out), expected);
			if (expected != GW_OK)
				continue;
			assert_int_equal(out.version,
					 good.version < HANDSHAKE_VERSION ? good.version : HANDSHAKE_VERSION);
			assert_int_equal(out.qps, 3);
		}
	}
	for (int oldest = 0; oldest < 2; oldest++) {
		uint32_t n = gw_handshake_ask(oldest, 3, &good);
		assert_int_equal(ask_with(&good, n, &out), GW_OK);
		assert_int_equal(out.version, oldest ? HANDSHAKE_OLDEST : HANDSHAKE_VERSION);
		struct handshake_question bad = good;
		bad.qps = 0;
		assert_int_equal(ask_with(&bad, n, &out), GW_PROTOCOL);
		bad = good;
		bad.receives++;
		assert_int_equal(ask_with(&bad, n, &out), GW_PROTOCOL);
		bad = good;
		bad.chunk_bytes *= 2;
		assert_int_equal(ask_with(&bad, n, &out), GW_PROTOCOL);
		bad = good;
		bad.zero = 1;
		assert_int_equal(ask_with(&bad, n, &out), n == sizeof(bad) ? GW_PROTOCOL : GW_OK);
	}
	gw_handshake_ask(false, 3, &good);
	good.version = good.oldest = HANDSHAKE_VERSION + 1;
	assert_int_equal(ask_with(&good, sizeof(good), &out), GW_VERSION);
	assert_non_null(strstr(gw_last_error(), "the client speaks RDMA hello version 5, this server versions 3 to 4"));
}

static void tokens(void **state)
{
	(void)state;
	struct handshake_token good = {
		.magic = HANDSHAKE_MAGIC, .version = HANDSHAKE_VERSION, .number = 2, .token = "0123456789abcde"};
	struct handshake_token out;
	uint8_t padded[56] = {0};
	memcpy(padded, &good, sizeof(good));
	assert_int_equal(gw_handshake_token(padded, sizeof(padded), &out), GW_OK);
	assert_memory_equal(&out, &good, sizeof(good));
	assert_int_equal(gw_handshake_token(padded, sizeof(good), &out), GW_OK);
	assert_int_equal(gw_handshake_token(padded, sizeof(good) - 1, &out), GW_PROTOCOL);
	assert_int_equal(gw_handshake_token(NULL, 0, &out), GW_PROTOCOL);
	padded[0] ^= 1;
	assert_int_equal(gw_handshake_token(padded, sizeof(padded), &out), GW_PROTOCOL);
	padded[0] ^= 1;
	for (uint8_t version = 0; version < 9; version++) {
		padded[4] = version;
		bool spoken = version >= HANDSHAKE_OLDEST && version <= HANDSHAKE_VERSION;
		assert_int_equal(gw_handshake_token(padded, sizeof(padded), &out), spoken ? GW_OK : GW_PROTOCOL);
	}
}

static void slices(void **state)
{
	(void)state;
	assert_int_equal(gw_handshake_slices(0, 12), 0);
	assert_int_equal(gw_handshake_slices(1, 12), 1);
	assert_int_equal(gw_handshake_slices(4096, 12), 1);
	assert_int_equal(gw_handshake_slices(4097, 12), 2);
	assert_int_equal(gw_handshake_slices(1ull << 40, 30), 1024);
	assert_int_equal(gw_handshake_slices((1ull << 40) + 1, 30), 1025);
}

/* An answer of two rails and three addresses for regions of 5 slices, of none, and of 1. */
struct good {
	struct handshake_answer answer;
	struct handshake_address addresses[3];
	struct handshake_region places[3];
	uint32_t keys[2][6];
};
static_assert(sizeof(struct good) == 56 + 3 * 24 + 3 * 16 + 48, "no padding");

static const struct gw_region regions[3] = {
	{.bytes = 5 * 65536 - 1, .id = 0}, {.bytes = 0, .id = 1}, {.bytes = 1, .id = 2}};

static struct good make(void)
{
	struct good good = {
		.answer = {.version = HANDSHAKE_VERSION,
			   .qps = 2,
			   .receives = VERBS_RECEIVES,
			   .chunk_bytes = VERBS_CHUNK_BYTES,
			   .port = 4791,
			   .requests_max = 64,
			   .rail_count = 2,
			   .address_count = 3,
			   .region_count = 3},
		.addresses = {{.rail = 0, .family = 4}, {.rail = 1, .family = 6}, {.rail = 1, .family = 4}},
		.places = {{0x7f0000001000, 16, 5}, {0, 12, 0}, {UINT64_MAX - 1, 30, 1}},
	};
	return good;
}

static gw_status decode(const struct good *good, uint32_t n, struct handshake_view *view)
{
	/* Memory of exactly that length, so that a read past it is detected. */
	uint8_t *bytes = malloc(n ? n : 1);
	memcpy(bytes, good, n < sizeof(*good) ? n : sizeof(*good));
	gw_status status = gw_handshake_answer(bytes, n, regions, 3, view);
	free(bytes);
	return status;
}

static void answers(void **state)
{
	(void)state;
	struct good good = make();
	struct handshake_view view;
	assert_int_equal(gw_handshake_answer((const uint8_t *)&good, sizeof(good), regions, 3, &view), GW_OK);
	assert_memory_equal(&view.answer, &good.answer, sizeof(good.answer));
	assert_ptr_equal(view.addresses, good.addresses);
	assert_ptr_equal(view.places, good.places);
	assert_ptr_equal(view.keys, good.keys);
	assert_int_equal(view.keys_per_rail, 6);
	for (uint32_t n = 0; n < sizeof(good); n++)
		assert_int_not_equal(decode(&good, n, &view), GW_OK);
	assert_int_equal(gw_handshake_answer((const uint8_t *)&good, sizeof(good), regions, 2, &view), GW_PROTOCOL);
}

#define REFUSED(change)                                                                                                \
	do {                                                                                                           \
		struct good bad = make();                                                                              \
		struct handshake_view view;                                                                            \
		change;                                                                                                \
		assert_int_equal(decode(&bad, sizeof(bad), &view), GW_PROTOCOL);                                       \
	} while (0)

static void malformed_answers(void **state)
{
	(void)state;
	struct good newer = make();
	struct handshake_view ignored;
	newer.answer.version++;
	assert_int_equal(decode(&newer, sizeof(newer), &ignored), GW_VERSION);
	REFUSED(bad.answer.qps = 0);
	REFUSED(bad.answer.qps = VERBS_QPS_MAX + 1);
	REFUSED(bad.answer.receives = 0);
	REFUSED(bad.answer.chunk_bytes = 0);
	REFUSED(bad.answer.port = 0);
	REFUSED(bad.answer.port = 65536);
	REFUSED(bad.answer.requests_max = 0);
	REFUSED(bad.answer.rail_count = 0);
	REFUSED(bad.answer.rail_count = 1);
	REFUSED(bad.answer.rail_count = UINT32_MAX);
	REFUSED(bad.answer.address_count = 0);
	REFUSED(bad.answer.address_count = 2);
	REFUSED(bad.answer.address_count = UINT32_MAX);
	REFUSED(bad.answer.region_count = 2);
	REFUSED(bad.answer.whole_words = 4);
	REFUSED(bad.addresses[2].rail = 2);
	REFUSED(bad.addresses[1].family = 5);
	REFUSED(bad.places[0].slice_count = 4);
	REFUSED(bad.places[0].slice_count = 6);
	REFUSED(bad.places[0].slice_shift = 11);
	REFUSED(bad.places[0].slice_shift = 64);
	REFUSED(bad.places[0].base = UINT64_MAX - 65536);
	REFUSED(bad.places[1].slice_count = 1);
}

/* --- Keys of dynamic regions. --- */

struct good_keys {
	struct handshake_region place;
	uint32_t keys[5];
	uint32_t more;
};

static gw_status decode_keys(const struct good_keys *good, uint32_t n, const struct gw_region *region)
{
	struct handshake_region place;
	const uint8_t *keys;
	uint8_t *bytes = malloc(n ? n : 1); /* exactly that long */
	memcpy(bytes, good, n);
	gw_status status = gw_handshake_keys(bytes, n, region, &place, &keys);
	if (status == GW_OK) {
		assert_memory_equal(&place, &good->place, sizeof(place));
		assert_ptr_equal(keys, bytes + sizeof(place));
	}
	free(bytes);
	return status;
}

static void keys_of_dynamic_regions(void **state)
{
	(void)state;
	const uint32_t all = sizeof(struct good_keys) - 4;
	const struct good_keys good = {.place = {0x7f0000001000, 16, 5}, .keys = {1, 2, 3, 4, 5}};
	for (uint32_t n = 0; n <= sizeof(good); n++)
		assert_int_equal(decode_keys(&good, n, &regions[0]), n == all ? GW_OK : GW_PROTOCOL);
	const struct good_keys none = {.place = {0x7f0000001000, 12, 0}};
	assert_int_equal(decode_keys(&none, sizeof(none.place), &regions[1]), GW_OK);
	assert_int_equal(decode_keys(&good, all, &regions[1]), GW_PROTOCOL);
	assert_int_equal(decode_keys(&good, all, &regions[2]), GW_PROTOCOL);
	struct good_keys bad = good;
	bad.place.slice_shift = 11;
	assert_int_equal(decode_keys(&bad, all, &regions[0]), GW_PROTOCOL);
	bad.place.slice_shift = 64;
	assert_int_equal(decode_keys(&bad, all, &regions[0]), GW_PROTOCOL);
	bad = good;
	bad.place.base = UINT64_MAX - 65536;
	assert_int_equal(decode_keys(&bad, all, &regions[0]), GW_PROTOCOL);
}

static void questions_for_keys(void **state)
{
	(void)state;
	const struct handshake_keys_question good = {HANDSHAKE_VERSION, 1, 300, 7};
	struct handshake_keys_question out;
	uint8_t longer[sizeof(good) + 1] = {0};
	memcpy(longer, &good, sizeof(good));
	for (uint32_t n = 0; n <= sizeof(longer); n++)
		assert_int_equal(gw_handshake_keys_question(longer, n, &out), n == sizeof(good) ? GW_OK : GW_PROTOCOL);
	assert_memory_equal(&out, &good, sizeof(good));
	longer[0]++;
	assert_int_equal(gw_handshake_keys_question(longer, sizeof(good), &out), GW_VERSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_dynamic_regions),
		cmocka_unit_test(questions_for_keys),
		cmocka_unit_test(questions),
		cmocka_unit_test(tokens),
		cmocka_unit_test(slices),
		cmocka_unit_test(answers),
		cmocka_unit_test(malformed_answers),
	};
	return cmocka_run_group_tests_name("verbs handshake", tests, NULL, NULL);
}
#endif
