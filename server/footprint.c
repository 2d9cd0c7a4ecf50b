/* Estimates a server's memory. The terms were measured in a memory control group (memory.max_usage_in_bytes). An idle
 * server of two threads used 2.9 MiB beyond its arrays. After 24 clients with four threads each had sampled and
 * gathered over TCP, it used 43 MiB, which is 450 KiB a connection; 284 KiB of them were buffers that a connection no
 * longer keeps (transport/tcp/lender.h). If a change makes a connection or a thread cheaper, change the numbers here
 * too. */
#include "server/footprint.h"

#define MIB              (1ull << 20)
#define HUGE_BYTES       (2 * MIB) /* the arena ends at a multiple of this on each NUMA node */
#define TABLE_SHARE      256 /* page tables: 8 bytes for a page of 4 KiB, in the server and in a client that maps it */
#define PROGRAM_BYTES    (12 * MIB)   /* code, libraries, allocator, the graph's JSON, digests while it loads */
#define THREAD_BYTES     (3 * MIB)    /* stack, ring, buffers of connections, working memory of sample requests */
#define CONNECTION_BYTES (256u << 10) /* buffers in the server and in the kernel */

uint64_t gw_server_footprint(uint64_t array_bytes, uint32_t threads, uint32_t connections)
{
	uint64_t arena = (array_bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	uint64_t sockets = connections ? connections : GW_SERVER_CONNECTIONS_USUAL;
	return arena + array_bytes / TABLE_SHARE + PROGRAM_BYTES + threads * THREAD_BYTES + sockets * CONNECTION_BYTES;
}
