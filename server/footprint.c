/* A server's memory: an estimate from its arrays, threads and connections, and whether the host has room for it.
 *
 * The terms were measured in a memory control group (memory.max_usage_in_bytes). An idle server of two threads used
 * 2.9 MiB beyond its arrays. After 24 clients with four threads each had sampled and
 * gathered over TCP, it used 43 MiB, which is 450 KiB a connection; 284 KiB of them were buffers that a connection no
 * longer keeps (transport/tcp/lender.h). If a change makes a connection or a thread cheaper, change the numbers here
 * too.
 *
 * With 32 connections, of 8 clients that draw batches of 1,000 seeds, a server of two threads used 9 to 15 MiB beyond
 * its arrays (8 threads: 16 MiB; 16: 21), and 6 MiB if they map its memory. Batches of 20,000 seeds with 25, 20 and 15
 * neighbours took 78 MiB. The estimate for two threads and the usual connections is 50 MiB. */
#include "server/footprint.h"

#include "core/system/parallel.h"

#define MIB              (1ull << 20)
#define HUGE_BYTES       (2 * MIB) /* the arena ends at a multiple of this on each NUMA node */
#define TABLE_SHARE      256 /* page tables: 8 bytes for a page of 4 KiB, in the server and in a client that maps it */
#define PROGRAM_BYTES    (12 * MIB)   /* code, libraries, allocator, the graph's JSON, digests while it loads */
#define THREAD_BYTES     (3 * MIB)    /* stack, ring, buffers of connections, working memory of sample requests */
#define CONNECTION_BYTES (256u << 10) /* buffers in the server and in the kernel */

uint32_t gw_server_threads(void)
{
	uint32_t processors = gw_processors();
	return processors < GW_SERVER_THREADS_MAX ? processors : GW_SERVER_THREADS_MAX;
}

uint64_t gw_server_footprint(uint64_t array_bytes, uint32_t threads, uint32_t connections)
{
	uint64_t arena = (array_bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	uint64_t sockets = gw_server_connections(connections);
	return arena + array_bytes / TABLE_SHARE + PROGRAM_BYTES + threads * THREAD_BYTES + sockets * CONNECTION_BYTES;
}

bool gw_server_room_read(const char *root, const struct gw_server_plan *plan, struct gw_server_room *out)
{
	gw_memory_read(root, plan->node, &out->memory);
	out->pool = plan->no_pool ? 0 : gw_hugetlb_left(root, plan->node);
	bool pooled = plan->array_bytes <= out->pool;
	out->wanted = gw_server_footprint(pooled ? 0 : plan->array_bytes, plan->threads, plan->connections);
	return out->wanted <= out->memory.available;
}
