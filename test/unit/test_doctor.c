/* The findings of graphwire doctor on hosts that are made of files: the right verdict, the right command, and at worst
 * a note if files are missing or full of garbage. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/system/parallel.h"
#include "server/footprint.h"
#include "test/support/doctor_host.h"
#include "test/support/sandbox.h"

#define MIB  (1ull << 20)
#define GIB  (1ull << 30)
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define PORT "/sys/class/infiniband/mlx5_0/ports/1/"

/* --- Memory. --- */

static void memory_is_asked_for(void **state)
{
	struct doctor_host *host = *state;
	doctor_expect(host, "memory", GW_DOCTOR_OK, "32.0 GiB available of 64.0 GiB", NULL);
	host->doctor.bytes = 31 * GIB;
	doctor_expect(host, "memory", GW_DOCTOR_OK, "32.0 GiB", NULL);
	/* The arrays fit; the rest of a server's memory does not. */
	host->doctor.bytes = 32 * GIB;
	doctor_has(doctor_expect(host, "memory", GW_DOCTOR_PROBLEM, "32.0 GiB", "graphwire partition")->costs,
		   "refused");
	host->doctor.bytes = 33 * GIB;
	doctor_has(doctor_expect(host, "memory", GW_DOCTOR_PROBLEM, "32.0 GiB", "graphwire partition")->costs,
		   "refused");
	assert_int_equal(gw_doctor_worst(&host->doctor), GW_DOCTOR_PROBLEM);
	/* A trainer still maps a former server's memory. */
	doctor_host_put(host, "/proc/70/maps", "1000-2000 r--s 00000000 00:01 77  /memfd:graphwire-part (deleted)\n");
	doctor_host_put(host, "/proc/70/cmdline", "python3");
	doctor_has(doctor_expect(host, "memory", GW_DOCTOR_PROBLEM, "32.0 GiB", "graphwire partition")->costs,
		   "process 70 (python3) still maps");
	doctor_host_remove(host, "/proc/70");
	doctor_host_put(host, "/sys/fs/cgroup/job/memory.max", "10737418240\n"); /* 10 GiB, nothing used */
	const struct gw_doctor_finding *finding =
		doctor_expect(host, "memory", GW_DOCTOR_PROBLEM,
			      "control group's limit of 10.0 GiB (/sys/fs/cgroup/job/memory.max)", "MemoryMax=");
	doctor_has(finding->fix, "docker update --memory ");
	uint64_t limit = strtoull(strstr(finding->fix, "MemoryMax=") + strlen("MemoryMax="), NULL, 10);
	assert_in_range(limit, gw_server_footprint(33 * GIB, gw_processors(), 0), 34 * GIB);
	/* The advised value is enough. */
	char text[32];
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)limit);
	doctor_host_put(host, "/proc/meminfo", "MemTotal: 68719476736 kB\nMemAvailable: 68719476736 kB\n");
	doctor_host_put(host, "/sys/fs/cgroup/job/memory.max", text);
	doctor_expect(host, "memory", GW_DOCTOR_OK, "control group's limit", NULL);
	doctor_host_put(host, "/sys/fs/cgroup/job/memory.max", "10737418240\n");
	/* Memory in the pool is already available. */
	doctor_host_put(host, POOL "free_hugepages", "17000\n"); /* 33 GiB are 16,896 pages */
	doctor_expect(host, "memory", GW_DOCTOR_OK, "10.0 GiB", NULL);
	doctor_host_put(host, POOL "resv_hugepages", "105\n"); /* other programs' pages */
	doctor_expect(host, "memory", GW_DOCTOR_PROBLEM, "10.0 GiB", "MemoryMax=");
}

