/* Limits that containers, units and pods set: threads, locked memory, address space, open files, swap, huge pages, the
 * size of files and of /dev/shm, and the objects of RDMA devices.
 *
 *   the kernel's file of the limit, for the group with the least left -> compare with the need of a server -> a finding
 *
 * The need is that of a server with this host's processors, or with --bytes.
 */
#include <stdio.h>
#include <string.h>

#include "core/system/limits.h"
#include "core/system/parallel.h"
#include "core/system/sysfile.h"
#include "server/footprint.h"
#include "tools/doctor/doctor.h"

#define MIB            (1ull << 20)
#define GIB            (1ull << 30)
#define THREADS_OTHER  16u  /* a server's threads, except those that answer: for tensors, for names, of the library */
#define THREADS_ROOM   256u /* added to the need, when a fix proposes a limit */
#define SHM_USUAL      GIB  /* with less, PyTorch's workers have died */
#define MOUNTS_BYTES   65536
#define RDMA_HANDLES   4u         /* contexts of a device: the program's, the connection manager's, one spare */
#define RDMA_OBJECTS   512u       /* queues and registrations of a server with some clients */
#define LOCKED_MIN     (64 * MIB) /* below this, even a client's receive buffer cannot be registered completely */
#define OPEN_FILES_MIN 1024u
#define OPEN_FILES     65536u
#define CAP_LOCK       14 /* CAP_IPC_LOCK in the masks of /proc/self/status */
#define CAP_RESOURCE   24 /* CAP_SYS_RESOURCE */
#define CAP_ADMIN      21 /* CAP_SYS_ADMIN */

static const char *limit_text(uint64_t limit, char text[24])
{
	snprintf(text, 24, "%llu", (unsigned long long)limit);
	return limit == UINT64_MAX ? "any number" : text;
}

/* --- Limits of the process. --- */

/* A finding about a row of /proc/self/limits. NULL: the row cannot be read, and a finding reports that. */
static struct gw_doctor_finding *limits_find(struct gw_doctor *doctor, const char *name, const char *row,
					     uint64_t *soft, uint64_t *hard)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "%s", name);
	if (gw_doctor_limit(doctor, row, soft, hard))
		return finding;
	gw_doctor_unread(finding, "/proc/self/limits");
	return NULL;
}

static void limits_value(struct gw_doctor_finding *finding, uint64_t soft, uint64_t hard)
{
	char first[GW_UNIT_TEXT_MAX], second[GW_UNIT_TEXT_MAX];
	gw_doctor_value(finding, "soft %s, hard %s", gw_doctor_bytes(first, soft), gw_doctor_bytes(second, hard));
}

static bool has_capability(const struct gw_doctor *doctor, uint64_t any_of)
{
	char mask[GW_DOCTOR_WORD_MAX];
	unsigned long long capabilities = 0;
	return gw_doctor_self(doctor, "CapEff", mask) && sscanf(mask, "%16llx", &capabilities) == 1 &&
	       (capabilities & any_of);
}

/* Whether the limit binds this process: by trial if the doctor made one, else by the capabilities of the process. */
static bool limit_binds(const struct gw_doctor *doctor, uint64_t soft)
{
	if (soft == UINT64_MAX)
		return false;
	if (doctor->probe)
		return doctor->probe->locked_bytes_max != UINT64_MAX;
	return !has_capability(doctor, 1ull << CAP_LOCK);
}

void gw_doctor_locked(struct gw_doctor *doctor)
{
	struct gw_doctor_names devices;
	char need[GW_UNIT_TEXT_MAX], fix[GW_LIMIT_FIX_MAX];
	uint64_t soft, hard, wanted = doctor->bytes ? doctor->bytes : LOCKED_MIN;
	struct gw_doctor_finding *finding = limits_find(doctor, "locked memory", "Max locked memory", &soft, &hard);
	if (!finding)
		return;
	limits_value(finding, soft, hard);
	bool binds = limit_binds(doctor, soft);
	gw_doctor_value(finding, "%s; RDMA locks registered memory: a server %s, a client its receive buffers",
			binds || soft == UINT64_MAX ? "" : ", not binding this process (CAP_IPC_LOCK)",
			doctor->bytes ? gw_doctor_bytes(need, doctor->bytes) : "its whole part");
	if (!binds || soft >= wanted)
		return;
	gw_doctor_raise(finding, gw_doctor_device_names(doctor, &devices) ? GW_DOCTOR_WARNING : GW_DOCTOR_NOTE);
	gw_doctor_costs(finding,
			"servers cannot register their part for RDMA, and clients copy every row one more time");
	gw_doctor_fix(finding, "%s", gw_process_fix(GW_PROCESS_LOCKED, UINT64_MAX, hard, fix));
}

