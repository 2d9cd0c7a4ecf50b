/* Threads walk the lists in parallel. Each thread adds to its own sums; the caller adds these up at the end. */
#include "tools/edge_scan.h"


#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "core/system/parallel.h"

#define GRAIN 4096u /* rows of a chunk */

struct edge_scan_walk {
	const struct gw_adjacency *lists;
	uint64_t src_begin, src_end;  /* sources that this part owns */
	bool pairs, ids;              /* whether the sums of pairs and of ids are needed */
	struct gw_edge_scan *partial; /* one for each thread */
};

static uint64_t hash_pair(uint64_t a, uint64_t b)
{
	return gw_mix64(gw_mix64(a + 0x9e3779b97f4a7c15u) ^ (b + 0xd1b54a32d192ed03u));
}

static gw_status walk_in(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct edge_scan_walk *walk = context;
	const struct gw_adjacency *a = walk->lists;
	struct gw_edge_scan *scan = &walk->partial[thread];
	for (uint64_t row = begin; row < end; row++) {
		uint64_t from, to, dst = a->dst_start + row;
		gw_adjacency_list(a, row, &from, &to);
		gw_histogram_add(&scan->degrees, to - from);
		scan->edges += to - from;
		for (uint64_t i = from; i < to; i++) {
			uint64_t src = gw_load_id(a->indices, a->index_bytes, i);
			scan->remote += src < walk->src_begin || src >= walk->src_end;
			if (walk->pairs) {
				scan->forward += hash_pair(src, dst);
				scan->backward += hash_pair(dst, src);
			}
			if (walk->ids)
				scan->in += hash_pair(hash_pair(src, dst), a->edge_start + i);
		}
	}
	return GW_OK;
}

static gw_status walk_out(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct edge_scan_walk *walk = context;
	const struct gw_adjacency *a = walk->lists;
	struct gw_edge_scan *scan = &walk->partial[thread];
	for (uint64_t row = begin; row < end; row++) {
		uint64_t from, to, src = a->dst_start + row;
		gw_adjacency_list(a, row, &from, &to);
		for (uint64_t i = from; i < to; i++)
			scan->out += hash_pair(hash_pair(src, gw_load_id(a->indices, a->index_bytes, i)), a->eid[i]);
	}
	return GW_OK;
}

static void add_up(struct gw_edge_scan *scan, const struct gw_edge_scan *partial)
{
	scan->edges += partial->edges;
	scan->remote += partial->remote;
	scan->forward += partial->forward;
	scan->backward += partial->backward;
	scan->in += partial->in;
	scan->out += partial->out;
	gw_histogram_merge(&scan->degrees, &partial->degrees);
}

gw_status gw_edge_scan_add(const struct gw_part *part, uint32_t etype, unsigned threads, struct gw_edge_scan *scan)
{
	const struct gw_graph_meta *meta = gw_part_meta(part);
	const uint64_t *starts = meta->ntypes[meta->etypes[etype].src].starts + gw_part_number(part);
	threads = threads ? threads : gw_processors();
	struct edge_scan_walk walk = {
		.lists = gw_part_adjacency(part, etype), .src_begin = starts[0], .src_end = starts[1]};
	walk.ids = gw_part_out_adjacency(part, etype) != NULL;
	for (uint32_t t = 0; t < meta->num_etypes; t++)
		walk.pairs |=
			meta->etypes[t].reverse == etype || (t == etype && meta->etypes[t].reverse != GW_TYPE_NONE);
	walk.partial = gw_calloc(threads, sizeof(*walk.partial));
	if (!walk.partial)
		return GW_NO_MEMORY;
	for (unsigned t = 0; t < threads; t++)
		gw_histogram_clear(&walk.partial[t].degrees);
	if (scan->degrees.count == 0)
		gw_histogram_clear(&scan->degrees);
	gw_status status = gw_parallel_for(threads, walk.lists->rows, GRAIN, walk_in, &walk);
	walk.lists = gw_part_out_adjacency(part, etype);
	if (status == GW_OK && walk.lists)
		status = gw_parallel_for(threads, walk.lists->rows, GRAIN, walk_out, &walk);
	for (unsigned t = 0; status == GW_OK && t < threads; t++)
		add_up(scan, &walk.partial[t]);
	gw_free(walk.partial);
	return status;
}
