/* Limits: the group with the least room and its file, the command that raises a limit, and the error of a thread that
 * cannot be started, for each limit that may be the reason. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/memory/memory.h"
#include "core/system/limits.h"
#include "core/system/sysfile.h"
#include "core/system/thread.h"
#include "test/support/sandbox.h"
#include "test/support/scratch.h"

static char root[64];

static void put(const char *path, const char *text)
{
	char full[512];
	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(full, 0755);
		*slash = '/';
	}
	FILE *file = fopen(full, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" does not say \"%s\"", text, part);
}

static int begin(void **state)
{
	(void)state;
	gw_scratch_make_in_memory("limits", root);
	return 0;
}

static int end(void **state)
{
	(void)state;
	return gw_remove_tree(root) != GW_OK;
}

static void groups_of_both_versions(void **state)
{
	static const struct {
		enum gw_group_limit limit;
		const char *controller, *files[2][2];
	} cases[] = {
		{GW_GROUP_MEMORY,
		 "memory",
		 {{"memory.limit_in_bytes", "memory.usage_in_bytes"}, {"memory.max", "memory.current"}}},
		{GW_GROUP_SWAP,
		 "memory",
		 {{"memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"},
		  {"memory.swap.max", "memory.swap.current"}}},
		{GW_GROUP_THREADS, "pids", {{"pids.max", "pids.current"}, {"pids.max", "pids.current"}}},
		{GW_GROUP_HUGETLB,
		 "hugetlb",
		 {{"hugetlb.2MB.limit_in_bytes", "hugetlb.2MB.usage_in_bytes"},
		  {"hugetlb.2MB.max", "hugetlb.2MB.current"}}},
		{GW_GROUP_HUGETLB_RESERVED,
		 "hugetlb",
		 {{"hugetlb.2MB.rsvd.limit_in_bytes", "hugetlb.2MB.rsvd.usage_in_bytes"},
		  {"hugetlb.2MB.rsvd.max", "hugetlb.2MB.rsvd.current"}}},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int version = 1; version <= 2; version++) {
			const char *const *files = cases[i].files[version - 1];
			char folder[64], path[192], line[64];
			struct gw_group_use use;
			snprintf(folder, sizeof(folder), "/sys/fs/cgroup%s%s", version == 1 ? "/" : "",
				 version == 1 ? cases[i].controller : "");
			snprintf(line, sizeof(line), version == 1 ? "5:%s:/a/b\n" : "0::/a/b\n", cases[i].controller);
			put("/proc/self/cgroup", line);
			gw_group_limit_read(root, cases[i].limit, &use);
			assert_true(use.limit == UINT64_MAX && gw_group_left(&use) == UINT64_MAX && !use.file[0]);
			snprintf(path, sizeof(path), "%s/a/b/%s", folder, files[0]);
			put(path, "1000\n");
			snprintf(path, sizeof(path), "%s/a/b/%s", folder, files[1]);
			put(path, "10\n");
			gw_group_limit_read(root, cases[i].limit, &use);
			assert_true(use.limit == 1000 && use.used == 10 && gw_group_left(&use) == 990);
			/* The upper group has less room, though its limit is higher. */
			snprintf(path, sizeof(path), "%s/a/%s", folder, files[1]);
			put(path, "1990\n");
			snprintf(path, sizeof(path), "%s/a/%s", folder, files[0]);
			put(path, "2000\n");
			gw_group_limit_read(root, cases[i].limit, &use);
			assert_true(use.limit == 2000 && gw_group_left(&use) == 10);
			assert_string_equal(use.file, path);
			put(path, "max\n");
			gw_group_limit_read(root, cases[i].limit, &use);
			assert_true(use.limit == 1000);
			put(path, "5\n"); /* lowered below the use */
			gw_group_limit_read(root, cases[i].limit, &use);
			assert_true(gw_group_left(&use) == 0);
			snprintf(path, sizeof(path), "%s/sys", root);
			assert_int_equal(gw_remove_tree(path), GW_OK);
		}
	}
}

static void memory_names_the_file_that_binds(void **state)
{
	struct gw_memory memory;
	char fix[GW_LIMIT_FIX_MAX];
	(void)state;
	put("/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\n");
	put("/proc/self/cgroup", "0::/a\n");
	put("/sys/fs/cgroup/a/memory.max", "10737418240\n");
	gw_memory_read(root, -1, &memory);
	assert_true(gw_memory_is_grouped(&memory));
	assert_string_equal(memory.group.file, "/sys/fs/cgroup/a/memory.max");
	has(gw_memory_fix_group(&memory, 1, fix), "MemoryMax=10754195456 "); /* 16 MiB more than needed */
	has(fix, "docker update --memory 10754195456 --memory-swap 10754195456 NAME");
	put("/sys/fs/cgroup/a/memory.high", "1073741824\n");
	gw_memory_read(root, -1, &memory);
	assert_string_equal(memory.group.file, "/sys/fs/cgroup/a/memory.high");
	has(gw_memory_fix_group(&memory, 1, fix), "MemoryHigh=");
	put("/sys/fs/cgroup/a/memory.high", "max\n");
	put("/sys/fs/cgroup/a/memory.max", "max\n");
	gw_memory_read(root, -1, &memory);
	assert_false(gw_memory_is_grouped(&memory));
	/* A container's own group is the root of its tree. */
	put("/proc/self/cgroup", "0::/\n");
	put("/sys/fs/cgroup/memory.max", "1073741824\n");
	gw_memory_read(root, -1, &memory);
	assert_string_equal(memory.group.file, "/sys/fs/cgroup/memory.max");
}

