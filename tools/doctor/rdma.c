/* RDMA of this host: kernel modules, device files, devices and their NUMA nodes.
 *
 *   /sys/class/infiniband (needs no library and no permission) -> libibverbs' report, if it has one -> findings
 *
 * A host without a device is an ordinary host, so a missing module or file is then only a note.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/system/sysfile.h"
#include "tools/doctor/doctor.h"

#define CLASS      "/sys/class/infiniband"
#define READS_GOOD 16u /* reads in flight on one queue pair that common devices allow */
#define CPUS_MAX   8192u
#define MELLANOX   0x15b3

/* --- Modules and device files. --- */

/* Counts the RDMA cards for which no driver has made a device. A card counts if all network cards of its maker do
 * RDMA. */
static uint32_t idle_cards(const struct gw_doctor *doctor)
{
	char path[PATH_MAX], word[GW_DOCTOR_WORD_MAX];
	uint32_t idle = 0;
	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices", doctor->root);
	DIR *folder = opendir(path);
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		unsigned vendor = 0, class = 0;
		const char *name = entry->d_name;
		if (name[0] == '.' || !gw_doctor_word(doctor, word, "/sys/bus/pci/devices/%.64s/vendor", name) ||
		    sscanf(word, "0x%6x", &vendor) != 1 || vendor != MELLANOX)
			continue;
		if (!gw_doctor_word(doctor, word, "/sys/bus/pci/devices/%.64s/class", name) ||
		    sscanf(word, "0x%6x", &class) != 1 || class >> 16 != 2)
			continue;
		idle += !gw_doctor_exists(doctor, "/sys/bus/pci/devices/%.64s/infiniband", name);
	}
	if (folder)
		closedir(folder);
	return idle;
}

void gw_doctor_modules(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "RDMA modules");
	struct gw_doctor_names devices;
	if (!gw_doctor_exists(doctor, "/sys/class")) {
		gw_doctor_unread(finding, "/sys/class");
		return;
	}
	bool any = gw_doctor_device_names(doctor, &devices);
	bool verbs = gw_doctor_exists(doctor, "/sys/class/infiniband_verbs");
	/* A module that is built into the kernel shows only by its effects. */
	bool manager =
		gw_doctor_exists(doctor, "/sys/module/rdma_ucm") || gw_doctor_exists(doctor, "/sys/class/misc/rdma_cm");
	uint32_t idle = idle_cards(doctor);
	gw_doctor_value(finding, "ib_uverbs %s, rdma_ucm %s", verbs ? "there" : "missing",
			manager ? "there" : "missing");
	if (idle) {
		gw_doctor_raise(finding, GW_DOCTOR_WARNING);
		gw_doctor_value(finding, "; %u card%s without an RDMA driver", idle, idle == 1 ? "" : "s");
		gw_doctor_costs(finding, "the cards serve TCP only");
		gw_doctor_fix(finding, "sudo modprobe -a mlx5_ib ib_uverbs rdma_ucm");
	} else if (!verbs || !manager) {
		gw_doctor_raise(finding, any ? GW_DOCTOR_WARNING : GW_DOCTOR_NOTE);
		gw_doctor_costs(finding, "no program can use RDMA");
		gw_doctor_fix(
			finding,
			"sudo modprobe -a ib_uverbs rdma_ucm (sudo apt install rdma-core loads them at every start)");
	}
}

static bool may_open(const struct gw_doctor *doctor, const char *name)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/dev/infiniband/%s", doctor->root, name);
	return n > 0 && (size_t)n < sizeof(path) && access(path, R_OK | W_OK) == 0;
}

