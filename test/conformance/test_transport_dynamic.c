/* Dynamic regions, one suite over every backend. Clients find published regions. Reads of withdrawn ones fail with a
 * named error and do not harm the connection. The owner gets a region's memory back only when no client can read it any
 * more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "test/support/transport_bed.h"

#define ROW_BYTES 40

/* A region with separate memory. */
struct dynamic {
	struct gw_arena *arena;
	struct gw_region region;
	uint32_t rows;
	_Atomic uint32_t freed;
};

static void dynamic_freed(void *context)
{
	struct dynamic *dynamic = context;
	/* A late reader must not find the old bytes. */
	memset(gw_arena_base(dynamic->arena), 0xee, gw_arena_bytes(dynamic->arena));
	atomic_fetch_add(&dynamic->freed, 1);
}

static void payload_of(uint64_t seed, uint32_t row, uint8_t payload[ROW_BYTES])
{
	for (uint32_t at = 0; at < ROW_BYTES; at += 8) {
		uint64_t word = gw_mix64(seed * 1000003 + row * 64 + at);
		memcpy(payload + at, &word, 8);
	}
}

static gw_status dynamic_publish(struct dynamic *dynamic, struct gw_service *service, uint32_t rows, uint64_t seed)
{
	struct gw_arena_options memory = {.name = "dynamic", .numa = GW_NUMA_LOCAL, .shareable = true};
	struct gw_region_rows format = {.seed = seed};
	uint8_t payload[ROW_BYTES];
	memset(dynamic, 0, sizeof(*dynamic));
	dynamic->rows = rows;
	assert_int_equal(gw_row_format_init(ROW_BYTES, &format.format), GW_OK);
	uint64_t bytes = (uint64_t)rows * format.format.stride;
	assert_int_equal(gw_arena_create(bytes ? bytes : 1, &memory, &dynamic->arena), GW_OK);
	for (uint32_t i = 0; i < rows; i++) {
		payload_of(seed, i, payload);
		gw_row_make(&format.format, seed, i, gw_arena_base(dynamic->arena) + (uint64_t)i * format.format.stride,
			    payload);
	}
	struct gw_dynamic_region region = {.base = gw_arena_base(dynamic->arena),
					   .bytes = bytes,
					   .rows = &format,
					   .fd = gw_arena_fd(dynamic->arena),
					   .freed = dynamic_freed,
					   .context = dynamic};
	return gw_service_publish(service, &region, &dynamic->region);
}

static void dynamic_begin(struct dynamic *dynamic, struct bed *bed, uint32_t rows, uint64_t seed)
{
	assert_int_equal(dynamic_publish(dynamic, bed->service, rows, seed), GW_OK);
}

static void dynamic_end(struct dynamic *dynamic)
{
	gw_arena_destroy(dynamic->arena);
}

static void one_begin(struct one *one, void **state)
{
	struct bed_options options = {.threads = 2};
	gw_one_begin(one, state, &options, 1 << 16);
}

static gw_status open_region(struct one *one, struct gw_endpoint *endpoint, const struct gw_region *region)
{
	assert_int_equal(gw_endpoint_region_open(endpoint, region->id, region->generation, endpoint), GW_OK);
	struct gw_completion completion = gw_bed_wait(one->group, endpoint);
	assert_true(!completion.status || strlen(completion.text) > 0);
	return completion.status;
}

static gw_status read_row(struct one *one, struct gw_endpoint *endpoint, const struct gw_region *region, uint32_t row)
{
	uint64_t remote = (uint64_t)row * region->rows.format.stride;
	struct gw_gather gather = {.remote = &remote, .row_bytes = ROW_BYTES, .stride = ROW_BYTES};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_gather(endpoint, &set, region, one->buffer, &gather, 1);
	return gw_bed_wait(one->group, &set).status;
}

static void expect_row(struct one *one, const struct dynamic *dynamic, uint32_t row)
{
	uint8_t payload[ROW_BYTES];
	payload_of(dynamic->region.rows.seed, row, payload);
	assert_int_equal(read_row(one, one->endpoint, &dynamic->region, row), GW_OK);
	assert_memory_equal(one->landing, payload, ROW_BYTES);
}

static void await_memory_returned(struct one *one, struct dynamic *dynamic)
{
	struct gw_completion completion;
	uint64_t end = gw_now_ns() + 100 * GW_NS_PER_SECOND;
	while (!atomic_load(&dynamic->freed) && gw_now_ns() < end)
		assert_int_equal(gw_poll_group_poll(one->group, &completion, 1, 2 * GW_NS_PER_MS), 0);
	assert_int_equal(atomic_load(&dynamic->freed), 1);
}

