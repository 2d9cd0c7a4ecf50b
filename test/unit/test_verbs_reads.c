/* Reads over RDMA that are not of versioned rows, on a made-up device (test/support/verbs_reads.h). Words are read
 * only if the device reads them in one access. A withdrawn region ends its own reads only. A shortage of memory for
 * trailers is an error. */
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

#include "core/memory/alloc.h"
#include "test/support/verbs_reads.h"

/* --- Words. --- */

static void words_need_a_device_that_promises(void **state)
{
	static const uint32_t sizes[] = {1, 2, 4, 8};
	(void)state;
	for (int i = 0; i < 4; i++)
		for (int whole = 0; whole < 2; whole++) {
			struct side side;
			uint64_t remote[30];
			side_begin(&side, sizes[i], 30, 12, 8);
			side_land(&side, 1000);
			for (uint32_t r = 0; r < 30; r++)
				remote[r] = (29 - r) * sizes[i];
			side.endpoint->whole_words = whole;
			struct gw_completion completion = side_gather(&side, remote, 30, sizes[i]);
			bool read = whole || sizes[i] == 1;
			assert_int_equal(completion.status, read ? GW_OK : GW_UNSUPPORTED);
			assert_int_equal(reads.posted > 0, read);
			for (uint32_t r = 0; r < 30 && read; r++)
				assert_memory_equal(side.buffer.base + r * sizes[i], side.memory + remote[r], sizes[i]);
			side_release(&side);
			side_end(&side);
		}
}

/* --- Dynamic regions. --- */

struct dynamic_place {
	struct verbs_place place;
	uint8_t keys[4 * SLICES];
};

/* The side's region as a dynamic region, as a completed open leaves it. */
static struct gw_dynamic_region_entry *side_dynamic(struct side *side, uint32_t id, uint32_t generation)
{
	struct gw_dynamic_region_entry *entry, before;
	side->region.id = id;
	side->region.generation = generation;
	assert_int_equal(gw_dynamic_region_add(&side->endpoint->base, &side->region, &entry, &before), GW_OK);
	assert_null(before.mapping);
	struct dynamic_place *dynamic = gw_malloc(sizeof(*dynamic));
	memcpy(dynamic->keys, side->keys, sizeof(dynamic->keys));
	dynamic->place = side->endpoint->places[0];
	dynamic->place.keys = dynamic->keys;
	entry->mapping = dynamic;
	return entry;
}

static void post_one(struct side *side, struct gw_read_set *set, const struct gw_region *region, uint64_t *remote)
{
	struct gw_gather gather = {.remote = remote, .row_bytes = 40, .stride = 40};
	*set = (struct gw_read_set){.cookie = set};
	assert_int_equal(gw_verbs_read(&side->endpoint->base, set, region, &side->buffer,
				       &(struct gw_reads){.gather = &gather, .n = 1}, true),
			 1);
}

static void withdrawn_regions_end_their_reads_alone(void **state)
{
	struct side side;
	static struct gw_read_set gone, stays, after;
	struct gw_completion completion;
	uint64_t remote = 0;
	(void)state;
	side_begin(&side, 40, 10, 20, 8);
	side_land(&side, 1000);
	struct gw_region first = side.region;
	struct gw_dynamic_region_entry *entry = side_dynamic(&side, GW_REGIONS_MAX + 3, 9);
	reads.hold = true;
	post_one(&side, &gone, &side.region, &remote);
	post_one(&side, &stays, &first, &remote);
	assert_int_equal(reads.count, 2);
	assert_int_equal(entry->reads, 1);
	/* It is in flight: the keys stay until it has landed, and then the set reports the withdrawal. */
	gw_verbs_dynamic_withdrawn(&side.endpoint->dynamic_reader, side.region.id, side.region.generation);
	assert_false(entry->open);
	assert_int_equal(entry->reads, 1);
	assert_non_null(entry->mapping);
	assert_int_equal(side_poll(&side, &completion), 0);
	post_one(&side, &after, &side.region, &remote);
	assert_int_equal(reads.count, 2);
	reads.hold = false;
	bool told[3] = {0};
	for (int i = 0; i < 3; i++) {
		assert_int_equal(side_poll(&side, &completion), 1);
		int which = completion.cookie == &gone ? 0 : completion.cookie == &stays ? 1 : 2;
		assert_int_equal(completion.status, which == 1 ? GW_OK : GW_NOT_FOUND);
		assert_false(told[which]);
		told[which] = true;
	}
	assert_int_equal(entry->reads, 0);
	assert_null(entry->mapping);
	assert_int_equal(side.endpoint->phase, ENDPOINT_OPENED);
	side_release(&side);
	side_end(&side);
}

/* --- Memory. --- */

static void no_memory_for_trailers(void **state)
{
	struct side side;
	uint64_t remote = 0;
	(void)state;
	side_begin(&side, 40, 10, 20, 8);
	side_land(&side, 1000);
	for (int error = ENOMEM;; error = 0) {
		reads.reg_error = error;
		gw_status status = side_gather(&side, &remote, 1, 40).status;
		if (!error) {
			assert_int_equal(status, GW_OK);
			break;
		}
		assert_true(status == GW_LOCKED_MEMORY || status == GW_NO_MEMORY);
	}
	side_release(&side);
	side_end(&side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_need_a_device_that_promises),
		cmocka_unit_test(withdrawn_regions_end_their_reads_alone),
		cmocka_unit_test(no_memory_for_trailers),
	};
	return cmocka_run_group_tests_name("verbs reads", tests, NULL, NULL);
}
#endif
