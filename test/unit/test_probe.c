/* The resources of the machine: parsing of /proc and /sys, and limits of control groups. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/memory/memory.h"
#include "core/memory/probe.h"
#include "core/system/processors.h"
#include "core/system/sysfile.h"
#include "test/support/sandbox.h"
#include "test/support/scratch.h"

#define GIB (1ull << 30)

/* ---- text ---- */

static void test_fields(void **state)
{
	(void)state;
	const char *text = "MemTotal:  100 kB\nMemAvailable:\t 42 kB\nNot MemFree: 3\nEmpty: x\n";
	uint64_t value = 7;
	assert_true(gw_sysfile_field(text, "MemTotal:", &value));
	assert_int_equal(value, 100);
	assert_true(gw_sysfile_field(text, "MemAvailable:", &value));
	assert_int_equal(value, 42);
	assert_false(gw_sysfile_field(text, "MemFree:", &value));
	assert_false(gw_sysfile_field(text, "Empty:", &value));
	assert_false(gw_sysfile_field("", "MemTotal:", &value));
}

static void test_lists(void **state)
{
	(void)state;
	bool flags[8];
	assert_true(gw_sysfile_list("0-1,3,6-9\n", flags, 8));
	assert_memory_equal(flags, ((bool[]){1, 1, 0, 1, 0, 0, 1, 1}), sizeof(flags));
	assert_true(gw_sysfile_list("\n", flags, 8));
	assert_memory_equal(flags, ((bool[8]){0}), sizeof(flags));
	assert_true(gw_sysfile_list("0-4294967295", flags, 8));
	assert_false(gw_sysfile_list("x", flags, 8));
	assert_false(gw_sysfile_list("1-", flags, 8));
	assert_false(gw_sysfile_list("3-1", flags, 8));
	assert_false(gw_sysfile_list("1;2", flags, 8));
}

static void test_choices(void **state)
{
	(void)state;
	char word[16];
	gw_sysfile_choice("always [madvise] never\n", word, sizeof(word));
	assert_string_equal(word, "madvise");
	gw_sysfile_choice("always madvise never", word, sizeof(word));
	assert_string_equal(word, "");
	gw_sysfile_choice("[a-word-that-is-too-long-for-it]", word, sizeof(word));
	assert_string_equal(word, "");
	gw_sysfile_choice("[", word, sizeof(word));
	assert_string_equal(word, "");
}

/* ---- a machine made of files ---- */

struct machine {
	char root[64];
};

