/* Limits that bind this process: the kernel's file of each limit, how much is left, and the command that raises it. The
 * commands cover a host, a unit, a container and a pod. Error texts name them, and the doctor reports them in advance.
 */
#ifndef GW_SYSTEM_LIMITS_H
#define GW_SYSTEM_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GW_LIMIT_FILE_MAX 256
#define GW_LIMIT_FIX_MAX  512

/* --- Limits of control groups, version 1 and 2: the process's own group, and those above it. --- */

enum gw_group_limit {
	GW_GROUP_MEMORY,           /* bytes; memory.high, which slows a group down, counts as a limit */
	GW_GROUP_SWAP,             /* bytes */
	GW_GROUP_THREADS,          /* processes and threads */
	GW_GROUP_HUGETLB,          /* bytes of 2 MiB pages that are in use */
	GW_GROUP_HUGETLB_RESERVED, /* bytes of 2 MiB pages that are mapped, in use or not */
	GW_GROUP_LIMITS
};

struct gw_group_use {
	uint64_t limit, used;         /* of the group with the least left; UINT64_MAX: no limit */
	char file[GW_LIMIT_FILE_MAX]; /* the file that keeps the limit; "": no limit */
};

/* root: "" for this machine, or a fake tree in tests; `file` does not include it. */
void gw_group_limit_read(const char *root, enum gw_group_limit limit, struct gw_group_use *out);
/* Reads that limit of 2 MiB pages that has less left, in use or reserved, and returns its name. */
enum gw_group_limit gw_group_hugetlb_read(const char *root, struct gw_group_use *out);
/* The rest of the limit; UINT64_MAX: no limit. */
uint64_t gw_group_left(const struct gw_group_use *use);
/* Writes the command that raises the limit to `wanted`. Returns the text. */
char *gw_group_fix(enum gw_group_limit limit, const struct gw_group_use *use, uint64_t wanted,
		   char text[GW_LIMIT_FIX_MAX]);

/* How much of an RDMA device the group's processes may use (rdma.max): contexts, and the sum of queue pairs, completion
 * queues and registrations. device: NULL for any device. UINT64_MAX: no limit. Returns false if no group has a
 * limit. */
struct gw_group_rdma {
	uint64_t handles, objects;
	char file[GW_LIMIT_FILE_MAX];
};
bool gw_group_rdma_read(const char *root, const char *device, struct gw_group_rdma *out);

/* --- Limits of the process (ulimit). --- */

enum gw_process_limit {
	GW_PROCESS_FILES,     /* open files */
	GW_PROCESS_LOCKED,    /* bytes of locked memory */
	GW_PROCESS_THREADS,   /* processes and threads of the user */
	GW_PROCESS_SPACE,     /* bytes of address space */
	GW_PROCESS_FILE_SIZE, /* bytes of a file, and of shared memory */
	GW_PROCESS_LIMITS
};

/* Writes the command that raises the limit to `wanted` (UINT64_MAX: unlimited). hard: the limit above which the process
 * may not raise it. Returns the text. */
char *gw_process_fix(enum gw_process_limit limit, uint64_t wanted, uint64_t hard, char text[GW_LIMIT_FIX_MAX]);
/* The same, with the current hard limit of this process. */
char *gw_process_fix_own(enum gw_process_limit limit, uint64_t wanted, char text[GW_LIMIT_FIX_MAX]);
/* The soft limit of this process; UINT64_MAX: no limit. */
uint64_t gw_process_limit(enum gw_process_limit limit);

#endif
