/* The kinds of pages and the NUMA placement of an arena, for arenas and for the mapping under them. */
#ifndef GW_MEMORY_PAGE_LEVEL_H
#define GW_MEMORY_PAGE_LEVEL_H

#define GW_ARENA_SLICE_MAX (1ull << 30) /* io_uring refuses fixed buffers above 1 GiB (EFAULT) */

enum gw_page_level { GW_PAGES_4K, GW_PAGES_COLLAPSED, GW_PAGES_HUGETLB };

#define GW_NUMA_SPREAD (-1) /* distribute slices over the nodes in turn */
#define GW_NUMA_LOCAL  (-2) /* the kernel's default: the node of the thread that faults */

#endif
