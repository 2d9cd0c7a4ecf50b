/* Limits that containers, units and pods set: of threads, locked memory, address space, open files, swap, huge pages,
 * the size of files and of /dev/shm, and of what RDMA devices give. Each is read from the file in which the kernel
 * keeps it, for the group in which least is left, and judged by what a server of this host's processors, or of --bytes,
 * needs.
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
#define THREADS_OTHER  16u  /* of a server, besides those that answer: tensors, names, the library's own */
#define THREADS_ROOM   256u /* what an advised limit is beyond that */
#define SHM_USUAL      GIB  /* with less, PyTorch's workers have died */
#define MOUNTS_BYTES   65536
#define RDMA_HANDLES   4u         /* contexts of a device: the program's, the connection manager's, one to spare */
#define RDMA_OBJECTS   512u       /* queues and registrations of a server with some clients */
#define LOCKED_MIN     (64 * MIB) /* below this not even a client's landing memory is registered whole */
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

/* --- The process's. --- */

/* A finding about a row of /proc/self/limits; NULL: that cannot be read, and a finding says so. */
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

/* Whether the limit binds this process: by trial where that was made; else by what the kernel grants it. */
static bool limit_binds(const struct gw_doctor *doctor, uint64_t soft)
{
	char mask[GW_DOCTOR_WORD_MAX];
	unsigned long long capabilities = 0;
	if (soft == UINT64_MAX)
		return false;
	if (doctor->probe)
		return doctor->probe->locked_bytes_max != UINT64_MAX;
	return !gw_doctor_self(doctor, "CapEff", mask) || sscanf(mask, "%16llx", &capabilities) != 1 ||
	       !(capabilities >> CAP_LOCK & 1);
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
	gw_doctor_value(finding, "%s; RDMA locks what it registers: a server %s, a client the memory that rows land in",
			binds || soft == UINT64_MAX ? "" : ", not binding this process (CAP_IPC_LOCK)",
			doctor->bytes ? gw_doctor_bytes(need, doctor->bytes) : "its whole part");
	if (!binds || soft >= wanted)
		return;
	gw_doctor_raise(finding, gw_doctor_device_names(doctor, &devices) ? GW_DOCTOR_WARNING : GW_DOCTOR_NOTE);
	gw_doctor_costs(finding, "servers cannot register their part for RDMA, and clients copy every row once more");
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
	gw_doctor_costs(finding, "parts and mapped memory above it are refused");
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
	gw_doctor_costs(finding, "it holds for shared memory as well: a server whose arrays are larger does not load");
	gw_doctor_fix(finding, "%s", gw_process_fix(GW_PROCESS_FILE_SIZE, UINT64_MAX, hard, fix));
}

void gw_doctor_open_files(struct gw_doctor *doctor)
{
	char most[24], fix[GW_LIMIT_FIX_MAX];
	uint64_t soft, hard;
	struct gw_doctor_finding *finding = limits_find(doctor, "open files", "Max open files", &soft, &hard);
	if (!finding)
		return;
	gw_doctor_value(finding, "at most %llu, which may be raised to %s", (unsigned long long)soft,
			limit_text(hard, most));
	if (soft >= OPEN_FILES_MIN)
		return;
	/* A server raises its own as far as it may. */
	gw_doctor_raise(finding, hard >= OPEN_FILES_MIN ? GW_DOCTOR_NOTE : GW_DOCTOR_WARNING);
	gw_doctor_costs(finding,
			"a client takes a descriptor for each thread and server, a server one for each client");
	gw_doctor_fix(
		finding, "%s",
		gw_process_fix(GW_PROCESS_FILES, hard >= OPEN_FILES_MIN ? OPEN_FILES_MIN : OPEN_FILES, hard, fix));
}

/* --- Threads. --- */

/* The kernel asks the initial namespace for these: who has them in a container's user namespace is bound all the same,
 * which only the trial tells. */
