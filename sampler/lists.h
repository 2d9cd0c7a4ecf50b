/* A run of adjacency lists, from vertices to picks. Internal to the sampler.
 *
 *   gw_lists_read (offsets -> begin, degree, count of picks) -> gw_lists_pick (draws -> ascending positions)
 *
 * A run is short, so that its offsets, its draws and the neighbours that picks prefetch stay in the nearest caches.
 */
#ifndef GW_SAMPLER_LISTS_H
#define GW_SAMPLER_LISTS_H

#include "core/graph/part.h"
#include "sampler/rule.h"

#define GW_RUN_MAX 256 /* destinations of a run */
#define GW_AHEAD   64  /* how many vertices ahead offsets are prefetched */
#define GW_SLACK   8   /* elements past the last pick that gw_lists_pick may write */

struct gw_lists {
	uint32_t n;
	const uint64_t *vertices;    /* [n]: global ids; each is the instance of its draws */
	const uint32_t *groups;      /* [n]: of their draws; NULL: all 0 */
	uint64_t begins[GW_RUN_MAX]; /* CSC position of the list's first entry */
	uint64_t degrees[GW_RUN_MAX];
	uint64_t starts[GW_RUN_MAX + 1]; /* position of the list's picks in the output; the last entry is the total */
};

/* Prefetches an element of a driver's memory; element_bytes 0: nothing. It stops at the second-level cache: a run's
 * neighbours are read much later than they are picked, and the first level has few buffers for lines on their way. */
static inline void gw_lists_prefetch(uintptr_t memory, uint64_t element, uint32_t element_bytes)
{
	if (element_bytes)
		__builtin_prefetch((const void *)(memory + element * element_bytes), 0, 2);
}

/* Computes degrees and starts from begins and ends. GW_RANGE names a list whose end is before its begin or past
 * `edges`, or whose picks exceed a uint32_t. */
gw_status gw_lists_count(struct gw_lists *lists, const struct gw_pick_rule *rule, const uint64_t *ends, uint64_t edges);

/* Reads the lists of n <= GW_RUN_MAX vertices of a part. vertices[n .. n + ahead) follow; their offsets are
 * prefetched. Leaves lists->groups alone. */
gw_status gw_lists_read(struct gw_lists *lists, const struct gw_adjacency *adjacency, const struct gw_pick_rule *rule,
			const uint64_t *vertices, uint32_t n, uint64_t ahead);

/* Writes begins[i] + position for each pick, list by list, ascending. Prefetches that element of `memory`, an array of
 * elements of element_bytes (4 or 8); element_bytes 0: prefetches nothing. out needs room for GW_SLACK more. */
gw_status gw_lists_pick(const struct gw_lists *lists, const struct gw_pick_rule *rule, struct gw_pick_scratch *scratch,
			uint64_t *out, uintptr_t memory, uint32_t element_bytes);

#endif
