/* Samples all hops of a batch from lists in memory: the fast path.
 *
 *   frontier -> runs of destinations -> offsets -> picks, neighbours prefetched [-> edge ids]
 *            -> neighbours read, map entries prefetched -> numbers
 *
 * With one part, a pick is a CSC position. With several parts a run mixes owners. A pick is then an element number of
 * memory, counted from address 0. Fails for a damaged list, a
 * neighbour that is no node, a part that is not in memory, and if memory runs out.
 */
#include <assert.h>

#include "core/graph/book.h"
#include "core/graph/part.h"
#include "sampler/blocks/blocks_private.h"
#include "sampler/draw_memory.h"

/* The state of one edge type in one hop. */
struct blocks_walk {
	struct gw_blocks *blocks;
	const struct gw_adjacency *const *parts;
	uint32_t etype, index_bytes;
	const uint64_t *starts; /* the parts' ranges of destinations */
	uint32_t num_parts;
	const struct gw_columns *const *all_columns; /* [num_etypes], or NULL */
	const struct gw_columns *columns;            /* of the edge type: [num_parts], or NULL */
	struct gw_draw draw;
	struct gw_draw_run run;
	/* Several parts, for each list: global edge id minus element number of memory; the columns of its owner; and
	 * their entry for its first edge. */
	uint64_t edge_deltas[GW_RUN_MAX];
	const struct gw_columns *owner_columns[GW_RUN_MAX];
	uint64_t firsts[GW_RUN_MAX];
};

static gw_status not_in_memory(const struct blocks_walk *walk, uint32_t part)
{
	char text[GW_EDGE_FOLDER_MAX + 1];
	return gw_fail(GW_NOT_FOUND, "part %u is not in memory, and edge type %s needs it", part,
		       gw_meta_etype_text(walk->blocks->meta, walk->etype, text));
}

/* Finds the list of a vertex in the part that owns it; only prefetches its offsets, or reads them. */
static gw_status find_list(const struct blocks_walk *walk, uint64_t vertex, const struct gw_adjacency **a,
			   uint64_t *row, uint32_t *owner)
{
	uint32_t part = gw_book_owner(walk->starts, walk->num_parts, vertex);
	if (!walk->parts[part])
		return not_in_memory(walk, part);
	*owner = part;
	*a = &walk->parts[part][walk->etype];
	*row = vertex - (*a)->dst_start;
	if (*row >= (*a)->rows)
		return gw_fail(GW_RANGE, "vertex %llu is not among the %llu of part %u", (unsigned long long)vertex,
			       (unsigned long long)(*a)->rows, part);
	return GW_OK;
}

/* As gw_lists_read, over several parts; begins become element numbers of memory. */
static gw_status read_mixed(struct blocks_walk *walk, const uint64_t *vertices, uint32_t n, uint64_t ahead)
{
	struct gw_lists *lists = &walk->run.lists;
	const struct gw_adjacency *a = NULL;
	uint64_t ends[GW_RUN_MAX], row = 0, last = n + ahead;
	uint32_t owner = 0;
	lists->n = n;
	lists->vertices = vertices;
	for (uint32_t i = 0; i < n; i++) {
		gw_status status = find_list(walk, vertices[i + GW_AHEAD < last ? i + GW_AHEAD : i], &a, &row, &owner);
		if (status != GW_OK)
			return status;
		assert(a);
		__builtin_prefetch((const char *)a->indptr + row * a->columns * a->indptr_bytes);
		status = find_list(walk, vertices[i], &a, &row, &owner);
		if (status != GW_OK)
			return status;
		gw_adjacency_list(a, row, &lists->begins[i], &ends[i]);
		if (lists->begins[i] > ends[i] || ends[i] > a->edges)
			return gw_fail(GW_RANGE, "vertex %llu: its list [%llu, %llu) does not fit %llu edges",
				       (unsigned long long)vertices[i], (unsigned long long)lists->begins[i],
				       (unsigned long long)ends[i], (unsigned long long)a->edges);
		assert(a->index_bytes > 0 && a->index_bytes == walk->index_bytes);
		assert((uintptr_t)a->indices % a->index_bytes == 0);
		uint64_t element = (uintptr_t)a->indices / a->index_bytes;
		if (walk->columns) {
			walk->firsts[i] = lists->begins[i];
			walk->owner_columns[i] = &walk->columns[owner];
		}
		lists->begins[i] += element;
		ends[i] += element;
		walk->edge_deltas[i] = a->edge_start - element;
	}
	return gw_lists_count(lists, &walk->draw.rule, ends, UINT64_MAX);
}

