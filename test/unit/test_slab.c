/* The slab for replies: each landing is in registered memory and overlaps no other, in any order of acquire and
 * release. Few registrations have room for many landings. Released memory is freed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/state/recv_buffer.h"
#include "test/support/alloc_fault.h"
#include "test/support/transport_bed.h"

#define LANDINGS 300
#define STEPS    6000

static void check_place(const struct gw_recv_buffer *landing, size_t bytes)
{
	assert_true(landing->capacity >= bytes);
	assert_int_equal((uintptr_t)landing->data % 64, 0);
	assert_true(landing->data >= landing->buffer->base);
	assert_true(gw_recv_buffer_start(landing) + landing->capacity <= landing->buffer->bytes);
}

/* Each landing is filled with its own number, so an overlap shows. */
static void landings_lie_apart(void **state)
{
	(void)state;
	static struct gw_recv_buffer landings[LANDINGS];
	struct gw_poll_group *group;
	struct gw_slab slab;
	uint64_t seed = 1;
	assert_int_equal(gw_poll_group_create(NULL, &group), GW_OK);
	gw_slab_open(&slab, group);
	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t at = (uint32_t)gw_below(&seed, LANDINGS);
		struct gw_recv_buffer *landing = &landings[at];
		for (size_t i = 0; landing->data && i < landing->capacity; i += 97)
			assert_int_equal(landing->data[i], (uint8_t)at);
		if (gw_below(&seed, 3) == 0) {
			gw_recv_buffer_free(landing);
			assert_null(landing->data);
			continue;
		}
		size_t bytes = 1 + gw_below(&seed, 1u << gw_below(&seed, 19));
		const uint8_t *before = landing->data;
		bool grows = bytes > landing->capacity;
		assert_int_equal(gw_recv_buffer_reserve(landing, &slab, bytes), GW_OK);
		assert_true(grows || landing->data == before);
		check_place(landing, bytes);
		if (!landing->data)
			fail();
		else
			memset(landing->data, (int)at, landing->capacity);
	}
	for (uint32_t i = 0; i < LANDINGS; i++)
		gw_recv_buffer_free(&landings[i]);
	assert_int_equal(slab.bytes, slab.chunks ? 2 << 20 : 0);
	gw_slab_close(&slab);
	gw_poll_group_destroy(group);
}

static void few_registrations_for_many_landings(void **state)
{
	(void)state;
	static struct gw_recv_buffer landings[1000];
	struct gw_poll_group *group;
	struct gw_slab slab;
	assert_int_equal(gw_poll_group_create(NULL, &group), GW_OK);
	gw_slab_open(&slab, group);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(gw_recv_buffer_reserve(&landings[i], &slab, 60000), GW_OK);
	assert_in_range(gw_poll_group_registrations(group), 1, 8);
	assert_true(slab.bytes < 4ull * 1000 * 60000);
	for (uint32_t i = 0; i < 1000; i++)
		gw_recv_buffer_free(&landings[i]);
	gw_slab_close(&slab);
	gw_poll_group_destroy(group);
}

/* The memory of the largest landing is freed in time. A landing larger than any chunk has its own chunk. */
static void memory_is_given_back(void **state)
{
	(void)state;
	struct gw_recv_buffer small = {0}, large = {0};
	struct gw_poll_group *group;
	struct gw_slab slab;
	assert_int_equal(gw_poll_group_create(NULL, &group), GW_OK);
	gw_slab_open(&slab, group);
	assert_int_equal(gw_recv_buffer_reserve(&small, &slab, 1000), GW_OK);
	assert_int_equal(gw_recv_buffer_reserve(&large, &slab, 300u << 20), GW_OK);
	check_place(&large, 300u << 20);
	assert_ptr_not_equal(small.buffer, large.buffer);
	assert_true(slab.bytes >= 300u << 20);
	gw_recv_buffer_free(&large);
	assert_int_equal(slab.bytes, 2 << 20);
	assert_int_equal(gw_recv_buffer_reserve(&large, &slab, SIZE_MAX / 2), GW_NO_MEMORY);
	assert_null(large.data);
	gw_recv_buffer_free(&small);
	gw_recv_buffer_free(&small); /* twice is allowed */
	assert_int_equal(gw_recv_buffer_reserve(&small, &slab, 0), GW_OK);
	assert_null(small.data);
	gw_slab_close(&slab);
	gw_poll_group_destroy(group);
}

static gw_status take_some(void *context)
{
	struct gw_recv_buffer landings[3] = {0};
	struct gw_slab slab;
	gw_status status = GW_OK;
	gw_slab_open(&slab, context);
	for (uint32_t i = 0; i < 3 && status == GW_OK; i++)
		status = gw_recv_buffer_reserve(&landings[i], &slab, 3u << 20);
	for (uint32_t i = 0; i < 3; i++)
		gw_recv_buffer_free(&landings[i]);
	gw_slab_close(&slab);
	return status;
}

static void memory_shortage(void **state)
{
	(void)state;
	struct gw_poll_group *group;
	struct gw_buffer *first;
	static uint8_t some[16];
	assert_int_equal(gw_poll_group_create(NULL, &group), GW_OK);
	assert_int_equal(gw_buffer_register(group, some, sizeof(some), &first), GW_OK); /* the list's first growth */
	assert_true(gw_fault_each(take_some, group) > 0);
	gw_poll_group_destroy(group);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(landings_lie_apart),
		cmocka_unit_test(few_registrations_for_many_landings),
		cmocka_unit_test(memory_is_given_back),
		cmocka_unit_test(memory_shortage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
