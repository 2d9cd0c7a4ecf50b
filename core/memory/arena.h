/* Big memory: one contiguous mapping, backed by the largest pages that can be had, placed on the NUMA nodes asked for,
 * cut into slices of a power of two that memory registration and io_uring take one by one.
 *
 *   hugetlb memfd  ->  shmem memfd, populated, then collapsed (MADV_COLLAPSE)  ->  4 KiB pages
 *
 * What was got, and the command that would give more, is logged once per arena. Random rows run at half speed on 4 KiB
 * pages. Memory is faulted in here, not later: a shortage is an error from gw_arena_create, never a SIGBUS.
 */
#ifndef GW_MEMORY_ARENA_H
#define GW_MEMORY_ARENA_H

#include <stdbool.h>

#include "core/errors/status.h"
#include "core/memory/page_level.h"

#define GW_ARENA_ALIGN 4096ull /* arrays are packed at this alignment, O_DIRECT's */

enum gw_huge_policy { GW_HUGE_TRY, GW_HUGE_REQUIRE, GW_HUGE_OFF };

struct gw_arena_options {
	const char *name; /* for the log and /proc/PID/maps */
	enum gw_huge_policy huge;
	int numa;                  /* GW_NUMA_SPREAD, GW_NUMA_LOCAL or a node's number */
	bool shareable;            /* a memfd, which other processes may map; else private memory (MADV_HUGEPAGE) */
	unsigned populate_threads; /* 0: as many as there are processors; at most one per 64 MiB */
};

struct gw_arena; /* owns its mapping; belongs to its creator */

/* Takes bytes (rounded up to whole pages of the level reached) of zeroed memory. Less than half a huge page comes on
 * small pages, unless they are required to be huge. options may be NULL: private, as huge as possible, spread. Fails
 * with GW_NO_MEMORY (naming the bytes asked for and free), GW_UNSUPPORTED (GW_HUGE_REQUIRE and no huge pages; the text
 * names the command that gives them) or GW_INVALID (no such NUMA node). On failure *out is NULL. bytes = 0 gives one
 * page. */
gw_status gw_arena_create(uint64_t bytes, const struct gw_arena_options *options, struct gw_arena **out);
void gw_arena_destroy(struct gw_arena *arena); /* NULL is allowed */

uint8_t *gw_arena_base(const struct gw_arena *arena);
uint64_t gw_arena_bytes(const struct gw_arena *arena);       /* capacity, >= the bytes asked for */
uint64_t gw_arena_slice_bytes(const struct gw_arena *arena); /* a power of two; the last slice may be shorter */
enum gw_page_level gw_arena_page_level(const struct gw_arena *arena);
int gw_arena_fd(const struct gw_arena *arena); /* the memfd, or -1; stays the arena's */

/* Hands out the next bytes at the given alignment (a power of two): *offset from the base. GW_NO_MEMORY when the arena
 * is used up. Not thread-safe. */
gw_status gw_arena_take(struct gw_arena *arena, uint64_t bytes, uint64_t align, uint64_t *offset);

/* The share (0 to 1) of the arena's memory that huge pages back now, read from /proc/self/smaps: for tests and stat. */
double gw_arena_huge_share(const struct gw_arena *arena);

#endif
