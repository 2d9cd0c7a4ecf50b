/* Builds a batch of blocks from picks: begin, hops, edge types, runs of destinations, results.
 *
 * A batch is a state machine, and assertions check that the caller makes its calls in order. Calls fail only because of
 * input or memory: a bad spec, seeds or neighbours that are no nodes, a shortage of memory. After an error the caller
 * must begin again. All arrays are vectors that are kept from batch to batch.
 */
#include <assert.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/numbers/time_key.h"
#include "sampler/blocks/blocks_private.h"
#include "sampler/lists.h"
#include "sampler/pick.h"

gw_status gw_blocks_create(const struct gw_graph_meta *meta, struct gw_blocks **out)
{
	*out = NULL;
	struct gw_blocks *blocks = gw_calloc(1, sizeof(*blocks));
	if (!blocks)
		return GW_NO_MEMORY;
	blocks->meta = meta;
	blocks->nodes = gw_calloc(meta->num_ntypes, sizeof(*blocks->nodes));
	if (!blocks->nodes) {
		gw_free(blocks);
		return GW_NO_MEMORY;
	}
	uint64_t key = 0;
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		blocks->nodes[t].id_count = meta->ntypes[t].count;
		blocks->nodes[t].key = key;
		key += meta->ntypes[t].count;
	}
	*out = blocks;
	return GW_OK;
}

void gw_blocks_destroy(struct gw_blocks *blocks)
{
	if (!blocks)
		return;
	for (uint32_t i = 0; i < blocks->arrays_count; i++) {
		gw_vec_free(&blocks->arrays[i].indptr);
		gw_vec_free(&blocks->arrays[i].indices);
		gw_vec_free(&blocks->arrays[i].edge_ids);
	}
	gw_free(blocks->arrays);
	for (uint32_t t = 0; t < blocks->meta->num_ntypes; t++) {
		gw_vec_free(&blocks->nodes[t].ids);
		gw_vec_free(&blocks->nodes[t].groups);
	}
	gw_free(blocks->nodes);
	gw_pick_scratch_free(&blocks->scratch);
	gw_vec_free(&blocks->fanouts);
	gw_vec_free(&blocks->seed_rows);
	gw_vec_free(&blocks->picks);
	gw_vec_free(&blocks->kept_counts);
	gw_vec_free(&blocks->kept_edges);
	gw_vec_free(&blocks->kept_neighbours);
	gw_vec_free(&blocks->end_groups);
	gw_vec_free(&blocks->counts);
	gw_vec_free(&blocks->edges);
	gw_free(blocks);
}

static gw_status check_spec(const struct gw_blocks *blocks, const struct gw_blocks_spec *spec)
{
	const struct gw_graph_meta *meta = blocks->meta;
	if (spec->hops < 1 || spec->hops > GW_HOPS_MAX)
		return gw_fail(GW_INVALID, "%u hops: give 1 to %d", spec->hops, GW_HOPS_MAX);
	for (uint32_t hop = 0; hop < spec->hops; hop++) {
		for (uint32_t etype = 0; etype < meta->num_etypes; etype++) {
			int32_t fanout = spec->fanouts[(size_t)hop * meta->num_etypes + etype];
			if (fanout < GW_FANOUT_ALL || fanout > GW_FANOUT_MAX)
				return gw_fail(GW_INVALID,
					       "hop %u, edge type %u: fanout %d: give -1 for all or 0 to %d", hop,
					       etype, fanout, GW_FANOUT_MAX);
		}
	}
	return GW_OK;
}

static gw_status make_arrays(struct gw_blocks *blocks)
{
	uint32_t used = 0;
	for (size_t i = 0; i < (size_t)blocks->spec.hops * blocks->meta->num_etypes; i++)
		used += blocks->spec.fanouts[i] != 0;
	gw_status status = gw_vec_reserve(&blocks->edges, used * sizeof(struct gw_block_edges));
	if (status != GW_OK)
		return status;
	if (used > blocks->arrays_count) {
		struct gw_block_arrays *arrays = gw_realloc(blocks->arrays, used, sizeof(*arrays));
		if (!arrays)
			return GW_NO_MEMORY;
		memset(arrays + blocks->arrays_count, 0, (used - blocks->arrays_count) * sizeof(*arrays));
		blocks->arrays = arrays;
		blocks->arrays_count = used;
	}
	blocks->arrays_used = used;
	return GW_OK;
}