/* The run's edge ids, from its picks. */
static void write_picked_ids(const struct blocks_walk *walk, const uint64_t *restrict picks, int64_t *restrict edge_ids)
{
	const struct gw_lists *lists = &walk->run.lists;
	if (walk->num_parts == 1) {
		const uint64_t edge_start = walk->parts[0][walk->etype].edge_start, total = lists->starts[lists->n];
		for (uint64_t e = 0; e < total; e++)
			edge_ids[e] = (int64_t)(picks[e] + edge_start);
		return;
	}
	for (uint32_t i = 0; i < lists->n; i++) {
		for (uint64_t e = lists->starts[i]; e < lists->starts[i + 1]; e++)
			edge_ids[e] = (int64_t)(picks[e] + walk->edge_deltas[i]);
	}
}

static void drop_excluded_picks(struct blocks_walk *walk, uint64_t *picks, uintptr_t memory)
{
	struct gw_lists *lists = &walk->run.lists;
	uint64_t to = 0, from = 0;
	for (uint32_t i = 0; i < lists->n; i++) {
		uint64_t end = lists->starts[i + 1];
		uint64_t delta = walk->num_parts > 1 ? walk->edge_deltas[i] : walk->parts[0][walk->etype].edge_start;
		for (; from < end; from++) {
			const void *address = (const void *)(memory + picks[from] * walk->index_bytes);
			uint64_t src = walk->index_bytes == 4 ? *(const uint32_t *)address : *(const uint64_t *)address;
			if (!gw_blocks_drops(walk->blocks, walk->etype, picks[from] + delta, src, lists->vertices[i]))
				picks[to++] = picks[from];
		}
		lists->starts[i + 1] = to;
	}
}

/* Draws the run without the excluded edges, to blocks->picks. */
static gw_status pick_run(struct blocks_walk *walk, uintptr_t memory)
{
	struct gw_blocks *blocks = walk->blocks;
	struct gw_draw_run *run = &walk->run;
	const uint64_t bound = run->lists.starts[run->lists.n];
	gw_status status = gw_vec_reserve(&blocks->picks, (bound + GW_SLACK) * sizeof(uint64_t));
	if (status == GW_OK)
		status = gw_blocks_edges_room(blocks, bound);
	if (status != GW_OK)
		return status;
	uint64_t *picks = blocks->picks.data;
	struct gw_draw_columns columns = {.all = walk->columns};
	if (walk->num_parts > 1)
		columns = (struct gw_draw_columns){.each = walk->owner_columns, .firsts = walk->firsts};
	uint32_t too_long;
	run->memory = memory;
	run->element_bytes = walk->index_bytes;
	status = gw_draw_from_memory(&walk->draw, run, &columns, picks, UINT64_MAX, &too_long);
	if (status == GW_OK && gw_blocks_may_drop(blocks, walk->etype))
		drop_excluded_picks(walk, picks, memory);
	return status;
}

static gw_status find_groups(struct blocks_walk *walk, struct gw_relabel_source *source)
{
	const struct gw_lists *lists = &walk->run.lists;
	uint32_t counts[GW_RUN_MAX];
	for (uint32_t i = 0; i < lists->n; i++)
		counts[i] = (uint32_t)(lists->starts[i + 1] - lists->starts[i]);
	return gw_blocks_end_groups(walk->blocks, lists->groups, lists->n, counts, lists->starts[lists->n],
				    &source->groups);
}

