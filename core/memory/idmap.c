/* Allocates the two id maps; the lookups are inline in the header.
 *
 * Fails if memory runs out, or for more ids than a map can address. A map that could not grow is unchanged.
 */
#include "core/memory/idmap.h"

#include <string.h>
#include <sys/random.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"

#define SLOTS_MIN 16ull
#define SLOTS_MAX (1ull << 40)

gw_status gw_dense_map_create(uint64_t ids, struct gw_dense_map *out)
{
	*out = (struct gw_dense_map){0};
	if (ids > GW_DENSE_IDS_MAX)
		return gw_fail(GW_LIMIT, "a dense map of %llu ids: use a hash map", (unsigned long long)ids);
	const struct gw_arena_options options = {.name = "id map", .huge = GW_HUGE_TRY, .numa = GW_NUMA_LOCAL};
	gw_status status = gw_arena_create(ids * sizeof(*out->entries), &options, &out->arena);
	if (status != GW_OK)
		return gw_context(status, "id map of %llu ids", (unsigned long long)ids);
	out->entries = (uint32_t *)(void *)gw_arena_base(out->arena);
	out->ids = ids;
	out->base = 1; /* the arena is zeroed, so 0 marks entries that were never put */
	return GW_OK;
}

void gw_dense_map_destroy(struct gw_dense_map *map)
{
	gw_arena_destroy(map->arena);
	*map = (struct gw_dense_map){0};
}

void gw_dense_map_clear(struct gw_dense_map *map, uint64_t numbers)
{
	uint64_t base = map->base + numbers;
	if (base + map->ids > UINT32_MAX) {
		memset(map->entries, 0, map->ids * sizeof(*map->entries));
		base = 1;
	}
	map->base = (uint32_t)base;
}

static uint64_t make_key(void)
{
	uint64_t hash_key = 0;
	if (getrandom(&hash_key, sizeof(hash_key), GRND_NONBLOCK) != sizeof(hash_key))
		/* getrandom fails early at boot, or under a seccomp filter: a weaker key is better than no key */
		hash_key = gw_now_ns() ^ (uint64_t)(uintptr_t)&hash_key;
	return hash_key;
}

/* slots: a power of two. */
static gw_status hash_map_init(struct gw_hash_map *map, uint64_t slots)
{
	*map = (struct gw_hash_map){.mask = slots - 1, .limit = slots / 2, .hash_key = make_key()};
	if (gw_vec_reserve(&map->memory, slots * sizeof(*map->slots)) != GW_OK)
		return GW_NO_MEMORY;
	map->slots = map->memory.data;
	memset(map->slots, 0xff, slots * sizeof(*map->slots));
	return GW_OK;
}

/* The smallest power of two of slots of which `ids` fill at most half; 0 for too many ids. */
static uint64_t slots_for(uint64_t ids)
{
	uint64_t slots = SLOTS_MIN;
	while (slots / 2 < ids && slots < SLOTS_MAX)
		slots *= 2;
	return slots / 2 < ids ? 0 : slots;
}

gw_status gw_hash_map_create(uint64_t expected, struct gw_hash_map *out)
{
	*out = (struct gw_hash_map){0};
	uint64_t slots = slots_for(expected);
	if (slots == 0)
		return gw_fail(GW_LIMIT, "a hash map of %llu ids", (unsigned long long)expected);
	return hash_map_init(out, slots);
}

void gw_hash_map_destroy(struct gw_hash_map *map)
{
	gw_vec_free(&map->memory);
	*map = (struct gw_hash_map){0};
}

void gw_hash_map_clear(struct gw_hash_map *map)
{
	if (map->used == 0)
		return;
	memset(map->slots, 0xff, (map->mask + 1) * sizeof(*map->slots));
	map->used = 0;
}

gw_status gw_hash_map_reserve(struct gw_hash_map *map, uint64_t more)
{
	if (more <= map->limit - map->used)
		return GW_OK;
	uint64_t slots = more > SLOTS_MAX ? 0 : slots_for(map->used + more);
	if (slots == 0)
		return gw_fail(GW_LIMIT, "a hash map of %llu further ids", (unsigned long long)more);
	struct gw_hash_map grown;
	gw_status status = hash_map_init(&grown, slots);
	if (status != GW_OK)
		return status;
	for (uint64_t i = 0; i <= map->mask; i++) {
		bool is_new;
		if (map->slots[i].key != GW_HASH_EMPTY)
			*gw_hash_map_at(&grown, map->slots[i].key, 0, &is_new) = map->slots[i];
	}
	gw_hash_map_destroy(map);
	*map = grown;
	return GW_OK;
}
