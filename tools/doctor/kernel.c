/* What the kernel grants this process: NUMA nodes and processors, io_uring, sealed memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/system/cgroup.h"
#include "core/system/processors.h"
#include "core/system/sysfile.h"
#include "core/system/uring.h"
#include "tools/doctor/doctor.h"

#define NODES_SHOWN  8u
#define SPIN_THREADS 2u /* of one server and one client */

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3 */
#endif

/* --- Nodes and processors. --- */

void gw_doctor_nodes(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "NUMA nodes");
	static struct gw_numa_nodes nodes; /* some KiB */
	char word[GW_DOCTOR_WORD_MAX];
	gw_numa_nodes_read(doctor->root, &nodes);
	if (!gw_doctor_word(doctor, word, "/sys/devices/system/node/online")) {
		gw_doctor_unread(finding, "/sys/devices/system/node/online");
		return;
	}
	gw_doctor_value(finding, "%s online; %u with memory that this process may use", word, nodes.count);
	for (uint32_t i = 0; i < nodes.count && i < NODES_SHOWN; i++) {
		gw_doctor_value(finding, "; node%u", nodes.numbers[i]);
		if (gw_doctor_word(doctor, word, "/sys/devices/system/node/node%u/cpulist", nodes.numbers[i]))
			gw_doctor_value(finding, ": processors %s", word);
		if (nodes.count > 1 &&
		    gw_doctor_word(doctor, word, "/sys/devices/system/node/node%u/distance", nodes.numbers[i]))
			gw_doctor_value(finding, ", distances %s", word);
	}
}

/* Keeps the processors of the nearest group that has any. */
static void take_group_processors(void *context, const char *folder, bool version2)
{
	char *out = context;
	(void)version2;
	if (!*out && !gw_sysfile_read(out, GW_DOCTOR_WORD_MAX, "%s/cpuset.cpus.effective", folder))
		gw_sysfile_read(out, GW_DOCTOR_WORD_MAX, "%s/cpuset.cpus", folder);
	out[strcspn(out, "\n")] = '\0';
}

void gw_doctor_processors(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "processors");
	char allowed[GW_DOCTOR_WORD_MAX], online[GW_DOCTOR_WORD_MAX], group[GW_DOCTOR_WORD_MAX] = "";
	if (!gw_doctor_self(doctor, "Cpus_allowed_list", allowed)) {
		gw_doctor_unread(finding, "/proc/self/status");
		return;
	}
	gw_doctor_value(finding, "this process may use %s", allowed);
	if (gw_doctor_word(doctor, online, "/sys/devices/system/cpu/online"))
		gw_doctor_value(finding, " of %s", online);
	gw_cgroup_walk(doctor->root, "cpuset", take_group_processors, group);
	if (group[0])
		gw_doctor_value(finding, "; its control group %s", group);
	uint32_t granted = gw_processors_granted(doctor->root);
	if (granted != UINT32_MAX)
		gw_doctor_value(finding, "; the quota of its control groups equals %u", granted);
	if (granted > 1 && strspn(allowed, "0123456789") != strlen(allowed))
		return;
	gw_doctor_raise(finding, GW_DOCTOR_NOTE);
	gw_doctor_costs(finding, "one processor must sample, fetch and serve");
	if (granted != UINT32_MAX)
		gw_doctor_fix(
			finding,
			"sudo systemctl set-property UNIT CPUQuota=400%% (a container: docker update --cpus 4 NAME; "
			"a pod: resources.limits.cpu)");
}

void gw_doctor_spin(struct gw_doctor *doctor)
{
	if (!doctor->spin_us)
		return;
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "polling");
	uint32_t granted = gw_processors_granted(doctor->root);
	uint32_t processors = doctor->probe ? doctor->probe->processors : gw_processors();
	gw_doctor_value(
		finding,
		"for %u us after each event a server's thread, or a client's thread that waits, takes up a processor; "
		"%u processors",
		doctor->spin_us, processors);
	gw_doctor_figure(finding, "spin_us", doctor->spin_us);
	if (granted != UINT32_MAX) {
		gw_doctor_raise(finding, GW_DOCTOR_WARNING);
		gw_doctor_value(finding, "; the quota of its control groups equals %u", granted);
		gw_doctor_costs(finding,
				"polling uses up the quota; then all threads stand still until the next period");
		gw_doctor_fix(finding,
			      "no --spin, or no quota: sudo systemctl set-property UNIT CPUQuota= (a container: "
			      "docker run without --cpus, with --cpuset-cpus; a pod: the static CPU policy)");
	} else if (processors < SPIN_THREADS) {
		gw_doctor_raise(finding, GW_DOCTOR_WARNING);
		gw_doctor_costs(finding, "a polling server and a polling client take turns on one processor, "
					 "a time slice of milliseconds each");
		gw_doctor_fix(finding, "no --spin on this host");
	} else {
		gw_doctor_raise(finding, GW_DOCTOR_NOTE);
		gw_doctor_costs(
			finding,
			"its power, and time of other programs; more polling threads than processors keep each other "
			"waiting");
	}
}

/* --- io_uring. --- */

