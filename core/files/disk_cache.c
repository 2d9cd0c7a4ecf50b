/* Blocks of files in memory. A hash table finds a block's frame. If a block needs a frame, the hand of a clock passes
 * over the frames: one that was used since its last pass is spared once. So a block that is used once gives way before
 * blocks that are used again and again. At most half of the frames are in flight, so that the hand always finds one. */
#include "core/files/disk_private.h"
#include "core/memory/alloc.h"
#include "core/memory/memory.h"

#define FRAME_COST                                                                                                     \
	(DISK_BLOCK + sizeof(struct disk_frame) + 4 * sizeof(uint32_t)) /* with four slots of the table at most */

gw_status gw_disk_cache_open(struct disk_cache *cache, const struct gw_disk_options *options)
{
	uint64_t count = options->cache_bytes / FRAME_COST, slots = 2;
	if (count > UINT32_MAX / 4)
		count = UINT32_MAX / 4;
	while (slots < 2 * count)
		slots *= 2;
	/* The table below is filled: before that, a cache that is too large has to be an error. */
	struct gw_memory memory;
	gw_memory_read("", options->numa >= 0 ? options->numa : -1, &memory);
	gw_status status =
		gw_memory_suffices(&memory, options->cache_bytes, "the cache of rows on disk", "a smaller cache");
	if (status != GW_OK)
		return status;
	cache->count = (uint32_t)count;
	cache->slot_mask = (uint32_t)(slots - 1);
	cache->reading_max = cache->count / 2;
	cache->frames = gw_calloc(count, sizeof(*cache->frames));
	cache->slots = gw_malloc(slots * sizeof(*cache->slots));
	if (!cache->frames || !cache->slots)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < slots; i++)
		cache->slots[i] = DISK_NONE;
	const struct gw_arena_options arena = {
		.name = "graphwire-disk-cache", .huge = options->huge, .numa = options->numa};
	return gw_arena_create(count * DISK_BLOCK, &arena, &cache->arena);
}

void gw_disk_cache_shut(struct disk_cache *cache)
{
	gw_arena_destroy(cache->arena);
	gw_free(cache->frames);
	gw_free(cache->slots);
}

static inline uint32_t disk_home(const struct disk_cache *cache, uint64_t key)
{
	return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 32) & cache->slot_mask;
}

uint32_t gw_disk_cache_find(const struct disk_cache *cache, uint64_t key)
{
	for (uint32_t slot = disk_home(cache, key); cache->slots[slot] != DISK_NONE;
	     slot = (slot + 1) & cache->slot_mask) {
		if (cache->frames[cache->slots[slot]].key == key)
			return cache->slots[slot];
	}
	return DISK_NONE;
}

/* Moves later entries of the chain into the gap, so that no search ends too early. */
static void disk_cache_forget(struct disk_cache *cache, uint32_t frame)
{
	uint32_t gap = disk_home(cache, cache->frames[frame].key);
	while (cache->slots[gap] != frame)
		gap = (gap + 1) & cache->slot_mask;
	for (uint32_t slot = (gap + 1) & cache->slot_mask; cache->slots[slot] != DISK_NONE;
	     slot = (slot + 1) & cache->slot_mask) {
		uint32_t home = disk_home(cache, cache->frames[cache->slots[slot]].key);
		if (((slot - home) & cache->slot_mask) >= ((slot - gap) & cache->slot_mask)) {
			cache->slots[gap] = cache->slots[slot];
			gap = slot;
		}
	}
	cache->slots[gap] = DISK_NONE;
	cache->frames[frame].state = DISK_FREE;
}

uint32_t gw_disk_cache_claim(struct disk_cache *cache, uint64_t key)
{
	struct disk_frame *frame;
	for (;; cache->hand = (cache->hand + 1) % cache->count) {
		frame = &cache->frames[cache->hand];
		if (frame->state == DISK_FREE || (frame->state == DISK_VALID && !frame->used))
			break;
		frame->used = false;
	}
	const uint32_t number = cache->hand;
	cache->hand = (cache->hand + 1) % cache->count;
	if (frame->state == DISK_VALID)
		disk_cache_forget(cache, number);
	*frame = (struct disk_frame){.key = key, .waits = DISK_NONE, .state = DISK_READING};
	uint32_t slot = disk_home(cache, key);
	while (cache->slots[slot] != DISK_NONE)
		slot = (slot + 1) & cache->slot_mask;
	cache->slots[slot] = number;
	cache->reading++;
	return number;
}

void gw_disk_cache_settle(struct disk_cache *cache, uint32_t frame, bool valid)
{
	cache->reading--;
	cache->frames[frame].state = DISK_VALID;
	if (!valid)
		disk_cache_forget(cache, frame);
}