static void published_regions_are_found_and_read(void **state)
{
	struct one one;
	struct dynamic dynamic[3];
	one_begin(&one, state);
	for (uint32_t i = 0; i < 3; i++)
		dynamic_begin(&dynamic[i], &one.bed, i * 10, 100 + i);
	for (uint32_t i = 0; i < 3; i++) {
		const struct gw_region *region = &dynamic[i].region;
		assert_null(gw_endpoint_region(one.endpoint, region->id, region->generation));
		assert_int_equal(open_region(&one, one.endpoint, region), GW_OK);
		assert_int_equal(open_region(&one, one.endpoint, region), GW_OK); /* again */
		const struct gw_region *known = gw_endpoint_region(one.endpoint, region->id, region->generation);
		assert_non_null(known);
		assert_int_equal(known->bytes, region->bytes);
		assert_int_equal(known->kind, GW_REGION_VERSIONED);
		assert_int_equal(known->rows.format.payload_bytes, ROW_BYTES);
		assert_int_equal(known->rows.seed, 100 + i);
		assert_null(gw_endpoint_map(one.endpoint, known));
	}
	for (uint32_t row = 0; row < 10; row++) {
		expect_row(&one, &dynamic[1], row);
		expect_row(&one, &dynamic[2], row + 10);
	}
	assert_int_equal(read_row(&one, one.endpoint, &dynamic[2].region, 20), GW_RANGE);
	assert_int_equal(read_row(&one, one.endpoint, &dynamic[0].region, 0), GW_RANGE); /* the region is empty */
	gw_one_read_works(&one);
	gw_one_end(&one); /* ends the service with the published regions */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(atomic_load(&dynamic[i].freed), 1);
		dynamic_end(&dynamic[i]);
	}
}

static void absent_regions_are_not_found(void **state)
{
	struct one one;
	struct dynamic dynamic;
	one_begin(&one, state);
	struct gw_region region = {.id = GW_REGIONS_MAX, .generation = 1};
	assert_int_equal(open_region(&one, one.endpoint, &region), GW_NOT_FOUND); /* before any was published */
	dynamic_begin(&dynamic, &one.bed, 1, 1);
	struct gw_region wrong[] = {dynamic.region, dynamic.region, dynamic.region, dynamic.region};
	wrong[0].id++;
	wrong[1].generation++;
	wrong[2].id = UINT32_MAX;
	wrong[3].generation = 0;
	for (int i = 0; i < 4; i++)
		assert_int_equal(open_region(&one, one.endpoint, &wrong[i]), GW_NOT_FOUND);
	assert_int_equal(read_row(&one, one.endpoint, &dynamic.region, 0), GW_NOT_FOUND); /* not opened */
	assert_int_equal(open_region(&one, one.endpoint, &dynamic.region), GW_OK);
	expect_row(&one, &dynamic, 0);
	gw_service_withdraw(one.bed.service, &wrong[1]);
	expect_row(&one, &dynamic, 0);
	gw_one_end(&one);
	dynamic_end(&dynamic);
}

static void withdrawn_regions_fail_alone(void **state)
{
	struct one one;
	struct dynamic gone, stays;
	one_begin(&one, state);
	dynamic_begin(&gone, &one.bed, 10, 1);
	dynamic_begin(&stays, &one.bed, 10, 2);
	assert_int_equal(open_region(&one, one.endpoint, &gone.region), GW_OK);
	assert_int_equal(open_region(&one, one.endpoint, &stays.region), GW_OK);
	expect_row(&one, &gone, 3);
	gw_service_withdraw(one.bed.service, &gone.region);
	gw_service_withdraw(one.bed.service, &gone.region);
	await_memory_returned(&one, &gone);
	assert_int_equal(read_row(&one, one.endpoint, &gone.region, 3), GW_NOT_FOUND);
	assert_int_equal(open_region(&one, one.endpoint, &gone.region), GW_NOT_FOUND);
	expect_row(&one, &stays, 3);
	gw_one_read_works(&one);
	assert_int_equal(one.endpoint->state, GW_ENDPOINT_OPEN);
	/* The slot is reused with another generation. */
	struct dynamic next;
	dynamic_begin(&next, &one.bed, 10, 3);
	assert_int_equal(next.region.id, gone.region.id);
	assert_int_not_equal(next.region.generation, gone.region.generation);
	assert_int_equal(read_row(&one, one.endpoint, &next.region, 3), GW_NOT_FOUND);
	assert_int_equal(open_region(&one, one.endpoint, &next.region), GW_OK);
	expect_row(&one, &next, 3);
	assert_int_equal(read_row(&one, one.endpoint, &gone.region, 3), GW_NOT_FOUND);
	gw_one_end(&one);
	assert_int_equal(atomic_load(&gone.freed), 1);
	dynamic_end(&gone);
	dynamic_end(&stays);
	dynamic_end(&next);
}

