/* The processors that a server's threads get, on made-up machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/memory/arena.h"
#include "core/system/sysfile.h"
#include "server/placement.h"
#include "test/support/scratch.h"

#define NODES "/sys/devices/system/node"

static char root[64];

static void put(const char *path, const char *text)
{
	char whole[512];
	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		mkdir(whole, 0700);
		*at = '/';
	}
	FILE *file = fopen(whole, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static cpu_set_t set_of(const char *list)
{
	bool flags[64];
	cpu_set_t set;
	CPU_ZERO(&set);
	assert_true(gw_sysfile_list(list, flags, 64));
	for (size_t i = 0; i < 64; i++)
		if (flags[i])
			CPU_SET(i, &set);
	return set;
}

/* NULL: the thread is not moved. */
static void expect(enum gw_server_pin pin, int numa, uint32_t number, const char *allowed, const char *wanted)
{
	cpu_set_t may = set_of(allowed), got;
	bool placed = gw_server_place(root, pin, numa, number, &may, &got);
	assert_int_equal(placed, wanted != NULL);
	if (!wanted)
		return;
	cpu_set_t is = set_of(wanted);
	assert_true(CPU_EQUAL(&got, &is));
}

static void make_two_nodes(void)
{
	put(NODES "/online", "0-2\n");
	put(NODES "/node0/cpulist", "0-3,8-11\n");
	put(NODES "/node1/cpulist", "4-7,12-15\n");
	put(NODES "/node2/cpulist", "\n"); /* memory alone */
}

/* Threads alternate over the nodes with allowed processors; each gets all allowed processors of its node. */
static void a_thread_belongs_to_a_node(void **state)
{
	(void)state;
	make_two_nodes();
	expect(GW_SERVER_PIN_NODE, GW_NUMA_SPREAD, 0, "0-15", "0-3,8-11");
	expect(GW_SERVER_PIN_NODE, GW_NUMA_SPREAD, 1, "0-15", "4-7,12-15");
	expect(GW_SERVER_PIN_NODE, GW_NUMA_LOCAL, 5, "0-15", "4-7,12-15");
	expect(GW_SERVER_PIN_NODE, GW_NUMA_SPREAD, 2, "2-5", "2-3");
	expect(GW_SERVER_PIN_NODE, GW_NUMA_SPREAD, 3, "2-5", "4-5");
	expect(GW_SERVER_PIN_NODE, GW_NUMA_SPREAD, 1, "0-3", NULL);
}

/* With memory on one node, threads run there. If that node has no allowed processor, they are spread. */
static void a_thread_runs_where_the_memory_is(void **state)
{
	(void)state;
	make_two_nodes();
	expect(GW_SERVER_PIN_NODE, 1, 0, "0-15", "4-7,12-15");
	expect(GW_SERVER_PIN_NODE, 1, 1, "3-4", "4");
	expect(GW_SERVER_PIN_NODE, 1, 0, "4-5", NULL);
	expect(GW_SERVER_PIN_NODE, 1, 1, "0-3", NULL);
	expect(GW_SERVER_PIN_NODE, 2, 1, "0-15", "4-7,12-15");
	expect(GW_SERVER_PIN_NODE, 9, 0, "0-15", "0-3,8-11");
}

static void a_thread_of_a_small_host_stays_where_it_is(void **state)
{
	(void)state;
	expect(GW_SERVER_PIN_NODE, GW_NUMA_SPREAD, 0, "0-15", NULL);
	put(NODES "/online", "0\n");
	expect(GW_SERVER_PIN_NODE, GW_NUMA_SPREAD, 0, "0-15", NULL);
	put(NODES "/node0/cpulist", "0-15\n");
	expect(GW_SERVER_PIN_NODE, GW_NUMA_SPREAD, 3, "0-15", NULL);
	expect(GW_SERVER_PIN_NODE, 0, 3, "0-15", NULL);
	put(NODES "/online", "nonsense");
	expect(GW_SERVER_PIN_NODE, GW_NUMA_SPREAD, 3, "0-15", NULL);
}

static void a_processor_each_or_none(void **state)
{
	(void)state;
	make_two_nodes();
	expect(GW_SERVER_PIN_CORE, GW_NUMA_SPREAD, 0, "2,5-6", "2");
	expect(GW_SERVER_PIN_CORE, GW_NUMA_SPREAD, 1, "2,5-6", "5");
	expect(GW_SERVER_PIN_CORE, 1, 5, "2,5-6", "6");
	expect(GW_SERVER_PIN_CORE, GW_NUMA_SPREAD, 4, "", NULL);
	expect(GW_SERVER_PIN_OFF, GW_NUMA_SPREAD, 0, "0-15", NULL);
}

static int begin(void **state)
{
	(void)state;
	strcpy(root, "/tmp/gw-test-placement-XXXXXX");
	gw_scratch_make(root);
	return 0;
}

static int end(void **state)
{
	(void)state;
	assert_int_equal(gw_remove_tree(root), GW_OK);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_thread_belongs_to_a_node, begin, end),
		cmocka_unit_test_setup_teardown(a_thread_runs_where_the_memory_is, begin, end),
		cmocka_unit_test_setup_teardown(a_thread_of_a_small_host_stays_where_it_is, begin, end),
		cmocka_unit_test_setup_teardown(a_processor_each_or_none, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
