/* All small allocations go through one hook. By default the hook calls libc's allocator, which jemalloc replaces in the
 * program. Tests install an allocator that counts and fails. Large memory comes from an arena (core/memory/arena.h). */
#ifndef GW_MEMORY_ALLOC_H
#define GW_MEMORY_ALLOC_H

#include <stddef.h>

struct gw_allocator {
	void *(*allocate)(size_t bytes);              /* malloc's contract */
	void *(*reallocate)(void *old, size_t bytes); /* realloc's contract */
	void (*release)(void *memory);                /* free's contract */
};

/* Replaces the hook; NULL restores libc. Call it before any other thread runs. The struct must outlive its use. */
void gw_allocator_set(const struct gw_allocator *allocator);

/* NULL if memory runs out; the error text is set. 0 bytes gives a unique pointer. */
void *gw_malloc(size_t bytes) __attribute__((malloc, warn_unused_result));

/* Zeroed; NULL if memory runs out or the product overflows; the error text is set. */
void *gw_calloc(size_t count, size_t bytes) __attribute__((malloc, warn_unused_result));

/* Like realloc of an array. On failure it returns NULL, sets the error text, and the old block stays valid. */
void *gw_realloc(void *old, size_t count, size_t bytes) __attribute__((warn_unused_result));

/* NULL is allowed. */
void gw_free(void *memory);

/* Returns freed memory to the system, as far as the allocator can; may take milliseconds. Call it after much was freed.
 * A hook other than libc's manages its own memory. */
void gw_memory_trim(void);

char *gw_strdup(const char *text) __attribute__((malloc, warn_unused_result));

/* A new string; NULL if memory runs out. */
char *gw_format(const char *format, ...) __attribute__((format(printf, 1, 2), malloc, warn_unused_result));

#endif
