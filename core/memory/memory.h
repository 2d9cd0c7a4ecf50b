/* How much memory can be taken now, and on which NUMA nodes: asked before memory is taken, so that a shortage is an
 * error with a text and not a visit of the OOM killer. */
#ifndef GW_MEMORY_MEMORY_H
#define GW_MEMORY_MEMORY_H

#include "core/errors/status.h"
#include "core/system/limits.h"

#define GW_NUMA_NODES_MAX 1024 /* the kernel's own limit */

struct gw_numa_nodes {
	uint32_t count; /* at least 1 */
	uint16_t numbers[GW_NUMA_NODES_MAX];
};

/* The nodes that have memory and that this process may use, ascending. Just node 0 where the kernel does not tell.
 * root: "" for this machine; the folder of a copy of /proc and /sys in tests. */
void gw_numa_nodes_read(const char *root, struct gw_numa_nodes *out);

struct gw_memory {
	uint64_t total;            /* of the machine, or of the node */
	uint64_t available;        /* what can be taken without swapping: the least of all that follows */
	uint64_t cgroup_limit;     /* the lowest limit or brake of this process's control groups; UINT64_MAX: none */
	const char *bound_by;      /* "machine", "control group" or "NUMA node": what `available` comes from; static */
	struct gw_group_use group; /* "control group": the one that it is; what can be reclaimed is not used */
};

/* node: a NUMA node's number, or negative: any. Unknown numbers read as unlimited. */
void gw_memory_read(const char *root, int node, struct gw_memory *out);

/* GW_NO_MEMORY unless bytes can be taken now: the text names `what`, the bytes wanted, those available and what binds.
 */
gw_status gw_memory_check(uint64_t bytes, int node, const char *what);

/* Whether a control group is what binds: memory.group tells which. */
bool gw_memory_is_grouped(const struct gw_memory *memory);
/* The command that gives the control group that binds so many bytes more, and a little for what differs from one moment
 * to the next. Returns the text. */
char *gw_memory_fix_group(const struct gw_memory *memory, uint64_t more, char text[GW_LIMIT_FIX_MAX]);

/* Asks for huge pages under a big block of memory that was not touched yet: what is walked at random runs faster, and
 * first touches are fewer. Advice only: small blocks and systems that refuse stay as they are. */
void gw_memory_huge(void *memory, uint64_t bytes);

#endif