static gw_status take_spec(struct gw_blocks *blocks, const struct gw_blocks_spec *spec)
{
	size_t etypes = blocks->meta->num_etypes, ntypes = blocks->meta->num_ntypes;
	gw_status status = gw_vec_reserve(&blocks->fanouts, (size_t)spec->hops * etypes * sizeof(int32_t));
	if (status == GW_OK)
		status = gw_vec_reserve(&blocks->counts, (size_t)spec->hops * 2 * ntypes * sizeof(uint64_t));
	if (status != GW_OK)
		return status;
	if (etypes)
		memcpy(blocks->fanouts.data, spec->fanouts, (size_t)spec->hops * etypes * sizeof(int32_t));
	blocks->spec = *spec;
	blocks->spec.fanouts = blocks->fanouts.data;
	return make_arrays(blocks);
}

/* Their rows follow those of the lists before it. groups: of all seeds, or NULL. */
static gw_status number_seeds(struct gw_blocks *blocks, const struct gw_seeds *list, const uint32_t *groups)
{
	const struct gw_graph_meta *meta = blocks->meta;
	if (list->type >= meta->num_ntypes)
		return gw_fail(GW_INVALID, "node type %u: the graph has %u", list->type, meta->num_ntypes);
	if (list->count > INT32_MAX || blocks->seed_count + list->count > INT32_MAX)
		return gw_fail(GW_LIMIT, "%llu seeds: at most 2^31 - 1 in a batch",
			       (unsigned long long)(blocks->seed_count + list->count));
	gw_status status = gw_vec_reserve(&blocks->seed_rows, (blocks->seed_count + list->count) * sizeof(uint32_t));
	if (status != GW_OK || !list->count)
		return status;
	const struct gw_relabel_source source = {.ids = (const uint64_t *)list->ids,
						 .groups = groups ? groups + blocks->seed_count : NULL};
	uint32_t *rows = (uint32_t *)blocks->seed_rows.data + blocks->seed_count;
	status = gw_relabel_run(blocks->relabel, &blocks->nodes[list->type], source, list->count, rows, false);
	if (status != GW_OK)
		return gw_context(status, "seeds of node type %s", meta->ntypes[list->type].name);
	blocks->seed_count += list->count;
	return GW_OK;
}

static uint32_t last_group(const struct gw_seeds *lists, uint32_t list_count, const uint32_t *groups)
{
	uint64_t count = 0;
	uint32_t last = 0;
	for (uint32_t i = 0; i < list_count; i++)
		count += lists[i].count;
	for (uint64_t i = 0; i < count; i++)
		last = groups[i] > last ? groups[i] : last;
	return last;
}

gw_status gw_blocks_begin_lists(struct gw_blocks *blocks, struct gw_relabel *relabel, const struct gw_blocks_spec *spec,
				uint64_t seed, uint64_t stream, const struct gw_seeds *lists, uint32_t list_count,
				const uint32_t *groups)
{
	blocks->state = GW_BLOCKS_IDLE;
	blocks->hops_done = blocks->edges_done = 0;
	blocks->seed_count = blocks->edge_count = 0;
	for (uint32_t t = 0; t < blocks->meta->num_ntypes; t++)
		blocks->nodes[t].count = 0;
	gw_status status = check_spec(blocks, spec);
	if (status == GW_OK)
		status = take_spec(blocks, spec);
	for (uint32_t t = 0; t < blocks->meta->num_ntypes && status == GW_OK; t++)
		status = gw_vec_reserve(&blocks->nodes[t].ids, sizeof(uint64_t)); /* so that a list is never NULL */
	for (uint32_t t = 0; t < blocks->meta->num_ntypes && status == GW_OK && groups; t++)
		status = gw_vec_reserve(&blocks->nodes[t].groups, sizeof(uint32_t));
	if (status != GW_OK)
		return status;
	blocks->relabel = relabel;
	blocks->seed = seed;
	blocks->stream = stream;
	blocks->grouped = groups != NULL;
	status = groups ? gw_relabel_begin_groups(relabel, last_group(lists, list_count, groups))
			: gw_relabel_begin(relabel);
	for (uint32_t i = 0; i < list_count && status == GW_OK; i++)
		status = number_seeds(blocks, &lists[i], groups);
	if (status == GW_OK)
		blocks->state = GW_BLOCKS_BEGUN;
	return status;
}