/* A client that is not polled keeps its own mappings until its connection ends, and no other client's. */
static void memory_is_kept_while_a_client_can_read_it(void **state)
{
	struct one one;
	struct dynamic dynamic;
	struct gw_poll_group *other_group;
	struct gw_endpoint *other;
	one_begin(&one, state);
	dynamic_begin(&dynamic, &one.bed, 10, 1);
	other_group = gw_bed_group(one.bed.kind);
	struct gw_connect_options options = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(other_group, &options, &other), GW_OK);
	assert_int_equal(gw_endpoint_region_open(other, dynamic.region.id, dynamic.region.generation, other), GW_OK);
	assert_int_equal(gw_bed_wait(other_group, other).status, GW_OK);
	assert_int_equal(open_region(&one, one.endpoint, &dynamic.region), GW_OK);
	gw_service_withdraw(one.bed.service, &dynamic.region);
	bool held = strcmp(one.bed.kind->scheme, "shm") == 0 || strcmp(one.bed.kind->scheme, "verbs") == 0;
	if (held) {
		/* The polled client was notified, and released the region. */
		for (int i = 0;
		     i < 10000 && gw_endpoint_region(one.endpoint, dynamic.region.id, dynamic.region.generation); i++)
			gw_one_nothing_more(&one, 2);
		assert_null(gw_endpoint_region(one.endpoint, dynamic.region.id, dynamic.region.generation));
		gw_one_read_works(&one);
		assert_int_equal(atomic_load(&dynamic.freed), 0);
	}
	gw_endpoint_close(other);
	await_memory_returned(&one, &dynamic);
	gw_poll_group_destroy(other_group);
	gw_one_end(&one);
	dynamic_end(&dynamic);
}

/* More regions at once than a hello has room for, and more descriptors than one message carries. */
static void all_places_are_usable(void **state)
{
	enum { MANY = 60 };
	struct one one;
	static struct dynamic dynamic[MANY];
	uint32_t turn = 0;
	one_begin(&one, state);
	for (uint32_t i = 0; i < MANY; i++)
		dynamic_begin(&dynamic[i], &one.bed, 5, i);
	/* All are opened before the first is ready. */
	for (uint32_t asked = 0, told = 0; told < MANY;) {
		while (asked < MANY &&
		       gw_endpoint_region_open(one.endpoint, dynamic[asked].region.id, dynamic[asked].region.generation,
					       &dynamic[asked]) == GW_OK)
			asked++;
		struct gw_completion completion;
		if (gw_poll_group_poll(one.group, &completion, 1, 100 * GW_NS_PER_MS) == 0) {
			assert_true(++turn < 1000);
			continue;
		}
		assert_int_equal(completion.status, GW_OK);
		assert_ptr_equal(completion.cookie, &dynamic[told]);
		told++;
	}
	for (uint32_t i = 0; i < MANY; i++)
		expect_row(&one, &dynamic[i], i % 5);
	for (uint32_t i = 0; i < MANY; i += 2)
		gw_service_withdraw(one.bed.service, &dynamic[i].region);
	for (uint32_t i = 0; i < MANY; i += 2)
		await_memory_returned(&one, &dynamic[i]);
	for (uint32_t i = 1; i < MANY; i += 2)
		expect_row(&one, &dynamic[i], i % 5);
	gw_one_end(&one);
	for (uint32_t i = 0; i < MANY; i++)
		dynamic_end(&dynamic[i]);
}

