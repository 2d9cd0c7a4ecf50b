/* What graphwire doctor finds on hosts that are made of files: the right judgement, the right command, and of files
 * that are missing or full of rubbish nothing worse than a note. */
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

#include "core/system/parallel.h"
#include "server/footprint.h"
#include "test/support/doctor_host.h"
#include "test/support/sandbox.h"

#define GIB  (1ull << 30)
#define PORT "/sys/class/infiniband/mlx5_0/ports/1/"

static int begin(void **state)
{
	struct doctor_host *host = calloc(1, sizeof(*host));
	doctor_host_make(host);
	*state = host;
	return 0;
}

static int end(void **state)
{
	doctor_host_end(*state);
	free(*state);
	return 0;
}

/* Runs the checks and looks at one finding. fix: part of it; NULL: none. */
static const struct gw_doctor_finding *expect(struct doctor_host *host, const char *name, enum gw_doctor_status status,
					      const char *value, const char *fix)
{
	doctor_host_check(host);
	const struct gw_doctor_finding *finding = doctor_find(&host->doctor, name);
	if (finding->status != status)
		fail_msg("%s: status %d, not %d: %s", name, finding->status, status, finding->value);
	doctor_has(finding->value, value);
	if (fix)
		doctor_has(finding->fix, fix);
	else
		assert_string_equal(finding->fix, "");
	return finding;
}

static double figure_of(const struct gw_doctor_finding *finding, const char *name)
{
	for (int i = 0; i < GW_DOCTOR_FIGURES_MAX && finding->figures[i].name; i++)
		if (strcmp(finding->figures[i].name, name) == 0)
			return finding->figures[i].value;
	fail_msg("%s has no figure %s", finding->name, name);
	return 0;
}

/* --- Memory. --- */

static void memory_is_asked_for(void **state)
{
	struct doctor_host *host = *state;
	expect(host, "memory", GW_DOCTOR_OK, "32.0 GiB available of 64.0 GiB", NULL);
	host->doctor.bytes = 31 * GIB;
	expect(host, "memory", GW_DOCTOR_OK, "32.0 GiB", NULL);
	/* The arrays fit, and what a server takes besides does not. */
	host->doctor.bytes = 32 * GIB;
	doctor_has(expect(host, "memory", GW_DOCTOR_PROBLEM, "32.0 GiB", "graphwire partition")->costs,
		   "when clients connect");
	host->doctor.bytes = 33 * GIB;
	doctor_has(expect(host, "memory", GW_DOCTOR_PROBLEM, "32.0 GiB", "graphwire partition")->costs, "refused");
	assert_int_equal(gw_doctor_worst(&host->doctor), GW_DOCTOR_PROBLEM);
	/* A trainer has some of it. */
	doctor_host_put(host, "/proc/70/maps", "1000-2000 r--s 00000000 00:01 77  /memfd:graphwire-part (deleted)\n");
	doctor_host_put(host, "/proc/70/cmdline", "python3");
	doctor_has(expect(host, "memory", GW_DOCTOR_PROBLEM, "32.0 GiB", "graphwire partition")->costs,
		   "process 70 (python3) still maps");
	doctor_host_remove(host, "/proc/70");
	doctor_host_put(host, "/sys/fs/cgroup/job/memory.max", "10737418240\n"); /* 10 GiB, nothing used */
	const struct gw_doctor_finding *finding =
		expect(host, "memory", GW_DOCTOR_PROBLEM,
		       "control group's limit of 10.0 GiB (/sys/fs/cgroup/job/memory.max)", "MemoryMax=");
	doctor_has(finding->fix, "docker update --memory ");
	uint64_t limit = strtoull(strstr(finding->fix, "MemoryMax=") + strlen("MemoryMax="), NULL, 10);
	assert_in_range(limit, gw_server_footprint(33 * GIB, gw_processors(), 0), 34 * GIB);
	/* What is advised is enough. */
	char text[32];
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)limit);
	doctor_host_put(host, "/proc/meminfo", "MemTotal: 68719476736 kB\nMemAvailable: 68719476736 kB\n");
	doctor_host_put(host, "/sys/fs/cgroup/job/memory.max", text);
	expect(host, "memory", GW_DOCTOR_OK, "control group's limit", NULL);
	doctor_host_put(host, "/sys/fs/cgroup/job/memory.max", "10737418240\n");
	/* Memory that is in the pool already serves. */
	struct gw_probe probe = {.hugetlb_free = 33 * 512};
	host->doctor.probe = &probe;
	probe.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	expect(host, "memory", GW_DOCTOR_OK, "10.0 GiB", NULL);
}