void gw_doctor_device_files(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "/dev/infiniband");
	struct gw_doctor_names devices, names;
	bool any = gw_doctor_device_names(doctor, &devices);
	uint32_t listed = 0, closed = 0;
	bool manager = false;
	if (!gw_doctor_folder(doctor, "", &names, "/dev/infiniband")) {
		gw_doctor_raise(finding, any ? GW_DOCTOR_WARNING : GW_DOCTOR_NOTE);
		gw_doctor_value(finding, "no such folder");
		if (any) {
			gw_doctor_costs(finding, "this process cannot use the RDMA devices of this host");
			gw_doctor_fix(finding, "sudo modprobe -a ib_uverbs rdma_ucm (a container: "
					       "docker run --device=/dev/infiniband)");
		}
		return;
	}
	for (uint32_t i = 0; i < names.count; i++) {
		bool verbs = strncmp(names.names[i], "uverbs", 6) == 0;
		bool cm = strcmp(names.names[i], "rdma_cm") == 0;
		if (!verbs && !cm)
			continue;
		bool open = may_open(doctor, names.names[i]);
		manager |= cm;
		closed += !open;
		gw_doctor_value(finding, "%s%s%s", listed++ ? ", " : "", names.names[i],
				open ? "" : " (closed to you)");
	}
	gw_doctor_value(finding, "%s", listed ? "" : "neither rdma_cm nor uverbs*");
	if (!closed && manager && listed > 1)
		return;
	gw_doctor_raise(finding, any ? GW_DOCTOR_WARNING : GW_DOCTOR_NOTE);
	gw_doctor_costs(finding, "servers are reached over TCP instead of RDMA");
	if (closed)
		gw_doctor_fix(
			finding,
			"sudo chmod 0666 /dev/infiniband/rdma_cm /dev/infiniband/uverbs* (sudo apt install rdma-core "
			"does so at every start)");
	else
		gw_doctor_fix(finding,
			      "sudo modprobe -a ib_uverbs rdma_ucm (a container: docker run --device=/dev/infiniband)");
}

/* --- A device. --- */

static void device_itself(struct gw_doctor *doctor, const char *device)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "device %s", device);
	const struct gw_verbs_report *report = gw_doctor_report(doctor, device);
	char word[GW_DOCTOR_WORD_MAX], text[128];
	if (gw_doctor_word(doctor, word, CLASS "/%s/node_type", device))
		gw_doctor_value(finding, "type %s", word);
	else
		gw_doctor_unread(finding, "its node_type");
	if (gw_doctor_link(doctor, word, CLASS "/%s/device/driver", device))
		gw_doctor_value(finding, ", driver %s", word);
	if (gw_doctor_word(doctor, word, CLASS "/%s/fw_ver", device))
		gw_doctor_value(finding, ", firmware %s", word);
	if (!report) {
		if (doctor->no_reports || !doctor->report_count)
			return; /* reported once for all devices */
		gw_doctor_raise(finding, GW_DOCTOR_WARNING);
		gw_doctor_value(finding, "; libibverbs does not know it");
		gw_doctor_costs(finding, "it cannot be used");
		gw_doctor_fix(finding, "sudo apt install ibverbs-providers");
	} else if (report->error) {
		gw_doctor_raise(finding, GW_DOCTOR_WARNING);
		gw_doctor_value(finding, "; it cannot be opened: %s", strerror_r(report->error, text, sizeof(text)));
		gw_doctor_costs(finding, "it cannot be used");
		gw_doctor_fix(finding, "ibv_devinfo -d %s", device);
	} else {
		gw_doctor_value(finding, ", up to %u queue pairs and %u registrations", report->queue_pairs,
				report->registrations);
	}
}

