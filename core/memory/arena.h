/* Large memory: one contiguous mapping on the largest available pages, placed on the requested NUMA nodes. It is cut
 * into slices, each a power of two; RDMA and io_uring register the slices one by one.
 *
 *   hugetlb memfd  ->  shmem memfd, populated, then collapsed (MADV_COLLAPSE)  ->  4 KiB pages
 *
 * One log line per arena reports the pages that the arena got, and the command that would give better ones. Access to
 * random rows is half as fast on 4 KiB pages. gw_arena_create faults all memory in, so a shortage is its error, never a
 * later SIGBUS.
 */
#ifndef GW_MEMORY_ARENA_H
#define GW_MEMORY_ARENA_H

#include <stdbool.h>

#include "core/errors/status.h"
#include "core/memory/page_level.h"

#define GW_ARENA_ALIGN 4096ull /* alignment of arrays in the arena; O_DIRECT needs it */

enum gw_huge_policy { GW_HUGE_TRY, GW_HUGE_REQUIRE, GW_HUGE_OFF };

struct gw_arena_options {
	const char *name; /* for the log and /proc/PID/maps */
	enum gw_huge_policy huge;
	int numa;                  /* GW_NUMA_SPREAD, GW_NUMA_LOCAL or the number of a node */
	bool shareable;            /* a memfd, which other processes can map; else private memory (MADV_HUGEPAGE) */
	unsigned populate_threads; /* 0: one per processor; at most one per 64 MiB */
};

struct gw_arena; /* owns its mapping; belongs to its creator */

/* Allocates bytes (rounded up to pages of the level reached) of zeroed memory. An arena of less than half a huge page
 * gets small pages, unless huge pages are required. options may be NULL: private memory on the largest possible pages,
 * spread over the nodes. bytes = 0 gives one page. Errors leave *out NULL: GW_NO_MEMORY names the bytes wanted and
 * free; GW_UNSUPPORTED: huge pages are required but not available, and the text names the command that provides them;
 * GW_INVALID: the NUMA node does not exist. */
gw_status gw_arena_create(uint64_t bytes, const struct gw_arena_options *options, struct gw_arena **out);
/* How another process's arena lies in its memfd. */
struct gw_arena_shape {
	uint64_t bytes, slice_bytes;
	enum gw_page_level level;
};
void gw_arena_shape(const struct gw_arena *arena, struct gw_arena_shape *out);
/* Makes an arena of the memfd of another process's arena: the same pages, with their NUMA nodes. No byte is handed out.
 * Takes over the descriptor if it succeeds. writable = false: the memory can only be read, for a memfd that is sealed
 * against new writers. GW_INVALID: the memfd does not have this shape; GW_UNSUPPORTED: it is sealed, or cannot be
 * mapped; GW_NO_MEMORY. */
gw_status gw_arena_adopt(int fd, const char *name, const struct gw_arena_shape *shape, bool writable,
			 struct gw_arena **out);
void gw_arena_destroy(struct gw_arena *arena); /* NULL is allowed */

uint8_t *gw_arena_base(const struct gw_arena *arena);
uint64_t gw_arena_bytes(const struct gw_arena *arena);       /* capacity, at least the bytes wanted */
uint64_t gw_arena_slice_bytes(const struct gw_arena *arena); /* a power of two; the last slice may be shorter */
enum gw_page_level gw_arena_page_level(const struct gw_arena *arena);
int gw_arena_fd(const struct gw_arena *arena); /* the memfd, or -1; the arena owns it */

/* Hands out the next bytes at the given alignment (a power of two); *offset counts from the base. GW_NO_MEMORY: the
 * arena is used up. Not thread-safe. */
gw_status gw_arena_take(struct gw_arena *arena, uint64_t bytes, uint64_t align, uint64_t *offset);

#endif
