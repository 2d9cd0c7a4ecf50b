/* All small allocations go through one hook: libc by default (jemalloc in the program, which replaces libc's), a
 * counting and failing one in tests. Big memory is an arena's (core/memory/arena.h). */
#ifndef GW_MEMORY_ALLOC_H
#define GW_MEMORY_ALLOC_H

#include <stddef.h>

struct gw_allocator {
	void *(*allocate)(size_t bytes);              /* malloc's contract */
	void *(*reallocate)(void *old, size_t bytes); /* realloc's contract */
	void (*release)(void *memory);                /* free's contract */
};

/* Replaces the hook; NULL restores libc. Call before any other thread runs. The struct must outlive its use. */
void gw_allocator_set(const struct gw_allocator *allocator);

/* NULL when out of memory; the error text is set. 0 bytes gives a unique pointer. */
void *gw_malloc(size_t bytes) __attribute__((malloc, warn_unused_result));

/* Zeroed; NULL when out of memory or the product overflows; the error text is set. */
void *gw_calloc(size_t count, size_t bytes) __attribute__((malloc, warn_unused_result));

/* Like realloc of an array: the old block stays valid on failure (NULL, error text set). */
void *gw_realloc(void *old, size_t count, size_t bytes) __attribute__((warn_unused_result));

/* NULL is allowed. */
void gw_free(void *memory);

/* After much was freed: gives it back to the system, as far as the allocator can, which may take milliseconds. Another
 * hook than libc's looks after its memory by itself. */
void gw_memory_trim(void);

char *gw_strdup(const char *text) __attribute__((malloc, warn_unused_result));

/* A new string; NULL when out of memory. */
char *gw_format(const char *format, ...) __attribute__((format(printf, 1, 2), malloc, warn_unused_result));

#endif
