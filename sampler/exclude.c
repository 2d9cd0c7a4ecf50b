/* See exclude.h. An open hash table, at most half full, which each batch clears and fills. A filter with 16 or more
 * bits for each entry precedes it. The filter stays in the nearest cache while the batch's edges are looked up. */
#include "sampler/exclude.h"

#include <assert.h>
#include <string.h>

#include "core/numbers/rng.h"

/* The kinds of exclusion of an edge type. */
#define BY_EDGE 1u
#define BY_ENDS 2u

struct exclude_slot {
	uint64_t first, second; /* an edge and 0; or its source and destination */
	uint32_t etype, kind;   /* kind 0: the slot is free */
};

gw_status gw_exclude_clear(struct gw_exclude *exclude, uint32_t num_etypes, uint64_t entries)
{
	uint64_t slots = 16;
	uint32_t filter_bits = 7; /* log2 of the number of bits: 8 bits a slot */
	for (; slots < 2 * entries; slots *= 2)
		filter_bits++;
	exclude->slot_count = 0;
	exclude->type_count = 0;
	gw_status status = gw_vec_reserve(&exclude->kinds, num_etypes);
	if (status == GW_OK)
		status = gw_vec_reserve(&exclude->slots, slots * sizeof(struct exclude_slot));
	if (status == GW_OK)
		status = gw_vec_reserve(&exclude->filter, slots);
	if (status != GW_OK)
		return status;
	exclude->filter_shift = 64 - filter_bits;
	memset(exclude->filter.data, 0, slots);
	if (num_etypes)
		memset(exclude->kinds.data, 0, num_etypes);
	memset(exclude->slots.data, 0, slots * sizeof(struct exclude_slot));
	exclude->slot_count = slots;
	exclude->type_count = num_etypes;
	return GW_OK;
}

void gw_exclude_free(struct gw_exclude *exclude)
{
	gw_vec_free(&exclude->slots);
	gw_vec_free(&exclude->kinds);
	gw_vec_free(&exclude->filter);
}

/* The slot of an entry, or the free slot for it. */
static struct exclude_slot *exclude_find(const struct gw_exclude *exclude, uint32_t etype, uint32_t kind,
					 uint64_t first, uint64_t second)
{
	struct exclude_slot *slots = exclude->slots.data;
	uint64_t at = gw_mix64(first ^ gw_mix64(second + etype + ((uint64_t)kind << 32)));
	for (;; at++) {
		struct exclude_slot *slot = &slots[at & (exclude->slot_count - 1)];
		if (!slot->kind ||
		    (slot->first == first && slot->second == second && slot->etype == etype && slot->kind == kind))
			return slot;
	}
}

static void exclude_add(struct gw_exclude *exclude, uint32_t etype, uint32_t kind, uint64_t first, uint64_t second,
			uint64_t hash)
{
	assert(etype < exclude->type_count);
	*exclude_find(exclude, etype, kind, first, second) =
		(struct exclude_slot){.first = first, .second = second, .etype = etype, .kind = kind};
	((uint8_t *)exclude->kinds.data)[etype] |= (uint8_t)kind;
	uint64_t bit = hash >> exclude->filter_shift;
	((uint64_t *)exclude->filter.data)[bit / 64] |= 1ull << (bit % 64);
}

void gw_exclude_add_edge(struct gw_exclude *exclude, uint32_t etype, uint64_t edge)
{
	exclude_add(exclude, etype, BY_EDGE, edge, 0, gw_exclude_hash_edge(edge));
}

void gw_exclude_add_ends(struct gw_exclude *exclude, uint32_t etype, uint64_t src, uint64_t dst)
{
	exclude_add(exclude, etype, BY_ENDS, src, dst, gw_exclude_hash_ends(src, dst));
}

bool gw_exclude_look_up(const struct gw_exclude *exclude, uint32_t etype, uint64_t edge, uint64_t src, uint64_t dst)
{
	uint8_t kinds = ((const uint8_t *)exclude->kinds.data)[etype];
	return (kinds & BY_EDGE && exclude_find(exclude, etype, BY_EDGE, edge, 0)->kind) ||
	       (kinds & BY_ENDS && exclude_find(exclude, etype, BY_ENDS, src, dst)->kind);
}
