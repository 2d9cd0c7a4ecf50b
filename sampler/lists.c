/* Runs of adjacency lists: offsets read ahead of their use, counted, then picked from.
 *
 * Offsets may be a peer's bytes, or a file's whose checks were skipped: a list that runs backwards or past the end is
 * GW_RANGE before anything is read by it. Picks fail as gw_pick does.
 */
#include "sampler/lists.h"

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

static inline __attribute__((always_inline)) gw_status read_offsets(struct gw_lists *lists,
								    const struct gw_adjacency *adjacency,
								    uint64_t ahead, uint64_t *ends, uint8_t bytes)
{
	const uint64_t *vertices = lists->vertices, start = adjacency->dst_start, rows = adjacency->rows;
	const uint64_t columns = adjacency->columns, column = adjacency->column, last = lists->n + ahead;
	const char *offsets = adjacency->indptr;
	for (uint32_t i = 0; i < lists->n; i++) {
		if (i + GW_AHEAD < last)
			__builtin_prefetch(offsets + (vertices[i + GW_AHEAD] - start) * columns * bytes);
		uint64_t row = vertices[i] - start;
		if (row >= rows)
			return not_owned(adjacency, vertices[i]);
		uint64_t at = row * columns + column;
		lists->begins[i] = gw_load_id(offsets, bytes, at);
		ends[i] = gw_load_id(offsets, bytes, at + columns);
	}
	return GW_OK;
}

gw_status gw_lists_read(struct gw_lists *lists, const struct gw_adjacency *adjacency, const struct gw_pick_rule *rule,
			const uint64_t *vertices, uint32_t n, uint64_t ahead)
{
	uint64_t ends[GW_RUN_MAX];
	lists->n = n;
	lists->vertices = vertices;
	gw_status status = adjacency->indptr_bytes == 4 ? read_offsets(lists, adjacency, ahead, ends, 4)
							: read_offsets(lists, adjacency, ahead, ends, 8);
	if (status)
		return status;
	return gw_lists_count(lists, rule, ends, adjacency->edges);
}

gw_status gw_lists_pick(const struct gw_lists *lists, const struct gw_pick_rule *rule, struct gw_pick_scratch *scratch,
			uint64_t *out, uintptr_t memory, uint32_t element_bytes)
{
	for (uint32_t i = 0; i < lists->n; i++) {
		uint64_t *picks = out + lists->starts[i], count = lists->starts[i + 1] - lists->starts[i];
		gw_status status = gw_pick(rule, lists->vertices[i], lists->degrees[i], scratch, picks);
		if (status)
			return gw_context(status, "vertex %llu", (unsigned long long)lists->vertices[i]);
		for (uint64_t j = 0; j < count; j++) {
			picks[j] += lists->begins[i];
			if (element_bytes)
				__builtin_prefetch((const void *)(memory + picks[j] * element_bytes));
		}
	}
	return GW_OK;
}
