/* Two maps from ids to small numbers, both cheap to empty, for relabelling and for removing duplicates.
 *
 * gw_dense_map: 4 bytes per possible id; a higher base empties it. For id spaces that fit in memory.
 * gw_hash_map: open addressing, sized to the batch, doubles when full. For all other id spaces.
 * Lookups are inline and can be prefetched, because a sampler spends most of its time on random access to these maps.
 */
#ifndef GW_MEMORY_IDMAP_H
#define GW_MEMORY_IDMAP_H

#include <stdbool.h>

#include "core/memory/arena.h"
#include "core/memory/vec.h"

/* The entry of an id is base + its number. If an entry is below the base, the id is new. */
struct gw_dense_map {
	uint32_t *entries;
	uint64_t ids;  /* ids run from 0 to ids - 1, and so do numbers */
	uint32_t base; /* at most 2^32 - ids */
	struct gw_arena *arena;
};

#define GW_DENSE_IDS_MAX (1ull << 31)

/* Memory: 4 bytes * ids, on huge pages where possible. GW_LIMIT: more than GW_DENSE_IDS_MAX ids. */
gw_status gw_dense_map_create(uint64_t ids, struct gw_dense_map *out);
void gw_dense_map_destroy(struct gw_dense_map *map);
/* Empties a map whose numbers are below `numbers`. O(1), but O(ids) once in at least 2^31 numbers. */
void gw_dense_map_clear(struct gw_dense_map *map, uint64_t numbers);

/* Returns the number of an id; that of a new id is `number`. Always writes the entry, and has no branch, because no
 * predictor learns whether an id is new. */
static inline uint32_t gw_dense_map_put(const struct gw_dense_map *map, uint64_t id, uint32_t number, bool *is_new)
{
	uint32_t found;
	*is_new = __builtin_sub_overflow(map->entries[id], map->base, &found);
	found ^= (found ^ number) & -(uint32_t)*is_new;
	map->entries[id] = map->base + found;
	return found;
}

/* Key and number are in one cache line, so that one prefetch brings both. */
struct gw_hash_slot {
	uint64_t key;
	uint32_t number;
	uint32_t mark; /* the caller's; 0 in a new slot */
};

struct gw_hash_map {
	struct gw_hash_slot *slots; /* on huge pages, if there are many */
	struct gw_vec memory;
	uint64_t mask;  /* number of slots - 1 */
	uint64_t used;  /* ids in the map */
	uint64_t limit; /* `used` at which the map grows: half the slots */
	uint64_t hash_key;
};

#define GW_HASH_EMPTY UINT64_MAX /* the only id that cannot be a key */

/* Room for `expected` ids before the map grows. Clearing keeps the memory and costs one memset of the slots. */
gw_status gw_hash_map_create(uint64_t expected, struct gw_hash_map *out);
void gw_hash_map_destroy(struct gw_hash_map *map);
void gw_hash_map_clear(struct gw_hash_map *map);
/* Makes room for `more` further ids, so that gw_hash_map_put cannot fail for them. GW_NO_MEMORY leaves the map
 * unchanged. */
gw_status gw_hash_map_reserve(struct gw_hash_map *map, uint64_t more);

/* Combines both halves of a 128-bit product: every bit of the id reaches the low bits, which select the slot. The map's
 * hash key prevents a peer that chooses ids from choosing their slots as well. The numbers that the map stores do not
 * depend on the hash key. */
static inline uint64_t gw_hash_slot_of(const struct gw_hash_map *map, uint64_t id)
{
	unsigned __int128 product = (unsigned __int128)(id ^ map->hash_key) * 0x9e3779b97f4a7c15ull;
	return ((uint64_t)product ^ (uint64_t)(product >> 64)) & map->mask;
}

static inline void gw_hash_map_prefetch(const struct gw_hash_map *map, uint64_t id)
{
	__builtin_prefetch(&map->slots[gw_hash_slot_of(map, id)], 1);
}

/* The slot of an id; a new one has this number. The caller has reserved room. */
static inline struct gw_hash_slot *gw_hash_map_at(struct gw_hash_map *map, uint64_t id, uint32_t number, bool *is_new)
{
	uint64_t at = gw_hash_slot_of(map, id);
	while (map->slots[at].key != id) {
		if (map->slots[at].key == GW_HASH_EMPTY) {
			map->slots[at] = (struct gw_hash_slot){.key = id, .number = number};
			map->used++;
			*is_new = true;
			return &map->slots[at];
		}
		at = (at + 1) & map->mask;
	}
	*is_new = false;
	return &map->slots[at];
}

/* As gw_dense_map_put. The caller has reserved room. */
static inline uint32_t gw_hash_map_put(struct gw_hash_map *map, uint64_t id, uint32_t number, bool *is_new)
{
	return gw_hash_map_at(map, id, number, is_new)->number;
}

#endif