gw_status gw_blocks_begin(struct gw_blocks *blocks, struct gw_relabel *relabel, const struct gw_blocks_spec *spec,
			  uint64_t seed, uint64_t stream, uint32_t ntype, const int64_t *seeds, uint64_t n)
{
	const struct gw_seeds list = {.type = ntype, .ids = seeds, .count = n};
	return gw_blocks_begin_lists(blocks, relabel, spec, seed, stream, &list, 1, NULL);
}

struct gw_draw gw_blocks_draw(const struct gw_blocks *blocks, uint32_t etype)
{
	assert(etype < blocks->meta->num_etypes && blocks->hops_done < blocks->spec.hops);
	const struct gw_blocks_spec *spec = &blocks->spec;
	struct gw_draw draw = {
		.rule = {.key = gw_draw_key(blocks->seed, blocks->stream, GW_DRAW_NEIGHBOURS, blocks->hops_done, etype),
			 .fanout = spec->fanouts[(size_t)blocks->hops_done * blocks->meta->num_etypes + etype],
			 .replace = spec->replace},
		.kind = &gw_sample_uniform,
	};
	if (spec->sampling && spec->sampling[etype].kind)
		gw_draw_set(&draw, &spec->sampling[etype]);
	draw.no_edge_ids = spec->no_edge_ids && !gw_blocks_may_drop(blocks, etype);
	if (draw.kind->valued)
		draw.groups = spec->groups[gw_time_is_real(draw.forms[GW_COLUMN_TIME].dtype)];
	return draw;
}

struct gw_frontier gw_blocks_frontier(const struct gw_blocks *blocks, uint32_t etype)
{
	assert(blocks->state == GW_BLOCKS_IN_HOP || blocks->state == GW_BLOCKS_IN_EDGES);
	uint32_t dst = blocks->meta->etypes[etype].dst, hop = blocks->hops_done;
	const struct gw_node_list *nodes = &blocks->nodes[dst];
	uint64_t first = blocks->spec.new_only && hop > 0 ? blocks->hops[hop - 1].dst_counts[dst] : 0;
	return (struct gw_frontier){
		.nodes = (const uint64_t *)nodes->ids.data + first,
		.groups = blocks->grouped ? (const uint32_t *)nodes->groups.data + first : NULL,
		.n = blocks->hops[hop].dst_counts[dst] - first,
		.first = first,
	};
}

gw_status gw_blocks_hop_begin(struct gw_blocks *blocks)
{
	assert(blocks->state == GW_BLOCKS_BEGUN && blocks->hops_done < blocks->spec.hops);
	uint32_t ntypes = blocks->meta->num_ntypes;
	uint64_t *dst_counts = (uint64_t *)blocks->counts.data + (size_t)blocks->hops_done * 2 * ntypes;
	for (uint32_t t = 0; t < ntypes; t++)
		dst_counts[t] = blocks->nodes[t].count;
	blocks->hops[blocks->hops_done] = (struct gw_block){
		.dst_counts = dst_counts,
		.src_counts = dst_counts + ntypes,
		.edges = gw_blocks_edges_now(blocks),
	};
	blocks->edges_first = blocks->edges_done;
	blocks->state = GW_BLOCKS_IN_HOP;
	return GW_OK;
}

gw_status gw_blocks_edges_begin(struct gw_blocks *blocks, uint32_t etype)
{
	assert(blocks->state == GW_BLOCKS_IN_HOP &&
	       blocks->spec.fanouts[(size_t)blocks->hops_done * blocks->meta->num_etypes + etype] != 0);
	assert(blocks->edges_done < blocks->arrays_used);
	struct gw_block_edges *edges = gw_blocks_edges_now(blocks);
	assert(blocks->edges_done == blocks->edges_first || edges[-1].etype < etype);
	const struct gw_frontier frontier = gw_blocks_frontier(blocks, etype);
	struct gw_vec *indptr = &blocks->arrays[blocks->edges_done].indptr;
	gw_status status = gw_vec_reserve(indptr, (frontier.n + 1) * sizeof(int64_t));
	if (status != GW_OK)
		return status;
	*(int64_t *)indptr->data = 0;
	*edges = (struct gw_block_edges){
		.etype = etype, .dst_count = frontier.n, .indptr = indptr->data, .dst_first = frontier.first};
	blocks->rows_done = 0;
	blocks->state = GW_BLOCKS_IN_EDGES;
	return GW_OK;
}

