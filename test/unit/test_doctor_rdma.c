/* The findings of graphwire doctor about RDMA on hosts that are made of files: devices, ports, addresses, modules,
 * device files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/support/doctor_host.h"
#include "test/support/sandbox.h"

#define PORT "/sys/class/infiniband/mlx5_0/ports/1/"

static void limits_of_devices(void **state)
{
	struct doctor_host *host = *state;
	doctor_expect(host, "group mlx5_0", GW_DOCTOR_OK, "no limit of a control group", NULL);
	doctor_host_put(host, "/sys/fs/cgroup/job/rdma.max", "mlx5_01 hca_handle=1 hca_object=1\n");
	doctor_expect(host, "group mlx5_0", GW_DOCTOR_OK, "no limit", NULL);
	doctor_host_put(host, "/sys/fs/cgroup/job/rdma.max",
			"mlx5_1 hca_handle=1\nmlx5_0 hca_handle=8 hca_object=64\n");
	doctor_expect(host, "group mlx5_0", GW_DOCTOR_WARNING,
		      "contexts: 8, queues and registrations: 64 (/sys/fs/cgroup/job/rdma.max)",
		      "echo 'mlx5_0 hca_handle=max hca_object=max' | sudo tee /sys/fs/cgroup/job/rdma.max");
	doctor_host_put(host, "/sys/fs/cgroup/job/rdma.max", "mlx5_0 hca_handle=8 hca_object=20000\n");
	doctor_expect(host, "group mlx5_0", GW_DOCTOR_OK, "20000", NULL);
}

static void a_device_far_away(void **state)
{
	struct doctor_host *host = *state;
	doctor_expect(host, "device mlx5_0", GW_DOCTOR_OK, "firmware 16.35.2000", NULL);
	const struct gw_doctor_finding *place =
		doctor_expect(host, "place mlx5_0", GW_DOCTOR_WARNING, "on node1", "numactl --cpunodebind=1");
	assert_true(doctor_figure(place, "node") == 1 && doctor_figure(place, "distance") == 21);
	doctor_host_put(host, "/proc/self/status", "Cpus_allowed_list:\t0-1,7\n");
	assert_true(doctor_figure(doctor_expect(host, "place mlx5_0", GW_DOCTOR_OK, "distance 10", NULL), "distance") ==
		    10);
	doctor_host_put(host, "/sys/class/infiniband/mlx5_0/device/numa_node", "-1\n");
	doctor_expect(host, "place mlx5_0", GW_DOCTOR_OK, "no NUMA node is nearer", NULL);
	doctor_expect(host, "slot mlx5_0", GW_DOCTOR_NOTE, "8 lanes of 8.0 GT/s PCIe; the card has 16 of 16.0", NULL);
	doctor_expect(host, "on-demand paging mlx5_0", GW_DOCTOR_OK, "yes, for one-sided reads", NULL);
	const struct gw_doctor_finding *reads =
		doctor_expect(host, "reads mlx5_0", GW_DOCTOR_OK, "16 as the reader", NULL);
	assert_true(doctor_figure(reads, "max_qp_rd_atom") == 16 && doctor_figure(reads, "max_qp_init_rd_atom") == 16);
	host->report.reads_as_server = 4;
	doctor_expect(host, "reads mlx5_0", GW_DOCTOR_NOTE, "4 as the server", NULL);
	host->report.reads_as_server = 0;
	doctor_expect(host, "reads mlx5_0", GW_DOCTOR_WARNING, "0 as the server", NULL);
	host->report.error = EACCES;
	doctor_expect(host, "device mlx5_0", GW_DOCTOR_WARNING, "cannot be opened: Permission denied",
		      "ibv_devinfo -d mlx5_0");
	strcpy(host->report.name, "mlx5_1");
	doctor_expect(host, "device mlx5_0", GW_DOCTOR_WARNING, "libibverbs does not know it", "ibverbs-providers");
	host->doctor.report_count = 0;
	host->doctor.no_reports = "Graphwire was built without RDMA";
	doctor_expect(host, "libibverbs", GW_DOCTOR_WARNING, "built without RDMA", "apt install");
	host->doctor.no_reports = "RDMA: libibverbs.so.1: not installed; sudo apt install it";
	host->doctor.no_libraries = true;
	doctor_expect(host, "libibverbs", GW_DOCTOR_WARNING, "not installed", "apt install");
	doctor_expect(host, "MTU mlx5_0/1", GW_DOCTOR_NOTE, "not known", NULL);
}

static void a_port_and_its_addresses(void **state)
{
	struct doctor_host *host = *state;
	doctor_expect(host, "port mlx5_0/1", GW_DOCTOR_OK, "4: ACTIVE, Ethernet, 100 Gb/sec (4X EDR), interface ens1f0",
		      NULL);
	const struct gw_doctor_finding *mtu =
		doctor_expect(host, "MTU mlx5_0/1", GW_DOCTOR_NOTE, "1024 active, 4096 at most; ens1f0: 1500",
			      "ip link set dev ens1f0");
	assert_true(doctor_figure(mtu, "active_mtu") == 1024 && doctor_figure(mtu, "max_mtu") == 4096);
	doctor_expect(host, "GIDs mlx5_0/1", GW_DOCTOR_OK, "0: fe80::ba59:9fff:fe01:203 (IB/RoCE v1)", NULL);
	doctor_expect(host, "GIDs mlx5_0/1", GW_DOCTOR_OK, "3: 10.0.3.1 (RoCE v2)", NULL);
	doctor_host_put(host, PORT "gid_attrs/types/3", "IB/RoCE v1\n");
	doctor_expect(host, "GIDs mlx5_0/1", GW_DOCTOR_WARNING, "10.0.3.1", "ip addr add ADDRESS/24 dev ens1f0");
	doctor_host_put(host, PORT "gid_attrs/types/1", "IB/RoCE v1\n");
	doctor_has(doctor_expect(host, "GIDs mlx5_0/1", GW_DOCTOR_WARNING, "10.0.3.1", "ens1f0")->costs, "RoCE v1");
	for (int n = 0; n < 4; n++) {
		char path[128];
		snprintf(path, sizeof(path), PORT "gids/%d", n);
		doctor_host_remove(host, path);
	}
	doctor_expect(host, "GIDs mlx5_0/1", GW_DOCTOR_WARNING, "none", "ens1f0");
	doctor_host_remove(host, PORT "gids");
	doctor_expect(host, "GIDs mlx5_0/1", GW_DOCTOR_NOTE, "cannot be read", NULL);
	doctor_host_put(host, PORT "state", "1: DOWN\n");
	doctor_expect(host, "port mlx5_0/1", GW_DOCTOR_WARNING, "1: DOWN", "ip link set dev ens1f0 up");
	/* A name that a shell would run as another command. */
	doctor_host_put(host, PORT "gid_attrs/ndevs/0", "x;reboot\n");
	doctor_expect(host, "port mlx5_0/1", GW_DOCTOR_WARNING, "1: DOWN", "NETDEV");
	doctor_host_put(host, PORT "link_layer", "InfiniBand\n");
	doctor_host_put(host, PORT "state", "2: INIT\n");
	doctor_expect(host, "port mlx5_0/1", GW_DOCTOR_WARNING, "INIT, InfiniBand", "opensm");
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
	doctor_expect(host, "GIDs mlx5_0/1", GW_DOCTOR_OK, "and 248 more", NULL);
}

