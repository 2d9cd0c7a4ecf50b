/* Near rows: see near_rows.h. A look-up costs one cache line of a set's index, and a copy those of its row; both are
 * prefetched. A server's index is trusted for nothing: ranks are compared with the number of rows. */
#include "client/rows/near_rows.h"

#include "client/engine/engine.h"
#include "transport/copy.h"

#define INDEX_AHEAD 16u

/* NULL: it exceeds its region, or cannot be addressed. */
static const uint8_t *near_map(const struct gw_link *link, const struct gw_place *place, uint64_t bytes)
{
	if (place->region >= link->endpoint->peer.region_count)
		return NULL;
	const struct gw_region *region = &link->endpoint->peer.regions[place->region];
	uint64_t end;
	if (__builtin_add_overflow(place->offset, bytes, &end) || end > region->bytes)
		return NULL;
	const uint8_t *base = gw_endpoint_map(link->endpoint, region);
	return base ? base + place->offset : NULL;
}

uint32_t gw_near_rows_find(struct gw_engine *engine, const struct gw_rows *rows, struct gw_near_rows *near)
{
	const uint32_t parts = engine->client->meta->num_parts;
	near->ids = rows->starts[parts];
	near->row_bytes = rows->row_bytes;
	near->sets = 0;
	if (!rows->near)
		return 0;
	for (uint32_t p = 0; p < parts && near->sets < GW_NEAR_SETS_MAX; p++) {
		const struct gw_near_place *place = &rows->near[p];
		const struct gw_link *link = gw_engine_link(engine, p);
		if (!place->count || link->state != GW_LINK_OPEN || !link->mapped)
			continue;
		struct gw_near_set *set = &near->set[near->sets];
		*set = (struct gw_near_set){.blocks = (const void *)near_map(link, &place->index,
									     gw_replica_blocks(near->ids) *
										     sizeof(struct gw_replica_block)),
					    .rows = near_map(link, &place->rows, place->count * rows->row_bytes),
					    .count = place->count,
					    .link = gw_engine_link(engine, p)};
		near->sets += set->blocks && set->rows;
	}
	return near->sets;
}

static inline void prefetch_index(const struct gw_near_rows *near, uint64_t id)
{
	for (uint32_t s = 0; s < near->sets; s++)
		__builtin_prefetch(&near->set[s].blocks[id / GW_REPLICA_BLOCK_IDS]);
}

uint64_t gw_near_rows_divide(const struct gw_near_rows *near, const int64_t *ids, uint32_t *list, uint64_t n,
			     uint32_t *out)
{
	uint64_t found = 0;
	for (uint64_t i = 0; i < n && i < INDEX_AHEAD; i++)
		prefetch_index(near, (uint64_t)ids[list[i]]);
	for (uint64_t i = 0; i < n; i++) {
		const uint32_t position = list[i];
		if (i + INDEX_AHEAD < n)
			prefetch_index(near, (uint64_t)ids[list[i + INDEX_AHEAD]]);
		uint32_t set;
		const bool is_near = gw_near_row(near, (uint64_t)ids[position], &set) != NULL;
		list[i - found] = position;
		out[found] = position;
		found += is_near;
	}
	return found;
}

uint64_t gw_near_rows_copy(struct gw_near_rows *near, const int64_t *ids, const uint32_t *list, uint64_t n,
			   uint8_t *out)
{
	const uint64_t bytes = near->row_bytes;
	const uint8_t *ahead[GW_COPY_AHEAD];
	uint8_t sets[GW_COPY_AHEAD];
	uint64_t looked = 0;
	for (uint32_t s = 0; s < near->sets; s++)
		near->set[s].copied = 0;
	for (uint64_t i = 0; i < n; i++) {
		for (; looked < n && looked < i + GW_COPY_AHEAD; looked++) {
			uint32_t set;
			const uint8_t *row = gw_near_row(near, (uint64_t)ids[list[looked]], &set);
			if (!row) {
				n = looked;
				break;
			}
			ahead[looked % GW_COPY_AHEAD] = row;
			sets[looked % GW_COPY_AHEAD] = (uint8_t)set;
			gw_prefetch_range(row, (uint32_t)bytes);
		}
		if (i >= n)
			break;
		memcpy(out + list[i] * bytes, ahead[i % GW_COPY_AHEAD], bytes);
		near->set[sets[i % GW_COPY_AHEAD]].copied++;
	}
	return n;
}