gw_status gw_blocks_edges_room(struct gw_blocks *blocks, uint64_t more)
{
	struct gw_block_arrays *arrays = &blocks->arrays[blocks->edges_done];
	uint64_t edges = gw_blocks_edges_now(blocks)->edge_count + more + 1;
	gw_status status =
		blocks->spec.no_edge_ids ? GW_OK : gw_vec_reserve(&arrays->edge_ids, edges * sizeof(int64_t));
	if (status != GW_OK)
		return status;
	return gw_vec_reserve(&arrays->indices,
			      edges * (blocks->spec.wide_indices ? sizeof(int64_t) : sizeof(int32_t)));
}

gw_status gw_blocks_end_groups(struct gw_blocks *blocks, const uint32_t *of_rows, uint64_t n, const uint32_t *counts,
			       uint64_t total, const uint32_t **out)
{
	gw_status status = gw_vec_reserve(&blocks->end_groups, total * sizeof(uint32_t));
	uint32_t *groups = blocks->end_groups.data;
	for (uint64_t i = 0, at = 0; i < n && status == GW_OK; i++) {
		for (uint32_t j = 0; j < counts[i]; j++)
			groups[at++] = of_rows[i];
	}
	*out = groups;
	return status;
}

/* A run without the excluded edges, in the object's own arrays; positions are already edge ids. */
struct kept_run {
	const uint32_t *counts;
	const uint64_t *edges, *neighbours;
};

static gw_status drop_excluded(struct gw_blocks *blocks, uint64_t n, struct kept_run *run, uint64_t edge_start)
{
	uint32_t etype = gw_blocks_edges_now(blocks)->etype;
	uint64_t total = 0, from = 0, to = 0;
	const uint64_t *vertices = gw_blocks_frontier(blocks, etype).nodes + blocks->rows_done;
	for (uint64_t i = 0; i < n; i++)
		total += run->counts[i];
	if (gw_vec_reserve(&blocks->kept_counts, n * sizeof(uint32_t)) != GW_OK ||
	    gw_vec_reserve(&blocks->kept_edges, total * sizeof(uint64_t)) != GW_OK ||
	    gw_vec_reserve(&blocks->kept_neighbours, total * sizeof(uint64_t)) != GW_OK)
		return GW_NO_MEMORY;
	uint32_t *counts = blocks->kept_counts.data;
	uint64_t *edges = blocks->kept_edges.data, *neighbours = blocks->kept_neighbours.data;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t first = to;
		for (uint64_t end = from + run->counts[i]; from < end; from++) {
			uint64_t edge = run->edges[from] + edge_start;
			if (gw_blocks_drops(blocks, etype, edge, run->neighbours[from], vertices[i]))
				continue;
			edges[to] = edge;
			neighbours[to++] = run->neighbours[from];
		}
		counts[i] = (uint32_t)(to - first);
	}
	*run = (struct kept_run){counts, edges, neighbours};
	return GW_OK;
}

static gw_status add_kept(struct gw_blocks *blocks, uint64_t n, const uint32_t *counts, const uint64_t *positions,
			  const uint64_t *neighbours, uint64_t edge_start)
{
	struct gw_block_edges *edges = gw_blocks_edges_now(blocks);
	struct gw_block_arrays *arrays = &blocks->arrays[blocks->edges_done];
	int64_t *indptr = (int64_t *)arrays->indptr.data + blocks->rows_done;
	const int64_t first = indptr[0];
	uint64_t total = 0;
	for (uint64_t i = 0; i < n; i++) {
		total += counts[i];
		indptr[i + 1] = first + (int64_t)total;
	}
	gw_status status = total ? gw_blocks_edges_room(blocks, total) : GW_OK;
	if (status != GW_OK || total == 0) {
		blocks->rows_done += n;
		return status;
	}
	int64_t *ids = blocks->spec.no_edge_ids ? NULL : (int64_t *)arrays->edge_ids.data + edges->edge_count;
	for (uint64_t i = 0; ids && i < total; i++)
		ids[i] = (int64_t)(positions[i] + edge_start);
	size_t width = blocks->spec.wide_indices ? sizeof(int64_t) : sizeof(int32_t);
	struct gw_node_list *nodes = &blocks->nodes[blocks->meta->etypes[edges->etype].src];
	struct gw_relabel_source source = {.ids = neighbours};
	void *numbers = (char *)arrays->indices.data + edges->edge_count * width;
	if (blocks->grouped)
		status = gw_blocks_end_groups(blocks,
					      gw_blocks_frontier(blocks, edges->etype).groups + blocks->rows_done, n,
					      counts, total, &source.groups);
	if (status == GW_OK)
		status = gw_relabel_run(blocks->relabel, nodes, source, total, numbers, blocks->spec.wide_indices);
	blocks->rows_done += n;
	edges->edge_count += total;
	char text[GW_EDGE_FOLDER_MAX + 1];
	if (status != GW_OK)
		return gw_context(status, "neighbours by edge type %s",
				  gw_meta_etype_text(blocks->meta, edges->etype, text));
	return GW_OK;
}

