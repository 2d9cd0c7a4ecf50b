/* See doctor_host.h. */
#include "test/support/doctor_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "test/support/scratch.h"

#define NODE   "/sys/devices/system/node/"
#define DEVICE "/sys/class/infiniband/mlx5_0/"
#define PORT   DEVICE "ports/1/"

const struct doctor_file doctor_files[] = {
	{"/proc/meminfo", "MemTotal:       67108864 kB\nMemAvailable:   33554432 kB\nSwapTotal:       2097152 kB\n"},
	{"/proc/self/limits", "Limit                     Soft Limit           Hard Limit           Units     \n"
			      "Max address space         unlimited            unlimited            bytes     \n"
			      "Max file size             unlimited            unlimited            bytes     \n"
			      "Max processes             4096                 8192                 processes \n"
			      "Max open files            1024                 524288               files     \n"
			      "Max locked memory         65536                65536                bytes     \n"},
	{"/proc/self/status", "Name:\tgraphwire\nCapEff:\t0000000000000000\nSeccomp:\t0\nCpus_allowed_list:\t0-3\n"
			      "Mems_allowed_list:\t0-1\n"},
	{"/proc/self/cgroup", "0::/job\n"},
	{"/proc/self/mounts", "sysfs /sys sysfs rw,nosuid 0 0\ntmpfs /dev/shm tmpfs rw,nosuid,nodev,inode64 0 0\n"},
	{"/sys/fs/cgroup/job/pids.max", "max\n"},
	{"/sys/fs/cgroup/job/pids.current", "12\n"},
	{"/sys/fs/cgroup/job/memory.swap.max", "max\n"},
	{"/sys/fs/cgroup/job/hugetlb.2MB.max", "max\n"},
	{"/sys/fs/cgroup/job/rdma.max", "mlx5_0 hca_handle=max hca_object=max\n"},
	{"/proc/sys/vm/overcommit_memory", "0\n"},
	{"/proc/sys/kernel/io_uring_disabled", "2\n"},
	{"/sys/fs/cgroup/job/cpuset.cpus.effective", "0-3\n"},
	{"/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"},
	{"/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size advise [never] deny force\n"},
	{"/sys/devices/system/cpu/online", "0-7\n"},
	{NODE "online", "0-1\n"},
	{NODE "has_memory", "0-1\n"},
	{NODE "node0/cpulist", "0-3\n"},
	{NODE "node0/distance", "10 21\n"},
	{NODE "node0/hugepages/hugepages-2048kB/nr_hugepages", "0\n"},
	{NODE "node0/hugepages/hugepages-2048kB/free_hugepages", "0\n"},
	{NODE "node0/hugepages/hugepages-1048576kB/nr_hugepages", "0\n"},
	{NODE "node0/hugepages/hugepages-1048576kB/free_hugepages", "0\n"},
	{NODE "node1/cpulist", "4-7\n"},
	{NODE "node1/distance", "21 10\n"},
	{NODE "node1/hugepages/hugepages-2048kB/nr_hugepages", "100\n"},
	{NODE "node1/hugepages/hugepages-2048kB/free_hugepages", "40\n"},
	{NODE "node1/hugepages/hugepages-1048576kB/nr_hugepages", "4\n"},
	{NODE "node1/hugepages/hugepages-1048576kB/free_hugepages", "3\n"},
	{"/sys/class/infiniband_verbs/abi_version", "6\n"},
	{"/sys/module/rdma_ucm/refcnt", "0\n"},
	{"/sys/class/net/ens1f0/mtu", "1500\n"},
	{"/dev/infiniband/rdma_cm", ""},
	{"/dev/infiniband/uverbs0", ""},
	{DEVICE "node_type", "1: CA\n"},
	{DEVICE "fw_ver", "16.35.2000\n"},
	{DEVICE "device/numa_node", "1\n"},
	{DEVICE "device/current_link_width", "8\n"},
	{DEVICE "device/max_link_width", "16\n"},
	{DEVICE "device/current_link_speed", "8.0 GT/s PCIe\n"},
	{DEVICE "device/max_link_speed", "16.0 GT/s PCIe\n"},
	{PORT "state", "4: ACTIVE\n"},
	{PORT "link_layer", "Ethernet\n"},
	{PORT "rate", "100 Gb/sec (4X EDR)\n"},
	{PORT "gids/0", "fe80:0000:0000:0000:ba59:9fff:fe01:0203\n"},
	{PORT "gids/1", "fe80:0000:0000:0000:ba59:9fff:fe01:0203\n"},
	{PORT "gids/2", "0000:0000:0000:0000:0000:ffff:0a00:0301\n"},
	{PORT "gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0301\n"},
	{PORT "gids/4", "0000:0000:0000:0000:0000:0000:0000:0000\n"},
	{PORT "gid_attrs/types/0", "IB/RoCE v1\n"},
	{PORT "gid_attrs/types/1", "RoCE v2\n"},
	{PORT "gid_attrs/types/2", "IB/RoCE v1\n"},
	{PORT "gid_attrs/types/3", "RoCE v2\n"},
	{PORT "gid_attrs/ndevs/0", "ens1f0\n"},
};
const size_t doctor_file_count = sizeof(doctor_files) / sizeof(doctor_files[0]);

