/* Finds the available memory: MemAvailable, the node's free memory, and every limit of the control groups (v1 and v2)
 * from the process's own up to the root. Cached file pages count as available, because the kernel frees them under
 * pressure. */
#include "core/memory/memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "core/errors/options.h"
#include "core/system/cgroup.h"
#include "core/system/sysfile.h"

#define TEXT_BYTES 16384
#define KIB        1024ull
#define PAGE       4096u
#define HUGE_MIN   (8ull << 20) /* four huge pages */

/* Advised limits are rounded up, because a group's other memory changes from one moment to the next. */
#define GROUP_SLACK (8ull << 20)
#define GROUP_STEP  (16ull << 20)

static const char group_word[] = "control group";

void gw_numa_nodes_read(const char *root, struct gw_numa_nodes *out)
{
	char text[TEXT_BYTES];
	bool present[GW_NUMA_NODES_MAX], allowed[GW_NUMA_NODES_MAX];
	bool know_present = gw_sysfile_read(text, sizeof(text), "%s/sys/devices/system/node/has_memory", root) &&
			    gw_sysfile_list(text, present, GW_NUMA_NODES_MAX);
	bool know_allowed = false;
	if (gw_sysfile_read(text, sizeof(text), "%s/proc/self/status", root)) {
		const char *line = strstr(text, "\nMems_allowed_list:");
		line = line ? line + strlen("\nMems_allowed_list:") : NULL;
		while (line && (*line == ' ' || *line == '\t'))
			line++;
		know_allowed = line && gw_sysfile_list(line, allowed, GW_NUMA_NODES_MAX);
	}
	out->count = 0;
	for (uint32_t i = 0; i < GW_NUMA_NODES_MAX && know_present; i++) {
		if (present[i] && (!know_allowed || allowed[i]))
			out->numbers[out->count++] = (uint16_t)i;
	}
	if (out->count == 0)
		out->numbers[out->count++] = 0;
}

static uint64_t memory_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void read_machine(const char *root, struct gw_memory *out)
{
	char text[TEXT_BYTES];
	uint64_t kib;
	if (!gw_sysfile_read(text, sizeof(text), "%s/proc/meminfo", root))
		return;
	if (gw_sysfile_field(text, "MemTotal:", &kib))
		out->total = kib * KIB;
	if (gw_sysfile_field(text, "MemAvailable:", &kib))
		out->available = kib * KIB;
}

/* A node's file has lines like "Node 0 MemFree: 1234 kB", and no MemAvailable. */
static uint64_t node_field(const char *text, int node, const char *name)
{
	char field[64];
	uint64_t kib = 0;
	snprintf(field, sizeof(field), "Node %d %s:", node, name);
	return gw_sysfile_field(text, field, &kib) ? kib * KIB : 0;
}

static void read_node(const char *root, int node, struct gw_memory *out)
{
	char text[TEXT_BYTES];
	if (!gw_sysfile_read(text, sizeof(text), "%s/sys/devices/system/node/node%d/meminfo", root, node))
		return;
	uint64_t total = node_field(text, node, "MemTotal");
	uint64_t available = node_field(text, node, "MemFree") + node_field(text, node, "Inactive(file)") +
			     node_field(text, node, "Active(file)") + node_field(text, node, "SReclaimable");
	uint64_t reserve = total / 64; /* the kernel's watermarks */
	available = available > reserve ? available - reserve : 0;
	out->total = total;
	if (available < out->available) {
		out->available = available;
		out->bound_by = "NUMA node";
	}
}

struct cgroup_files {
	const char *limit, *brake; /* above the brake the kernel slows the group down, so it counts as a limit */
	const char *used;
	const char *cache[2]; /* fields of memory.stat that the kernel can reclaim */
};

static void read_group(const char *root, const char *folder, const struct cgroup_files *files, struct gw_memory *out)
{
	char text[TEXT_BYTES];
	uint64_t limit = UINT64_MAX, brake = UINT64_MAX, used = 0, cache;
	const char *file = files->limit;
	gw_sysfile_number(&limit, "%s/%s", folder, files->limit);
	if (files->brake)
		gw_sysfile_number(&brake, "%s/%s", folder, files->brake);
	if (brake < limit)
		file = files->brake;
	limit = memory_least(limit, brake);
	if (limit >= (uint64_t)INT64_MAX / 2)
		return;
	gw_sysfile_number(&used, "%s/%s", folder, files->used);
	bool known = gw_sysfile_read(text, sizeof(text), "%s/memory.stat", folder);
	for (int i = 0; i < 2 && known; i++) {
		if (gw_sysfile_field(text, files->cache[i], &cache))
			used -= memory_least(used, cache);
	}
	out->cgroup_limit = memory_least(out->cgroup_limit, limit);
	uint64_t left = limit - memory_least(limit, used);
	if (left < out->available) {
		out->available = left;
		out->bound_by = group_word;
		out->group = (struct gw_group_use){.limit = limit, .used = used};
		snprintf(out->group.file, sizeof(out->group.file), "%.200s/%.40s", folder + strlen(root), file);
	}
}

