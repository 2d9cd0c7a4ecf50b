/* The allocation hook. A failure sets the error text, so that callers may just return GW_NO_MEMORY. */
#include "core/memory/alloc.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/errors/status.h"

static const struct gw_allocator libc_allocator = {.allocate = malloc, .reallocate = realloc, .release = free};
static const struct gw_allocator *current = &libc_allocator;

void gw_allocator_set(const struct gw_allocator *allocator)
{
	current = allocator ? allocator : &libc_allocator;
}

static void *alloc_checked(void *memory, size_t bytes)
{
	if (!memory)
		gw_fail(GW_NO_MEMORY, "no memory for %zu bytes", bytes);
	return memory;
}

void *gw_malloc(size_t bytes)
{
	return alloc_checked(current->allocate(bytes ? bytes : 1), bytes);
}

void *gw_calloc(size_t count, size_t bytes)
{
	size_t total;
	if (__builtin_mul_overflow(count, bytes, &total))
		return alloc_checked(NULL, SIZE_MAX);
	void *memory = gw_malloc(total);
	if (memory)
		memset(memory, 0, total);
	return memory;
}

void *gw_realloc(void *old, size_t count, size_t bytes)
{
	size_t total;
	if (__builtin_mul_overflow(count, bytes, &total))
		return alloc_checked(NULL, SIZE_MAX);
	return alloc_checked(current->reallocate(old, total ? total : 1), total);
}

void gw_free(void *memory)
{
	if (memory)
		current->release(memory);
}

/* jemalloc's function; NULL if the program does not run on jemalloc. "arena.4096" means all arenas, in every
 * version. */
extern int mallctl(const char *name, void *old, size_t *old_bytes, void *value, size_t value_bytes)
	__attribute__((weak));

void gw_memory_trim(void)
{
	if (current != &libc_allocator)
		return;
	if (mallctl)
		mallctl("arena.4096.purge", NULL, NULL, NULL, 0);
	else
		malloc_trim(0);
}

char *gw_strdup(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = gw_malloc(bytes);
	return copy ? memcpy(copy, text, bytes) : NULL;
}

char *gw_format(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (length < 0)
		return alloc_checked(NULL, 0);
	char *text = gw_malloc((size_t)length + 1);
	if (!text)
		return NULL;
	va_start(arguments, format);
	vsnprintf(text, (size_t)length + 1, format, arguments);
	va_end(arguments);
	return text;
}
