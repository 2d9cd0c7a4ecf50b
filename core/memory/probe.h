/* What this machine offers: asked once at start, so that a program can say in one line what is missing and which
 * command provides it.
 *
 *   gw_probe_read (looks, tries) -> gw_probe_findings (judges; pure) -> gw_probe_missing (one line)
 *
 * Nothing is printed or changed here.
 */
#ifndef GW_MEMORY_PROBE_H
#define GW_MEMORY_PROBE_H

#include <stdbool.h>

#include "core/memory/memory.h"

#define GW_HUGETLB_BYTES (2ull << 20)

struct gw_probe {
	uint32_t processors; /* this process may run on */
	uint64_t page_bytes;
	uint64_t huge_bytes; /* of a transparent huge page */
	uint64_t open_files_max;
	uint64_t locked_bytes_max; /* memory that may be locked or registered; UINT64_MAX: no limit binds */
	char thp[16];              /* "always", "madvise", "never"; "" where the kernel has none */
	char thp_shared[16];       /* the same for shared memory */
	bool collapse;             /* MADV_COLLAPSE works on shared memory */
	int io_uring_error;        /* 0: works; else the errno value */
	bool io_uring_buffers;     /* buffers can be registered with it */
	uint32_t io_uring_rings;   /* that there is room for at once, of one for each processor */
	int io_uring_switch;       /* gw_uring_switch */
	uint32_t threads;          /* that could be started at once, of one for each processor */
	struct gw_memory memory;
	struct gw_numa_nodes nodes;
	uint64_t hugetlb_pages, hugetlb_free;          /* of 2 MiB, over all nodes */
	uint64_t node_hugetlb_free[GW_NUMA_NODES_MAX]; /* in the order of nodes.numbers */
};

/* Looks and tries; takes a few milliseconds and leaves nothing behind. What cannot be found out reads as absent. */
void gw_probe_read(struct gw_probe *out);

#define GW_FINDINGS_MAX     8
#define GW_FINDING_TEXT_MAX 192

struct gw_finding {
	const char *what; /* "locked memory", "hugetlb pages", "huge pages", "io_uring", "memory", "NUMA nodes", "open
			     files" */
	bool ok;
	char found[GW_FINDING_TEXT_MAX];  /* "8.00 MiB" */
	char remedy[GW_FINDING_TEXT_MAX]; /* the command that would provide it; "" where ok or where there is none */
};

/* Judges what was found by a program's needs: bytes it will keep in memory and register (0: only whether things work at
 * all). Returns how many findings there are. */
uint32_t gw_probe_findings(const struct gw_probe *probe, uint64_t bytes, struct gw_finding findings[GW_FINDINGS_MAX]);

/* "hugetlb pages: 0 of 512 (sysctl -w vm.nr_hugepages=512); io_uring: ..."; "" if nothing is missing. Written to the
 * buffer, which is returned. */
char *gw_probe_missing(const struct gw_finding *findings, uint32_t count, char *buffer, size_t bytes);

#endif