static void the_doctor_says_what_a_server_does(void **state)
{
	struct doctor_host *host = *state;
	static const char *const files[][2] = {{"memory.max", "memory.current"},
					       {"hugetlb.2MB.max", "hugetlb.2MB.current"},
					       {"hugetlb.2MB.rsvd.max", "hugetlb.2MB.rsvd.current"}};
	struct gw_draws draws = gw_draws_begin(41, 6);
	unsigned refused = 0, pooled = 0;
	for (int round = 0; round < 300; round++) {
		uint64_t left[4] = {0};
		char path[128], text[32];
		for (int i = 0; i < 3; i++) {
			uint64_t used = gw_draw_below(&draws, 100) * MIB;
			left[i] = i && gw_draw_below(&draws, 2) ? UINT64_MAX : gw_draw_below(&draws, 400) * MIB;
			snprintf(path, sizeof(path), "/sys/fs/cgroup/job/%s", files[i][0]);
			snprintf(text, sizeof(text), "%llu\n", (unsigned long long)(used + left[i]));
			doctor_host_put(host, path, left[i] == UINT64_MAX ? "max\n" : text);
			snprintf(path, sizeof(path), "/sys/fs/cgroup/job/%s", files[i][1]);
			snprintf(text, sizeof(text), "%llu\n", (unsigned long long)used);
			doctor_host_put(host, path, text);
		}
		left[3] = gw_draw_below(&draws, 200) * 2 * MIB;
		snprintf(text, sizeof(text), "%llu\n", (unsigned long long)(left[3] / (2 * MIB)));
		doctor_host_put(host, POOL "free_hugepages", text);
		doctor_host_put(host, POOL "resv_hugepages", "0\n");
		uint64_t bytes = host->doctor.bytes = (1 + gw_draw_below(&draws, 300)) * MIB;
		bool pool = bytes <= left[1] && bytes <= left[2] && bytes <= left[3];
		bool fits = gw_server_footprint(pool ? 0 : bytes, gw_processors(), 0) <= left[0];
		const struct gw_server_plan plan = {.array_bytes = bytes, .threads = gw_processors(), .node = -1};
		struct gw_server_room room;
		assert_int_equal(gw_server_room_read(host->doctor.root, &plan, &room), fits);
		doctor_host_check(host);
		assert_int_equal(doctor_find(&host->doctor, "memory")->status, fits ? GW_DOCTOR_OK : GW_DOCTOR_PROBLEM);
		refused += !fits;
		pooled += pool && fits && gw_server_footprint(bytes, gw_processors(), 0) > left[0];
	}
	assert_in_range(refused, 50, 250);
	assert_true(pooled > 5);
}

static void locked_memory_is_judged_by_need(void **state)
{
	struct doctor_host *host = *state;
	const char *limits = "Max locked memory         %s %s bytes\n";
	char text[256];
	doctor_expect(host, "locked memory", GW_DOCTOR_WARNING, "soft 64.0 KiB, hard 64.0 KiB",
		      "/etc/security/limits.d");
	snprintf(text, sizeof(text), limits, "65536", "unlimited");
	doctor_host_put(host, "/proc/self/limits", text);
	doctor_expect(host, "locked memory", GW_DOCTOR_WARNING, "hard unlimited", "ulimit -l unlimited");
	snprintf(text, sizeof(text), limits, "unlimited", "unlimited");
	doctor_host_put(host, "/proc/self/limits", text);
	doctor_expect(host, "locked memory", GW_DOCTOR_OK, "soft unlimited", NULL);
	/* 1 GiB is enough for a client, and for a smaller part. */
	snprintf(text, sizeof(text), limits, "1073741824", "1073741824");
	doctor_host_put(host, "/proc/self/limits", text);
	doctor_expect(host, "locked memory", GW_DOCTOR_OK, "1.00 GiB", NULL);
	host->doctor.bytes = 2 * GIB;
	doctor_has(doctor_expect(host, "locked memory", GW_DOCTOR_WARNING, "a server 2.00 GiB", "limits.d")->costs,
		   "register");
	/* CAP_IPC_LOCK is bit 14. */
	doctor_host_put(host, "/proc/self/status", "CapEff:\t0000000000004000\n");
	doctor_expect(host, "locked memory", GW_DOCTOR_OK, "not binding", NULL);
	doctor_host_put(host, "/proc/self/status", "CapEff:\tffffffffffffbfff\n");
	doctor_expect(host, "locked memory", GW_DOCTOR_WARNING, "soft", "limits.d");
	/* Without a device no memory is locked for RDMA. */
	doctor_host_remove(host, "/sys/class/infiniband");
	doctor_expect(host, "locked memory", GW_DOCTOR_NOTE, "soft", "limits.d");
}