static void modules_and_device_files(void **state)
{
	struct doctor_host *host = *state;
	doctor_expect(host, "RDMA modules", GW_DOCTOR_OK, "ib_uverbs there, rdma_ucm there", NULL);
	doctor_expect(host, "/dev/infiniband", GW_DOCTOR_OK, "rdma_cm, uverbs0", NULL);
	doctor_host_remove(host, "/sys/module/rdma_ucm");
	doctor_expect(host, "RDMA modules", GW_DOCTOR_WARNING, "rdma_ucm missing", "modprobe -a ib_uverbs rdma_ucm");
	doctor_host_remove(host, "/dev/infiniband/rdma_cm");
	doctor_expect(host, "/dev/infiniband", GW_DOCTOR_WARNING, "uverbs0", "modprobe");
	doctor_host_remove(host, "/dev/infiniband");
	doctor_expect(host, "/dev/infiniband", GW_DOCTOR_WARNING, "no such folder", "--device=/dev/infiniband");
	doctor_host_put(host, "/sys/bus/pci/devices/0000:3b:00.0/vendor", "0x15b3\n");
	doctor_host_put(host, "/sys/bus/pci/devices/0000:3b:00.0/class", "0x020000\n");
	doctor_expect(host, "RDMA modules", GW_DOCTOR_WARNING, "1 card without", "modprobe -a mlx5_ib");
	doctor_host_put(host, "/sys/bus/pci/devices/0000:3b:00.0/infiniband/mlx5_0/x", "");
	doctor_host_put(host, "/sys/bus/pci/devices/0000:3c:00.0/vendor", "0x15b3\n");
	doctor_host_put(host, "/sys/bus/pci/devices/0000:3c:00.0/class", "0x060400\n"); /* a bridge */
	doctor_expect(host, "RDMA modules", GW_DOCTOR_WARNING, "rdma_ucm missing", "modprobe -a ib_uverbs");
	/* An ordinary host without RDMA. */
	doctor_host_remove(host, "/sys/class/infiniband");
	doctor_host_remove(host, "/sys/class/infiniband_verbs");
	doctor_expect(host, "RDMA modules", GW_DOCTOR_NOTE, "ib_uverbs missing", "modprobe");
	doctor_expect(host, "/dev/infiniband", GW_DOCTOR_NOTE, "no such folder", NULL);
	doctor_expect(host, "devices", GW_DOCTOR_NOTE, "no RDMA device", "rdma link add");
	host->doctor.no_reports = "RDMA: libibverbs.so.1: not installed; sudo apt install it";
	host->doctor.no_libraries = true;
	doctor_expect(host, "libibverbs", GW_DOCTOR_NOTE, "not installed", "apt install");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		DOCTOR_TEST(limits_of_devices),        DOCTOR_TEST(a_device_far_away),
		DOCTOR_TEST(a_port_and_its_addresses), DOCTOR_TEST(more_addresses_than_are_shown),
		DOCTOR_TEST(modules_and_device_files), DOCTOR_TEST(device_files_of_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