void gw_doctor_address_space(struct gw_doctor *doctor)
{
	char fix[GW_LIMIT_FIX_MAX];
	uint64_t soft, hard;
	struct gw_doctor_finding *finding = limits_find(doctor, "address space", "Max address space", &soft, &hard);
	if (!finding)
		return;
	limits_value(finding, soft, hard);
	if (soft == UINT64_MAX)
		return;
	uint64_t need = doctor->bytes ? gw_server_footprint(doctor->bytes, gw_processors(), 0) : 0;
	gw_doctor_raise(finding, need > soft ? GW_DOCTOR_PROBLEM : GW_DOCTOR_WARNING);
	gw_doctor_costs(finding, "parts and mapped memory above the limit are refused");
	gw_doctor_fix(finding, "%s", gw_process_fix(GW_PROCESS_SPACE, UINT64_MAX, hard, fix));
}

void gw_doctor_file_size(struct gw_doctor *doctor)
{
	char fix[GW_LIMIT_FIX_MAX];
	uint64_t soft, hard;
	struct gw_doctor_finding *finding = limits_find(doctor, "file size", "Max file size", &soft, &hard);
	if (!finding)
		return;
	limits_value(finding, soft, hard);
	if (soft == UINT64_MAX || (doctor->bytes && soft >= doctor->bytes))
		return;
	gw_doctor_raise(finding, doctor->bytes ? GW_DOCTOR_PROBLEM : GW_DOCTOR_WARNING);
	gw_doctor_costs(finding, "the limit also holds for shared memory: a server with larger arrays does not load");
	gw_doctor_fix(finding, "%s", gw_process_fix(GW_PROCESS_FILE_SIZE, UINT64_MAX, hard, fix));
}

void gw_doctor_open_files(struct gw_doctor *doctor)
{
	char most[24], fix[GW_LIMIT_FIX_MAX];
	uint64_t soft, hard;
	struct gw_doctor_finding *finding = limits_find(doctor, "open files", "Max open files", &soft, &hard);
	if (!finding)
		return;
	gw_doctor_value(finding, "at most %llu; a process may raise it to %s", (unsigned long long)soft,
			limit_text(hard, most));
	if (soft >= OPEN_FILES_MIN)
		return;
	/* A server raises its own limit up to the hard limit. */
	gw_doctor_raise(finding, hard >= OPEN_FILES_MIN ? GW_DOCTOR_NOTE : GW_DOCTOR_WARNING);
	gw_doctor_costs(finding,
			"a client needs a descriptor for each thread and server, a server one for each client");
	gw_doctor_fix(
		finding, "%s",
		gw_process_fix(GW_PROCESS_FILES, hard >= OPEN_FILES_MIN ? OPEN_FILES_MIN : OPEN_FILES, hard, fix));
}

/* --- Threads. --- */

/* The kernel checks these capabilities in the initial namespace. A process that has them in a container's user
 * namespace is bound all the same; only the trial shows that. */
static bool user_is_bound(const struct gw_doctor *doctor)
{
	if (doctor->probe)
		return doctor->probe->threads < doctor->probe->processors;
	return !has_capability(doctor, 1ull << CAP_RESOURCE | 1ull << CAP_ADMIN);
}

void gw_doctor_threads(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "threads");
	char most[24], user[24], fix[GW_LIMIT_FIX_MAX];
	struct gw_group_use group;
	uint64_t soft = UINT64_MAX, hard = UINT64_MAX, need = gw_processors() + THREADS_OTHER;
	bool known = gw_doctor_limit(doctor, "Max processes", &soft, &hard);
	gw_group_limit_read(doctor->root, GW_GROUP_THREADS, &group);
	gw_doctor_value(finding, "a server here starts %llu; the control group may have %s", (unsigned long long)need,
			limit_text(group.limit, most));
	if (group.limit != UINT64_MAX)
		gw_doctor_value(finding, ", has %llu (%s)", (unsigned long long)group.used, group.file);
	gw_doctor_value(finding, "; this user may have %s",
			known ? limit_text(soft, user) : "a number that is not known");
	if (!known)
		gw_doctor_raise(finding, GW_DOCTOR_NOTE);
	bool refused = doctor->probe && doctor->probe->threads < doctor->probe->processors;
	if (refused)
		gw_doctor_value(finding, "; %u could be started", doctor->probe->threads);
	bool full = gw_group_left(&group) < need, bound = soft < need && user_is_bound(doctor);
	if (!refused && !full && !bound)
		return;
	gw_doctor_raise(finding, doctor->bytes ? GW_DOCTOR_PROBLEM : GW_DOCTOR_WARNING);
	gw_doctor_costs(finding,
			"a server with one thread for each processor does not start, and clients run fewer threads");
	if (full)
		gw_doctor_fix(finding, "%s",
			      gw_group_fix(GW_GROUP_THREADS, &group, group.used + need + THREADS_ROOM, fix));
	else
		gw_doctor_fix(finding, "%s", gw_process_fix(GW_PROCESS_THREADS, UINT64_MAX, hard, fix));
}

/* --- Bytes. --- */