static void put(const struct machine *machine, const char *path, const char *text)
{
	char full[512];
	snprintf(full, sizeof(full), "%s%s", machine->root, path);
	for (char *slash = strchr(full + strlen(machine->root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(full, 0755);
		*slash = '/';
	}
	FILE *file = fopen(full, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_machine(void **state)
{
	struct machine *machine = calloc(1, sizeof(*machine));
	strcpy(machine->root, "/tmp/gw-test-probe-XXXXXX");
	gw_scratch_make(machine->root);
	put(machine, "/proc/meminfo", "MemTotal:       67108864 kB\nMemFree: 1 kB\nMemAvailable:   33554432 kB\n");
	*state = machine;
	return 0;
}

static int drop_machine(void **state)
{
	struct machine *machine = *state;
	assert_int_equal(gw_remove_tree(machine->root), GW_OK);
	free(machine);
	return 0;
}

static void test_no_limits(void **state)
{
	struct machine *machine = *state;
	struct gw_memory memory;
	gw_memory_read(machine->root, -1, &memory);
	assert_true(memory.total == 64 * GIB && memory.available == 32 * GIB);
	assert_true(memory.cgroup_limit == UINT64_MAX);
	assert_string_equal(memory.bound_by, "machine");
	put(machine, "/proc/self/cgroup", "0::/user.slice\n");
	put(machine, "/sys/fs/cgroup/user.slice/memory.max", "max\n");
	put(machine, "/sys/fs/cgroup/user.slice/memory.current", "123\n");
	gw_memory_read(machine->root, -1, &memory);
	assert_true(memory.available == 32 * GIB && memory.cgroup_limit == UINT64_MAX);
}

static void test_cgroup_v2(void **state)
{
	struct machine *machine = *state;
	struct gw_memory memory;
	put(machine, "/proc/self/cgroup", "0::/job.slice/step\n");
	put(machine, "/sys/fs/cgroup/job.slice/step/memory.max", "max\n");
	put(machine, "/sys/fs/cgroup/job.slice/memory.max", "10737418240\n");    /* 10 GiB */
	put(machine, "/sys/fs/cgroup/job.slice/memory.current", "4294967296\n"); /* 4 GiB, 1 GiB cached */
	put(machine, "/sys/fs/cgroup/job.slice/memory.stat",
	    "anon 5\ninactive_anon 7\ninactive_file 805306368\nactive_file 268435456\n");
	gw_memory_read(machine->root, -1, &memory);
	assert_true(memory.cgroup_limit == 10 * GIB);
	assert_true(memory.available == 7 * GIB);
	assert_string_equal(memory.bound_by, "control group");
	put(machine, "/sys/fs/cgroup/job.slice/step/memory.max", "5368709120\n"); /* the lower limit: 5 GiB */
	put(machine, "/sys/fs/cgroup/job.slice/step/memory.current", "6442450944\n");
	gw_memory_read(machine->root, -1, &memory);
	assert_true(memory.cgroup_limit == 5 * GIB && memory.available == 0);
	put(machine, "/sys/fs/cgroup/job.slice/step/memory.current", "0\n");
	put(machine, "/sys/fs/cgroup/job.slice/step/memory.high", "3221225472\n"); /* throttled from 3 GiB on */
	gw_memory_read(machine->root, -1, &memory);
	assert_true(memory.cgroup_limit == 3 * GIB && memory.available == 3 * GIB);
}

/* Version 1. In a container the group's path is the host's, and the limit is in the mount's root. */
static void test_cgroup_v1(void **state)
{
	struct machine *machine = *state;
	struct gw_memory memory;
	put(machine, "/proc/self/cgroup", "9:name=systemd:/\n4:memory:/docker/abc\n0::/\n");
	put(machine, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
	put(machine, "/sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n");
	put(machine, "/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 536870912\n");
	gw_memory_read(machine->root, -1, &memory);
	assert_true(memory.cgroup_limit == 2 * GIB);
	assert_true(memory.available == 3 * GIB / 2);
	put(machine, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* v1's "no limit" */
	gw_memory_read(machine->root, -1, &memory);
	assert_true(memory.cgroup_limit == UINT64_MAX && memory.available == 32 * GIB);
}

/* Quotas of processor time: rounded up, the least of the group and those above it. */
static void test_processors_v2(void **state)
{
	struct machine *machine = *state;
	static const struct {
		const char *step, *job, *root;
		uint32_t granted;
	} cases[] = {
		{"max 100000\n", "max 100000\n", NULL, UINT32_MAX},
		{"150000 100000\n", "max 100000\n", NULL, 2},
		{"max 100000\n", "1000 100000\n", NULL, 1},
		{"400000 100000\n", "700000 200000\n", NULL, 4},
		{"400000 100000\n", "600000 200000\n", NULL, 3},
		{"400000 100000\n", "max 100000\n", "200000 100000\n", 2}, /* in a container, its mount's root */
		{"18446744073709551615 1\n", "x\n", "", UINT32_MAX},
		{"0 100000\n", "100000 0\n", "-1 100000\n", UINT32_MAX}, /* a kernel writes none of these */
		{"100000\n", "", "100000 x\n", UINT32_MAX},
	};
	assert_true(gw_processors_granted(machine->root) == UINT32_MAX);
	put(machine, "/proc/self/cgroup", "0::/job.slice/step\n");
	assert_true(gw_processors_granted(machine->root) == UINT32_MAX);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put(machine, "/sys/fs/cgroup/job.slice/step/cpu.max", cases[i].step);
		put(machine, "/sys/fs/cgroup/job.slice/cpu.max", cases[i].job);
		if (cases[i].root)
			put(machine, "/sys/fs/cgroup/cpu.max", cases[i].root);
		assert_int_equal(gw_processors_granted(machine->root), cases[i].granted);
	}
}

static void test_processors_v1(void **state)
{
	struct machine *machine = *state;
	put(machine, "/proc/self/cgroup", "5:cpuset:/\n4:cpu,cpuacct:/docker/abc\n3:memory:/x\n0::/\n");
	put(machine, "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
	put(machine, "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
	assert_true(gw_processors_granted(machine->root) == UINT32_MAX);
	put(machine, "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "250000\n");
	assert_int_equal(gw_processors_granted(machine->root), 3);
	put(machine, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n"); /* the same mount under its other name */
	put(machine, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
	assert_int_equal(gw_processors_granted(machine->root), 2);
	/* Another controller's group does not count. */
	put(machine, "/proc/self/cgroup", "5:cpuset:/\n4:cpuacct:/\n3:memory:/\n");
	assert_true(gw_processors_granted(machine->root) == UINT32_MAX);
}

static void test_nodes(void **state)
{
	struct machine *machine = *state;
	struct gw_numa_nodes nodes;
	gw_numa_nodes_read(machine->root, &nodes);
	assert_int_equal(nodes.count, 1);
	assert_int_equal(nodes.numbers[0], 0);
	put(machine, "/sys/devices/system/node/has_memory", "0,2-3\n");
	gw_numa_nodes_read(machine->root, &nodes);
	assert_int_equal(nodes.count, 3);
	assert_int_equal(nodes.numbers[2], 3);
	put(machine, "/proc/self/status", "Name:\tx\nMems_allowed:\tf\nMems_allowed_list:\t2-7\n");
	gw_numa_nodes_read(machine->root, &nodes);
	assert_int_equal(nodes.count, 2);
	assert_int_equal(nodes.numbers[0], 2);
	put(machine, "/sys/devices/system/node/node2/meminfo",
	    "Node 2 MemTotal:       16777216 kB\nNode 2 MemFree:        2097152 kB\n"
	    "Node 2 Active(file):   1048576 kB\nNode 2 Inactive(file): 1048576 kB\nNode 2 SReclaimable: 0 kB\n");
	struct gw_memory memory;
	gw_memory_read(machine->root, 2, &memory);
	assert_string_equal(memory.bound_by, "NUMA node");
	assert_true(memory.total == 16 * GIB && memory.available < 4 * GIB && memory.available > 3 * GIB);
	gw_memory_read(machine->root, 3, &memory); /* nothing is known of it */
	assert_true(memory.available == 32 * GIB);
}

static void test_check_names_the_limit(void **state)
{
	(void)state;
	assert_int_equal(gw_memory_check(0, -1, "graph"), GW_OK);
	assert_int_equal(gw_memory_check(1ull << 60, -1, "graph"), GW_NO_MEMORY);
	assert_non_null(strstr(gw_last_error(), "graph"));
	assert_non_null(strstr(gw_last_error(), "available"));
	assert_non_null(strstr(gw_last_error(), "more parts"));
}

/* ---- this machine ---- */

static void test_this_machine(void **state)
{
	(void)state;
	static struct gw_probe probe;
	gw_probe_read(&probe);
	assert_true(probe.processors >= 1 && probe.page_bytes >= 4096);
}

static int probe_io_uring(void *context)
{
	static struct gw_probe probe;
	gw_probe_read(&probe);
	*(int *)context = probe.io_uring_error;
	return probe.io_uring_error == EPERM ? 0 : 1;
}

static void test_io_uring_refused(void **state)
{
	(void)state;
	int error = 0;
	const struct sandbox_rule rule = {.call = SYS_io_uring_setup, .error = EPERM};
	assert_int_equal(sandbox_run(&rule, 1, false, probe_io_uring, &error), 0);
}

static int probe_locked(void *unused)
{
	(void)unused;
	static struct gw_probe probe;
	gw_probe_read(&probe);
	return probe.locked_bytes_max == 0 ? 0 : 1;
}

static void test_locked_memory(void **state)
{
	(void)state;
	assert_int_equal(sandbox_run(NULL, 0, true, probe_locked, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_choices),
		cmocka_unit_test_setup_teardown(test_no_limits, make_machine, drop_machine),
		cmocka_unit_test_setup_teardown(test_cgroup_v2, make_machine, drop_machine),
		cmocka_unit_test_setup_teardown(test_cgroup_v1, make_machine, drop_machine),
		cmocka_unit_test_setup_teardown(test_processors_v2, make_machine, drop_machine),
		cmocka_unit_test_setup_teardown(test_processors_v1, make_machine, drop_machine),
		cmocka_unit_test_setup_teardown(test_nodes, make_machine, drop_machine),
		cmocka_unit_test(test_check_names_the_limit),
		cmocka_unit_test(test_this_machine),
		cmocka_unit_test(test_io_uring_refused),
		cmocka_unit_test(test_locked_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