static bool user_is_bound(const struct gw_doctor *doctor)
{
	char mask[GW_DOCTOR_WORD_MAX];
	unsigned long long capabilities = 0;
	if (doctor->probe)
		return doctor->probe->threads < doctor->probe->processors;
	return !gw_doctor_self(doctor, "CapEff", mask) || sscanf(mask, "%16llx", &capabilities) != 1 ||
	       !(capabilities & (1ull << CAP_RESOURCE | 1ull << CAP_ADMIN));
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
	gw_doctor_value(finding, "; this user may have %s", known ? limit_text(soft, user) : "what is not known");
	if (!known)
		gw_doctor_raise(finding, GW_DOCTOR_NOTE);
	bool refused = doctor->probe && doctor->probe->threads < doctor->probe->processors;
	if (refused)
		gw_doctor_value(finding, "; %u could be started", doctor->probe->threads);
	bool full = gw_group_left(&group) < need, bound = soft < need && user_is_bound(doctor);
	if (!refused && !full && !bound)
		return;
	gw_doctor_raise(finding, doctor->bytes ? GW_DOCTOR_PROBLEM : GW_DOCTOR_WARNING);
	gw_doctor_costs(finding, "a server with a thread for each processor does not start, and clients have fewer");
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
	gw_doctor_value(finding, "Graphwire needs none: rows that lie on a disk slow every batch");
}

void gw_doctor_huge_group(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "huge pages of the group");
	char limit[GW_UNIT_TEXT_MAX], used[GW_UNIT_TEXT_MAX], fix[GW_LIMIT_FIX_MAX];
	struct gw_group_use group, reserved;
	enum gw_group_limit which = GW_GROUP_HUGETLB;
	gw_group_limit_read(doctor->root, GW_GROUP_HUGETLB, &group);
	gw_group_limit_read(doctor->root, GW_GROUP_HUGETLB_RESERVED, &reserved);
	if (gw_group_left(&reserved) < gw_group_left(&group)) {
		group = reserved;
		which = GW_GROUP_HUGETLB_RESERVED;
	}
	if (group.limit == UINT64_MAX) {
		gw_doctor_value(finding, "no limit of a control group on those of 2 MiB");
		return;
	}
	gw_doctor_value(finding, "2 MiB: at most %s, %s in use (%s)", gw_text_bytes(limit, (double)group.limit),
			gw_text_bytes(used, (double)group.used), group.file);
	uint64_t wanted = doctor->bytes ? doctor->bytes : GW_HUGETLB_BYTES;
	bool pool = !doctor->probe || doctor->probe->hugetlb_free > 0;
	if (gw_group_left(&group) >= wanted || !pool)
		return;
	gw_doctor_raise(finding, doctor->probe && doctor->probe->collapse ? GW_DOCTOR_NOTE : GW_DOCTOR_WARNING);
	gw_doctor_costs(finding, "pages that are free in the pool are refused to a server here");
	gw_doctor_fix(finding, "%s", gw_group_fix(which, &group, group.used + wanted, fix));
}

/* The bytes that /dev/shm may take: "size=65536k" among the mount's options; without it, half of the machine's memory.
 * The last mount there is the one that is seen. */
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
	gw_doctor_value(finding, "%s; Graphwire puts nothing there (its shared memory is memfds)",
			found ? gw_text_bytes(size, (double)bytes) : "not mounted");
	if (found && bytes >= SHM_USUAL)
		return;
	gw_doctor_raise(finding, GW_DOCTOR_NOTE);
	gw_doctor_costs(finding,
			"PyTorch's DataLoader workers pass tensors through it, and die of SIGBUS when it is full; "
			"Graphwire's loaders need no workers");
	gw_doctor_fix(
		finding, "%s",
		"sudo mount -o remount,size=8G /dev/shm (a container: docker run --shm-size 8g; a pod: an emptyDir "
		"of medium Memory at /dev/shm)");
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
		gw_doctor_costs(finding, "clients beyond that are reached over TCP");
		gw_doctor_fix(finding, "echo '%s hca_handle=max hca_object=max' | sudo tee %s", device, group.file);
	}
}