static void locked_memory_is_judged_by_need(void **state)
{
	struct doctor_host *host = *state;
	const char *limits = "Max locked memory         %s %s bytes\n";
	char text[256];
	expect(host, "locked memory", GW_DOCTOR_WARNING, "soft 64.0 KiB, hard 64.0 KiB", "/etc/security/limits.d");
	snprintf(text, sizeof(text), limits, "65536", "unlimited");
	doctor_host_put(host, "/proc/self/limits", text);
	expect(host, "locked memory", GW_DOCTOR_WARNING, "hard unlimited", "ulimit -l unlimited");
	snprintf(text, sizeof(text), limits, "unlimited", "unlimited");
	doctor_host_put(host, "/proc/self/limits", text);
	expect(host, "locked memory", GW_DOCTOR_OK, "soft unlimited", NULL);
	/* 1 GiB is enough for a client, and for a part that is smaller. */
	snprintf(text, sizeof(text), limits, "1073741824", "1073741824");
	doctor_host_put(host, "/proc/self/limits", text);
	expect(host, "locked memory", GW_DOCTOR_OK, "1.00 GiB", NULL);
	host->doctor.bytes = 2 * GIB;
	doctor_has(expect(host, "locked memory", GW_DOCTOR_WARNING, "a server 2.00 GiB", "limits.d")->costs,
		   "register");
	/* CAP_IPC_LOCK is bit 14. */
	doctor_host_put(host, "/proc/self/status", "CapEff:\t0000000000004000\n");
	expect(host, "locked memory", GW_DOCTOR_OK, "not binding", NULL);
	doctor_host_put(host, "/proc/self/status", "CapEff:\tffffffffffffbfff\n");
	expect(host, "locked memory", GW_DOCTOR_WARNING, "soft", "limits.d");
	/* A host without a device locks nothing for one. */
	doctor_host_remove(host, "/sys/class/infiniband");
	expect(host, "locked memory", GW_DOCTOR_NOTE, "soft", "limits.d");
}