gw_status gw_blocks_add(struct gw_blocks *blocks, uint64_t n, const uint32_t *counts, const uint64_t *positions,
			const uint64_t *neighbours, uint64_t edge_start)
{
	const struct gw_block_edges *edges = gw_blocks_edges_now(blocks);
	assert(blocks->state == GW_BLOCKS_IN_EDGES && n <= edges->dst_count - blocks->rows_done);
	struct kept_run run = {counts, positions, neighbours};
	if (!gw_blocks_may_drop(blocks, edges->etype))
		return add_kept(blocks, n, counts, positions, neighbours, edge_start);
	gw_status status = drop_excluded(blocks, n, &run, edge_start);
	return status != GW_OK ? status : add_kept(blocks, n, run.counts, run.edges, run.neighbours, 0);
}

gw_status gw_blocks_edges_end(struct gw_blocks *blocks)
{
	struct gw_block_edges *edges = gw_blocks_edges_now(blocks);
	assert(blocks->state == GW_BLOCKS_IN_EDGES && blocks->rows_done == edges->dst_count);
	gw_status status = gw_blocks_edges_room(blocks, 0); /* so that an empty array is not NULL */
	if (status != GW_OK)
		return status;
	edges->indices = blocks->arrays[blocks->edges_done].indices.data;
	edges->edge_ids = blocks->spec.no_edge_ids ? NULL : blocks->arrays[blocks->edges_done].edge_ids.data;
	blocks->edge_count += edges->edge_count;
	blocks->edges_done++;
	blocks->state = GW_BLOCKS_IN_HOP;
	return GW_OK;
}

gw_status gw_blocks_hop_end(struct gw_blocks *blocks)
{
	assert(blocks->state == GW_BLOCKS_IN_HOP);
	struct gw_block *hop = &blocks->hops[blocks->hops_done];
	uint64_t *src_counts = (uint64_t *)hop->src_counts;
	for (uint32_t t = 0; t < blocks->meta->num_ntypes; t++)
		src_counts[t] = blocks->nodes[t].count;
	hop->edges_count = blocks->edges_done - blocks->edges_first;
	blocks->hops_done++;
	blocks->state = GW_BLOCKS_BEGUN;
	return GW_OK;
}

const struct gw_block *gw_blocks_hop(const struct gw_blocks *blocks, uint32_t hop)
{
	assert(hop < blocks->hops_done);
	return &blocks->hops[hop];
}

const int64_t *gw_blocks_nodes(const struct gw_blocks *blocks, uint32_t ntype, uint64_t *count)
{
	assert(ntype < blocks->meta->num_ntypes);
	*count = blocks->nodes[ntype].count;
	return blocks->nodes[ntype].ids.data;
}

const uint32_t *gw_blocks_node_groups(const struct gw_blocks *blocks, uint32_t ntype)
{
	assert(ntype < blocks->meta->num_ntypes);
	return blocks->grouped ? blocks->nodes[ntype].groups.data : NULL;
}

const uint32_t *gw_blocks_seed_rows(const struct gw_blocks *blocks, uint64_t *count)
{
	*count = blocks->seed_count;
	return blocks->seed_rows.data;
}

uint64_t gw_blocks_edge_count(const struct gw_blocks *blocks)
{
	return blocks->edge_count;
}