void gw_doctor_swap(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "swap");
	char total[GW_UNIT_TEXT_MAX], limit[GW_UNIT_TEXT_MAX], text[4096];
	struct gw_group_use group;
	uint64_t kib;
	if (!gw_sysfile_read(text, sizeof(text), "%s/proc/meminfo", doctor->root) ||
	    !gw_sysfile_field(text, "SwapTotal:", &kib)) {
		gw_doctor_unread(finding, "/proc/meminfo");
		return;
	}
	gw_group_limit_read(doctor->root, GW_GROUP_SWAP, &group);
	gw_doctor_value(finding, "%s; ", kib ? gw_text_bytes(total, (double)kib * 1024) : "none");
	if (group.limit != UINT64_MAX)
		gw_doctor_value(finding, "the control group's limit is %s (%s); ",
				gw_text_bytes(limit, (double)group.limit), group.file);
	gw_doctor_value(finding, "Graphwire needs none: swapped rows slow every batch");
}

void gw_doctor_huge_group(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "huge pages of the group");
	char limit[GW_UNIT_TEXT_MAX], used[GW_UNIT_TEXT_MAX], fix[GW_LIMIT_FIX_MAX];
	struct gw_group_use group;
	enum gw_group_limit which = gw_group_hugetlb_read(doctor->root, &group);
	if (group.limit == UINT64_MAX) {
		gw_doctor_value(finding, "no limit of a control group for pages of 2 MiB");
		return;
	}
	gw_doctor_value(finding, "2 MiB: at most %s, %s in use (%s)", gw_text_bytes(limit, (double)group.limit),
			gw_text_bytes(used, (double)group.used), group.file);
	uint64_t wanted = doctor->bytes ? doctor->bytes : GW_HUGETLB_BYTES;
	bool pool = !doctor->probe || doctor->probe->hugetlb_free > 0;
	if (gw_group_left(&group) >= wanted || !pool)
		return;
	gw_doctor_raise(finding, doctor->probe && doctor->probe->collapse ? GW_DOCTOR_NOTE : GW_DOCTOR_WARNING);
	gw_doctor_costs(finding, "a server here is refused pages that are free in the pool");
	gw_doctor_fix(finding, "%s", gw_group_fix(which, &group, group.used + wanted, fix));
}

/* The size limit of /dev/shm: "size=65536k" in the mount's options, or half of the machine's memory without that
 * option. The last mount on that path is the visible one. */
static bool shm_bytes(const struct gw_doctor *doctor, uint64_t *out)
{
	static char mounts[MOUNTS_BYTES];
	char text[4096], *rest;
	uint64_t kib = 0;
	bool found = false;
	if (!gw_sysfile_read(mounts, sizeof(mounts), "%s/proc/self/mounts", doctor->root))
		return false;
	if (gw_sysfile_read(text, sizeof(text), "%s/proc/meminfo", doctor->root))
		gw_sysfile_field(text, "MemTotal:", &kib);
	for (char *line = strtok_r(mounts, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char place[64], type[16], options[512], unit = 0;
		unsigned long long size;
		if (sscanf(line, "%*s %63s %15s %511s", place, type, options) != 3 || strcmp(place, "/dev/shm") != 0)
			continue;
		const char *at = strstr(options, "size=");
		found = true;
		*out = kib * 512;
		if (at && sscanf(at, "size=%20llu%c", &size, &unit) >= 1)
			*out = unit == 'k' ? size << 10 : unit == 'm' ? size << 20 : unit == 'g' ? size << 30 : size;
	}
	return found;
}

void gw_doctor_dev_shm(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "/dev/shm");
	char size[GW_UNIT_TEXT_MAX];
	uint64_t bytes = 0;
	bool found = shm_bytes(doctor, &bytes);
	gw_doctor_value(finding, "%s; Graphwire does not use it (its shared memory is memfds)",
			found ? gw_text_bytes(size, (double)bytes) : "not mounted");
	if (found && bytes >= SHM_USUAL)
		return;
	gw_doctor_raise(finding, GW_DOCTOR_NOTE);
	gw_doctor_costs(finding,
			"PyTorch's DataLoader workers pass tensors through it, and die of SIGBUS when it is full; "
			"Graphwire's loaders need no workers");
	gw_doctor_fix(finding, "%s",
		      "sudo mount -o remount,size=8G /dev/shm (a container: docker run --shm-size 8g; a pod: "
		      "an emptyDir of medium Memory at /dev/shm)");
}

/* --- RDMA. --- */

void gw_doctor_rdma_group(struct gw_doctor *doctor)
{
	struct gw_doctor_names devices;
	if (!gw_doctor_device_names(doctor, &devices))
		return;
	for (uint32_t i = 0; i < devices.count; i++) {
		const char *device = devices.names[i];
		char handles[24], objects[24];
		struct gw_group_rdma group;
		struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "group %s", device);
		if (!gw_group_rdma_read(doctor->root, device, &group)) {
			gw_doctor_value(finding, "no limit of a control group");
			continue;
		}
		gw_doctor_value(finding, "the control group may have contexts: %s, queues and registrations: %s (%s)",
				limit_text(group.handles, handles), limit_text(group.objects, objects), group.file);
		if (group.handles >= RDMA_HANDLES && group.objects >= RDMA_OBJECTS)
			continue;
		gw_doctor_raise(finding, GW_DOCTOR_WARNING);
		gw_doctor_costs(finding, "clients above the limit use TCP");
		gw_doctor_fix(finding, "echo '%s hca_handle=max hca_object=max' | sudo tee %s", device, group.file);
	}
}
