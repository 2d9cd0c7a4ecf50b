/* Finds the file that keeps a limit, and the command that raises it.
 *
 *   control groups: every group from the process's own up -> the one with least left      (core/system/cgroup.h)
 *   the process:    getrlimit, or the numbers of /proc/self/limits that the caller has read
 *
 * A limit that cannot be read counts as no limit. If the limit binds nevertheless, the kernel's own error reports it.
 */
#include "core/system/limits.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "core/system/cgroup.h"
#include "core/system/sysfile.h"

#define TEXT_BYTES 4096
#define NO_LIMIT   ((uint64_t)INT64_MAX / 2) /* version 1 writes a number from here on for "no limit" */

/* --- Control groups. --- */

/* Names of files: the limit, a second limit that binds as well (brake), and the usage. */
struct group_files {
	const char *limit, *brake, *used;
};

static const struct group_kind {
	const char *controller;
	struct group_files files[2]; /* of versions 1 and 2 */
} kinds[GW_GROUP_LIMITS] = {
	[GW_GROUP_MEMORY] = {"memory",
			     {{"memory.limit_in_bytes", NULL, "memory.usage_in_bytes"},
			      {"memory.max", "memory.high", "memory.current"}}},
	[GW_GROUP_SWAP] = {"memory",
			   {{"memory.memsw.limit_in_bytes", NULL, "memory.memsw.usage_in_bytes"},
			    {"memory.swap.max", NULL, "memory.swap.current"}}},
	[GW_GROUP_THREADS] = {"pids", {{"pids.max", NULL, "pids.current"}, {"pids.max", NULL, "pids.current"}}},
	[GW_GROUP_HUGETLB] = {"hugetlb",
			      {{"hugetlb.2MB.limit_in_bytes", NULL, "hugetlb.2MB.usage_in_bytes"},
			       {"hugetlb.2MB.max", NULL, "hugetlb.2MB.current"}}},
	[GW_GROUP_HUGETLB_RESERVED] = {"hugetlb",
				       {{"hugetlb.2MB.rsvd.limit_in_bytes", NULL, "hugetlb.2MB.rsvd.usage_in_bytes"},
					{"hugetlb.2MB.rsvd.max", NULL, "hugetlb.2MB.rsvd.current"}}},
};

struct group_walk {
	const struct group_kind *kind;
	const char *root;
	struct gw_group_use *out;
};

uint64_t gw_group_left(const struct gw_group_use *use)
{
	if (use->limit == UINT64_MAX)
		return UINT64_MAX;
	return use->limit > use->used ? use->limit - use->used : 0;
}

static void take_file(char file[GW_LIMIT_FILE_MAX], const char *root, const char *folder, const char *name)
{
	snprintf(file, GW_LIMIT_FILE_MAX, "%.200s/%.40s", folder + strlen(root), name);
}

static void look_at_file(const struct group_walk *walk, const char *folder, const char *name, uint64_t used)
{
	struct gw_group_use found = {.used = used};
	if (!name || !gw_sysfile_number(&found.limit, "%s/%s", folder, name) || found.limit >= NO_LIMIT)
		return;
	if (walk->out->limit != UINT64_MAX && gw_group_left(&found) >= gw_group_left(walk->out))
		return;
	*walk->out = found;
	take_file(walk->out->file, walk->root, folder, name);
}

static void look_at_group(void *context, const char *folder, bool version2)
{
	const struct group_walk *walk = context;
	const struct group_files *files = &walk->kind->files[version2];
	uint64_t used = 0;
	gw_sysfile_number(&used, "%s/%s", folder, files->used);
	look_at_file(walk, folder, files->limit, used);
	look_at_file(walk, folder, files->brake, used);
}

void gw_group_limit_read(const char *root, enum gw_group_limit limit, struct gw_group_use *out)
{
	*out = (struct gw_group_use){.limit = UINT64_MAX};
	const struct group_walk walk = {&kinds[limit], root, out};
	gw_cgroup_walk(root, kinds[limit].controller, look_at_group, (void *)&walk);
}

enum gw_group_limit gw_group_hugetlb_read(const char *root, struct gw_group_use *out)
{
	struct gw_group_use reserved;
	gw_group_limit_read(root, GW_GROUP_HUGETLB, out);
	gw_group_limit_read(root, GW_GROUP_HUGETLB_RESERVED, &reserved);
	if (gw_group_left(&reserved) >= gw_group_left(out))
		return GW_GROUP_HUGETLB;
	*out = reserved;
	return GW_GROUP_HUGETLB_RESERVED;
}

char *gw_group_fix(enum gw_group_limit limit, const struct gw_group_use *use, uint64_t wanted,
		   char text[GW_LIMIT_FIX_MAX])
{
	unsigned long long n = wanted;
	bool brake = strstr(use->file, "memory.high") != NULL;
	switch (limit) {
	case GW_GROUP_MEMORY:
		snprintf(text, GW_LIMIT_FIX_MAX,
			 "sudo systemctl set-property UNIT %s=%llu (a container: "
			 "docker update --memory %llu --memory-swap %llu NAME; a pod: resources.limits.memory)",
			 brake ? "MemoryHigh" : "MemoryMax", n, n, n);
		break;
	case GW_GROUP_SWAP:
		snprintf(text, GW_LIMIT_FIX_MAX,
			 "sudo systemctl set-property UNIT MemorySwapMax=%llu (a container: "
			 "docker update --memory-swap MEMORY+%llu NAME)",
			 n, n);
		break;
	case GW_GROUP_THREADS:
		snprintf(text, GW_LIMIT_FIX_MAX,
			 "sudo systemctl set-property UNIT TasksMax=%llu (a container: "
			 "docker update --pids-limit %llu NAME; a pod: podPidsLimit of its kubelet)",
			 n, n);
		break;
	default: /* systemd and docker have no option for it */
		snprintf(text, GW_LIMIT_FIX_MAX, "echo %llu | sudo tee %s (a pod: resources.limits.hugepages-2Mi)", n,
			 use->file);
	}
	return text;
}

