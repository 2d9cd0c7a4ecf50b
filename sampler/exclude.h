/* Edges that a batch must not sample: the edges that it predicts, and their reverses.
 *
 *   clear -> add by id, by ends ... -> looked up for every edge that was drawn (sampler/blocks/blocks.h)
 *
 * Edges are dropped after the draw, so that the draw does not depend on them. A node may then get fewer edges than its
 * fanout. */
#ifndef GW_SAMPLER_EXCLUDE_H
#define GW_SAMPLER_EXCLUDE_H

#include <stdbool.h>

#include "core/memory/vec.h"

/* Zero-initialized is empty. A batch owns it and reuses it. */
struct gw_exclude {
	struct gw_vec slots; /* struct exclude_slot [slot_count] */
	struct gw_vec kinds; /* uint8_t [type_count]: kinds of exclusion of each edge type */
	/* uint64_t: a bitmap with far more bits than entries; each entry sets one bit. Rejects nearly all edges that
	 * are not excluded */
	struct gw_vec filter;
	/* hash >> filter_shift is a bit's number */
	uint32_t filter_shift;
	uint64_t slot_count; /* a power of two, or 0 */
	uint32_t type_count;
};

/* Removes all entries, and makes room for `entries`. */
gw_status gw_exclude_clear(struct gw_exclude *exclude, uint32_t num_etypes, uint64_t entries);
void gw_exclude_free(struct gw_exclude *exclude);

void gw_exclude_add_edge(struct gw_exclude *exclude, uint32_t etype, uint64_t edge);
void gw_exclude_add_ends(struct gw_exclude *exclude, uint32_t etype, uint64_t src, uint64_t dst);

/* Whether any edge of an edge type is excluded; exclude may be NULL. */
static inline bool gw_exclude_concerns(const struct gw_exclude *exclude, uint32_t etype)
{
	return exclude && etype < exclude->type_count && ((const uint8_t *)exclude->kinds.data)[etype] != 0;
}

static inline uint64_t gw_exclude_hash_edge(uint64_t edge)
{
	return edge * 0x9e3779b97f4a7c15ull;
}

static inline uint64_t gw_exclude_hash_ends(uint64_t src, uint64_t dst)
{
	return (src * 0xd1b54a32d192ed03ull + dst) * 0x9e3779b97f4a7c15ull;
}

/* Returns false if no entry has this hash. */
static inline bool gw_exclude_may_have(const struct gw_exclude *exclude, uint64_t hash)
{
	uint64_t bit = hash >> exclude->filter_shift;
	return ((const uint64_t *)exclude->filter.data)[bit / 64] >> (bit % 64) & 1;
}

/* Looks an edge up in the table, without the filter. */
bool gw_exclude_look_up(const struct gw_exclude *exclude, uint32_t etype, uint64_t edge, uint64_t src, uint64_t dst);

/* Whether an edge is excluded. Call it only for edge types that gw_exclude_concerns. */
static inline bool gw_exclude_has(const struct gw_exclude *exclude, uint32_t etype, uint64_t edge, uint64_t src,
				  uint64_t dst)
{
	return (gw_exclude_may_have(exclude, gw_exclude_hash_edge(edge)) ||
		gw_exclude_may_have(exclude, gw_exclude_hash_ends(src, dst))) &&
	       gw_exclude_look_up(exclude, etype, edge, src, dst);
}

#endif
