/* See batch_edges.h. Fails with the error of the first type that fails (see edge_seeds.h), or if memory runs out. */
#include "client/batch/batch_edges.h"

#include "core/memory/alloc.h"
#include "core/numbers/rng.h"

#define LISTS_EACH 3 /* per type: sources, destinations, negatives */

static const struct gw_graph_meta *edges_meta(const struct gw_batch_edges *edges)
{
	return edges->engine->client->meta;
}

void gw_batch_edges_init(struct gw_batch_edges *edges, struct gw_engine *engine)
{
	edges->engine = engine;
}

void gw_batch_edges_free(struct gw_batch_edges *edges)
{
	for (uint32_t i = 0; i < edges->capacity; i++) {
		gw_edge_seeds_op_free(edges->types[i]);
		gw_free(edges->types[i]);
	}
	gw_free(edges->types);
	gw_exclude_free(&edges->exclude);
	gw_vec_free(&edges->lists);
	gw_vec_free(&edges->views);
	gw_vec_free(&edges->negative_times[0]);
	gw_vec_free(&edges->negative_times[1]);
}

static gw_status edges_add_type(struct gw_batch_edges *edges)
{
	struct gw_edge_seeds_op **types =
		gw_realloc(edges->types, edges->capacity + 1, sizeof(struct gw_edge_seeds_op *));
	if (!types)
		return GW_NO_MEMORY;
	edges->types = types;
	struct gw_edge_seeds_op *op = gw_calloc(1, sizeof(*op));
	if (!op)
		return GW_NO_MEMORY;
	gw_status status = gw_edge_seeds_op_init(op, edges->engine);
	if (status != GW_OK) {
		gw_free(op);
		return status;
	}
	types[edges->capacity++] = op;
	return GW_OK;
}

gw_status gw_batch_edges_take(struct gw_batch_edges *edges, const struct gw_edge_seeds *specs, uint32_t count)
{
	edges->type_count = 0;
	gw_status status = gw_vec_reserve(&edges->lists, (size_t)count * LISTS_EACH * sizeof(struct gw_seeds));
	if (status == GW_OK)
		status = gw_vec_reserve(&edges->views, count * sizeof(struct gw_edge_batch));
	while (status == GW_OK && edges->capacity < count)
		status = edges_add_type(edges);
	if (status != GW_OK)
		return status;
	for (uint32_t i = 0; i < count && status == GW_OK; i++) {
		edges->types[i]->spec = specs[i];
		status = gw_node_times_find(edges->engine->client, &specs[i], &edges->types[i]->exist);
	}
	edges->type_count = count;
	return status;
}

gw_status gw_batch_edges_keep_ids(struct gw_batch_edges *edges)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < edges->type_count && status == GW_OK; i++)
		status = gw_edge_seeds_op_keep_ids(edges->types[i]);
	return status;
}

/* --- Exclusions and lists: the last step. --- */

static void exclude_edges(struct gw_exclude *exclude, const struct gw_graph_meta *meta,
			  const struct gw_edge_seeds_op *op)
{
	const struct gw_edge_seeds *spec = &op->spec;
	const int64_t *src = op->asked.src.data, *dst = op->asked.dst.data;
	for (uint64_t i = 0; i < op->count && spec->exclude; i++) {
		uint64_t edge = (uint64_t)op->ids[i], from = (uint64_t)src[i], to = (uint64_t)dst[i];
		if (spec->exclude & GW_EXCLUDE_EDGES)
			gw_exclude_add_edge(exclude, spec->etype, edge);
		if (spec->exclude & GW_EXCLUDE_ENDS)
			gw_exclude_add_ends(exclude, spec->etype, from, to);
		if (spec->exclude & GW_EXCLUDE_REVERSE)
			gw_exclude_add_ends(exclude, meta->etypes[spec->etype].reverse, to, from);
		if (spec->exclude & GW_EXCLUDE_REVERSE_TYPE)
			gw_exclude_add_ends(exclude, spec->reverse_etype, to, from);
		if (spec->exclude & GW_EXCLUDE_REVERSE_IDS)
			gw_exclude_add_edge(exclude, spec->reverse_etype, (uint64_t)spec->reverse_ids[edge]);
	}
}

static gw_status exclude_all(struct gw_batch_edges *edges)
{
	const struct gw_graph_meta *meta = edges_meta(edges);
	uint64_t entries = 0;
	for (uint32_t t = 0; t < edges->type_count; t++)
		entries += edges->types[t]->count * (uint64_t)__builtin_popcount(edges->types[t]->spec.exclude);
	gw_status status = gw_exclude_clear(&edges->exclude, meta->num_etypes, entries);
	for (uint32_t t = 0; t < edges->type_count && status == GW_OK; t++)
		exclude_edges(&edges->exclude, meta, edges->types[t]);
	return status;
}

/* A time for each negative of each edge: *at of the array is where those of this type begin. */
static const void *repeat_times(const void *times, const struct gw_edge_seeds_op *op, int64_t *at)
{
	const uint32_t each = op->spec.negatives_each;
	if (!times)
		return NULL;
	for (uint64_t i = 0; i < op->count * each; i++)
		at[i] = ((const int64_t *)times)[i / each];
	return at;
}

