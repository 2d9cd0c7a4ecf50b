/* What this machine offers: gw_probe_read reads files and runs trials. The caller judges the results (tools/doctor).
 * The probe prints and changes nothing. */
#ifndef GW_MEMORY_PROBE_H
#define GW_MEMORY_PROBE_H

#include <stdbool.h>

#include "core/memory/memory.h"

struct gw_probe {
	uint32_t processors; /* that this process may run on */
	uint64_t page_bytes;
	uint64_t huge_bytes; /* size of a transparent huge page */
	uint64_t open_files_max;
	uint64_t locked_bytes_max; /* memory that may be locked or registered; UINT64_MAX: no limit */
	char thp[16];              /* "always", "madvise", "never"; "" if the kernel has no transparent huge pages */
	char thp_shared[16];       /* the same for shared memory */
	bool collapse;             /* MADV_COLLAPSE works on shared memory */
	int io_uring_error;        /* 0: works; else the errno value */
	bool io_uring_buffers;     /* io_uring can register buffers */
	uint32_t io_uring_rings;   /* how many rings fit at once; the probe tries one for each processor */
	int io_uring_switch;       /* gw_uring_switch */
	uint32_t threads;          /* how many threads can run at once; the probe tries one for each processor */
	struct gw_memory memory;
	struct gw_numa_nodes nodes;
	uint64_t hugetlb_pages, hugetlb_free;          /* pages of 2 MiB, over all nodes */
	uint64_t node_hugetlb_free[GW_NUMA_NODES_MAX]; /* in the order of nodes.numbers */
};

/* Runs the probe; takes a few milliseconds and leaves nothing behind. Facts that cannot be found out read as absent. */
void gw_probe_read(struct gw_probe *out);

#endif