void doctor_host_put_bytes(const struct doctor_host *host, const char *path, const void *bytes, size_t n)
{
	char full[512];
	snprintf(full, sizeof(full), "%s%s", host->root, path);
	for (char *slash = strchr(full + strlen(host->root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(full, 0755);
		*slash = '/';
	}
	FILE *file = fopen(full, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, n, file), n);
	assert_int_equal(fclose(file), 0);
}

void doctor_host_put(const struct doctor_host *host, const char *path, const char *text)
{
	doctor_host_put_bytes(host, path, text, strlen(text));
}

void doctor_host_remove(const struct doctor_host *host, const char *path)
{
	char full[512];
	struct stat st;
	snprintf(full, sizeof(full), "%s%s", host->root, path);
	assert_int_equal(lstat(full, &st), 0);
	if (S_ISDIR(st.st_mode))
		assert_int_equal(gw_remove_tree(full), GW_OK);
	else
		assert_int_equal(unlink(full), 0);
}

void doctor_host_make(struct doctor_host *host)
{
	memset(host, 0, sizeof(*host));
	gw_scratch_make_in_memory("doctor", host->root);
	for (size_t i = 0; i < doctor_file_count; i++)
		doctor_host_put(host, doctor_files[i].path, doctor_files[i].text);
	host->report = (struct gw_verbs_report){.name = "mlx5_0",
						.reads_as_server = 16,
						.reads_as_reader = 16,
						.queue_pairs = 262144,
						.registrations = 16777216,
						.odp_known = true,
						.odp = true,
						.odp_reads = true,
						.port_count = 1,
						.ports = {{true, 1024, 4096}}};
	host->doctor = (struct gw_doctor){.root = host->root, .reports = &host->report, .report_count = 1};
}

void doctor_host_end(struct doctor_host *host)
{
	gw_doctor_free(&host->doctor);
	assert_int_equal(gw_remove_tree(host->root), GW_OK);
}

static void check_text(const char *text)
{
	for (const char *c = text; *c; c++)
		assert_true(*c >= 0x20 && *c <= 0x7e);
}

/* What holds of every finding, of whatever host. */
static void check_finding(const struct gw_doctor_finding *finding)
{
	assert_true(finding->section[0] && finding->name[0] && finding->value[0]);
	check_text(finding->name);
	check_text(finding->value);
	check_text(finding->costs);
	check_text(finding->fix);
	if (finding->status == GW_DOCTOR_OK && (finding->costs[0] || finding->fix[0]))
		fail_msg("%s is ok, and costs something: %s", finding->name, finding->costs);
	if (finding->status >= GW_DOCTOR_WARNING && !finding->costs[0])
		fail_msg("%s is no warning, for it costs nothing", finding->name);
}

void doctor_host_check(struct doctor_host *host)
{
	host->doctor.count = 0;
	gw_doctor_host(&host->doctor);
	assert_int_equal(host->doctor.left_out, 0);
	assert_true(host->doctor.count > 0);
	for (uint32_t i = 0; i < host->doctor.count; i++)
		check_finding(&host->doctor.findings[i]);
}

const struct gw_doctor_finding *doctor_find(const struct gw_doctor *doctor, const char *name)
{
	for (uint32_t i = 0; i < doctor->count; i++)
		if (strcmp(doctor->findings[i].name, name) == 0)
			return &doctor->findings[i];
	fail_msg("no finding \"%s\"", name);
	return NULL;
}

void doctor_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" does not say \"%s\"", text, part);
}

int doctor_host_set_up(void **state)
{
	struct doctor_host *host = calloc(1, sizeof(*host));
	doctor_host_make(host);
	*state = host;
	return 0;
}

int doctor_host_tear_down(void **state)
{
	doctor_host_end(*state);
	free(*state);
	return 0;
}

const struct gw_doctor_finding *doctor_expect(struct doctor_host *host, const char *name, enum gw_doctor_status status,
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

double doctor_figure(const struct gw_doctor_finding *finding, const char *name)
{
	for (int i = 0; i < GW_DOCTOR_FIGURES_MAX && finding->figures[i].name; i++)
		if (strcmp(finding->figures[i].name, name) == 0)
			return finding->figures[i].value;
	fail_msg("%s has no figure %s", finding->name, name);
	return 0;
}