static void places_are_limited(void **state)
{
	struct one one;
	struct dynamic dynamic;
	struct gw_region region, first;
	one_begin(&one, state);
	dynamic_begin(&dynamic, &one.bed, 1, 1);
	struct gw_dynamic_region same = {.base = gw_arena_base(dynamic.arena),
					 .bytes = dynamic.region.bytes,
					 .rows = &dynamic.region.rows,
					 .fd = -1};
	first = dynamic.region;
	for (uint32_t i = 1; i < GW_DYNAMIC_REGIONS_MAX; i++)
		assert_int_equal(gw_service_publish(one.bed.service, &same, &region), GW_OK);
	assert_int_equal(gw_service_publish(one.bed.service, &same, &first), GW_LIMIT);
	gw_service_withdraw(one.bed.service, &region);
	assert_int_equal(gw_service_publish(one.bed.service, &same, &first), GW_OK);
	assert_int_equal(first.id, region.id);
	/* A client that maps memory gets an error if the memory cannot be mapped. */
	bool shm = strcmp(one.bed.kind->scheme, "shm") == 0;
	assert_int_equal(open_region(&one, one.endpoint, &first), shm ? GW_UNSUPPORTED : GW_OK);
	same.rows = NULL;
	assert_int_equal(gw_service_publish(one.bed.service, &same, &first), GW_INVALID);
	same.rows = &dynamic.region.rows;
	same.bytes--;
	assert_int_equal(gw_service_publish(one.bed.service, &same, &first), GW_INVALID);
	gw_one_read_works(&one);
	gw_one_end(&one);
	dynamic_end(&dynamic);
}

/* --- Under readers. --- */

struct churn {
	struct bed *bed;
	_Atomic bool stop;
	_Atomic uint64_t now;   /* id and generation of the current region, or 0 */
	_Atomic uint64_t asked; /* of the region that the reader opened last */
	_Atomic uint32_t made;
};

/* At once, or after the reader has opened them. Each frees its memory exactly once. */
static void *churn_run(void *argument)
{
	struct churn *churn = argument;
	while (!atomic_load(&churn->stop)) {
		struct dynamic dynamic;
		uint64_t seed = 1000 + atomic_load(&churn->made);
		dynamic_begin(&dynamic, churn->bed, 50, seed);
		uint64_t now = (uint64_t)dynamic.region.id << 32 | dynamic.region.generation;
		atomic_store(&churn->now, now);
		do
			sched_yield();
		while (seed % 2 && atomic_load(&churn->asked) != now && !atomic_load(&churn->stop));
		atomic_fetch_add(&churn->made, 1);
		atomic_store(&churn->now, 0);
		gw_service_withdraw(churn->bed->service, &dynamic.region);
		while (!atomic_load(&dynamic.freed))
			sched_yield();
		dynamic_end(&dynamic);
	}
	return NULL;
}

static void made_and_withdrawn_under_readers(void **state)
{
	struct one one;
	struct churn churn = {.bed = &one.bed};
	pthread_t thread;
	uint64_t remote[50], seed = 7;
	uint32_t opened = 0, read = 0, missed = 0;
	one_begin(&one, state);
	assert_int_equal(pthread_create(&thread, NULL, churn_run, &churn), 0);
	while (opened < 30 || atomic_load(&churn.made) < 100) {
		uint64_t now = atomic_load(&churn.now);
		struct gw_region region = {.id = (uint32_t)(now >> 32), .generation = (uint32_t)now};
		gw_status status = now ? open_region(&one, one.endpoint, &region) : GW_NOT_FOUND;
		atomic_store(&churn.asked, now);
		if (status != GW_OK) {
			assert_int_equal(status, GW_NOT_FOUND);
			gw_one_nothing_more(&one, 1); /* releases the withdrawn regions */
			continue;
		}
		opened++;
		const struct gw_region *known = gw_endpoint_region(one.endpoint, region.id, region.generation);
		if (!known)
			continue;
		region = *known;
		for (uint32_t i = 0; i < 50; i++)
			remote[i] = gw_below(&seed, 50) * region.rows.format.stride;
		struct gw_gather gather = {.remote = remote, .row_bytes = ROW_BYTES, .stride = ROW_BYTES};
		struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
		gw_bed_gather(one.endpoint, &set, &region, one.buffer, &gather, 50);
		status = gw_bed_wait(one.group, &set).status;
		assert_true(status == GW_OK || status == GW_NOT_FOUND);
		read += status == GW_OK;
		missed += status != GW_OK;
		for (uint32_t i = 0; i < 50 && status == GW_OK; i++) {
			uint8_t payload[ROW_BYTES];
			payload_of(region.rows.seed, (uint32_t)(remote[i] / region.rows.format.stride), payload);
			assert_memory_equal(one.landing + (uint64_t)i * ROW_BYTES, payload, ROW_BYTES);
		}
	}
	atomic_store(&churn.stop, true);
	/* The last region waits for this client to release it. */
	struct gw_connect_options options = gw_bed_options(&one.bed);
	gw_endpoint_close(one.endpoint);
	pthread_join(thread, NULL);
	assert_int_equal(gw_bed_connect(one.group, &options, &one.endpoint), GW_OK);
	gw_one_read_works(&one);
	gw_one_end(&one);
	(void)read;
	(void)missed;
}

