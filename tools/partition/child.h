/* A partitioner in a process of its own.
 *
 *   fork -> the child does its work, its output caught in a memfd -> the parent waits and shows progress
 *   -> the exit status and the last line of output
 *
 * Partitioners print to stdout, handle signals, draw from the C library's generator, and may exit, abort or leak memory
 * after an error. In a child none of this affects the program, and the kernel frees all memory at the end. The child
 * dies with its parent.
 */
#ifndef GW_TOOLS_PARTITION_CHILD_H
#define GW_TOOLS_PARTITION_CHILD_H

#include <stddef.h>

#include "core/errors/status.h"

struct gw_child {
	int status;     /* of waitpid */
	char said[256]; /* the last line of output, or "no output" */
};

/* Runs work(context) in a child, which exits with its result, and waits for it. what: "METIS", for progress and errors.
 * GW_IO, GW_NO_MEMORY: the child did not start. */
gw_status gw_child_run(const char *what, int (*work)(void *context), void *context, struct gw_child *out);

/* GW_OK if the child exited by itself. GW_NO_MEMORY: it was killed; GW_IO: it died of another signal. Both texts name
 * the other method. */
gw_status gw_child_judge(const char *what, const struct gw_child *child);

#endif
