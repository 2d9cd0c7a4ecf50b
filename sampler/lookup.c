/* See lookup.h. A bisection reads a few cache lines, and the first ones are always the same. A list that is not sorted
 * by source is walked within a budget, a block at a time, so that the caller can pause in a long list. */
#include "sampler/lookup.h"

#define BLOCK 64u /* positions that are compared at once */

static uint64_t lookup_offset(const struct gw_adjacency *lists, uint64_t row)
{
	return gw_load_id(lists->indptr, lists->indptr_bytes, row * lists->columns + lists->column);
}

gw_status gw_lookup_row(const struct gw_adjacency *lists, uint64_t position, uint64_t *row)
{
	uint64_t low = 0, high = lists->rows; /* bisects for the first row whose list ends after the position */
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (lookup_offset(lists, middle + 1) <= position)
			low = middle + 1;
		else
			high = middle;
	}
	*row = low;
	if (position >= lists->edges || low == lists->rows || lookup_offset(lists, low) > position)
		return gw_fail(GW_RANGE, "position %llu is in none of the lists of %llu edges",
			       (unsigned long long)position, (unsigned long long)lists->edges);
	return GW_OK;
}

static uint64_t source_at(const struct gw_adjacency *lists, uint64_t position)
{
	return gw_load_id(lists->indices, lists->index_bytes, position);
}

gw_status gw_lookup_list(const struct gw_adjacency *lists, uint64_t row, uint64_t from, uint64_t *at, uint64_t *end)
{
	if (row >= lists->rows)
		return gw_fail(GW_RANGE, "row %llu of %llu", (unsigned long long)row, (unsigned long long)lists->rows);
	gw_adjacency_list(lists, row, at, end);
	if (*at > *end || *end > lists->edges)
		return gw_fail(GW_RANGE, "row %llu: its list [%llu, %llu) does not fit %llu edges",
			       (unsigned long long)row, (unsigned long long)*at, (unsigned long long)*end,
			       (unsigned long long)lists->edges);
	if (*at < from)
		*at = from < *end ? from : *end;
	return GW_OK;
}

uint64_t gw_lookup_source(const struct gw_adjacency *lists, uint64_t at, uint64_t end, uint64_t src)
{
	while (at < end) {
		uint64_t middle = at + (end - at) / 2;
		if (source_at(lists, middle) < src)
			at = middle + 1;
		else
			end = middle;
	}
	return at;
}

gw_status gw_lookup_begin(struct gw_lookup *lookup, const struct gw_adjacency *lists, enum gw_list_order order,
			  uint64_t row, uint64_t src, uint64_t from)
{
	*lookup = (struct gw_lookup){.lists = lists, .src = src, .sorted = order == GW_ORDER_SRC};
	gw_status status = gw_lookup_list(lists, row, from, &lookup->at, &lookup->end);
	if (status == GW_OK && lookup->sorted)
		lookup->at = gw_lookup_source(lists, lookup->at, lookup->end, src);
	return status;
}

/* Skips blocks without the source. Lanes compare, since the result of a block is one bit. */
#define SKIP(name, type)                                                                                               \
	static uint64_t name(const void *indices, uint64_t at, uint64_t end, uint64_t src)                             \
	{                                                                                                              \
		const type *ids = indices, wanted = (type)src;                                                         \
		for (; end - at >= BLOCK; at += BLOCK) {                                                               \
			type any = 0;                                                                                  \
			for (uint32_t i = 0; i < BLOCK; i++)                                                           \
				any |= ids[at + i] == wanted;                                                          \
			if (any)                                                                                       \
				break;                                                                                 \
		}                                                                                                      \
		return at;                                                                                             \
	}
SKIP(skip_narrow, uint32_t)
SKIP(skip_wide, uint64_t)
#undef SKIP

/* A source that does not fit the ids is in no list; a source of a peer may be any number. */
static void skip_others(struct gw_lookup *lookup, uint64_t *budget)
{
	const struct gw_adjacency *lists = lookup->lists;
	uint64_t left = lookup->end - lookup->at, end = lookup->at + (left < *budget ? left : *budget), at;
	if (lists->index_bytes == 4)
		at = lookup->src > UINT32_MAX ? end : skip_narrow(lists->indices, lookup->at, end, lookup->src);
	else
		at = skip_wide(lists->indices, lookup->at, end, lookup->src);
	*budget -= at - lookup->at;
	lookup->at = at;
}

bool gw_lookup_next(struct gw_lookup *lookup, uint64_t *budget, uint64_t *position)
{
	if (!lookup->sorted)
		skip_others(lookup, budget);
	while (*budget > 0 && lookup->at < lookup->end) {
		uint64_t at = lookup->at++;
		--*budget;
		if (source_at(lookup->lists, at) == lookup->src) {
			*position = at;
			return true;
		}
		if (lookup->sorted)
			lookup->at = lookup->end;
	}
	return false;
}
