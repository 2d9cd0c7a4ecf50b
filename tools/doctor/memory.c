/* Memory: how much exists, in which pages, and how much of it the kernel grants. */
#include <stdio.h>
#include <string.h>

#include "core/system/sysfile.h"
#include "server/footprint.h"
#include "server/leftover_memory.h"
#include "tools/doctor/doctor.h"

#define PAGES_UNASKED 512u /* pages of 2 MiB that the doctor proposes without --bytes */

void gw_doctor_memory(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "memory");
	char available[GW_UNIT_TEXT_MAX], total[GW_UNIT_TEXT_MAX], wanted[GW_UNIT_TEXT_MAX], fix[GW_LIMIT_FIX_MAX];
	const struct gw_server_plan plan = {.array_bytes = doctor->bytes, .threads = gw_server_threads(), .node = -1};
	struct gw_server_room room;
	const struct gw_memory *memory = &room.memory;
	bool suffices = gw_server_room_read(doctor->root, &plan, &room);
	if (memory->total == UINT64_MAX && memory->available == UINT64_MAX) {
		gw_doctor_unread(finding, "/proc/meminfo");
		return;
	}
	bool group = gw_memory_is_grouped(memory);
	gw_doctor_value(finding, "%s available of %s", gw_doctor_bytes(available, memory->available),
			gw_doctor_bytes(total, memory->total));
	if (group)
		gw_doctor_value(finding, ", bound by the control group's limit of %s (%s)",
				gw_doctor_bytes(total, memory->group.limit), memory->group.file);
	if (!doctor->bytes || suffices)
		return;
	gw_doctor_raise(finding, GW_DOCTOR_PROBLEM);
	char holders[GW_DOCTOR_TEXT_MAX / 2];
	if (gw_leftover_memory_find(doctor->root, holders, sizeof(holders)))
		gw_doctor_costs(finding, "%s; ", holders);
	gw_doctor_costs(finding, "a server with %u thread%s and %u connections takes %s%s: it is refused", plan.threads,
			plan.threads == 1 ? "" : "s", gw_server_connections(plan.connections),
			gw_text_bytes(wanted, (double)room.wanted),
			plan.array_bytes <= room.pool ? ", in addition to its arrays in the pool of huge pages" : "");
	if (group)
		gw_doctor_fix(finding, "%s; or more parts",
			      gw_memory_fix_group(memory, room.wanted - memory->available, fix));
	else
		gw_doctor_fix(finding, "graphwire partition GRAPH --num-parts MORE --out parts/");
}

/* --- Pages. --- */

static bool read_pool(const struct gw_doctor *doctor, uint32_t node, const char *size, int64_t *total, int64_t *free)
{
	const char *folder = "/sys/devices/system/node/node";
	return gw_doctor_number(doctor, total, "%s%u/hugepages/hugepages-%s/nr_hugepages", folder, node, size) &&
	       gw_doctor_number(doctor, free, "%s%u/hugepages/hugepages-%s/free_hugepages", folder, node, size) &&
	       *total >= 0 && *free >= 0;
}

static void judge_pool(const struct gw_doctor *doctor, struct gw_doctor_finding *finding, uint32_t node, uint32_t nodes,
		       int64_t total, int64_t free)
{
	char bytes[GW_UNIT_TEXT_MAX];
	uint64_t share = doctor->bytes / nodes + (doctor->bytes % nodes != 0);
	uint64_t wanted = doctor->bytes ? (share + GW_HUGETLB_BYTES - 1) / GW_HUGETLB_BYTES : 1;
	bool transparent = doctor->probe && doctor->probe->collapse;
	if ((uint64_t)free >= wanted)
		return;
	/* Transparent huge pages are the other path to huge pages. */
	gw_doctor_raise(finding, !transparent ? GW_DOCTOR_WARNING : doctor->bytes ? GW_DOCTOR_NOTE : GW_DOCTOR_OK);
	if (transparent) {
		gw_doctor_value(finding, "; transparent ones are made instead");
		if (doctor->bytes)
			gw_doctor_costs(finding, "the kernel makes them while a part loads, which takes time, "
						 "and fragmented memory leaves some pages small");
	} else {
		gw_doctor_costs(
			finding,
			"random rows are read at about half speed, unless the kernel can make transparent huge pages");
	}
	if (!transparent || doctor->bytes) {
		uint64_t more = doctor->bytes ? wanted - (uint64_t)free : PAGES_UNASKED;
		gw_doctor_fix(
			finding,
			"echo %llu | sudo tee /sys/devices/system/node/node%u/hugepages/hugepages-2048kB/nr_hugepages "
			"(%s more)",
			(unsigned long long)((uint64_t)total + more), node,
			gw_text_bytes(bytes, (double)(more * GW_HUGETLB_BYTES)));
	}
}

