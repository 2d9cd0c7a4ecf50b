/* Runs of adjacency lists: reads offsets ahead of their use, counts, and picks.
 *
 * Offsets may come from a peer, or from a file whose checks were skipped. So a list that runs backwards or past the end
 * is GW_RANGE before anything is read through it. Picks fail as gw_pick does.
 */
#include "sampler/lists.h"

#include <string.h>

#include "sampler/lanes/wide.h"
#include "sampler/pick.h"

#define INLINE static inline __attribute__((always_inline))

/* The wide path's data in gw_pick_scratch. */
struct wide_scratch {
	struct gw_wide wide;
	struct gw_network network; /* for the last fanout */
};

gw_status gw_lists_count(struct gw_lists *lists, const struct gw_pick_rule *rule, const uint64_t *ends, uint64_t edges)
{
	uint64_t total = 0;
	for (uint32_t i = 0; i < lists->n; i++) {
		uint64_t begin = lists->begins[i], end = ends[i], degree = end - begin;
		uint64_t count = gw_pick_count(rule, degree);
		if (begin > end || end > edges || count > UINT32_MAX)
			return gw_fail(GW_RANGE, "vertex %llu: its list [%llu, %llu) does not fit %llu edges",
				       (unsigned long long)lists->vertices[i], (unsigned long long)begin,
				       (unsigned long long)end, (unsigned long long)edges);
		lists->degrees[i] = degree;
		lists->starts[i] = total;
		total += count;
	}
	lists->starts[lists->n] = total;
	return GW_OK;
}

static gw_status not_owned(const struct gw_adjacency *adjacency, uint64_t vertex)
{
	return gw_fail(GW_RANGE, "vertex %llu is not of this part, which owns [%llu, %llu)", (unsigned long long)vertex,
		       (unsigned long long)adjacency->dst_start,
		       (unsigned long long)(adjacency->dst_start + adjacency->rows));
}

/* Counts again, and reports what does not fit. */
static gw_status find_damage(struct gw_lists *lists, const struct gw_pick_rule *rule, uint64_t edges)
{
	uint64_t ends[GW_RUN_MAX];
	for (uint32_t i = 0; i < lists->n; i++)
		ends[i] = lists->begins[i] + lists->degrees[i];
	return gw_lists_count(lists, rule, ends, edges);
}

/* Reads and counts in one loop, because counting costs nothing while offsets arrive. */
INLINE gw_status read_offsets(struct gw_lists *lists, const struct gw_adjacency *adjacency,
			      const struct gw_pick_rule *rule, uint64_t ahead, uint8_t bytes)
{
	const uint64_t *vertices = lists->vertices, start = adjacency->dst_start, rows = adjacency->rows;
	const uint64_t step = (uint64_t)adjacency->columns * bytes, edges = adjacency->edges;
	const uint64_t n = lists->n, prefetched = n + (ahead < GW_AHEAD ? ahead : GW_AHEAD);
	const char *offsets = (const char *)adjacency->indptr + (uint64_t)adjacency->column * bytes;
	const struct gw_pick_rule copy = *rule;
	uint64_t total = 0, damage = 0;
	for (uint64_t i = 0; i < n; i++) {
		if (i + GW_AHEAD < prefetched)
			__builtin_prefetch(offsets + (vertices[i + GW_AHEAD] - start) * step);
		uint64_t row = vertices[i] - start;
		if (row >= rows)
			return not_owned(adjacency, vertices[i]);
		const char *at = offsets + row * step;
		uint64_t begin = gw_load_id(at, bytes, 0), end = gw_load_id(at + step, bytes, 0);
		uint64_t degree = end - begin;
		damage |= begin | end | degree | (edges - end);
		lists->begins[i] = begin;
		lists->degrees[i] = degree;
		lists->starts[i] = total;
		total += gw_pick_count(&copy, degree);
	}
	lists->starts[n] = total;
	/* The upper bit of a difference is set if it is negative, as no offset and no number of edges reaches 2^63. */
	return damage >> 63 || total > UINT32_MAX ? find_damage(lists, rule, edges) : GW_OK;
}

