/* Every page of an arena is on the requested node. The test asks the kernel page by page (move_pages(2)). A machine
 * with one node shows nothing; the guest (test/slow/guest/run) has two nodes with hugepages on both. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/memory/arena.h"
#include "core/memory/memory.h"

#define MIB        (1ull << 20)
#define PAGE_BYTES 4096ull
#define PAGE_TRIES 1000

static struct gw_numa_nodes nodes;

static void need_two_nodes(void)
{
	gw_numa_nodes_read("", &nodes);
	if (nodes.count < 2)
		skip();
}

/* The nodes of all pages, in order; the caller frees them. */
static int *nodes_of(const struct gw_arena *arena, size_t *count)
{
	*count = gw_arena_bytes(arena) / PAGE_BYTES;
	void **pages = calloc(*count, sizeof(*pages));
	int *found = calloc(*count, sizeof(*found));
	assert_true(pages && found);
	for (size_t i = 0; i < *count; i++) {
		pages[i] = gw_arena_base(arena) + i * PAGE_BYTES;
		found[i] = -EINVAL;
	}
	/* An existing page may lack its entry: it was never touched, or the kernel is moving it into a huge page. */
	for (size_t missing = 1, tries = 0; missing && tries < PAGE_TRIES; tries++) {
		missing = 0;
		for (size_t i = 0; i < *count; i++)
			(void)*(volatile uint8_t *)pages[i];
		assert_int_equal(syscall(SYS_move_pages, 0l, *count, pages, NULL, found, 0l), 0);
		for (size_t i = 0; i < *count; i++)
			missing += found[i] < 0;
	}
	free(pages);
	return found;
}

/* The pages of an arena. */
static const struct kind {
	enum gw_huge_policy huge;
	bool shareable;
	uint64_t bytes;
} kinds[] = {
	{GW_HUGE_OFF, false, 5 * MIB + 1}, {GW_HUGE_OFF, true, 5 * MIB + 1},  {GW_HUGE_TRY, false, 18 * MIB},
	{GW_HUGE_TRY, true, 18 * MIB},     {GW_HUGE_REQUIRE, true, 34 * MIB}, {GW_HUGE_TRY, true, 1},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* NULL: huge pages are required but not available. */
static struct gw_arena *make(const struct kind *kind, int numa)
{
	const struct gw_arena_options options = {
		.name = "numa", .huge = kind->huge, .numa = numa, .shareable = kind->shareable};
	struct gw_arena *arena;
	gw_status status = gw_arena_create(kind->bytes, &options, &arena);
	if (status == GW_UNSUPPORTED && kind->huge == GW_HUGE_REQUIRE)
		return NULL;
	if (status != GW_OK)
		fail_msg("%s", gw_last_error());
	if (kind->huge == GW_HUGE_OFF)
		assert_int_equal(gw_arena_page_level(arena), GW_PAGES_4K);
	else if (kind->huge == GW_HUGE_REQUIRE)
		assert_int_not_equal(gw_arena_page_level(arena), GW_PAGES_4K);
	return arena;
}

static void check_all_on(const struct gw_arena *arena, int node)
{
	size_t count;
	int *found = nodes_of(arena, &count);
	for (size_t i = 0; i < count; i++)
		if (found[i] != node)
			fail_msg("page %zu of %zu is on node %d, not %d (level %d)", i, count, found[i], node,
				 (int)gw_arena_page_level(arena));
	free(found);
}

static void test_bound(void **state)
{
	(void)state;
	need_two_nodes();
	for (uint32_t n = 0; n < nodes.count; n++)
		for (size_t k = 0; k < KINDS; k++) {
			struct gw_arena *arena = make(&kinds[k], nodes.numbers[n]);
			if (arena)
				check_all_on(arena, nodes.numbers[n]);
			gw_arena_destroy(arena);
		}
}

/* Slices alternate between nodes, and each slice is on one node. The nodes' shares differ by at most a slice. */
static void test_spread(void **state)
{
	(void)state;
	need_two_nodes();
	for (size_t k = 0; k < KINDS; k++) {
		struct gw_arena *arena = make(&kinds[k], GW_NUMA_SPREAD);
		if (!arena)
			continue;
		size_t count, per_slice = gw_arena_slice_bytes(arena) / PAGE_BYTES;
		int *found = nodes_of(arena, &count);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(found[i], nodes.numbers[i / per_slice % nodes.count]);
		if (kinds[k].bytes > 2 * MIB * nodes.count)
			assert_true(gw_arena_bytes(arena) > (nodes.count - 1) * gw_arena_slice_bytes(arena));
		free(found);
		gw_arena_destroy(arena);
	}
}

/* The kernel's default: the node of the thread that touches the page, here the caller or one of its helpers. */
static void test_local(void **state)
{
	(void)state;
	need_two_nodes();
	cpu_set_t before, one;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		unsigned at, node;
		if (!CPU_ISSET(cpu, &before))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
		assert_int_equal(syscall(SYS_getcpu, &at, &node, NULL), 0);
		/* After the node's own hugetlb pages, those of other nodes are used. */
		for (size_t k = 0; k < 3; k++) {
			struct gw_arena *arena = make(&kinds[k], GW_NUMA_LOCAL);
			check_all_on(arena, (int)node);
			gw_arena_destroy(arena);
		}
	}
	sched_setaffinity(0, sizeof(before), &before);
}

static void test_bound_beyond_the_pool(void **state)
{
	(void)state;
	need_two_nodes();
	int node = nodes.numbers[nodes.count - 1];
	char path[128];
	unsigned long pool = 0;
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/free_hugepages", node);
	FILE *file = fopen(path, "re");
	if (!file || fscanf(file, "%lu", &pool) != 1 || pool == 0 || pool > 512)
		pool = 0;
	if (file)
		fclose(file);
	if (!pool)
		skip();
	const struct gw_arena_options options = {.name = "numa", .numa = node, .shareable = true};
	struct gw_arena *arena;
	gw_status status = gw_arena_create((pool + 4) * 2 * MIB, &options, &arena);
	if (status != GW_OK) {
		assert_int_equal(status, GW_NO_MEMORY);
		assert_null(arena);
		assert_true(strlen(gw_last_error()) > 0);
		return;
	}
	assert_int_not_equal(gw_arena_page_level(arena), GW_PAGES_HUGETLB);
	check_all_on(arena, node);
	gw_arena_destroy(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_local),
		cmocka_unit_test(test_bound_beyond_the_pool),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