static void huge_pages_are_counted_by_node(void **state)
{
	struct doctor_host *host = *state;
	doctor_expect(host, "huge pages node0", GW_DOCTOR_WARNING, "2 MiB: 0 free of 0",
		      "node0/hugepages/hugepages-2048kB");
	doctor_expect(host, "huge pages node1", GW_DOCTOR_OK, "2 MiB: 40 free of 100; 1 GiB: 3 free of 4", NULL);
	/* 5 GiB are 1280 pages per node. Of node 1's pages 40 are free, and 60 are in use. */
	host->doctor.bytes = 5 * GIB;
	doctor_expect(host, "huge pages node0", GW_DOCTOR_WARNING, "0 free", "echo 1280 | sudo tee");
	doctor_expect(host, "huge pages node1", GW_DOCTOR_WARNING, "40 free",
		      "echo 1340 | sudo tee /sys/devices/system/node/node1/");
	struct gw_probe probe = {.collapse = true, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	host->doctor.probe = &probe;
	doctor_expect(host, "huge pages node1", GW_DOCTOR_NOTE, "transparent", "echo 1340 |");
	host->doctor.bytes = 0;
	doctor_expect(host, "huge pages node0", GW_DOCTOR_OK, "transparent", NULL);
	doctor_expect(host, "transparent huge pages", GW_DOCTOR_OK, "for shared memory never", NULL);
	probe.collapse = false;
	doctor_expect(host, "transparent huge pages", GW_DOCTOR_WARNING, "never", "echo advise | sudo tee");
	doctor_host_put(host, "/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always [advise] never\n");
	doctor_expect(host, "transparent huge pages", GW_DOCTOR_OK, "for shared memory advise", NULL);
}

static void limits_of_the_process(void **state)
{
	struct doctor_host *host = *state;
	doctor_expect(host, "open files", GW_DOCTOR_OK, "at most 1024", NULL);
	doctor_expect(host, "address space", GW_DOCTOR_OK, "unlimited", NULL);
	doctor_expect(host, "overcommit", GW_DOCTOR_OK, "= 0", NULL);
	doctor_host_put(host, "/proc/self/limits",
			"Max open files            256 4096 files\nMax address space  1073741824 1073741824 bytes\n");
	doctor_expect(host, "open files", GW_DOCTOR_NOTE, "at most 256", "ulimit -n 1024");
	doctor_expect(host, "address space", GW_DOCTOR_WARNING, "soft 1.00 GiB", "limits.d");
	doctor_host_put(host, "/proc/self/limits", "Max open files            256 512 files\n");
	doctor_expect(host, "open files", GW_DOCTOR_WARNING, "at most 256", "limits.d");
	doctor_expect(host, "address space", GW_DOCTOR_NOTE, "/proc/self/limits", NULL);
	doctor_host_put(host, "/proc/sys/vm/overcommit_memory", "2\n");
	doctor_expect(host, "overcommit", GW_DOCTOR_WARNING, "= 2", "sysctl -w vm.overcommit_memory=0");
}

static void limits_of_threads(void **state)
{
	struct doctor_host *host = *state;
	struct gw_probe probe = {.processors = 4, .threads = 4, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	doctor_expect(host, "threads", GW_DOCTOR_OK, "the control group may have any number; this user may have 4096",
		      NULL);
	doctor_host_put(host, "/sys/fs/cgroup/job/pids.max", "15\n");
	doctor_expect(host, "threads", GW_DOCTOR_WARNING, "may have 15, has 12 (/sys/fs/cgroup/job/pids.max)",
		      "TasksMax=");
	doctor_has(doctor_find(&host->doctor, "threads")->fix, "docker update --pids-limit");
	host->doctor.bytes = GIB;
	doctor_expect(host, "threads", GW_DOCTOR_PROBLEM, "may have 15", "TasksMax=");
	host->doctor.bytes = 0;
	/* The upper group has the least room. */
	doctor_host_put(host, "/sys/fs/cgroup/job/pids.max", "10000\n");
	doctor_host_put(host, "/sys/fs/cgroup/pids.max", "9000\n");
	doctor_host_put(host, "/sys/fs/cgroup/pids.current", "8999\n");
	doctor_expect(host, "threads", GW_DOCTOR_WARNING, "9000, has 8999 (/sys/fs/cgroup/pids.max)", "TasksMax=");
	doctor_host_remove(host, "/sys/fs/cgroup/pids.max");
	/* Version 1, as a container sees it. */
	doctor_host_put(host, "/proc/self/cgroup", "8:pids:/docker/abc\n0::/\n");
	doctor_host_put(host, "/sys/fs/cgroup/pids/pids.max", "20\n");
	doctor_host_put(host, "/sys/fs/cgroup/pids/pids.current", "19\n");
	doctor_expect(host, "threads", GW_DOCTOR_WARNING, "(/sys/fs/cgroup/pids/pids.max)", "TasksMax=");
	doctor_host_remove(host, "/sys/fs/cgroup/pids");
	/* The user's own limit does not apply to a privileged process, unless a trial shows that it does. */
	doctor_host_put(host, "/proc/self/limits", "Max processes  4 4 processes\n");
	doctor_expect(host, "threads", GW_DOCTOR_WARNING, "this user may have 4", "limits.d/graphwire-nproc.conf");
	doctor_host_put(host, "/proc/self/limits", "Max processes  4 unlimited processes\n");
	doctor_expect(host, "threads", GW_DOCTOR_WARNING, "this user may have 4", "ulimit -u unlimited");
	doctor_host_put(host, "/proc/self/status", "CapEff:\t0000000001000000\n");
	doctor_expect(host, "threads", GW_DOCTOR_OK, "this user may have 4", NULL);
	host->doctor.probe = &probe;
	doctor_expect(host, "threads", GW_DOCTOR_OK, "this user may have 4", NULL);
	probe.threads = 1;
	doctor_expect(host, "threads", GW_DOCTOR_WARNING, "1 could be started", "ulimit -u unlimited");
	host->doctor.probe = NULL;
	doctor_host_put(host, "/proc/self/limits", "rubbish\n");
	doctor_expect(host, "threads", GW_DOCTOR_NOTE, "not known", NULL);
}

static void limits_of_bytes(void **state)
{
	struct doctor_host *host = *state;
	struct gw_probe probe = {.hugetlb_free = 4096, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	doctor_host_put(host, POOL "free_hugepages", "4096\n");
	doctor_expect(host, "swap", GW_DOCTOR_OK, "2.00 GiB; Graphwire needs none", NULL);
	doctor_host_put(host, "/sys/fs/cgroup/job/memory.swap.max", "0\n");
	doctor_expect(host, "swap", GW_DOCTOR_OK, "limit is 0 B (/sys/fs/cgroup/job/memory.swap.max)", NULL);
	/* This limit counts shared memory as a file. */
	doctor_expect(host, "file size", GW_DOCTOR_OK, "soft unlimited", NULL);
	doctor_host_put(host, "/proc/self/limits", "Max file size  1073741824 unlimited bytes\n");
	doctor_expect(host, "file size", GW_DOCTOR_WARNING, "soft 1.00 GiB", "ulimit -f unlimited");
	doctor_host_put(host, "/proc/self/limits", "Max file size  1073741824 1073741824 bytes\n");
	doctor_expect(host, "file size", GW_DOCTOR_WARNING, "hard 1.00 GiB", "LimitFSIZE=infinity");
	host->doctor.bytes = 2 * GIB;
	doctor_expect(host, "file size", GW_DOCTOR_PROBLEM, "soft 1.00 GiB", "--ulimit fsize=-1");
	host->doctor.bytes = GIB;
	doctor_expect(host, "file size", GW_DOCTOR_OK, "soft 1.00 GiB", NULL);
	/* Too few addresses for the request. */
	doctor_host_put(host, "/proc/self/limits", "Max address space  1073741824 unlimited bytes\n");
	doctor_expect(host, "address space", GW_DOCTOR_PROBLEM, "soft 1.00 GiB", "ulimit -v unlimited");
	/* The group may not use the pool's pages, so they do not count as memory. */
	host->doctor.bytes = 8 * GIB;
	host->doctor.probe = &probe;
	doctor_expect(host, "huge pages of the group", GW_DOCTOR_OK, "no limit", NULL);
	doctor_expect(host, "memory", GW_DOCTOR_OK, "32.0 GiB available", NULL);
	doctor_host_put(host, "/sys/fs/cgroup/job/hugetlb.2MB.max", "1073741824\n");
	doctor_host_put(host, "/sys/fs/cgroup/job/hugetlb.2MB.current", "4194304\n");
	doctor_expect(host, "huge pages of the group", GW_DOCTOR_WARNING, "at most 1.00 GiB, 4.00 MiB in use",
		      "echo 8594128896 | sudo tee /sys/fs/cgroup/job/hugetlb.2MB.max");
	probe.collapse = true;
	doctor_expect(host, "huge pages of the group", GW_DOCTOR_NOTE, "at most 1.00 GiB", "hugepages-2Mi");
	doctor_host_put(host, "/sys/fs/cgroup/job/hugetlb.2MB.rsvd.max", "0\n");
	doctor_expect(host, "huge pages of the group", GW_DOCTOR_NOTE, "at most 0 B", "hugetlb.2MB.rsvd.max");
	probe.hugetlb_free = 0; /* the pool is empty */
	doctor_expect(host, "huge pages of the group", GW_DOCTOR_OK, "at most 0 B", NULL);
}

static void sizes_of_dev_shm(void **state)
{
	struct doctor_host *host = *state;
	static const struct {
		const char *options, *value;
		enum gw_doctor_status status;
	} cases[] = {
		{"rw", "32.0 GiB", GW_DOCTOR_OK}, /* half of the memory */
		{"rw,size=65536k,inode64", "64.0 MiB", GW_DOCTOR_NOTE},
		{"rw,size=8g", "8.00 GiB", GW_DOCTOR_OK},
		{"rw,size=1024m,huge=always", "1.00 GiB", GW_DOCTOR_OK},
		{"size=1000", "1000 B", GW_DOCTOR_NOTE},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[256];
		snprintf(text, sizeof(text),
			 "shm /dev/shm tmpfs size=1k 0 0\nshm /dev/shm tmpfs %s 0 0\nx /y z w 0 0\n", cases[i].options);
		doctor_host_put(host, "/proc/self/mounts", text);
		doctor_expect(host, "/dev/shm", cases[i].status, cases[i].value,
			      cases[i].status == GW_DOCTOR_OK ? NULL : "--shm-size 8g");
	}
	doctor_host_put(host, "/proc/self/mounts", "proc /proc proc rw 0 0\n");
	doctor_expect(host, "/dev/shm", GW_DOCTOR_NOTE, "not mounted", "emptyDir");
}

/* --- Processors, io_uring. --- */

static void processors_and_nodes(void **state)
{
	struct doctor_host *host = *state;
	doctor_expect(host, "NUMA nodes", GW_DOCTOR_OK, "0-1 online; 2 with memory", NULL);
	doctor_expect(host, "NUMA nodes", GW_DOCTOR_OK, "node1: processors 4-7, distances 21 10", NULL);
	doctor_expect(host, "processors", GW_DOCTOR_OK, "may use 0-3 of 0-7; its control group 0-3", NULL);
	doctor_host_put(host, "/proc/self/cgroup", "3:cpuset:/docker/abc\n0::/\n");
	doctor_host_put(host, "/sys/fs/cgroup/cpuset/cpuset.cpus.effective", "2\n"); /* as in a container */
	doctor_host_put(host, "/proc/self/status", "Cpus_allowed_list:\t2\n");
	doctor_expect(host, "processors", GW_DOCTOR_NOTE, "may use 2 of 0-7; its control group 2", NULL);
	doctor_host_put(host, "/proc/self/status", "Cpus_allowed_list:\t0-3\n");
	doctor_host_put(host, "/sys/fs/cgroup/cpu.max", "150000 100000\n");
	doctor_expect(host, "processors", GW_DOCTOR_OK,
		      "may use 0-3 of 0-7; its control group 2; the quota of its control groups equals 2", NULL);
	doctor_host_put(host, "/sys/fs/cgroup/cpu.max", "50000 100000\n");
	doctor_expect(host, "processors", GW_DOCTOR_NOTE, "quota of its control groups equals 1",
		      "CPUQuota=400% (a container: docker update --cpus");
}

static void polling(void **state)
{
	struct doctor_host *host = *state;
	host->doctor.spin_us = 100;
	const struct gw_doctor_finding *finding =
		doctor_expect(host, "polling", GW_DOCTOR_NOTE, "for 100 us after each event", NULL);
	assert_non_null(strstr(finding->costs, "more polling threads than processors"));
	doctor_host_put(host, "/proc/self/cgroup", "0::/\n");
	doctor_host_put(host, "/sys/fs/cgroup/cpu.max", "150000 100000\n");
	finding =
		doctor_expect(host, "polling", GW_DOCTOR_WARNING, "quota of its control groups equals 2", "CPUQuota=");
	assert_non_null(strstr(finding->costs, "stand still"));
	doctor_host_put(host, "/sys/fs/cgroup/cpu.max", "max 100000\n");
	struct gw_probe probe = {.processors = 1, .threads = 1};
	host->doctor.probe = &probe;
	doctor_expect(host, "polling", GW_DOCTOR_WARNING, "1 processors", "no --spin");
}

static void io_uring_is_forbidden(void **state)
{
	struct doctor_host *host = *state;
	struct gw_probe probe = {.io_uring_error = EPERM, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	doctor_expect(host, "io_uring", GW_DOCTOR_NOTE, "not tried", NULL);
	host->doctor.probe = &probe;
	doctor_expect(host, "io_uring", GW_DOCTOR_WARNING, "refused", "sysctl -w kernel.io_uring_disabled=0");
	doctor_expect(host, "io_uring_disabled", GW_DOCTOR_WARNING, "= 2", "sysctl -w kernel.io_uring_disabled=0");
	doctor_host_put(host, "/proc/sys/kernel/io_uring_disabled", "0\n");
	doctor_expect(host, "io_uring", GW_DOCTOR_WARNING, "refused", "seccompProfile");
	doctor_host_remove(host, "/proc/sys/kernel/io_uring_disabled"); /* before Linux 6.6 */
	doctor_expect(host, "io_uring", GW_DOCTOR_WARNING, "refused", "seccompProfile");
	probe.io_uring_error = ENOMEM;
	doctor_expect(host, "io_uring", GW_DOCTOR_WARNING, "refused", "ulimit -l unlimited");
	probe.io_uring_error = ENOSYS;
	doctor_expect(host, "io_uring", GW_DOCTOR_WARNING, "refused", "seccomp");
	probe.io_uring_error = 0;
	doctor_expect(host, "io_uring", GW_DOCTOR_WARNING, "without registered buffers", "ulimit -l unlimited");
	probe.io_uring_buffers = true;
	doctor_expect(host, "io_uring", GW_DOCTOR_OK, "works", NULL);
	probe.processors = 4;
	probe.io_uring_rings = 1;
	doctor_expect(host, "io_uring", GW_DOCTOR_WARNING, "1 of 4 threads: the limit of locked memory",
		      "ulimit -l unlimited");
	probe.io_uring_rings = 4;
	doctor_expect(host, "io_uring", GW_DOCTOR_OK, "works", NULL);
	doctor_host_put(host, "/proc/sys/kernel/io_uring_disabled", "1\n");
	doctor_host_put(host, "/proc/sys/kernel/io_uring_group", "27\n");
	doctor_expect(host, "io_uring_disabled", GW_DOCTOR_NOTE, "group 27", "sysctl");
	doctor_host_put(host, "/proc/self/status", "Seccomp:\t2\n");
	doctor_expect(host, "seccomp", GW_DOCTOR_NOTE, "filter", NULL);
}

/* --- Files that are missing, or have other content. --- */

/* The finding that reports a missing file. */
static const struct {
	const char *path, *finding;
} tellers[] = {
	{"/proc/meminfo", "memory"},
	{"/proc/self/limits", "locked memory"},
	{"/proc/self/limits", "open files"},
	{"/proc/self/limits", "address space"},
	{"/proc/self/limits", "file size"},
	{"/proc/self/limits", "threads"},
	{"/proc/self/mounts", "/dev/shm"},
	{"/proc/meminfo", "swap"},
	{"/proc/self/status", "processors"},
	{"/proc/self/status", "seccomp"},
	{"/proc/sys/vm/overcommit_memory", "overcommit"},
	{"/proc/sys/kernel/io_uring_disabled", "io_uring_disabled"},
	{"/sys/kernel/mm/transparent_hugepage/enabled", "transparent huge pages"},
	{"/sys/kernel/mm/transparent_hugepage/shmem_enabled", "transparent huge pages"},
	{"/sys/devices/system/node/online", "NUMA nodes"},
	{"/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", "huge pages node1"},
	{"/sys/devices/system/node/node1/distance", "place mlx5_0"},
	{"/sys/class/infiniband/mlx5_0/device/numa_node", "place mlx5_0"},
	{"/sys/class/infiniband/mlx5_0/node_type", "device mlx5_0"},
	{PORT "state", "port mlx5_0/1"},
};

static void what_is_missing_is_a_note(void **state)
{
	struct doctor_host *host = *state;
	for (size_t i = 0; i < doctor_file_count; i++) {
		const struct doctor_file *file = &doctor_files[i];
		doctor_host_remove(host, file->path);
		doctor_host_check(host);
		assert_true(gw_doctor_worst(&host->doctor) < GW_DOCTOR_PROBLEM);
		for (size_t t = 0; t < sizeof(tellers) / sizeof(tellers[0]); t++) {
			if (strcmp(tellers[t].path, file->path) != 0)
				continue;
			const struct gw_doctor_finding *finding = doctor_find(&host->doctor, tellers[t].finding);
			if (finding->status != GW_DOCTOR_NOTE)
				fail_msg("without %s, %s is no note: %s", file->path, finding->name, finding->value);
		}
		doctor_host_put(host, file->path, file->text);
	}
}

static void nothing_at_all_is_there(void **state)
{
	struct doctor_host *host = *state;
	doctor_host_remove(host, "/proc");
	doctor_host_remove(host, "/sys");
	doctor_host_remove(host, "/dev");
	doctor_host_check(host);
	for (uint32_t i = 0; i < host->doctor.count; i++)
		if (host->doctor.findings[i].status > GW_DOCTOR_NOTE)
			fail_msg("%s: %s", host->doctor.findings[i].name, host->doctor.findings[i].value);
	assert_true(gw_doctor_worst(&host->doctor) == GW_DOCTOR_NOTE);
}

static void rubbish_does_no_harm(void **state)
{
	struct doctor_host *host = *state;
	enum { BIG = 1 << 17 };
	char *nines = malloc(BIG), *noise = malloc(BIG), *lines = malloc(BIG);
	memset(nines, '9', BIG);
	memset(lines, '\n', BIG);
	for (size_t i = 0; i < BIG; i++)
		noise[i] = (char)(i * 2654435761u >> 13);
	const struct {
		const char *bytes;
		size_t n;
	} contents[] = {
		{"", 0},
		{"\n", 1},
		{"-1\n", 3},
		{"-9223372036854775809\n", 21},
		{"18446744073709551616\n", 21},
		{"9223372036854775807\n", 20},
		{"0x10\n", 5},
		{"12 34 56\n", 9},
		{"unlimited\n", 10},
		{"max\n", 4},
		{"0-4294967295\n", 13},
		{"../../../etc/passwd\n", 20},
		{"%s%s%n%n\n", 9},
		{"[[[]\n", 5},
		{"Max locked memory   99999999999999999999 -5 bytes\nMax open files\nMax address space x\n", 86},
		{"CapEff:\tzz\nSeccomp:\nCpus_allowed_list:\t9-1\n", 42},
		{"0::../../..\n:::\n3:cpuset\n", 25},
		{"\xff\xfe\x1b[2J\x07\n", 9},
		{nines, BIG},
		{lines, BIG},
		{noise, BIG},
	};
	for (size_t i = 0; i < doctor_file_count; i++) {
		for (size_t c = 0; c < sizeof(contents) / sizeof(contents[0]); c++) {
			doctor_host_put_bytes(host, doctor_files[i].path, contents[c].bytes, contents[c].n);
			doctor_host_check(host);
			assert_true(gw_doctor_worst(&host->doctor) < GW_DOCTOR_PROBLEM);
		}
		doctor_host_put(host, doctor_files[i].path, doctor_files[i].text);
	}
	/* All files at once; and folders in their places. */
	for (size_t c = 0; c < sizeof(contents) / sizeof(contents[0]); c++) {
		for (size_t i = 0; i < doctor_file_count; i++)
			doctor_host_put_bytes(host, doctor_files[i].path, contents[c].bytes, contents[c].n);
		doctor_host_check(host);
	}
	for (size_t i = 0; i < doctor_file_count; i++) {
		char inside[256];
		doctor_host_remove(host, doctor_files[i].path);
		snprintf(inside, sizeof(inside), "%s/folder", doctor_files[i].path);
		doctor_host_put(host, inside, "x");
	}
	doctor_host_check(host);
	assert_true(gw_doctor_worst(&host->doctor) < GW_DOCTOR_PROBLEM);
	free(nines);
	free(noise);
	free(lines);
}

static void more_devices_than_are_looked_at(void **state)
{
	struct doctor_host *host = *state;
	char path[256];
	for (unsigned i = 0; i < 3 * GW_DOCTOR_FOLDER_MAX; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/other%u/node_type", i);
		doctor_host_put(host, path, "1: CA\n");
	}
	snprintf(path, sizeof(path), "/sys/class/infiniband/%0200d/node_type", 1); /* a name that is too long */
	doctor_host_put(host, path, "1: CA\n");
	doctor_host_check(host);
	uint32_t devices = 0;
	for (uint32_t i = 0; i < host->doctor.count; i++)
		devices += strncmp(host->doctor.findings[i].name, "device ", 7) == 0;
	assert_int_equal(devices, GW_DOCTOR_FOLDER_MAX);
}

/* --- This host. --- */

static void this_host(void **state)
{
	(void)state;
	static struct gw_probe probe;
	struct doctor_host host = {.doctor = {.root = "", .probe = &probe}};
	gw_probe_read(&probe);
	doctor_host_check(&host);
	assert_true(gw_doctor_worst(&host.doctor) < GW_DOCTOR_PROBLEM);
	doctor_find(&host.doctor, "sealed memory");
	doctor_has(doctor_find(&host.doctor, "tcp")->value, "64 bytes");
	gw_doctor_free(&host.doctor);
}

static int look_without_sealing(void *context)
{
	struct doctor_host *host = context;
	host->doctor.count = 0;
	gw_doctor_host(&host->doctor);
	const struct gw_doctor_finding *finding = doctor_find(&host->doctor, "sealed memory");
	return finding->status == GW_DOCTOR_WARNING && finding->costs[0] && finding->fix[0] ? 0 : 1;
}

static void memory_that_cannot_be_sealed(void **state)
{
	struct doctor_host *host = *state;
	struct gw_probe probe = {.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	const struct sandbox_rule none = {.call = SYS_memfd_create, .error = EPERM};
	const struct sandbox_rule unsealed = {
		.call = SYS_fcntl, .argument = 1, .bits = ~0u, .value = 1033, .error = EINVAL};
	host->doctor.probe = &probe;
	doctor_expect(host, "sealed memory", GW_DOCTOR_OK, "works", NULL);
	assert_int_equal(sandbox_run(&none, 1, false, look_without_sealing, host), 0);
	assert_int_equal(sandbox_run(&unsealed, 1, false, look_without_sealing, host), 0); /* F_ADD_SEALS */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DOCTOR_TEST(memory_is_asked_for),
		DOCTOR_TEST(the_doctor_says_what_a_server_does),
		DOCTOR_TEST(locked_memory_is_judged_by_need),
		DOCTOR_TEST(huge_pages_are_counted_by_node),
		DOCTOR_TEST(limits_of_the_process),
		DOCTOR_TEST(limits_of_threads),
		DOCTOR_TEST(limits_of_bytes),
		DOCTOR_TEST(sizes_of_dev_shm),
		DOCTOR_TEST(processors_and_nodes),
		DOCTOR_TEST(polling),
		DOCTOR_TEST(io_uring_is_forbidden),
		DOCTOR_TEST(what_is_missing_is_a_note),
		DOCTOR_TEST(nothing_at_all_is_there),
		DOCTOR_TEST(rubbish_does_no_harm),
		DOCTOR_TEST(more_devices_than_are_looked_at),
		cmocka_unit_test(this_host),
		DOCTOR_TEST(memory_that_cannot_be_sealed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