static void device_reads(struct gw_doctor *doctor, const char *device)
{
	const struct gw_verbs_report *report = gw_doctor_report(doctor, device);
	if (!report || report->error)
		return;
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "reads %s", device);
	uint32_t server = report->reads_as_server, reader = report->reads_as_reader;
	gw_doctor_value(finding,
			"in flight on one queue pair: %u as the reader (max_qp_init_rd_atom), "
			"%u as the server (max_qp_rd_atom)",
			reader, server);
	gw_doctor_figure(finding, "max_qp_init_rd_atom", reader);
	gw_doctor_figure(finding, "max_qp_rd_atom", server);
	if (report->iwarp || !reader || !server) {
		gw_doctor_raise(finding, GW_DOCTOR_WARNING);
		gw_doctor_value(finding, "%s", report->iwarp ? "; iWARP" : "");
		gw_doctor_costs(finding, "the device cannot serve one-sided reads: clients reach servers over TCP");
	} else if (reader < READS_GOOD || server < READS_GOOD) {
		gw_doctor_raise(finding, GW_DOCTOR_NOTE);
		gw_doctor_costs(finding, "small rows: each queue pair reads at most so many in one round trip");
	}
}

static void device_paging(struct gw_doctor *doctor, const char *device)
{
	const struct gw_verbs_report *report = gw_doctor_report(doctor, device);
	if (!report || report->error)
		return;
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "on-demand paging %s", device);
	if (!report->odp_known) {
		gw_doctor_raise(finding, GW_DOCTOR_NOTE);
		gw_doctor_value(finding, "not known");
		return;
	}
	gw_doctor_value(finding, "%s%s%s; Graphwire locks registered memory and does not need it",
			report->odp ? "yes" : "no", report->odp_implicit ? ", implicit" : "",
			report->odp_reads ? ", for one-sided reads" : "");
}

/* A device's node, and the distance to the nearest processor that this process may use. */
struct placing {
	bool known, local;
	unsigned distance; /* 10: the same node */
};

/* Whether the list contains an allowed processor. */
static bool runs_on(const bool allowed[CPUS_MAX], const char *list)
{
	static bool here[CPUS_MAX];
	if (!gw_sysfile_list(list, here, CPUS_MAX))
		return false;
	for (uint32_t i = 0; i < CPUS_MAX; i++)
		if (allowed[i] && here[i])
			return true;
	return false;
}

static struct placing placing_of(const struct gw_doctor *doctor, int64_t node)
{
	static bool allowed[CPUS_MAX];
	struct placing placing = {0};
	struct gw_doctor_names nodes;
	char list[GW_DOCTOR_WORD_MAX], distances[GW_DOCTOR_WORD_MAX], own[32], *rest;
	snprintf(own, sizeof(own), "node%lld", (long long)node);
	if (!gw_doctor_self(doctor, "Cpus_allowed_list", list) || !gw_sysfile_list(list, allowed, CPUS_MAX) ||
	    !gw_doctor_folder(doctor, "node", &nodes, "/sys/devices/system/node") ||
	    !gw_doctor_word(doctor, distances, "/sys/devices/system/node/%s/distance", own))
		return placing;
	/* A node's row has the distances to all online nodes, in their order. */
	char *at = strtok_r(distances, " ", &rest);
	for (uint32_t i = 0; i < nodes.count && at; i++, at = strtok_r(NULL, " ", &rest)) {
		unsigned distance;
		if (sscanf(at, "%9u", &distance) != 1 ||
		    !gw_doctor_word(doctor, list, "/sys/devices/system/node/%s/cpulist", nodes.names[i]) ||
		    !runs_on(allowed, list))
			continue;
		placing.local |= strcmp(nodes.names[i], own) == 0;
		if (!placing.known || distance < placing.distance)
			placing.distance = distance;
		placing.known = true;
	}
	return placing;
}