static gw_status add_run(struct blocks_walk *walk)
{
	struct gw_blocks *blocks = walk->blocks;
	struct gw_block_edges *edges = gw_blocks_edges_now(blocks);
	struct gw_block_arrays *arrays = &blocks->arrays[blocks->edges_done];
	const struct gw_lists *lists = &walk->run.lists;
	uintptr_t memory = walk->num_parts > 1 ? 0 : (uintptr_t)walk->parts[0][walk->etype].indices;
	gw_draw_run_begin(&walk->draw, &walk->run);
	gw_status status = lists->starts[lists->n] ? pick_run(walk, memory) : GW_OK;
	if (status != GW_OK)
		return status;
	uint64_t total = lists->starts[lists->n];
	int64_t *indptr = (int64_t *)arrays->indptr.data + blocks->rows_done;
	for (uint32_t i = 1; i <= lists->n; i++)
		indptr[i] = indptr[0] + (int64_t)lists->starts[i];
	if (total == 0) {
		blocks->rows_done += lists->n;
		return GW_OK;
	}
	if (!blocks->spec.no_edge_ids)
		write_picked_ids(walk, blocks->picks.data, (int64_t *)arrays->edge_ids.data + edges->edge_count);
	struct gw_relabel_source source = {
		.elements = blocks->picks.data, .memory = memory, .element_bytes = walk->index_bytes};
	size_t width = blocks->spec.wide_indices ? sizeof(int64_t) : sizeof(int32_t);
	void *numbers = (char *)arrays->indices.data + edges->edge_count * width;
	if (blocks->grouped)
		status = find_groups(walk, &source);
	if (status == GW_OK)
		status = gw_relabel_run(blocks->relabel, &blocks->nodes[blocks->meta->etypes[walk->etype].src], source,
					total, numbers, blocks->spec.wide_indices);
	blocks->rows_done += lists->n;
	edges->edge_count += total;
	return status;
}

static gw_status walk_edges(struct blocks_walk *walk)
{
	struct gw_blocks *blocks = walk->blocks;
	struct gw_lists *lists = &walk->run.lists;
	char text[GW_EDGE_FOLDER_MAX + 1];
	gw_status status = gw_blocks_edges_begin(blocks, walk->etype);
	if (status != GW_OK)
		return status;
	uint64_t count = gw_blocks_frontier(blocks, walk->etype).n;
	for (uint64_t at = 0; at < count; at += lists->n) {
		/* the frontier moves when nodes are added */
		const struct gw_frontier frontier = gw_blocks_frontier(blocks, walk->etype);
		const uint64_t *vertices = frontier.nodes + at;
		uint32_t n = count - at < GW_RUN_MAX ? (uint32_t)(count - at) : GW_RUN_MAX;
		lists->groups = frontier.groups ? frontier.groups + at : NULL;
		if (walk->num_parts > 1)
			status = read_mixed(walk, vertices, n, count - at - n);
		else
			status = walk->parts[0] ? gw_lists_read(lists, &walk->parts[0][walk->etype], &walk->draw.rule,
								vertices, n, count - at - n)
						: not_in_memory(walk, 0);
		if (status == GW_OK)
			status = add_run(walk);
		if (status != GW_OK)
			return gw_context(status, "edge type %s", gw_meta_etype_text(blocks->meta, walk->etype, text));
	}
	return gw_blocks_edges_end(blocks);
}

static gw_status walk_hop(struct blocks_walk *walk)
{
	struct gw_blocks *blocks = walk->blocks;
	const struct gw_graph_meta *meta = blocks->meta;
	gw_status status = gw_blocks_hop_begin(blocks);
	for (uint32_t etype = 0; etype < meta->num_etypes && status == GW_OK; etype++) {
		walk->draw = gw_blocks_draw(blocks, etype);
		if (walk->draw.rule.fanout == 0)
			continue;
		const struct gw_node_type *dst = &meta->ntypes[meta->etypes[etype].dst];
		walk->etype = etype;
		walk->columns = walk->all_columns ? walk->all_columns[etype] : NULL;
		walk->starts = dst->starts;
		for (uint32_t p = 0; p < walk->num_parts; p++) {
			if (walk->parts[p])
				walk->index_bytes = walk->parts[p][etype].index_bytes;
		}
		walk->draw.forms[GW_COLUMN_IDS].entry_bytes = walk->index_bytes;
		status = gw_draw_check_use(&walk->draw);
		if (status == GW_OK)
			status = walk_edges(walk);
	}
	return status != GW_OK ? status : gw_blocks_hop_end(blocks);
}

gw_status gw_blocks_run_memory(struct gw_blocks *blocks, const struct gw_adjacency *const *parts,
			       const struct gw_columns *const *columns)
{
	struct blocks_walk walk;
	walk.blocks = blocks;
	walk.parts = parts;
	walk.all_columns = columns;
	walk.num_parts = blocks->meta->num_parts;
	walk.index_bytes = 0;
	walk.run.lists.n = 0;
	walk.run.lists.starts[0] = 0;
	walk.run.scratch = &blocks->scratch;
	gw_status status = GW_OK;
	while (status == GW_OK && blocks->hops_done < blocks->spec.hops)
		status = walk_hop(&walk);
	return status;
}
