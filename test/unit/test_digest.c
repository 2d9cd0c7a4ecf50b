/* Digests: known values of XXH3-64, and a payload in pieces compared with the same payload as a whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory/alloc.h"
#include "core/numbers/digest.h"
#include "test/support/alloc_fault.h"

#define PAYLOAD_BYTES (3 * GW_DIGEST_CHUNK + 12345)

static uint8_t *payload;

static int make_payload(void **state)
{
	(void)state;
	payload = malloc(PAYLOAD_BYTES);
	uint64_t x = 1;
	for (size_t i = 0; i < PAYLOAD_BYTES; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		payload[i] = (uint8_t)(x >> 56);
	}
	return 0;
}

static int drop_payload(void **state)
{
	(void)state;
	free(payload);
	return 0;
}

/* The XXH3 specification's value of the empty input, and values that xxhsum -H3 prints. */
static void test_known_values(void **state)
{
	(void)state;
	assert_true(gw_digest("", 0) == 0x2d06800538d394c2ull);
	assert_true(gw_digest("a", 1) == 0xe6c632b61e964e1full);
	assert_true(gw_digest("abc", 3) == 0x78af5f94892f3950ull);
}

static void test_count(void **state)
{
	(void)state;
	assert_int_equal(gw_digest_count(0), 0);
	assert_int_equal(gw_digest_count(1), 1);
	assert_int_equal(gw_digest_count(GW_DIGEST_CHUNK), 1);
	assert_int_equal(gw_digest_count(GW_DIGEST_CHUNK + 1), 2);
}

static gw_status digest_in_pieces(size_t bytes, size_t piece, uint64_t digests[4], uint64_t *count)
{
	struct gw_digester *digester;
	gw_status status = gw_digester_create(&digester);
	for (size_t done = 0; status == GW_OK && done < bytes; done += piece)
		status = gw_digester_add(digester, payload + done, bytes - done < piece ? bytes - done : piece);
	const uint64_t *list = NULL;
	if (status == GW_OK)
		status = gw_digester_finish(digester, &list, count);
	if (status == GW_OK && *count)
		memcpy(digests, list, *count * sizeof(*list));
	gw_digester_destroy(digester);
	return status;
}

static void test_pieces_of_any_size(void **state)
{
	(void)state;
	static const size_t pieces[] = {1000, 4096, 65537, GW_DIGEST_CHUNK, GW_DIGEST_CHUNK + 1, PAYLOAD_BYTES};
	static const size_t sizes[] = {0, 1, GW_DIGEST_CHUNK - 1, GW_DIGEST_CHUNK, GW_DIGEST_CHUNK + 1, PAYLOAD_BYTES};
	for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		for (size_t p = 0; p < sizeof(pieces) / sizeof(*pieces); p++) {
			uint64_t digests[4], count = 99;
			assert_int_equal(digest_in_pieces(sizes[s], pieces[p], digests, &count), GW_OK);
			assert_int_equal(count, gw_digest_count(sizes[s]));
			assert_true(gw_array_digest(payload, sizes[s]) == gw_digest(digests, count * sizeof(*digests)));
			for (uint64_t i = 0; i < count; i++) {
				size_t begin = i * GW_DIGEST_CHUNK;
				size_t bytes = sizes[s] - begin < GW_DIGEST_CHUNK ? sizes[s] - begin : GW_DIGEST_CHUNK;
				assert_true(digests[i] == gw_digest(payload + begin, bytes));
			}
		}
	}
}

static gw_status digest_body(void *context)
{
	uint64_t digests[4], count;
	return digest_in_pieces(PAYLOAD_BYTES, *(size_t *)context, digests, &count);
}

static void test_memory_shortage(void **state)
{
	(void)state;
	size_t piece = 1 << 20;
	assert_true(gw_fault_each(digest_body, &piece) >= 2);
	piece = GW_DIGEST_CHUNK;
	assert_true(gw_fault_each(digest_body, &piece) >= 2);
	gw_digester_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_values),
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_pieces_of_any_size),
		cmocka_unit_test(test_memory_shortage),
	};
	return cmocka_run_group_tests(tests, make_payload, drop_payload);
}