struct memory_walk {
	const char *root;
	struct gw_memory *out;
};

static void memory_look(void *context, const char *folder, bool version2)
{
	const struct memory_walk *walk = context;
	static const struct cgroup_files v2 = {
		"memory.max", "memory.high", "memory.current", {"inactive_file ", "active_file "}};
	static const struct cgroup_files v1 = {
		"memory.limit_in_bytes", NULL, "memory.usage_in_bytes", {"total_inactive_file ", "total_active_file "}};
	read_group(walk->root, folder, version2 ? &v2 : &v1, walk->out);
}

void gw_memory_read(const char *root, int node, struct gw_memory *out)
{
	*out = (struct gw_memory){
		.total = UINT64_MAX, .available = UINT64_MAX, .cgroup_limit = UINT64_MAX, .bound_by = "machine"};
	read_machine(root, out);
	if (node >= 0)
		read_node(root, node, out);
	const struct memory_walk walk = {root, out};
	gw_cgroup_walk(root, "memory", memory_look, (void *)&walk);
}

bool gw_memory_is_grouped(const struct gw_memory *memory)
{
	return memory->bound_by == group_word;
}

char *gw_memory_fix_group(const struct gw_memory *memory, uint64_t more, char text[GW_LIMIT_FIX_MAX])
{
	uint64_t least = memory->group.limit + more + GROUP_SLACK;
	return gw_group_fix(GW_GROUP_MEMORY, &memory->group, (least + GROUP_STEP - 1) / GROUP_STEP * GROUP_STEP, text);
}

gw_status gw_memory_suffices(const struct gw_memory *memory, uint64_t bytes, const char *what, const char *remedy)
{
	if (bytes <= memory->available)
		return GW_OK;
	char wanted[GW_UNIT_TEXT_MAX], available[GW_UNIT_TEXT_MAX], limit[GW_UNIT_TEXT_MAX], fix[GW_LIMIT_FIX_MAX];
	gw_text_bytes(wanted, (double)bytes);
	gw_text_bytes(available, (double)memory->available);
	if (gw_memory_is_grouped(memory))
		return gw_fail(
			GW_NO_MEMORY,
			"%s: %s wanted, %s available in the control group: raise its limit of %s (%s), or use %s: %s",
			what, wanted, available, gw_text_bytes(limit, (double)memory->group.limit), memory->group.file,
			remedy, gw_memory_fix_group(memory, bytes - memory->available, fix));
	return gw_fail(GW_NO_MEMORY, "%s: %s wanted, %s available in the %s: stop programs that use it, or use %s",
		       what, wanted, available, memory->bound_by, remedy);
}

gw_status gw_memory_check(uint64_t bytes, int node, const char *what)
{
	struct gw_memory memory;
	gw_memory_read("", node, &memory);
	return gw_memory_suffices(&memory, bytes, what, "more parts");
}

uint64_t gw_hugetlb_left(const char *root, int node)
{
	const char *pool = "hugepages/hugepages-2048kB";
	uint64_t pages = 0, reserved = 0, on_node = 0;
	struct gw_group_use group;
	gw_sysfile_number(&pages, "%s/sys/kernel/mm/%s/free_hugepages", root, pool);
	gw_sysfile_number(&reserved, "%s/sys/kernel/mm/%s/resv_hugepages", root, pool);
	pages -= memory_least(pages, reserved);
	if (node >= 0) {
		gw_sysfile_number(&on_node, "%s/sys/devices/system/node/node%d/%s/free_hugepages", root, node, pool);
		pages = memory_least(pages, on_node);
	}
	gw_group_hugetlb_read(root, &group);
	return memory_least(pages * GW_HUGETLB_BYTES, gw_group_left(&group));
}

void gw_memory_huge(void *memory, uint64_t bytes)
{
	if (bytes < HUGE_MIN)
		return;
	uintptr_t from = ((uintptr_t)memory + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	uintptr_t to = ((uintptr_t)memory + (uintptr_t)bytes) & ~(uintptr_t)(PAGE - 1);
	madvise((void *)from, to - from, MADV_HUGEPAGE);
}