/* --- RDMA devices. --- */

struct rdma_walk {
	const char *root, *device;
	struct gw_group_rdma *out;
};

/* line: "mlx5_0 hca_handle=2 hca_object=max" */
static void take_rdma_word(const char *line, const char *word, uint64_t *out)
{
	const char *at = strstr(line, word);
	unsigned long long value;
	if (at && sscanf(at + strlen(word), "=%20llu", &value) == 1 && value < *out)
		*out = value;
}

static void look_at_rdma(void *context, const char *folder, bool version2)
{
	const struct rdma_walk *walk = context;
	char text[TEXT_BYTES], *rest;
	(void)version2;
	if (!gw_sysfile_read(text, sizeof(text), "%s/rdma.max", folder))
		return;
	size_t length = walk->device ? strlen(walk->device) : 0;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct gw_group_rdma before = *walk->out;
		if (walk->device && (strncmp(line, walk->device, length) != 0 || line[length] != ' '))
			continue;
		take_rdma_word(line, "hca_handle", &walk->out->handles);
		take_rdma_word(line, "hca_object", &walk->out->objects);
		if (before.handles != walk->out->handles || before.objects != walk->out->objects)
			take_file(walk->out->file, walk->root, folder, "rdma.max");
	}
}

bool gw_group_rdma_read(const char *root, const char *device, struct gw_group_rdma *out)
{
	*out = (struct gw_group_rdma){.handles = UINT64_MAX, .objects = UINT64_MAX};
	const struct rdma_walk walk = {root, device, out};
	gw_cgroup_walk(root, "rdma", look_at_rdma, (void *)&walk);
	return out->file[0] != 0;
}

/* --- The process. --- */

static const struct process_kind {
	int resource;
	const char *option; /* ulimit's option */
	uint32_t unit;      /* bytes in ulimit's unit */
	const char *item;   /* the name in limits.conf and in docker run --ulimit */
	bool docker;        /* docker has an option for it */
	uint32_t item_unit; /* bytes in limits.conf's unit */
	const char *directive;
} processes[GW_PROCESS_LIMITS] = {
	[GW_PROCESS_FILES] = {RLIMIT_NOFILE, "-n", 1, "nofile", true, 1, "LimitNOFILE"},
	[GW_PROCESS_LOCKED] = {RLIMIT_MEMLOCK, "-l", 1024, "memlock", true, 1024, "LimitMEMLOCK"},
	[GW_PROCESS_THREADS] = {RLIMIT_NPROC, "-u", 1, "nproc", true, 1, "LimitNPROC"},
	[GW_PROCESS_SPACE] = {RLIMIT_AS, "-v", 1024, "as", false, 1024, "LimitAS"},
	[GW_PROCESS_FILE_SIZE] = {RLIMIT_FSIZE, "-f", 1024, "fsize", true, 1024, "LimitFSIZE"},
};

static const char *number_text(uint64_t wanted, uint32_t unit, const char *unlimited, char text[24])
{
	if (wanted == UINT64_MAX)
		return unlimited;
	snprintf(text, 24, "%llu", (unsigned long long)(wanted / unit + (wanted % unit != 0)));
	return text;
}

char *gw_process_fix(enum gw_process_limit limit, uint64_t wanted, uint64_t hard, char text[GW_LIMIT_FIX_MAX])
{
	const struct process_kind *kind = &processes[limit];
	char a[24], b[24], c[24];
	int n = hard >= wanted ? snprintf(text, GW_LIMIT_FIX_MAX, "ulimit %s %s", kind->option,
					  number_text(wanted, kind->unit, "unlimited", a))
			       : snprintf(text, GW_LIMIT_FIX_MAX,
					  "echo '* - %s %s' | sudo tee /etc/security/limits.d/graphwire-%s.conf, "
					  "then log in again",
					  kind->item, number_text(wanted, kind->item_unit, "unlimited", a), kind->item);
	n += snprintf(text + n, GW_LIMIT_FIX_MAX - (size_t)n, " (a unit: %s=%s", kind->directive,
		      number_text(wanted, 1, "infinity", b));
	if (kind->docker)
		n += snprintf(text + n, GW_LIMIT_FIX_MAX - (size_t)n, "; a container: docker run --ulimit %s=%s",
			      kind->item, number_text(wanted, 1, "-1", c));
	snprintf(text + n, GW_LIMIT_FIX_MAX - (size_t)n, ")");
	return text;
}

static uint64_t rlimit_number(rlim_t value)
{
	return value == RLIM_INFINITY ? UINT64_MAX : (uint64_t)value;
}

char *gw_process_fix_own(enum gw_process_limit limit, uint64_t wanted, char text[GW_LIMIT_FIX_MAX])
{
	struct rlimit now;
	bool known = getrlimit((__rlimit_resource_t)processes[limit].resource, &now) == 0;
	return gw_process_fix(limit, wanted, known ? rlimit_number(now.rlim_max) : UINT64_MAX, text);
}

uint64_t gw_process_limit(enum gw_process_limit limit)
{
	struct rlimit now;
	return getrlimit((__rlimit_resource_t)processes[limit].resource, &now) == 0 ? rlimit_number(now.rlim_cur)
										    : UINT64_MAX;
}