gw_status gw_lists_read(struct gw_lists *lists, const struct gw_adjacency *adjacency, const struct gw_pick_rule *rule,
			const uint64_t *vertices, uint32_t n, uint64_t ahead)
{
	lists->n = n;
	lists->vertices = vertices;
	return adjacency->indptr_bytes == 4 ? read_offsets(lists, adjacency, rule, ahead, 4)
					    : read_offsets(lists, adjacency, rule, ahead, 8);
}

/* The output of picks, and the memory from which they are prefetched. */
struct sink {
	const struct gw_lists *lists;
	uint64_t *out;
	uintptr_t memory;
	uint32_t element_bytes;
};

/* Writes a complete list that has an entry, in steps that may write past its end; later lists overwrite the excess.
 * Most lists take one step, which has no branch on their degrees. */
INLINE void emit_whole(const struct sink *sink, uint32_t i, uint32_t element_bytes)
{
	uint64_t begin = sink->lists->begins[i], degree = sink->lists->degrees[i], j = 0;
	uint64_t *picks = sink->out + sink->lists->starts[i];
	gw_lists_prefetch(sink->memory, begin + degree - 1, element_bytes);
	do {
		gw_lists_prefetch(sink->memory, begin + j, element_bytes);
		for (uint64_t k = 0; k < GW_SLACK; k++)
			picks[j + k] = begin + j + k;
		j += GW_SLACK;
	} while (j < degree);
}

/* Writes one list by gw_pick_in, which defines the result. */
static gw_status emit_slowly(const struct sink *sink, uint32_t i, const struct gw_pick_rule *rule,
			     struct gw_pick_scratch *scratch)
{
	const struct gw_lists *lists = sink->lists;
	uint64_t *picks = sink->out + lists->starts[i], count = lists->starts[i + 1] - lists->starts[i];
	gw_status status = gw_pick_in(rule, lists->vertices[i], lists->groups ? lists->groups[i] : 0, lists->degrees[i],
				      scratch, picks);
	if (status != GW_OK)
		return gw_context(status, "vertex %llu", (unsigned long long)lists->vertices[i]);
	for (uint64_t j = 0; j < count; j++) {
		picks[j] += lists->begins[i];
		gw_lists_prefetch(sink->memory, picks[j], sink->element_bytes);
	}
	return GW_OK;
}

INLINE void emit_lanes(const struct sink *sink, const uint16_t *drawn, uint32_t n, const struct gw_wide *wide,
		       uint32_t fanout, uint32_t element_bytes)
{
	for (uint32_t lane = 0; lane < n; lane++) {
		uint64_t begin = sink->lists->begins[drawn[lane]];
		uint64_t *picks = sink->out + sink->lists->starts[drawn[lane]];
		for (uint32_t j = 0; j < fanout; j++) {
			uint64_t pick = begin + wide->picks[j][lane];
			picks[j] = pick;
			gw_lists_prefetch(sink->memory, pick, element_bytes);
		}
	}
}

/* Draws for the lists whose numbers are in `drawn`, sixteen at a time. */
INLINE gw_status draw_widely(const struct sink *sink, const uint16_t *drawn, uint32_t count,
			     const struct gw_pick_rule *rule, struct gw_pick_scratch *scratch, gw_wide_draw draw,
			     uint32_t element_bytes)
{
	struct wide_scratch *wide_scratch = scratch->wide.data;
	struct gw_wide *wide = &wide_scratch->wide;
	const struct gw_lists *lists = sink->lists;
	uint32_t fanout = (uint32_t)rule->fanout;
	for (uint32_t at = 0; at < count; at += GW_WIDE_LANES) {
		uint32_t n = count - at < GW_WIDE_LANES ? count - at : GW_WIDE_LANES;
		for (uint32_t lane = 0; lane < GW_WIDE_LANES; lane++) {
			uint32_t i = drawn[at + (lane < n ? lane : 0)];
			wide->instance_low[lane] = (uint32_t)lists->vertices[i];
			wide->instance_high[lane] = (uint32_t)(lists->vertices[i] >> 32);
			wide->degree[lane] = (uint32_t)lists->degrees[i];
		}
		for (uint32_t lane = 0; lists->groups && lane < GW_WIDE_LANES; lane++)
			wide->group[lane] = lists->groups[drawn[at + (lane < n ? lane : 0)]];
		uint32_t redo = draw(wide, rule->key, fanout, rule->replace, &wide_scratch->network);
		emit_lanes(sink, drawn + at, n, wide, fanout, element_bytes);
		for (redo &= (1u << n) - 1; redo; redo &= redo - 1) {
			gw_status status = emit_slowly(sink, drawn[at + (uint32_t)__builtin_ctz(redo)], rule, scratch);
			if (status != GW_OK)
				return status;
		}
	}
	return GW_OK;
}