static gw_status make_time_room(struct gw_batch_edges *edges)
{
	uint64_t room = 0;
	for (uint32_t t = 0; t < edges->type_count; t++)
		room += edges->types[t]->count * edges->types[t]->spec.negatives_each;
	for (uint32_t k = 0; k < 2; k++) {
		if (gw_vec_reserve(&edges->negative_times[k], room * sizeof(int64_t)) != GW_OK)
			return GW_NO_MEMORY;
	}
	return GW_OK;
}

/* Sources, destinations, negatives. `before`: the number of negatives of the types before it. */
static void batch_edges_list(struct gw_batch_edges *edges, const struct gw_edge_seeds_op *op,
			     const struct gw_seeds *seeds, uint64_t before)
{
	const struct gw_edge_seeds *spec = &op->spec;
	const struct gw_graph_meta *meta = edges_meta(edges);
	const struct gw_edge_type *type = &meta->etypes[spec->etype];
	struct gw_seeds *lists = (struct gw_seeds *)edges->lists.data + edges->list_count;
	lists[0] = (struct gw_seeds){.type = type->src, .count = op->count, .ids = op->asked.src.data};
	lists[1] = (struct gw_seeds){.type = type->dst, .count = op->count, .ids = op->asked.dst.data};
	lists[2] = (struct gw_seeds){.type = gw_edge_seeds_type_drawn(meta, spec),
				     .count = op->count * spec->negatives_each,
				     .ids = op->negatives.data};
	for (uint32_t i = 0; i < 2; i++) {
		lists[i].times = seeds->times;
		lists[i].times_from = seeds->times_from;
	}
	lists[2].times = repeat_times(seeds->times, op, (int64_t *)edges->negative_times[0].data + before);
	lists[2].times_from = repeat_times(seeds->times_from, op, (int64_t *)edges->negative_times[1].data + before);
	edges->list_count += spec->negatives_each ? 3 : 2;
}

static void asking_done(struct gw_fan_in *asking, gw_status status)
{
	struct gw_batch_edges *edges =
		(struct gw_batch_edges *)((char *)asking - offsetof(struct gw_batch_edges, asking));
	uint64_t negatives = 0;
	if (status == GW_OK)
		status = exclude_all(edges);
	if (status == GW_OK)
		status = make_time_room(edges);
	edges->list_count = 0;
	for (uint32_t t = 0; t < edges->type_count && status == GW_OK; t++) {
		batch_edges_list(edges, edges->types[t], &edges->seeds[t], negatives);
		negatives += edges->types[t]->count * edges->types[t]->spec.negatives_each;
	}
	edges->done(edges, status);
}

const struct gw_edge_batch *gw_batch_edges_show(struct gw_batch_edges *edges, const uint32_t *seed_rows)
{
	struct gw_edge_batch *views = edges->views.data;
	for (uint32_t t = 0; t < edges->type_count; t++) {
		const struct gw_edge_seeds_op *op = edges->types[t];
		const struct gw_edge_seeds *spec = &op->spec;
		views[t] = (struct gw_edge_batch){.etype = spec->etype,
						  .negatives = spec->negatives,
						  .negatives_each = spec->negatives_each,
						  .count = op->count,
						  .src_rows = seed_rows,
						  .dst_rows = seed_rows + op->count,
						  .negative_rows = seed_rows + 2 * op->count,
						  .true_edges = op->true_edges,
						  .ids = op->ids};
		seed_rows += (2 + spec->negatives_each) * op->count;
	}
	return views;
}

/* --- Start, cancel, end. --- */

static void asking_cancel(struct gw_fan_in *asking)
{
	struct gw_batch_edges *edges =
		(struct gw_batch_edges *)((char *)asking - offsetof(struct gw_batch_edges, asking));
	for (uint32_t t = 0; t < edges->type_count; t++)
		gw_edge_seeds_op_cancel(edges->types[t]);
}

static void type_done(struct gw_edge_seeds_op *op, gw_status status)
{
	struct gw_batch_edges *edges = op->owner;
	gw_fan_in_end_one(&edges->asking, status);
}

void gw_batch_edges_start(struct gw_batch_edges *edges, struct gw_job *job, uint64_t seed, uint64_t stream,
			  const struct gw_seeds *lists)
{
	edges->seeds = lists;
	gw_fan_in_begin(&edges->asking, job, asking_cancel, asking_done);
	for (uint32_t t = 0; t < edges->type_count && edges->asking.status == GW_OK; t++) {
		struct gw_edge_seeds_op *op = edges->types[t];
		op->key = gw_draw_key(seed, stream, GW_DRAW_NEGATIVE, 0, op->spec.etype);
		op->ids = lists[t].ids;
		op->count = lists[t].count;
		op->times = lists[t].times;
		op->real_times = edges->real_times;
		op->job = job;
		op->done = type_done;
		op->owner = edges;
		gw_fan_in_add(&edges->asking);
		gw_edge_seeds_op_start(op);
	}
	gw_fan_in_end_one(&edges->asking, GW_OK);
}

void gw_batch_edges_cancel(struct gw_batch_edges *edges)
{
	gw_fan_in_cancel(&edges->asking);
}
