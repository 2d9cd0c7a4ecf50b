/* A server's memory, estimated in advance, and whether it is there. `graphwire serve` does not start without it, and
 * the doctor reports the same. */
#ifndef GW_SERVER_FOOTPRINT_H
#define GW_SERVER_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/memory/memory.h"

#define GW_SERVER_THREADS_MAX       256
#define GW_SERVER_CONNECTIONS_USUAL 128u /* the most that the estimate counts; more are a limit, not an expectation */

/* The threads of a server, if the user names no number: one for each processor. */
uint32_t gw_server_threads(void);

/* The connections that the estimate counts for a limit of so many; 0: the usual limit. */
static inline uint32_t gw_server_connections(uint32_t limit)
{
	return limit && limit < GW_SERVER_CONNECTIONS_USUAL ? limit : GW_SERVER_CONNECTIONS_USUAL;
}

/* The bytes that a control group charges for a server with array_bytes of arrays: the arena and its page tables, the
 * program, its threads, and the buffers of its connections, including the kernel's buffers. connections 0: the usual
 * number. Tensors that clients create are not included. */
uint64_t gw_server_footprint(uint64_t array_bytes, uint32_t threads, uint32_t connections);

struct gw_server_plan {
	uint64_t array_bytes;
	uint32_t threads, connections; /* connections 0: the usual number */
	int node;                      /* the NUMA node of the arrays; negative: any */
	bool no_pool;                  /* the arrays do not use the pool of huge pages */
};

struct gw_server_room {
	struct gw_memory memory; /* what is available */
	uint64_t wanted;         /* of it: the footprint, without the arrays if the pool has room for them */
	uint64_t pool;           /* the pool's room */
};

/* Reads what the machine, the node and the control groups have for the plan. Returns whether it suffices. root: as for
 * gw_memory_read. */
bool gw_server_room_read(const char *root, const struct gw_server_plan *plan, struct gw_server_room *out);

#endif