void gw_doctor_io_uring(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "io_uring");
	char text[128];
	if (!doctor->probe) {
		gw_doctor_raise(finding, GW_DOCTOR_NOTE);
		gw_doctor_value(finding, "not tried");
		return;
	}
	int error = doctor->probe->io_uring_error;
	bool enough = doctor->probe->io_uring_rings >= doctor->probe->processors;
	if (!error && doctor->probe->io_uring_buffers && enough) {
		gw_doctor_value(finding, "works, with registered buffers");
		return;
	}
	gw_doctor_raise(finding, GW_DOCTOR_WARNING);
	gw_doctor_fix(finding, "%s", gw_uring_remedy(error ? error : ENOMEM, gw_uring_switch(doctor->root)));
	if (error) {
		gw_doctor_value(finding, "refused: %s", strerror_r(error, text, sizeof(text)));
		gw_doctor_costs(finding, "TCP runs on epoll, which takes about a tenth more time for each row, "
					 "and parts load with pread");
	} else if (!enough) {
		gw_doctor_value(finding, "works for %u of %u threads: the limit of locked memory allows no more",
				doctor->probe->io_uring_rings, doctor->probe->processors);
		gw_doctor_costs(
			finding,
			"the other threads serve TCP with epoll, which takes about a tenth more time for each row");
	} else {
		gw_doctor_value(finding, "works, without registered buffers");
		gw_doctor_costs(finding, "the kernel maps the pages of every read while a part loads");
	}
}

void gw_doctor_io_uring_switch(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "io_uring_disabled");
	int64_t value, group;
	if (!gw_doctor_number(doctor, &value, "/proc/sys/kernel/io_uring_disabled") || value < 0 || value > 2) {
		gw_doctor_unread(finding, "/proc/sys/kernel/io_uring_disabled (Linux 6.6 has it)");
		return;
	}
	gw_doctor_value(finding, "kernel.io_uring_disabled = %lld", (long long)value);
	if (value == 0)
		return;
	if (value == 1 && gw_doctor_number(doctor, &group, "/proc/sys/kernel/io_uring_group"))
		gw_doctor_value(finding, ": for group %lld and the superuser only", (long long)group);
	bool works = doctor->probe && !doctor->probe->io_uring_error;
	gw_doctor_raise(finding, works ? GW_DOCTOR_NOTE : GW_DOCTOR_WARNING);
	gw_doctor_costs(finding, "TCP runs on epoll and parts load with pread for %s",
			value == 1 ? "all other users" : "all users");
	gw_doctor_fix(finding, "sudo sysctl -w kernel.io_uring_disabled=0");
}

void gw_doctor_seccomp(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "seccomp");
	char mode[GW_DOCTOR_WORD_MAX];
	if (!gw_doctor_self(doctor, "Seccomp", mode) || strlen(mode) != 1 || !strchr("012", mode[0])) {
		gw_doctor_unread(finding, "/proc/self/status");
		return;
	}
	if (mode[0] == '0') {
		gw_doctor_value(finding, "no filter");
		return;
	}
	gw_doctor_raise(finding, GW_DOCTOR_NOTE);
	gw_doctor_value(finding, "a filter is set: it may refuse calls that work outside it");
}

/* --- Sealed memory. --- */

/* Does what a server does for clients that map its memory, with one page. Returns the step that failed, with errno set,
 * or NULL. */
static const char *try_steps(int fd, size_t bytes, int *again)
{
	char path[64];
	if (ftruncate(fd, (off_t)bytes) != 0)
		return "a memfd cannot be sized";
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return "a memfd cannot be mapped";
	const char *failed = NULL;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		failed = "a memfd cannot be sealed";
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!failed && (*again = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		failed = "a memfd cannot be opened again for reading";
	int error = errno;
	munmap(memory, bytes);
	errno = error;
	return failed;
}

static const char *try_sealing(const struct gw_probe *probe, int *error)
{
	int again = -1, fd = memfd_create("graphwire-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("graphwire-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const char *failed = fd < 0 ? "a memfd cannot be made" : try_steps(fd, (size_t)probe->page_bytes, &again);
	*error = errno;
	if (again >= 0)
		close(again);
	if (fd >= 0)
		close(fd);
	return failed;
}

void gw_doctor_sealed(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "sealed memory");
	char text[128];
	int error = 0;
	if (!doctor->probe) {
		gw_doctor_raise(finding, GW_DOCTOR_NOTE);
		gw_doctor_value(finding, "not tried");
		return;
	}
	const char *failed = try_sealing(doctor->probe, &error);
	if (!failed) {
		gw_doctor_value(finding, "works: clients on this host can map a server's memory");
		return;
	}
	gw_doctor_raise(finding, GW_DOCTOR_WARNING);
	gw_doctor_value(finding, "%s: %s", failed, strerror_r(error, text, sizeof(text)));
	gw_doctor_costs(finding, "clients on a server's host read over TCP");
	gw_doctor_fix(
		finding, "%s",
		error == EINVAL
			? "a kernel of version 5.1 or later"
			: "mount -t proc proc /proc in the container, and a seccomp profile that allows memfd_create "
			  "and fcntl");
}
