/* The mapping under an arena, and the source of its pages. Internal to core/memory; arenas and their tests use it. */
#ifndef GW_MEMORY_ARENA_PAGES_H
#define GW_MEMORY_ARENA_PAGES_H

#include <stdbool.h>

#include "core/memory/memory.h"
#include "core/memory/page_level.h"

/* One attempt at a mapping of one page level. */
struct gw_pages {
	enum gw_page_level level;
	uint8_t *base;  /* aligned to the huge page, between two inaccessible strips */
	uint64_t bytes; /* a multiple of the level's page */
	uint64_t slice_bytes;
	int fd;            /* the memfd or -1 */
	double huge_share; /* set by gw_pages_populate */
	void *reservation;
	uint64_t reservation_bytes;
	void *mark; /* of adopted read-only pages: see gw_pages_adopt; NULL: none */
	uint64_t mark_bytes;
};

/* Bytes of a transparent huge page; hugetlb pages are 2 MiB. */
uint64_t gw_pages_huge_bytes(void);

/* Maps bytes, rounded up to pages of the level, without touching them. spread: the number of NUMA nodes that slices
 * will be distributed over. GW_UNSUPPORTED: such pages do not exist here; the text names the reason. */
gw_status gw_pages_map(uint64_t bytes, enum gw_page_level level, bool shareable, const char *name, uint32_t spread,
		       struct gw_pages *out);

/* Binds slices to their NUMA nodes; call it before populate. If placement was not possible and the caller did not
 * require a node, *note points to a static text. */
gw_status gw_pages_place(const struct gw_pages *pages, int numa, const struct gw_numa_nodes *nodes, const char **note);

/* Faults in all pages, by several threads; makes pages of GW_PAGES_COLLAPSED huge as far as possible. */
gw_status gw_pages_populate(struct gw_pages *pages, unsigned threads);

/* Maps the memfd of another process's pages: out->bytes, slice_bytes and level describe it. Takes over the descriptor,
 * if it succeeds. writable = false: for a memfd that is sealed against new writers. A private mapping of one page marks
 * this process as the memory's server, since clients have shared mappings only. GW_INVALID: the description does not
 * fit the memfd; GW_UNSUPPORTED: it cannot be mapped so; GW_NO_MEMORY. */
gw_status gw_pages_adopt(int fd, bool writable, struct gw_pages *out);

void gw_pages_unmap(struct gw_pages *pages);

/* The share of [base, base + bytes) that huge pages back, from /proc/self/smaps; 0 if it cannot be read. */
double gw_pages_huge_share(const uint8_t *base, uint64_t bytes);

#endif
