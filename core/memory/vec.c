/* Growing buffers. Below BIG bytes the allocation hook provides the memory. From BIG on, the buffer is a mapping of its
 * own on huge pages. A few entries of the TLB then cover the buffers that a sampler streams through. If growth fails
 * with GW_NO_MEMORY, nothing changes. Growing copies the content and does not remap its pages, because only an aligned
 * mapping gets huge pages. */
#include "core/memory/vec.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "core/memory/alloc.h"

#define ALIGN ((size_t)64)
#define HUGE  ((size_t)2 << 20)
#define BIG   HUGE

/* Aligned memory from the hook. The hook's own address is stored in front of it. */
static void *small_new(size_t bytes)
{
	uint8_t *raw = gw_malloc(bytes + ALIGN + sizeof(void *));
	if (!raw)
		return NULL;
	uintptr_t at = ((uintptr_t)raw + sizeof(void *) + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
	uint8_t *data = raw + (at - (uintptr_t)raw);
	memcpy(data - sizeof(void *), &raw, sizeof(raw));
	return data;
}

static void small_free(void *data)
{
	void *raw;
	memcpy(&raw, (uint8_t *)data - sizeof(void *), sizeof(raw));
	gw_free(raw);
}

/* A mapping aligned to a huge page: maps one huge page more than needed, and unmaps the unaligned ends. */
static void *big_new(size_t bytes)
{
	size_t taken = bytes + HUGE;
	uint8_t *raw = mmap(NULL, taken, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (raw == MAP_FAILED) {
		gw_fail(GW_NO_MEMORY, "no memory for %zu bytes", bytes);
		return NULL;
	}
	size_t before = (HUGE - ((uintptr_t)raw & (HUGE - 1))) & (HUGE - 1);
	uint8_t *data = raw + before;
	if (before)
		munmap(raw, before);
	munmap(data + bytes, HUGE - before);
	madvise(data, bytes, MADV_HUGEPAGE); /* advice: a refusal costs only speed */
	return data;
}

static void vec_release(void *data, size_t capacity)
{
	if (capacity >= BIG)
		munmap(data, capacity);
	else if (capacity)
		small_free(data);
}

gw_status gw_vec_reserve(struct gw_vec *vec, size_t bytes)
{
	if (bytes <= vec->capacity)
		return GW_OK;
	if (bytes > SIZE_MAX / 4)
		return gw_fail(GW_NO_MEMORY, "no memory for %zu bytes", bytes);
	size_t capacity = vec->capacity ? vec->capacity : ALIGN;
	while (capacity < bytes)
		capacity *= 2;
	void *data = capacity >= BIG ? big_new(capacity) : small_new(capacity);
	if (!data)
		return GW_NO_MEMORY;
	if (vec->capacity)
		memcpy(data, vec->data, vec->capacity);
	vec_release(vec->data, vec->capacity);
	*vec = (struct gw_vec){.data = data, .capacity = capacity};
	return GW_OK;
}

void gw_vec_free(struct gw_vec *vec)
{
	vec_release(vec->data, vec->capacity);
	*vec = (struct gw_vec){0};
}