static void huge_pages_are_counted_by_node(void **state)
{
	struct doctor_host *host = *state;
	expect(host, "huge pages node0", GW_DOCTOR_WARNING, "2 MiB: 0 free of 0", "node0/hugepages/hugepages-2048kB");
	expect(host, "huge pages node1", GW_DOCTOR_OK, "2 MiB: 40 free of 100; 1 GiB: 3 free of 4", NULL);
	/* 5 GiB are 1280 pages a node: 40 of node 1's are free, 60 lent out. */
	host->doctor.bytes = 5 * GIB;
	expect(host, "huge pages node0", GW_DOCTOR_WARNING, "0 free", "echo 1280 | sudo tee");
	expect(host, "huge pages node1", GW_DOCTOR_WARNING, "40 free",
	       "echo 1340 | sudo tee /sys/devices/system/node/node1/");
	struct gw_probe probe = {.collapse = true, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	host->doctor.probe = &probe;
	expect(host, "huge pages node1", GW_DOCTOR_NOTE, "transparent", "echo 1340 |");
	host->doctor.bytes = 0;
	expect(host, "huge pages node0", GW_DOCTOR_OK, "transparent", NULL);
	expect(host, "transparent huge pages", GW_DOCTOR_OK, "for shared memory never", NULL);
	probe.collapse = false;
	expect(host, "transparent huge pages", GW_DOCTOR_WARNING, "never", "echo advise | sudo tee");
	doctor_host_put(host, "/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always [advise] never\n");
	expect(host, "transparent huge pages", GW_DOCTOR_OK, "for shared memory advise", NULL);
}

static void limits_of_the_process(void **state)
{
	struct doctor_host *host = *state;
	expect(host, "open files", GW_DOCTOR_OK, "at most 1024", NULL);
	expect(host, "address space", GW_DOCTOR_OK, "unlimited", NULL);
	expect(host, "overcommit", GW_DOCTOR_OK, "= 0", NULL);
	doctor_host_put(host, "/proc/self/limits",
			"Max open files            256 4096 files\nMax address space  1073741824 1073741824 bytes\n");
	expect(host, "open files", GW_DOCTOR_NOTE, "at most 256", "ulimit -n 1024");
	expect(host, "address space", GW_DOCTOR_WARNING, "soft 1.00 GiB", "limits.d");
	doctor_host_put(host, "/proc/self/limits", "Max open files            256 512 files\n");
	expect(host, "open files", GW_DOCTOR_WARNING, "at most 256", "limits.d");
	expect(host, "address space", GW_DOCTOR_NOTE, "/proc/self/limits", NULL);
	doctor_host_put(host, "/proc/sys/vm/overcommit_memory", "2\n");
	expect(host, "overcommit", GW_DOCTOR_WARNING, "= 2", "sysctl -w vm.overcommit_memory=0");
}

/* Each limit is judged by need, in the group where least is left, and named with its file. */
static void limits_of_threads(void **state)
{
	struct doctor_host *host = *state;
	struct gw_probe probe = {.processors = 4, .threads = 4, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	expect(host, "threads", GW_DOCTOR_OK, "the control group may have any number; this user may have 4096", NULL);
	doctor_host_put(host, "/sys/fs/cgroup/job/pids.max", "15\n");
	expect(host, "threads", GW_DOCTOR_WARNING, "may have 15, has 12 (/sys/fs/cgroup/job/pids.max)", "TasksMax=");
	doctor_has(doctor_find(&host->doctor, "threads")->fix, "docker update --pids-limit");
	host->doctor.bytes = GIB;
	expect(host, "threads", GW_DOCTOR_PROBLEM, "may have 15", "TasksMax=");
	host->doctor.bytes = 0;
	/* The one above binds. */
	doctor_host_put(host, "/sys/fs/cgroup/job/pids.max", "10000\n");
	doctor_host_put(host, "/sys/fs/cgroup/pids.max", "9000\n");
	doctor_host_put(host, "/sys/fs/cgroup/pids.current", "8999\n");
	expect(host, "threads", GW_DOCTOR_WARNING, "9000, has 8999 (/sys/fs/cgroup/pids.max)", "TasksMax=");
	doctor_host_remove(host, "/sys/fs/cgroup/pids.max");
	/* Version 1, as a container sees it. */
	doctor_host_put(host, "/proc/self/cgroup", "8:pids:/docker/abc\n0::/\n");
	doctor_host_put(host, "/sys/fs/cgroup/pids/pids.max", "20\n");
	doctor_host_put(host, "/sys/fs/cgroup/pids/pids.current", "19\n");
	expect(host, "threads", GW_DOCTOR_WARNING, "(/sys/fs/cgroup/pids/pids.max)", "TasksMax=");
	doctor_host_remove(host, "/sys/fs/cgroup/pids");
	/* The user's own limit; who may pass it is not bound, unless a trial says so. */
	doctor_host_put(host, "/proc/self/limits", "Max processes  4 4 processes\n");
	expect(host, "threads", GW_DOCTOR_WARNING, "this user may have 4", "limits.d/graphwire-nproc.conf");
	doctor_host_put(host, "/proc/self/limits", "Max processes  4 unlimited processes\n");
	expect(host, "threads", GW_DOCTOR_WARNING, "this user may have 4", "ulimit -u unlimited");
	doctor_host_put(host, "/proc/self/status", "CapEff:\t0000000001000000\n");
	expect(host, "threads", GW_DOCTOR_OK, "this user may have 4", NULL);
	host->doctor.probe = &probe;
	expect(host, "threads", GW_DOCTOR_OK, "this user may have 4", NULL);
	probe.threads = 1;
	expect(host, "threads", GW_DOCTOR_WARNING, "1 could be started", "ulimit -u unlimited");
	host->doctor.probe = NULL;
	doctor_host_put(host, "/proc/self/limits", "rubbish\n");
	expect(host, "threads", GW_DOCTOR_NOTE, "not known", NULL);
}

static void limits_of_bytes(void **state)
{
	struct doctor_host *host = *state;
	struct gw_probe probe = {.hugetlb_free = 4096, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	expect(host, "swap", GW_DOCTOR_OK, "2.00 GiB; Graphwire needs none", NULL);
	doctor_host_put(host, "/sys/fs/cgroup/job/memory.swap.max", "0\n");
	expect(host, "swap", GW_DOCTOR_OK, "limit is 0 B (/sys/fs/cgroup/job/memory.swap.max)", NULL);
	/* Shared memory is a file to this limit. */
	expect(host, "file size", GW_DOCTOR_OK, "soft unlimited", NULL);
	doctor_host_put(host, "/proc/self/limits", "Max file size  1073741824 unlimited bytes\n");
	expect(host, "file size", GW_DOCTOR_WARNING, "soft 1.00 GiB", "ulimit -f unlimited");
	doctor_host_put(host, "/proc/self/limits", "Max file size  1073741824 1073741824 bytes\n");
	expect(host, "file size", GW_DOCTOR_WARNING, "hard 1.00 GiB", "LimitFSIZE=infinity");
	host->doctor.bytes = 2 * GIB;
	expect(host, "file size", GW_DOCTOR_PROBLEM, "soft 1.00 GiB", "--ulimit fsize=-1");
	host->doctor.bytes = GIB;
	expect(host, "file size", GW_DOCTOR_OK, "soft 1.00 GiB", NULL);
	/* Not enough addresses for what is asked for. */
	doctor_host_put(host, "/proc/self/limits", "Max address space  1073741824 unlimited bytes\n");
	expect(host, "address space", GW_DOCTOR_PROBLEM, "soft 1.00 GiB", "ulimit -v unlimited");
	/* The pool has pages that the group has no right to: they do not count as memory either. */
	host->doctor.bytes = 8 * GIB;
	host->doctor.probe = &probe;
	expect(host, "huge pages of the group", GW_DOCTOR_OK, "no limit", NULL);
	expect(host, "memory", GW_DOCTOR_OK, "32.0 GiB available", NULL);
	doctor_host_put(host, "/sys/fs/cgroup/job/hugetlb.2MB.max", "1073741824\n");
	doctor_host_put(host, "/sys/fs/cgroup/job/hugetlb.2MB.current", "4194304\n");
	expect(host, "huge pages of the group", GW_DOCTOR_WARNING, "at most 1.00 GiB, 4.00 MiB in use",
	       "echo 8594128896 | sudo tee /sys/fs/cgroup/job/hugetlb.2MB.max");
	probe.collapse = true;
	expect(host, "huge pages of the group", GW_DOCTOR_NOTE, "at most 1.00 GiB", "hugepages-2Mi");
	doctor_host_put(host, "/sys/fs/cgroup/job/hugetlb.2MB.rsvd.max", "0\n");
	expect(host, "huge pages of the group", GW_DOCTOR_NOTE, "at most 0 B", "hugetlb.2MB.rsvd.max");
	probe.hugetlb_free = 0; /* there is nothing to have */
	expect(host, "huge pages of the group", GW_DOCTOR_OK, "at most 0 B", NULL);
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
		expect(host, "/dev/shm", cases[i].status, cases[i].value,
		       cases[i].status == GW_DOCTOR_OK ? NULL : "--shm-size 8g");
	}
	doctor_host_put(host, "/proc/self/mounts", "proc /proc proc rw 0 0\n");
	expect(host, "/dev/shm", GW_DOCTOR_NOTE, "not mounted", "emptyDir");
}

static void limits_of_devices(void **state)
{
	struct doctor_host *host = *state;
	expect(host, "group mlx5_0", GW_DOCTOR_OK, "no limit of a control group", NULL);
	doctor_host_put(host, "/sys/fs/cgroup/job/rdma.max", "mlx5_01 hca_handle=1 hca_object=1\n");
	expect(host, "group mlx5_0", GW_DOCTOR_OK, "no limit", NULL);
	doctor_host_put(host, "/sys/fs/cgroup/job/rdma.max",
			"mlx5_1 hca_handle=1\nmlx5_0 hca_handle=8 hca_object=64\n");
	expect(host, "group mlx5_0", GW_DOCTOR_WARNING,
	       "contexts: 8, queues and registrations: 64 (/sys/fs/cgroup/job/rdma.max)",
	       "echo 'mlx5_0 hca_handle=max hca_object=max' | sudo tee /sys/fs/cgroup/job/rdma.max");
	doctor_host_put(host, "/sys/fs/cgroup/job/rdma.max", "mlx5_0 hca_handle=8 hca_object=20000\n");
	expect(host, "group mlx5_0", GW_DOCTOR_OK, "20000", NULL);
}

/* --- Processors, io_uring. --- */

static void processors_and_nodes(void **state)
{
	struct doctor_host *host = *state;
	expect(host, "NUMA nodes", GW_DOCTOR_OK, "0-1 online; 2 with memory", NULL);
	expect(host, "NUMA nodes", GW_DOCTOR_OK, "node1: processors 4-7, distances 21 10", NULL);
	expect(host, "processors", GW_DOCTOR_OK, "may use 0-3 of 0-7; its control group 0-3", NULL);
	doctor_host_put(host, "/proc/self/cgroup", "3:cpuset:/docker/abc\n0::/\n");
	doctor_host_put(host, "/sys/fs/cgroup/cpuset/cpuset.cpus.effective", "2\n"); /* as a container sees its own */
	doctor_host_put(host, "/proc/self/status", "Cpus_allowed_list:\t2\n");
	expect(host, "processors", GW_DOCTOR_NOTE, "may use 2 of 0-7; its control group 2", NULL);
	doctor_host_put(host, "/proc/self/status", "Cpus_allowed_list:\t0-3\n");
	doctor_host_put(host, "/sys/fs/cgroup/cpu.max", "150000 100000\n");
	expect(host, "processors", GW_DOCTOR_OK,
	       "may use 0-3 of 0-7; its control group 2; its control groups' quota is worth 2", NULL);
	doctor_host_put(host, "/sys/fs/cgroup/cpu.max", "50000 100000\n");
	expect(host, "processors", GW_DOCTOR_NOTE, "quota is worth 1",
	       "CPUQuota=400% (a container: docker update --cpus");
}

static void io_uring_is_forbidden(void **state)
{
	struct doctor_host *host = *state;
	struct gw_probe probe = {.io_uring_error = EPERM, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	expect(host, "io_uring", GW_DOCTOR_NOTE, "not tried", NULL);
	host->doctor.probe = &probe;
	expect(host, "io_uring", GW_DOCTOR_WARNING, "refused", "sysctl -w kernel.io_uring_disabled=0");
	expect(host, "io_uring_disabled", GW_DOCTOR_WARNING, "= 2", "sysctl -w kernel.io_uring_disabled=0");
	doctor_host_put(host, "/proc/sys/kernel/io_uring_disabled", "0\n");
	expect(host, "io_uring", GW_DOCTOR_WARNING, "refused", "seccompProfile");
	doctor_host_remove(host, "/proc/sys/kernel/io_uring_disabled"); /* before Linux 6.6 */
	expect(host, "io_uring", GW_DOCTOR_WARNING, "refused", "seccompProfile");
	probe.io_uring_error = ENOMEM;
	expect(host, "io_uring", GW_DOCTOR_WARNING, "refused", "ulimit -l unlimited");
	probe.io_uring_error = ENOSYS;
	expect(host, "io_uring", GW_DOCTOR_WARNING, "refused", "seccomp");
	probe.io_uring_error = 0;
	expect(host, "io_uring", GW_DOCTOR_WARNING, "without registered buffers", "ulimit -l unlimited");
	probe.io_uring_buffers = true;
	expect(host, "io_uring", GW_DOCTOR_OK, "works", NULL);
	probe.processors = 4;
	probe.io_uring_rings = 1;
	expect(host, "io_uring", GW_DOCTOR_WARNING, "1 of 4 threads: the limit of locked memory",
	       "ulimit -l unlimited");
	probe.io_uring_rings = 4;
	expect(host, "io_uring", GW_DOCTOR_OK, "works", NULL);
	doctor_host_put(host, "/proc/sys/kernel/io_uring_disabled", "1\n");
	doctor_host_put(host, "/proc/sys/kernel/io_uring_group", "27\n");
	expect(host, "io_uring_disabled", GW_DOCTOR_NOTE, "group 27", "sysctl");
	doctor_host_put(host, "/proc/self/status", "Seccomp:\t2\n");
	expect(host, "seccomp", GW_DOCTOR_NOTE, "filter", NULL);
}

/* --- RDMA. --- */

static void a_device_far_away(void **state)
{
	struct doctor_host *host = *state;
	expect(host, "device mlx5_0", GW_DOCTOR_OK, "firmware 16.35.2000", NULL);
	const struct gw_doctor_finding *place =
		expect(host, "place mlx5_0", GW_DOCTOR_WARNING, "on node1", "numactl --cpunodebind=1");
	assert_true(figure_of(place, "node") == 1 && figure_of(place, "distance") == 21);
	doctor_host_put(host, "/proc/self/status", "Cpus_allowed_list:\t0-1,7\n");
	assert_true(figure_of(expect(host, "place mlx5_0", GW_DOCTOR_OK, "distance 10", NULL), "distance") == 10);
	doctor_host_put(host, "/sys/class/infiniband/mlx5_0/device/numa_node", "-1\n");
	expect(host, "place mlx5_0", GW_DOCTOR_OK, "no NUMA node is nearer", NULL);
	expect(host, "slot mlx5_0", GW_DOCTOR_NOTE, "8 lanes of 8.0 GT/s PCIe; the card has 16 of 16.0", NULL);
	expect(host, "on-demand paging mlx5_0", GW_DOCTOR_OK, "yes, for one-sided reads", NULL);
	const struct gw_doctor_finding *reads = expect(host, "reads mlx5_0", GW_DOCTOR_OK, "16 as the reader", NULL);
	assert_true(figure_of(reads, "max_qp_rd_atom") == 16 && figure_of(reads, "max_qp_init_rd_atom") == 16);
	host->report.reads_as_server = 4;
	expect(host, "reads mlx5_0", GW_DOCTOR_NOTE, "4 as the server", NULL);
	host->report.reads_as_server = 0;
	expect(host, "reads mlx5_0", GW_DOCTOR_WARNING, "0 as the server", NULL);
	host->report.error = EACCES;
	expect(host, "device mlx5_0", GW_DOCTOR_WARNING, "cannot be opened: Permission denied",
	       "ibv_devinfo -d mlx5_0");
	strcpy(host->report.name, "mlx5_1");
	expect(host, "device mlx5_0", GW_DOCTOR_WARNING, "libibverbs does not know it", "ibverbs-providers");
	host->doctor.report_count = 0;
	host->doctor.no_reports = "Graphwire was built without RDMA";
	expect(host, "libibverbs", GW_DOCTOR_WARNING, "built without RDMA", "apt install");
	host->doctor.no_reports = "RDMA: libibverbs.so.1: not installed; sudo apt install it";
	host->doctor.no_libraries = true;
	expect(host, "libibverbs", GW_DOCTOR_WARNING, "not installed", "apt install");
	expect(host, "MTU mlx5_0/1", GW_DOCTOR_NOTE, "not known", NULL);
}

static void a_port_and_its_addresses(void **state)
{
	struct doctor_host *host = *state;
	expect(host, "port mlx5_0/1", GW_DOCTOR_OK, "4: ACTIVE, Ethernet, 100 Gb/sec (4X EDR), interface ens1f0", NULL);
	const struct gw_doctor_finding *mtu =
		expect(host, "MTU mlx5_0/1", GW_DOCTOR_NOTE, "1024 active, 4096 at most; ens1f0: 1500",
		       "ip link set dev ens1f0");
	assert_true(figure_of(mtu, "active_mtu") == 1024 && figure_of(mtu, "max_mtu") == 4096);
	expect(host, "GIDs mlx5_0/1", GW_DOCTOR_OK, "0: fe80::ba59:9fff:fe01:203 (IB/RoCE v1)", NULL);
	expect(host, "GIDs mlx5_0/1", GW_DOCTOR_OK, "3: 10.0.3.1 (RoCE v2)", NULL);
	doctor_host_put(host, PORT "gid_attrs/types/3", "IB/RoCE v1\n");
	expect(host, "GIDs mlx5_0/1", GW_DOCTOR_WARNING, "10.0.3.1", "ip addr add ADDRESS/24 dev ens1f0");
	doctor_host_put(host, PORT "gid_attrs/types/1", "IB/RoCE v1\n");
	doctor_has(expect(host, "GIDs mlx5_0/1", GW_DOCTOR_WARNING, "10.0.3.1", "ens1f0")->costs, "RoCE v1");
	for (int n = 0; n < 4; n++) {
		char path[128];
		snprintf(path, sizeof(path), PORT "gids/%d", n);
		doctor_host_remove(host, path);
	}
	expect(host, "GIDs mlx5_0/1", GW_DOCTOR_WARNING, "none", "ens1f0");
	doctor_host_remove(host, PORT "gids");
	expect(host, "GIDs mlx5_0/1", GW_DOCTOR_NOTE, "cannot be read", NULL);
	doctor_host_put(host, PORT "state", "1: DOWN\n");
	expect(host, "port mlx5_0/1", GW_DOCTOR_WARNING, "1: DOWN", "ip link set dev ens1f0 up");
	/* A name that would be another command. */
	doctor_host_put(host, PORT "gid_attrs/ndevs/0", "x;reboot\n");
	expect(host, "port mlx5_0/1", GW_DOCTOR_WARNING, "1: DOWN", "NETDEV");
	doctor_host_put(host, PORT "link_layer", "InfiniBand\n");
	doctor_host_put(host, PORT "state", "2: INIT\n");
	expect(host, "port mlx5_0/1", GW_DOCTOR_WARNING, "INIT, InfiniBand", "opensm");
}

static void more_addresses_than_are_shown(void **state)
{
	struct doctor_host *host = *state;
	char path[128], text[64];
	for (unsigned i = 0; i < 256; i++) {
		snprintf(path, sizeof(path), PORT "gids/%u", i);
		snprintf(text, sizeof(text), "0000:0000:0000:0000:0000:ffff:0a00:%04x\n", i + 1);
		doctor_host_put(host, path, text);
	}
	expect(host, "GIDs mlx5_0/1", GW_DOCTOR_OK, "and 248 more", NULL);
}

static void modules_and_device_files(void **state)
{
	struct doctor_host *host = *state;
	expect(host, "RDMA modules", GW_DOCTOR_OK, "ib_uverbs there, rdma_ucm there", NULL);
	expect(host, "/dev/infiniband", GW_DOCTOR_OK, "rdma_cm, uverbs0", NULL);
	doctor_host_remove(host, "/sys/module/rdma_ucm");
	expect(host, "RDMA modules", GW_DOCTOR_WARNING, "rdma_ucm missing", "modprobe -a ib_uverbs rdma_ucm");
	doctor_host_remove(host, "/dev/infiniband/rdma_cm");
	expect(host, "/dev/infiniband", GW_DOCTOR_WARNING, "uverbs0", "modprobe");
	doctor_host_remove(host, "/dev/infiniband");
	expect(host, "/dev/infiniband", GW_DOCTOR_WARNING, "no such folder", "--device=/dev/infiniband");
	doctor_host_put(host, "/sys/bus/pci/devices/0000:3b:00.0/vendor", "0x15b3\n");
	doctor_host_put(host, "/sys/bus/pci/devices/0000:3b:00.0/class", "0x020000\n");
	expect(host, "RDMA modules", GW_DOCTOR_WARNING, "1 card without", "modprobe -a mlx5_ib");
	doctor_host_put(host, "/sys/bus/pci/devices/0000:3b:00.0/infiniband/mlx5_0/x", "");
	doctor_host_put(host, "/sys/bus/pci/devices/0000:3c:00.0/vendor", "0x15b3\n");
	doctor_host_put(host, "/sys/bus/pci/devices/0000:3c:00.0/class", "0x060400\n"); /* a bridge */
	expect(host, "RDMA modules", GW_DOCTOR_WARNING, "rdma_ucm missing", "modprobe -a ib_uverbs");
	/* An ordinary host without RDMA. */
	doctor_host_remove(host, "/sys/class/infiniband");
	doctor_host_remove(host, "/sys/class/infiniband_verbs");
	expect(host, "RDMA modules", GW_DOCTOR_NOTE, "ib_uverbs missing", "modprobe");
	expect(host, "/dev/infiniband", GW_DOCTOR_NOTE, "no such folder", NULL);
	expect(host, "devices", GW_DOCTOR_NOTE, "no RDMA device", "rdma link add");
	host->doctor.no_reports = "RDMA: libibverbs.so.1: not installed; sudo apt install it";
	host->doctor.no_libraries = true;
	expect(host, "libibverbs", GW_DOCTOR_NOTE, "not installed", "apt install");
}

static int look_at_closed_files(void *context)
{
	struct doctor_host *host = context;
	host->doctor.count = 0;
	gw_doctor_host(&host->doctor);
	const struct gw_doctor_finding *finding = doctor_find(&host->doctor, "/dev/infiniband");
	return finding->status == GW_DOCTOR_WARNING && strstr(finding->value, "uverbs0 (closed to you)") &&
			       !strstr(finding->value, "rdma_cm (closed") && strstr(finding->fix, "chmod 0666")
		       ? 0
		       : 1;
}

static void device_files_of_others(void **state)
{
	struct doctor_host *host = *state;
	char path[128];
	assert_int_equal(chmod(host->root, 0755), 0);
	snprintf(path, sizeof(path), "%s/dev/infiniband/rdma_cm", host->root);
	assert_int_equal(chmod(path, 0666), 0);
	snprintf(path, sizeof(path), "%s/dev/infiniband/uverbs0", host->root);
	assert_int_equal(chmod(path, 0600), 0);
	if (geteuid() == 0)
		assert_int_equal(sandbox_run(NULL, 0, true, look_at_closed_files, host), 0);
	else
		skip();
}

/* --- Files that are not there, or full of something else. --- */

/* Which finding tells that a file is missing. */
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
	/* All of them at once, and folders in the place of files. */
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

/* --- This host, as it is. --- */

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
	expect(host, "sealed memory", GW_DOCTOR_OK, "works", NULL);
	assert_int_equal(sandbox_run(&none, 1, false, look_without_sealing, host), 0);
	assert_int_equal(sandbox_run(&unsealed, 1, false, look_without_sealing, host), 0); /* F_ADD_SEALS */
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(memory_is_asked_for),
		TEST(locked_memory_is_judged_by_need),
		TEST(huge_pages_are_counted_by_node),
		TEST(limits_of_the_process),
		TEST(limits_of_threads),
		TEST(limits_of_bytes),
		TEST(sizes_of_dev_shm),
		TEST(limits_of_devices),
		TEST(processors_and_nodes),
		TEST(io_uring_is_forbidden),
		TEST(a_device_far_away),
		TEST(a_port_and_its_addresses),
		TEST(more_addresses_than_are_shown),
		TEST(modules_and_device_files),
		TEST(device_files_of_others),
		TEST(what_is_missing_is_a_note),
		TEST(nothing_at_all_is_there),
		TEST(rubbish_does_no_harm),
		TEST(more_devices_than_are_looked_at),
		cmocka_unit_test(this_host),
		TEST(memory_that_cannot_be_sealed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
