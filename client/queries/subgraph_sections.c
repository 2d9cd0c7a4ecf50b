/* See subgraph_sections.h. Fails if memory runs out. */
#include "client/queries/subgraph_sections.h"

#include "client/state/client.h"
#include "core/graph/book.h"
#include "core/memory/alloc.h"
#include "core/numbers/sort.h"
#include "protocol/subgraph_call.h"

static uint32_t group_of_node(const struct gw_subgraph_nodes *nodes, uint32_t row)
{
	return nodes->groups ? nodes->groups[row] : 0;
}

static gw_status check_nodes(const char *what, const struct gw_subgraph_nodes *nodes, uint64_t count)
{
	for (uint64_t i = 0; i < nodes->count; i++) {
		if ((uint64_t)nodes->ids[i] >= count)
			return gw_fail_id(what, nodes->ids[i], i, count);
	}
	return GW_OK;
}

static gw_status sort_sources(struct gw_subgraph_places *places, struct gw_vec *scratch)
{
	const struct gw_subgraph_nodes *nodes = &places->src;
	uint64_t n = nodes->count, *keys = places->srcs;
	uint32_t *rows = places->src_rows;
	for (uint64_t i = 0; i < n; i++) {
		keys[i] = (uint64_t)nodes->ids[i];
		rows[i] = (uint32_t)i;
	}
	gw_status status = gw_sort_rows(keys, rows, n, scratch);
	for (uint64_t i = 0; nodes->groups && i < n; i++)
		keys[i] = nodes->groups[rows[i]];
	if (status == GW_OK && nodes->groups)
		status = gw_sort_rows(keys, rows, n, scratch);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t id = (uint64_t)nodes->ids[rows[i]], at = places->src_count;
		uint32_t group = group_of_node(nodes, rows[i]);
		if (at && places->srcs[at - 1] == id && places->src_groups[at - 1] == group)
			continue;
		places->srcs[at] = id;
		places->src_groups[at] = group;
		rows[at] = rows[i];
		places->src_count++;
	}
	return status;
}

static gw_status sort_destinations(struct gw_subgraph_places *places, const uint64_t *starts, uint32_t parts,
				   struct gw_vec *scratch)
{
	uint64_t n = places->dst.count, *keys = gw_malloc(n * sizeof(*keys));
	if (!keys)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < n; i++) {
		uint32_t part = gw_book_owner(starts, parts, (uint64_t)places->dst.ids[i]);
		keys[i] = (uint64_t)part << 32 | group_of_node(&places->dst, (uint32_t)i);
		places->dst_rows[i] = (uint32_t)i;
		places->dst_starts[part + 1]++;
	}
	for (uint32_t p = 0; p < parts; p++)
		places->dst_starts[p + 1] += places->dst_starts[p];
	gw_status status = gw_sort_rows(keys, places->dst_rows, n, scratch);
	gw_free(keys);
	return status;
}

gw_status gw_subgraph_places_set(struct gw_subgraph_places *places, const struct gw_graph_meta *meta, uint32_t etype,
				 const struct gw_subgraph_nodes *src, const struct gw_subgraph_nodes *dst)
{
	const struct gw_node_type *sources = &meta->ntypes[meta->etypes[etype].src];
	const struct gw_node_type *destinations = &meta->ntypes[meta->etypes[etype].dst];
	struct gw_vec scratch = {0};
	*places = (struct gw_subgraph_places){.src = *src, .dst = *dst};
	gw_status status = check_nodes("source", src, sources->count);
	if (status == GW_OK)
		status = check_nodes("destination", dst, destinations->count);
	if (status != GW_OK)
		return status;
	places->srcs = gw_malloc(src->count * sizeof(*places->srcs));
	places->src_rows = gw_malloc(src->count * sizeof(*places->src_rows));
	places->src_groups = gw_malloc(src->count * sizeof(*places->src_groups));
	places->dst_rows = gw_malloc(dst->count * sizeof(*places->dst_rows));
	places->dst_starts = gw_calloc(meta->num_parts + 1, sizeof(*places->dst_starts));
	if (!places->srcs || !places->src_rows || !places->src_groups || !places->dst_rows || !places->dst_starts)
		return GW_NO_MEMORY;
	status = sort_sources(places, &scratch);
	if (status == GW_OK)
		status = sort_destinations(places, destinations->starts, meta->num_parts, &scratch);
	gw_vec_free(&scratch);
	return status;
}

void gw_subgraph_places_free(struct gw_subgraph_places *places)
{
	gw_free(places->srcs);
	gw_free(places->src_rows);
	gw_free(places->src_groups);
	gw_free(places->dst_rows);
	gw_free(places->dst_starts);
}

/* --- Sections. --- */

/* The first source of a group that is not below this one. */
static uint64_t group_begin(const struct gw_subgraph_places *places, uint64_t group)
{
	uint64_t low = 0, high = places->src_count;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (places->src_groups[middle] < group)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void group_run_begin(struct gw_subgraph_cursor *cursor, const struct gw_subgraph_places *places, uint64_t at)
{
	cursor->run = cursor->run_end = cursor->dst = at;
	if (at == cursor->end)
		return;
	uint32_t group = group_of_node(&places->dst, places->dst_rows[at]);
	while (cursor->run_end < cursor->end && group_of_node(&places->dst, places->dst_rows[cursor->run_end]) == group)
		cursor->run_end++;
	cursor->src = group_begin(places, group);
	cursor->src_end = group_begin(places, (uint64_t)group + 1);
}

struct gw_subgraph_cursor gw_subgraph_cursor(const struct gw_subgraph_places *places, uint32_t part)
{
	struct gw_subgraph_cursor cursor = {.end = places->dst_starts[part + 1]};
	group_run_begin(&cursor, places, places->dst_starts[part]);
	return cursor;
}

bool gw_subgraph_next(struct gw_subgraph_cursor *cursor, const struct gw_subgraph_places *places, uint64_t dsts,
		      uint64_t srcs, struct gw_subgraph_piece *out)
{
	while (cursor->run < cursor->end && cursor->src == cursor->src_end)
		group_run_begin(cursor, places, cursor->run_end); /* all sources of the group are done */
	uint64_t left = cursor->src_end - cursor->src;
	uint64_t chunk = left < GW_SUBGRAPH_SRCS_MAX ? left : GW_SUBGRAPH_SRCS_MAX;
	if (cursor->run == cursor->end || chunk > srcs || !dsts)
		return false;
	uint64_t n = cursor->run_end - cursor->dst < dsts ? cursor->run_end - cursor->dst : dsts;
	*out = (struct gw_subgraph_piece){
		.dst = cursor->dst, .src = cursor->src, .dst_count = (uint32_t)n, .src_count = (uint32_t)chunk};
	cursor->dst += n;
	if (cursor->dst == cursor->run_end) {
		cursor->dst = cursor->run;
		cursor->src += chunk;
	}
	return true;
}
