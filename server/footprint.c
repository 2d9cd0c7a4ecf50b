/* The sum of what a server takes. The terms were measured in a memory group (memory.max_usage_in_bytes): 2.9 MiB beyond
 * the arrays when an idle server of two threads was ready, and 43 MiB when 24 clients with four threads each had
 * sampled and gathered over TCP, 450 KiB a connection. A change that makes a connection or a thread cheaper belongs
 * here, too. */
#include "server/footprint.h"

#define MIB              (1ull << 20)
#define HUGE_BYTES       (2 * MIB)  /* the arena ends at a whole one on each NUMA node */
#define TABLE_SHARE      256        /* page tables of 4 KiB pages, 8 bytes each, here and in a client that maps them */
#define PROGRAM_BYTES    (12 * MIB) /* code, libraries, allocator, the graph's JSON, digests while it loads */
#define THREAD_BYTES     (2 * MIB)  /* stack, ring, working memory of sample requests */
#define CONNECTION_BYTES (512u << 10) /* buffers here and in the kernel */

uint64_t gw_server_footprint(uint64_t array_bytes, uint32_t threads, uint32_t connections)
{
	uint64_t arena = (array_bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	uint64_t sockets = connections ? connections : GW_SERVER_CONNECTIONS_USUAL;
	return arena + array_bytes / TABLE_SHARE + PROGRAM_BYTES + threads * THREAD_BYTES + sockets * CONNECTION_BYTES;
}