/* *draw: NULL if the fanout has no wide path. */
static gw_status prepare_wide(const struct gw_pick_rule *rule, bool grouped, struct gw_pick_scratch *scratch,
			      gw_wide_draw *draw)
{
	*draw = rule->fanout > 0 && rule->fanout <= GW_WIDE_PICKS ? gw_wide_function() : NULL;
	if (!*draw)
		return GW_OK;
	bool first = !scratch->wide.data;
	gw_status status = gw_vec_reserve(&scratch->wide, sizeof(struct wide_scratch));
	if (status != GW_OK)
		return status;
	struct wide_scratch *wide_scratch = scratch->wide.data;
	if (!grouped)
		memset(wide_scratch->wide.group, 0, sizeof(wide_scratch->wide.group));
	if (first || wide_scratch->network.n != (uint32_t)rule->fanout)
		gw_network_make(&wide_scratch->network, (uint32_t)rule->fanout);
	return GW_OK;
}

/* Handles complete lists first, because they may write past their ends; then the lists that are drawn from. */
INLINE gw_status pick_lists(const struct sink *sink, const struct gw_pick_rule *rule, struct gw_pick_scratch *scratch,
			    uint32_t element_bytes)
{
	const struct gw_lists *lists = sink->lists;
	uint16_t whole[GW_RUN_MAX], drawn[GW_RUN_MAX];
	uint32_t whole_count = 0, drawn_count = 0;
	bool all = rule->fanout == GW_FANOUT_ALL;
	uint64_t whole_max = all ? UINT64_MAX : rule->replace ? 0 : (uint64_t)rule->fanout;
	for (uint32_t i = 0; i < lists->n; i++) {
		uint64_t degree = lists->degrees[i];
		whole[whole_count] = drawn[drawn_count] = (uint16_t)i;
		whole_count += degree - 1 < whole_max;
		drawn_count += degree > whole_max;
	}
	for (uint32_t i = 0; i < whole_count; i++)
		emit_whole(sink, whole[i], element_bytes);
	gw_wide_draw draw;
	gw_status status = prepare_wide(rule, lists->groups != NULL, scratch, &draw);
	if (status != GW_OK)
		return status;
	for (uint32_t at = 0; at < drawn_count && draw; at++) {
		if (lists->degrees[drawn[at]] > UINT32_MAX)
			draw = NULL; /* gw_pick reports the fault */
	}
	if (draw)
		return draw_widely(sink, drawn, drawn_count, rule, scratch, draw, element_bytes);
	for (uint32_t at = 0; at < drawn_count && status == GW_OK; at++)
		status = emit_slowly(sink, drawn[at], rule, scratch);
	return status;
}

gw_status gw_lists_pick(const struct gw_lists *lists, const struct gw_pick_rule *rule, struct gw_pick_scratch *scratch,
			uint64_t *out, uintptr_t memory, uint32_t element_bytes)
{
	const struct sink sink = {.lists = lists, .out = out, .memory = memory, .element_bytes = element_bytes};
	if (element_bytes == 4)
		return pick_lists(&sink, rule, scratch, 4);
	if (element_bytes == 8)
		return pick_lists(&sink, rule, scratch, 8);
	return pick_lists(&sink, rule, scratch, 0);
}
