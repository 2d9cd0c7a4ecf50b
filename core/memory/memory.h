/* How much memory is available now, and on which NUMA nodes. Callers ask before they allocate, so that a shortage is an
 * error with a text instead of the OOM killer. */
#ifndef GW_MEMORY_MEMORY_H
#define GW_MEMORY_MEMORY_H

#include "core/errors/status.h"
#include "core/system/limits.h"

#define GW_NUMA_NODES_MAX 1024         /* the kernel's own limit */
#define GW_HUGETLB_BYTES  (2ull << 20) /* a page of the pool that Graphwire uses */

struct gw_numa_nodes {
	uint32_t count; /* at least 1 */
	uint16_t numbers[GW_NUMA_NODES_MAX];
};

/* The nodes that have memory and that this process may use, ascending; node 0 alone if the kernel lists none. root: ""
 * for this machine; in tests, a folder with a copy of /proc and /sys. */
void gw_numa_nodes_read(const char *root, struct gw_numa_nodes *out);

struct gw_memory {
	uint64_t total;        /* of the machine, or of the node */
	uint64_t available;    /* bytes that can be allocated without swapping: the least over all limits below */
	uint64_t cgroup_limit; /* the lowest limit or brake (memory.high) of this process's control groups; UINT64_MAX:
				  no limit */
	const char *bound_by;  /* the source of `available`: "machine", "control group" or "NUMA node"; static */
	struct gw_group_use group; /* for "control group": its limit and usage, without reclaimable memory */
};

/* node: the number of a NUMA node; negative: any. Values that cannot be read count as unlimited. */
void gw_memory_read(const char *root, int node, struct gw_memory *out);

/* GW_NO_MEMORY unless the bytes are available now: the text names `what`, the bytes wanted and available, and the limit
 * that binds. */
gw_status gw_memory_check(uint64_t bytes, int node, const char *what);
/* The same of a reading. remedy: what the user can do apart from raising a limit. */
gw_status gw_memory_suffices(const struct gw_memory *memory, uint64_t bytes, const char *what, const char *remedy);

/* Bytes of the pool of 2 MiB pages (hugetlb) that a process may still map: pages that are free and that no mapping has
 * reserved, on the node (negative: on any), as far as the control group's limits allow. root: as for gw_memory_read. */
uint64_t gw_hugetlb_left(const char *root, int node);

/* Whether a control group's limit binds; memory.group then describes it. */
bool gw_memory_is_grouped(const struct gw_memory *memory);
/* Writes the command that raises the limit of the binding control group by `more` bytes, plus a small reserve. Returns
 * the text. */
char *gw_memory_fix_group(const struct gw_memory *memory, uint64_t more, char text[GW_LIMIT_FIX_MAX]);

/* Asks for huge pages under a large block of memory that no thread has touched yet. Random access becomes faster, and
 * first accesses cause fewer page faults. Only advice: small blocks, and systems that refuse it, stay as they are. */
void gw_memory_huge(void *memory, uint64_t bytes);

#endif
