/* A device that is removed and comes back (fabric.h) under dynamic regions: reads end with a clear status, keys end
 * with the device, and each region's memory is returned exactly once and no sooner. Later connects learn that no RDMA
 * exists.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/fabric/fabric.h"
#include "test/support/transport_bed.h"
#include "test/support/verbs_one.h"

#define ROW_BYTES 48
#define ROWS      2000
#define SEED      7

struct published {
	struct gw_arena *arena;
	struct gw_region region;
	_Atomic uint32_t freed;
};

static void published_freed(void *context)
{
	struct published *published = context;
	memset(gw_arena_base(published->arena), 0xee, gw_arena_bytes(published->arena));
	atomic_fetch_add(&published->freed, 1);
}

/* Publishes a region, and opens it at the client if `open`. */
static void published_begin(struct published *published, struct one *one, bool open)
{
	struct gw_arena_options memory = {.name = "published", .numa = GW_NUMA_LOCAL, .shareable = true};
	struct gw_region_rows format = {.seed = SEED};
	uint8_t payload[ROW_BYTES];
	memset(published, 0, sizeof(*published));
	assert_int_equal(gw_row_format_init(ROW_BYTES, &format.format), GW_OK);
	uint64_t bytes = (uint64_t)ROWS * format.format.stride;
	assert_int_equal(gw_arena_create(bytes, &memory, &published->arena), GW_OK);
	for (uint32_t i = 0; i < ROWS; i++) {
		memset(payload, (int)(i % 251), sizeof(payload));
		gw_row_make(&format.format, SEED, i,
			    gw_arena_base(published->arena) + (uint64_t)i * format.format.stride, payload);
	}
	struct gw_dynamic_region region = {.base = gw_arena_base(published->arena),
					   .bytes = bytes,
					   .slice_bytes = 1 << 14,
					   .rows = &format,
					   .fd = gw_arena_fd(published->arena),
					   .freed = published_freed,
					   .context = published};
	assert_int_equal(gw_service_publish(one->bed.service, &region, &published->region), GW_OK);
	if (!open)
		return;
	assert_int_equal(
		gw_endpoint_region_open(one->endpoint, published->region.id, published->region.generation, published),
		GW_OK);
	assert_int_equal(gw_bed_wait(one->group, published).status, GW_OK);
}

static gw_status published_read(struct published *published, struct one *one)
{
	static uint64_t remote[ROWS];
	struct gw_gather gather = {.remote = remote, .row_bytes = ROW_BYTES, .stride = ROW_BYTES};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	for (uint32_t i = 0; i < ROWS; i++)
		remote[i] = (uint64_t)(i * 7919 % ROWS) * published->region.rows.format.stride;
	memset(one->landing, 0, one->landing_bytes);
	gw_bed_gather(one->endpoint, &set, &published->region, one->buffer, &gather, ROWS);
	gw_status status = gw_bed_wait(one->group, &set).status;
	for (uint32_t i = 0; i < ROWS && status == GW_OK; i++) {
		for (uint32_t at = 0; at < ROW_BYTES; at++)
			assert_int_equal(one->landing[i * ROW_BYTES + at], i * 7919 % ROWS % 251);
	}
	return status;
}

static void await(struct one *one, unsigned (*count)(void), unsigned wanted)
{
	uint64_t end = gw_now_ns() + 100 * GW_NS_PER_SECOND;
	while (count() != wanted && gw_now_ns() < end)
		gw_one_nothing_more(one, 5);
	assert_int_equal(count(), wanted);
}

static void await_freed(struct one *one, struct published *published)
{
	uint64_t end = gw_now_ns() + 100 * GW_NS_PER_SECOND;
	while (!atomic_load(&published->freed) && gw_now_ns() < end)
		gw_one_nothing_more(one, 5);
	assert_int_equal(atomic_load(&published->freed), 1);
}

static void begin(struct one *one, void **state)
{
	struct bed_options options = {.threads = 2};
	gw_one_begin(one, state, &options, ROWS * ROW_BYTES);
}

static void keys_end_before_their_memory(void **state)
{
	struct one one;
	struct published published;
	begin(&one, state);
	unsigned before = fabric_readable();
	published_begin(&published, &one, true);
	unsigned slices = fabric_readable() - before;
	assert_int_equal(slices, (published.region.bytes + (1 << 14) - 1) >> 14);
	assert_int_equal(published_read(&published, &one), GW_OK);
	gw_service_withdraw(one.bed.service, &published.region);
	await_freed(&one, &published);
	assert_int_equal(fabric_readable(), before);
	assert_int_equal(published_read(&published, &one), GW_NOT_FOUND);
	gw_one_read_works(&one);
	gw_one_end(&one);
	assert_int_equal(fabric_readable(), 0);
	gw_arena_destroy(published.arena);
}

static void *remove_device(void *nothing)
{
	fabric_remove();
	return nothing;
}

/* Regions withdrawn before or afterwards are still freed. */
static void regions_survive_their_device(void **state)
{
	for (int round = 0; round < 3; round++) {
		struct one one;
		struct published read, withdrawn, after;
		pthread_t thread;
		begin(&one, state);
		published_begin(&read, &one, true);
		published_begin(&withdrawn, &one, true);
		assert_int_equal(published_read(&read, &one), GW_OK);
		if (round == 1)
			gw_service_withdraw(one.bed.service, &withdrawn.region);
		assert_int_equal(pthread_create(&thread, NULL, remove_device, NULL), 0);
		gw_status status = GW_OK;
		while (status == GW_OK)
			status = published_read(&read, &one);
		assert_int_equal(status, GW_PEER_LOST);
		pthread_join(thread, NULL);
		/* Client and server release the device while they are polled as usual. */
		await(&one, fabric_readable, 0);
		verbs_wait_for_loss(&one);
		gw_endpoint_close(one.endpoint);
		gw_service_withdraw(one.bed.service, &withdrawn.region);
		await_freed(&one, &withdrawn);
		/* Published without a device: the registration count stays 0, and a client cannot connect. */
		published_begin(&after, &one, false);
		assert_int_equal(fabric_readable(), 0);
		struct gw_connect_options connect = gw_bed_options(&one.bed);
		assert_true(gw_bed_connect(one.group, &connect, &one.endpoint) != GW_OK);
		assert_int_equal(atomic_load(&read.freed) + atomic_load(&after.freed), 0);
		gw_one_end(&one);
		assert_int_equal(atomic_load(&read.freed), 1);
		assert_int_equal(atomic_load(&withdrawn.freed), 1);
		assert_int_equal(atomic_load(&after.freed), 1);
		gw_arena_destroy(read.arena);
		gw_arena_destroy(withdrawn.arena);
		gw_arena_destroy(after.arena);
		/* A new device serves again. */
		fabric_return();
		begin(&one, state);
		gw_one_read_works(&one);
		published_begin(&read, &one, true);
		assert_int_equal(published_read(&read, &one), GW_OK);
		gw_one_end(&one);
		assert_int_equal(atomic_load(&read.freed), 1);
		gw_arena_destroy(read.arena);
	}
}

int main(void)
{
	void *state = (void *)(uintptr_t)verbs_kind();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(keys_end_before_their_memory, state),
		cmocka_unit_test_prestate(regions_survive_their_device, state),
	};
	if (!gw_bed_possible(verbs_kind()))
		return 0;
	return cmocka_run_group_tests_name("a device that is removed", tests, NULL, NULL);
}