static void device_place(struct gw_doctor *doctor, const char *device)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "place %s", device);
	int64_t node;
	if (!gw_doctor_number(doctor, &node, CLASS "/%s/device/numa_node", device)) {
		/* A software device is on no bus. */
		gw_doctor_raise(finding, GW_DOCTOR_NOTE);
		gw_doctor_value(finding, "the kernel names no NUMA node for it");
		return;
	}
	if (node < 0) {
		gw_doctor_value(finding, "no NUMA node is nearer to it than another");
		return;
	}
	struct placing placing = placing_of(doctor, node);
	gw_doctor_value(finding, "on node%lld", (long long)node);
	if (!placing.known) {
		gw_doctor_raise(finding, GW_DOCTOR_NOTE);
		gw_doctor_value(finding, "; the kernel does not report the distance to this process's processors");
		return;
	}
	gw_doctor_value(finding, "; the nearest processor that this process may use is at distance %u",
			placing.distance);
	gw_doctor_figure(finding, "node", (double)node);
	gw_doctor_figure(finding, "distance", placing.distance);
	if (placing.local)
		return;
	gw_doctor_raise(finding, GW_DOCTOR_WARNING);
	gw_doctor_costs(finding, "every read and every completion crosses between nodes");
	gw_doctor_fix(finding, "numactl --cpunodebind=%lld --preferred=%lld COMMAND", (long long)node, (long long)node);
}

/* A card in a narrow slot is limited to the slot's rate. */
static void device_slot(struct gw_doctor *doctor, const char *device)
{
	char speed[GW_DOCTOR_WORD_MAX], speed_max[GW_DOCTOR_WORD_MAX];
	int64_t width, width_max;
	if (!gw_doctor_number(doctor, &width, CLASS "/%s/device/current_link_width", device) ||
	    !gw_doctor_number(doctor, &width_max, CLASS "/%s/device/max_link_width", device) ||
	    !gw_doctor_word(doctor, speed, CLASS "/%s/device/current_link_speed", device) ||
	    !gw_doctor_word(doctor, speed_max, CLASS "/%s/device/max_link_speed", device))
		return; /* virtual functions and software devices have no slot */
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "slot %s", device);
	gw_doctor_value(finding, "%lld lanes of %s; the card has %lld of %s", (long long)width, speed,
			(long long)width_max, speed_max);
	if (width <= 0 || (width >= width_max && strcmp(speed, speed_max) == 0))
		return;
	gw_doctor_raise(finding, GW_DOCTOR_NOTE);
	gw_doctor_costs(finding, "the slot's lanes limit the bytes a second");
}

static void report_no_reports(struct gw_doctor *doctor, enum gw_doctor_status status)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, status, "libibverbs");
	gw_doctor_value(finding, "%.*s", (int)strcspn(doctor->no_reports, ";"), doctor->no_reports);
	gw_doctor_costs(finding, "clients do not use RDMA: they reach servers on other hosts over TCP");
#ifdef GRAPHWIRE_VERBS
	gw_doctor_fix(finding, "sudo apt install libibverbs1 librdmacm1 ibverbs-providers%s",
		      doctor->no_libraries ? "" : "; sudo modprobe -a ib_uverbs rdma_ucm");
#else
	gw_doctor_fix(
		finding,
		"sudo apt install libibverbs-dev librdmacm-dev, then cmake --preset release && cmake --build --preset "
		"release");
#endif
}

void gw_doctor_devices(struct gw_doctor *doctor)
{
	struct gw_doctor_names devices;
	if (!gw_doctor_device_names(doctor, &devices)) {
		if (doctor->no_libraries)
			report_no_reports(doctor, GW_DOCTOR_NOTE);
		struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_NOTE, "devices");
		gw_doctor_value(finding, "no RDMA device");
		gw_doctor_costs(finding, "servers on other hosts are reached over TCP");
		gw_doctor_fix(finding, "sudo modprobe mlx5_ib (or your card's driver); to try RDMA over any network: "
				       "sudo modprobe rdma_rxe && sudo rdma link add rxe0 type rxe netdev NETDEV");
		return;
	}
	if (doctor->no_reports)
		report_no_reports(doctor, GW_DOCTOR_WARNING);
	for (uint32_t i = 0; i < devices.count; i++) {
		const char *device = devices.names[i];
		device_itself(doctor, device);
		gw_doctor_ports(doctor, device);
		device_reads(doctor, device);
		device_paging(doctor, device);
		device_place(doctor, device);
		device_slot(doctor, device);
	}
}
