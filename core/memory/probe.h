/* What this machine offers: gw_probe_read reads files and runs trials. The caller judges the results (tools/doctor).
 * The probe prints and changes nothing. */
#ifndef GW_MEMORY_PROBE_H
#define GW_MEMORY_PROBE_H

#include <stdbool.h>

#include "core/memory/memory.h"

struct gw_probe {
	uint32_t processors; /* that this process may run on */
	uint64_t page_bytes;
	uint64_t locked_bytes_max; /* memory that may be locked or registered; UINT64_MAX: no limit */
	bool collapse;             /* MADV_COLLAPSE works on shared memory */
	int io_uring_error;        /* 0: works; else the errno value */
	bool io_uring_buffers;     /* io_uring can register buffers */
	uint32_t io_uring_rings;   /* how many rings fit at once; the probe tries one for each processor */
	uint32_t threads;          /* how many threads can run at once; the probe tries one for each processor */
	uint64_t hugetlb_free;     /* pages of 2 MiB, over all nodes */
};

/* Runs the probe; takes a few milliseconds and leaves nothing behind. Facts that cannot be found out read as absent. */
void gw_probe_read(struct gw_probe *out);

#endif
