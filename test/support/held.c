/* The allocator that counts bytes: libc's, with sums in front of it. */
#include "test/support/held.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/memory/alloc.h"

static atomic_long held, peak;
static atomic_ulong asked;

static void held_add(long bytes)
{
	long now = atomic_fetch_add(&held, bytes) + bytes, most = atomic_load(&peak);
	while (now > most && !atomic_compare_exchange_weak(&peak, &most, now))
		;
}

static void *held_allocate(size_t bytes)
{
	void *memory = malloc(bytes);
	atomic_fetch_add(&asked, 1);
	held_add((long)malloc_usable_size(memory));
	return memory;
}

static void *held_reallocate(void *old, size_t bytes)
{
	long before = (long)malloc_usable_size(old);
	void *memory = realloc(old, bytes);
	atomic_fetch_add(&asked, 1);
	if (memory)
		held_add((long)malloc_usable_size(memory) - before);
	return memory;
}

static void held_release(void *memory)
{
	held_add(-(long)malloc_usable_size(memory));
	free(memory);
}

static const struct gw_allocator counting = {
	.allocate = held_allocate, .reallocate = held_reallocate, .release = held_release};

void gw_held_begin(void)
{
	atomic_store(&held, 0);
	atomic_store(&peak, 0);
	atomic_store(&asked, 0);
	gw_allocator_set(&counting);
}

long gw_held_bytes(void)
{
	return atomic_load(&held);
}

long gw_held_peak(void)
{
	return atomic_load(&peak);
}

unsigned long gw_held_allocations(void)
{
	return atomic_load(&asked);
}

long gw_held_end(void)
{
	gw_allocator_set(NULL);
	return gw_held_bytes();
}
