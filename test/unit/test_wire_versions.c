/* The first frame of each side of a TCP connection: every pair of versions and every length, compared with a plain
 * rule; flags; and the line in which a side without a common version is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/tcp/wire.h"

/* A greeting of n bytes: a HELLO or a CHALLENGE, with its flag and its reserved number at the end. */
static gw_status greet(bool hello, struct wire_versions versions, uint32_t flag, uint32_t reserved, uint32_t n)
{
	struct wire_hello as_hello;
	struct wire_challenge as_challenge;
	uint8_t *memory = calloc(1, n + 1), *body = memory + 1; /* at an odd address, and no byte longer */
	uint32_t length = hello ? sizeof(as_hello) : sizeof(as_challenge), version = 0;
	assert_non_null(memory);
	for (uint32_t i = 0; i < n; i++)
		body[i] = (uint8_t)i;
	memcpy(body, &versions, n < sizeof(versions) ? n : sizeof(versions));
	if (n >= length) {
		memcpy(body + length - 8, &flag, 4);
		memcpy(body + length - 4, &reserved, 4);
	}
	gw_status status = hello ? gw_wire_hello(body, n, &as_hello, &version)
				 : gw_wire_challenge(body, n, &as_challenge, &version);
	if (status == GW_OK) {
		assert_memory_equal(hello ? (const void *)&as_hello : &as_challenge, body, length);
		assert_int_equal(version, versions.newest < WIRE_VERSION ? versions.newest : WIRE_VERSION);
	}
	free(memory);
	return status;
}

/* What the versions and the length of a greeting give, if the rest is good. */
static gw_status greeting_status(struct wire_versions versions, uint32_t length, uint32_t n)
{
	if (versions.newest < WIRE_RANGES_FIRST || n < sizeof(versions))
		versions.oldest = versions.newest; /* the bytes of an older version have another meaning */
	else if (!versions.oldest || versions.oldest > versions.newest)
		return GW_PROTOCOL;
	if (versions.oldest > WIRE_VERSION || versions.newest < WIRE_OLDEST)
		return GW_VERSION; /* told from another program, whatever its length */
	return n == length || (versions.newest > WIRE_VERSION && n > length) ? GW_OK : GW_PROTOCOL;
}

static void greetings(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2 * 12 * 12; i++) {
		const bool hello = i % 2;
		const struct wire_versions versions = {WIRE_MAGIC, i / 2 % 12, i / 24};
		const uint32_t length = hello ? 80 : 64;
		for (uint32_t n = 12; n < 100; n++) {
			struct wire_versions other = versions;
			assert_int_equal(greet(hello, versions, i & 1, 0, n), greeting_status(versions, length, n));
			other.magic ^= i & 1 ? 1 : 1ull << 63;
			assert_int_equal(greet(hello, other, 0, 0, n), GW_PROTOCOL);
		}
		if (greeting_status(versions, length, length) == GW_OK) {
			assert_int_equal(greet(hello, versions, 2, 0, length), GW_PROTOCOL);
			assert_int_equal(greet(hello, versions, 1u << 31, 0, length), GW_PROTOCOL);
			assert_int_equal(greet(hello, versions, 1, 1, length), GW_PROTOCOL);
		}
	}
}

/* The line names the versions of both sides. */
static void greetings_of_no_common_version(void **state)
{
	(void)state;
	static const struct {
		uint32_t newest, oldest;
		bool one;
	} cases[] = {
		{6, 0, true}, /* version 6 had a flag where the oldest version is now */
		{6, 1, true},
		{WIRE_VERSION + 1, WIRE_VERSION + 1, true},
		{WIRE_VERSION + 3, WIRE_VERSION + 1, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct wire_versions versions = {WIRE_MAGIC, cases[i].newest, cases[i].oldest};
		char says[64], expected[GW_ERROR_TEXT_MAX];
		if (cases[i].one)
			snprintf(says, sizeof(says), "version %u", versions.newest);
		else
			snprintf(says, sizeof(says), "versions %u to %u", versions.oldest, versions.newest);
		assert_int_equal(greet(true, versions, 0, 0, 72), GW_VERSION);
		snprintf(expected, sizeof(expected),
			 "the client speaks protocol %s, this server versions %u to %u; install the same", says,
			 WIRE_OLDEST, WIRE_VERSION);
		assert_string_equal(gw_last_error(), expected);
		assert_int_equal(greet(false, versions, 0, 0, 56), GW_VERSION);
		snprintf(expected, sizeof(expected),
			 "the server speaks protocol %s, this client versions %u to %u; install the same", says,
			 WIRE_OLDEST, WIRE_VERSION);
		assert_string_equal(gw_last_error(), expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greetings),
		cmocka_unit_test(greetings_of_no_common_version),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