/* A region is withdrawn during a long answer. The read gets complete rows or the named error, and no later bytes. */
static void withdrawn_in_the_midst_of_a_read(void **state)
{
	enum { READS = 60000 };
	struct one one;
	one_begin(&one, state);
	uint64_t *remote = calloc(READS, sizeof(*remote));
	uint8_t *landing = calloc(READS, ROW_BYTES);
	struct gw_buffer *buffer;
	assert_int_equal(gw_buffer_register(one.group, landing, (uint64_t)READS * ROW_BYTES, &buffer), GW_OK);
	for (uint32_t round = 0; round < 10; round++) {
		struct dynamic dynamic;
		struct gw_completion completion;
		dynamic_begin(&dynamic, &one.bed, 10, 50 + round);
		assert_int_equal(open_region(&one, one.endpoint, &dynamic.region), GW_OK);
		uint32_t stride = dynamic.region.rows.format.stride;
		for (uint32_t i = 0; i < READS; i++)
			remote[i] = (uint64_t)(i % 10) * stride;
		struct gw_gather gather = {.remote = remote, .row_bytes = ROW_BYTES, .stride = ROW_BYTES};
		struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
		gw_bed_gather(one.endpoint, &set, &dynamic.region, buffer, &gather, READS);
		for (uint32_t i = 0; i < round; i++)
			sched_yield();
		gw_service_withdraw(one.bed.service, &dynamic.region);
		completion = gw_bed_wait(one.group, &set);
		assert_true(completion.status == GW_OK || completion.status == GW_NOT_FOUND);
		for (uint32_t i = 0; i < READS && !completion.status; i++) {
			uint8_t payload[ROW_BYTES];
			payload_of(50 + round, i % 10, payload);
			assert_memory_equal(landing + (uint64_t)i * ROW_BYTES, payload, ROW_BYTES);
		}
		await_memory_returned(&one, &dynamic);
		dynamic_end(&dynamic);
		gw_one_read_works(&one);
	}
	gw_buffer_release(buffer);
	gw_one_end(&one);
	free(landing);
	free(remote);
}

/* --- Memory. --- */

static void opens_without_memory(void **state)
{
	struct one one;
	bool clean = false;
	one_begin(&one, state);
	for (unsigned long at = 1; !clean; at++) {
		struct dynamic dynamic;
		dynamic_begin(&dynamic, &one.bed, 3, at);
		assert_int_equal(gw_one_call(&one, BED_OP_ECHO, 0, "abc", 3).status,
				 GW_OK); /* the server has its buffers */
		gw_bed_fault_begin(&one.bed, at);
		gw_status posted =
			gw_endpoint_region_open(one.endpoint, dynamic.region.id, dynamic.region.generation, &dynamic);
		struct gw_completion completion = {.status = posted};
		if (!posted)
			completion = gw_bed_wait(one.group, &dynamic);
		gw_status status = completion.status;
		if (status != GW_OK && status != GW_NO_MEMORY)
			print_error("%lu: %s\n", at, completion.text);
		clean = !gw_bed_fault_end(&one.bed);
		assert_true(status == GW_OK || status == GW_NO_MEMORY);
		assert_true(!clean || status == GW_OK);
		if (status == GW_OK)
			expect_row(&one, &dynamic, 2);
		gw_service_withdraw(one.bed.service, &dynamic.region);
		await_memory_returned(&one, &dynamic);
		dynamic_end(&dynamic);
	}
	gw_one_read_works(&one);
	gw_one_end(&one);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(published_regions_are_found_and_read)},
		{BED_TEST(absent_regions_are_not_found)},
		{BED_TEST(withdrawn_regions_fail_alone)},
		{BED_TEST(memory_is_kept_while_a_client_can_read_it)},
		{BED_TEST(all_places_are_usable)},
		{BED_TEST(places_are_limited)},
		{BED_TEST(made_and_withdrawn_under_readers)},
		{BED_TEST(withdrawn_in_the_midst_of_a_read)},
		{BED_TEST(opens_without_memory)},
	};
	return gw_bed_run("transport_dynamic", tests, sizeof(tests) / sizeof(tests[0]));
}