void gw_doctor_hugepages(struct gw_doctor *doctor)
{
	static struct gw_numa_nodes nodes; /* some KiB */
	gw_numa_nodes_read(doctor->root, &nodes);
	for (uint32_t i = 0; i < nodes.count; i++) {
		int64_t total, free;
		uint32_t node = nodes.numbers[i];
		struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "huge pages node%u", node);
		if (!read_pool(doctor, node, "2048kB", &total, &free)) {
			char path[96];
			snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/hugepages", node);
			gw_doctor_unread(finding, path);
			continue;
		}
		gw_doctor_value(finding, "2 MiB: %lld free of %lld", (long long)free, (long long)total);
		judge_pool(doctor, finding, node, nodes.count, total, free);
		if (read_pool(doctor, node, "1048576kB", &total, &free))
			gw_doctor_value(finding, "; 1 GiB: %lld free of %lld%s", (long long)free, (long long)total,
					total ? ", which Graphwire does not use" : "");
	}
}

static bool choice_of(const struct gw_doctor *doctor, const char *file, char choice[16])
{
	char line[GW_DOCTOR_WORD_MAX];
	choice[0] = 0;
	if (gw_doctor_word(doctor, line, "/sys/kernel/mm/transparent_hugepage/%s", file))
		gw_sysfile_choice(line, choice, 16);
	return choice[0] != 0;
}

void gw_doctor_transparent(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "transparent huge pages");
	char private[16], shared[16];
	bool known = choice_of(doctor, "enabled", private);
	if (!choice_of(doctor, "shmem_enabled", shared) || !known) {
		gw_doctor_unread(finding, "/sys/kernel/mm/transparent_hugepage");
		return;
	}
	bool collapse = doctor->probe && doctor->probe->collapse;
	gw_doctor_value(finding, "%s; for shared memory %s%s", private, shared,
			!doctor->probe ? ""
			: collapse     ? "; the kernel makes them on request (MADV_COLLAPSE)"
				       : "; the kernel does not make them on request");
	if (collapse || (strcmp(shared, "never") != 0 && strcmp(shared, "deny") != 0))
		return;
	gw_doctor_raise(finding, GW_DOCTOR_WARNING);
	gw_doctor_costs(finding, "without a pool of huge pages, random rows are read at about half speed");
	gw_doctor_fix(finding, "echo advise | sudo tee /sys/kernel/mm/transparent_hugepage/shmem_enabled");
}

/* --- What is granted. --- */

void gw_doctor_overcommit(struct gw_doctor *doctor)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "overcommit");
	int64_t mode;
	if (!gw_doctor_number(doctor, &mode, "/proc/sys/vm/overcommit_memory") || mode < 0 || mode > 2) {
		gw_doctor_unread(finding, "/proc/sys/vm/overcommit_memory");
		return;
	}
	gw_doctor_value(finding, "vm.overcommit_memory = %lld", (long long)mode);
	if (mode < 2)
		return;
	gw_doctor_raise(finding, GW_DOCTOR_WARNING);
	gw_doctor_costs(finding, "a part may be refused although memory is free: reserved memory counts as used");
	gw_doctor_fix(finding, "sudo sysctl -w vm.overcommit_memory=0");
}