static void commands_raise_what_they_name(void **state)
{
	char text[GW_LIMIT_FIX_MAX];
	(void)state;
	assert_string_equal(gw_process_fix(GW_PROCESS_FILES, 1024, 4096, text),
			    "ulimit -n 1024 (a unit: LimitNOFILE=1024; a container: docker run --ulimit nofile=1024)");
	assert_string_equal(
		gw_process_fix(GW_PROCESS_LOCKED, UINT64_MAX, UINT64_MAX, text),
		"ulimit -l unlimited (a unit: LimitMEMLOCK=infinity; a container: docker run --ulimit memlock=-1)");
	/* ulimit and limits.conf count in KiB; units and containers count in bytes. docker has no limit of addresses.
	 */
	assert_string_equal(gw_process_fix(GW_PROCESS_FILE_SIZE, 4097, UINT64_MAX, text),
			    "ulimit -f 5 (a unit: LimitFSIZE=4097; a container: docker run --ulimit fsize=4097)");
	assert_string_equal(gw_process_fix(GW_PROCESS_SPACE, UINT64_MAX, 1 << 30, text),
			    "echo '* - as unlimited' | sudo tee /etc/security/limits.d/graphwire-as.conf, "
			    "then log in again (a unit: LimitAS=infinity)");
	assert_string_equal(gw_process_fix(GW_PROCESS_THREADS, 4096, 100, text),
			    "echo '* - nproc 4096' | sudo tee /etc/security/limits.d/graphwire-nproc.conf, "
			    "then log in again (a unit: LimitNPROC=4096; a container: docker run --ulimit nproc=4096)");
}

static void rdma_limits_of_a_device(void **state)
{
	struct gw_group_rdma rdma;
	(void)state;
	put("/proc/self/cgroup", "7:rdma:/a/b\n");
	assert_false(gw_group_rdma_read(root, "mlx5_0", &rdma));
	put("/sys/fs/cgroup/rdma/a/b/rdma.max", "mlx5_0 hca_handle=max hca_object=2000\nmlx5_1 hca_handle=1\n");
	put("/sys/fs/cgroup/rdma/a/rdma.max", "mlx5_0 hca_handle=3 hca_object=3000\n");
	assert_true(gw_group_rdma_read(root, "mlx5_0", &rdma));
	assert_true(rdma.handles == 3 && rdma.objects == 2000);
	assert_false(gw_group_rdma_read(root, "mlx5", &rdma));
	assert_true(gw_group_rdma_read(root, NULL, &rdma));
}

/* --- Threads that are refused. --- */

static void *nothing(void *context)
{
	return context;
}

static int expect_refused_thread(const char *part)
{
	pthread_t threads[64];
	int error = 0, n = 0;
	while (n < 64 && !error)
		error = gw_thread_start(&threads[n++], nothing, NULL);
	if (!error || gw_thread_failed(error, "cannot start thread %d", 7) != GW_LIMIT)
		return 1;
	const char *text = gw_last_error();
	if (strstr(text, "cannot start thread 7: ") && strstr(text, part))
		return 0;
	fprintf(stderr, "%s\n", text);
	return 2;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they need address space themselves */
static int without_addresses(void *context)
{
	(void)context;
	uint64_t pages = 0;
	gw_sysfile_number(&pages, "/proc/self/statm");
	rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (1u << 20);
	if (setrlimit(RLIMIT_AS, &(struct rlimit){bytes, RLIM_INFINITY}) != 0)
		return 3;
	return expect_refused_thread("has no room for its stack: ulimit -v unlimited");
}
#endif

static int without_processes(void *context)
{
	(void)context;
	if (setrlimit(RLIMIT_NPROC, &(struct rlimit){1, 1}) != 0 || setresuid(64321, 64321, 64321) != 0)
		return 3;
	return expect_refused_thread("this user may have 1 processes and threads: echo '* - nproc unlimited'");
}

static void threads_that_are_refused(void **state)
{
	(void)state;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_int_equal(sandbox_run(NULL, 0, false, without_addresses, NULL), 0);
#endif
	if (geteuid() == 0)
		assert_int_equal(sandbox_run(NULL, 0, false, without_processes, NULL), 0);
	assert_int_equal(gw_thread_failed(EPERM, "x"), GW_LIMIT);
	has(gw_last_error(), "x: ");
}

#define EACH(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(groups_of_both_versions),       EACH(memory_names_the_file_that_binds),
		EACH(commands_raise_what_they_name), EACH(rdma_limits_of_a_device),
		EACH(threads_that_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
