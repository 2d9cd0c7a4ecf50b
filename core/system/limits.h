/* Limits that bind this process: where the kernel keeps each, how much of it is left, and the command that raises it,
 * on a host, in a unit, in a container and in a pod. For refusals, so that they name what binds; for the doctor, so
 * that it is known before.
 */
#ifndef GW_SYSTEM_LIMITS_H
#define GW_SYSTEM_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GW_LIMIT_FILE_MAX 256
#define GW_LIMIT_FIX_MAX  512

/* --- Of the control groups, version 1 and 2: a group's own, and those above it. --- */

enum gw_group_limit {
	GW_GROUP_MEMORY,           /* bytes; the brake memory.high counts as a limit */
	GW_GROUP_SWAP,             /* bytes */
	GW_GROUP_THREADS,          /* processes and threads */
	GW_GROUP_HUGETLB,          /* bytes of 2 MiB pages that are in use */
	GW_GROUP_HUGETLB_RESERVED, /* bytes of 2 MiB pages that are mapped, in use or not */
	GW_GROUP_LIMITS
};

struct gw_group_use {
	uint64_t limit, used;         /* of the group in which least is left; UINT64_MAX: no limit */
	char file[GW_LIMIT_FILE_MAX]; /* that the limit is kept in; "": no limit */
};

/* root: "" for this machine, or a made-up tree, which is left out of `file`. */
void gw_group_limit_read(const char *root, enum gw_group_limit limit, struct gw_group_use *out);
/* What is left; UINT64_MAX: no limit. */
uint64_t gw_group_left(const struct gw_group_use *use);
/* The command that raises it to this number. Returns the text. */
char *gw_group_fix(enum gw_group_limit limit, const struct gw_group_use *use, uint64_t wanted,
		   char text[GW_LIMIT_FIX_MAX]);

/* What processes of the group may take of an RDMA device (rdma.max): contexts of it, and queue pairs, completion
 * queues, registrations together. device: NULL: of any. UINT64_MAX: no limit. false: there is none at all. */
struct gw_group_rdma {
	uint64_t handles, objects;
	char file[GW_LIMIT_FILE_MAX];
};
bool gw_group_rdma_read(const char *root, const char *device, struct gw_group_rdma *out);

/* --- Of the process (ulimit). --- */

enum gw_process_limit {
	GW_PROCESS_FILES,     /* open files */
	GW_PROCESS_LOCKED,    /* bytes of locked memory */
	GW_PROCESS_THREADS,   /* processes and threads of the user */
	GW_PROCESS_SPACE,     /* bytes of address space */
	GW_PROCESS_FILE_SIZE, /* bytes of a file, and of shared memory */
	GW_PROCESS_LIMITS
};

/* The command that raises it to `wanted` (UINT64_MAX: unlimited), where it may not be raised above `hard`. Returns the
 * text. */
char *gw_process_fix(enum gw_process_limit limit, uint64_t wanted, uint64_t hard, char text[GW_LIMIT_FIX_MAX]);
/* The same for this process, now. */
char *gw_process_fix_own(enum gw_process_limit limit, uint64_t wanted, char text[GW_LIMIT_FIX_MAX]);
/* The soft limit of this process; UINT64_MAX: none. */
uint64_t gw_process_limit(enum gw_process_limit limit);

#endif
