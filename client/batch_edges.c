/* See batch_edges.h. Fails as edges_op.h does, on an edge that there is not, and for want of memory. */
#include "client/batch_edges.h"

#include <string.h>

#include "sampler/negatives.h"

static const struct gw_graph_meta *edges_meta(const struct gw_batch_edges *edges)
{
	return edges->op.engine->client->meta;
}

/* The node type that negatives are of. */
static uint32_t type_drawn(const struct gw_graph_meta *meta, const struct gw_edge_seeds *spec)
{
	const struct gw_edge_type *type = &meta->etypes[spec->etype];
	return spec->negatives == GW_NEGATIVES_SRC ? type->src : type->dst;
}

/* --- The spec. --- */

/* The edge type that holds the reverses, and whether its ends are ours turned round. */
static gw_status check_reverse_type(const struct gw_client *client, const struct gw_edge_seeds *spec)
{
	const struct gw_graph_meta *meta = client->meta;
	const struct gw_edge_type *type = &meta->etypes[spec->etype];
	if (spec->exclude & GW_EXCLUDE_REVERSE && type->reverse == GW_TYPE_NONE)
		return gw_fail(GW_UNSUPPORTED,
			       "the graph names no reverse of %s: give it as reverse_etype (GW_EXCLUDE_REVERSE_TYPE)",
			       client->etypes[spec->etype].name);
	if (!(spec->exclude & (GW_EXCLUDE_REVERSE_TYPE | GW_EXCLUDE_REVERSE_IDS)))
		return GW_OK;
	if (spec->reverse_etype >= meta->num_etypes)
		return gw_fail(GW_RANGE, "reverse edge type %u of %u", spec->reverse_etype, meta->num_etypes);
	const struct gw_edge_type *reverse = &meta->etypes[spec->reverse_etype];
	if (reverse->src != type->dst || reverse->dst != type->src)
		return gw_fail(GW_INVALID, "%s is no reverse of %s: other ends",
			       client->etypes[spec->reverse_etype].name, client->etypes[spec->etype].name);
	if (spec->exclude & GW_EXCLUDE_REVERSE_IDS && (!spec->reverse_ids || spec->reverse_id_count != type->count))
		return gw_fail(GW_INVALID, "%llu ids of reverses: %s has %llu edges",
			       (unsigned long long)(spec->reverse_ids ? spec->reverse_id_count : 0),
			       client->etypes[spec->etype].name, (unsigned long long)type->count);
	return GW_OK;
}

gw_status gw_edge_seeds_check(const struct gw_client *client, const struct gw_edge_seeds *spec)
{
	const struct gw_graph_meta *meta = client->meta;
	if (spec->etype >= meta->num_etypes)
		return gw_fail(GW_RANGE, "seed edge type %u of %u", spec->etype, meta->num_etypes);
	if ((unsigned)spec->negatives > GW_NEGATIVES_SRC)
		return gw_fail(GW_INVALID, "negatives = %u: it is none, dst or src", (unsigned)spec->negatives);
	if ((spec->negatives == GW_NEGATIVES_NONE) != (spec->negatives_each == 0))
		return gw_fail(GW_INVALID, "%u negatives for each edge, and %s end to draw: give both or none",
			       spec->negatives_each, spec->negatives == GW_NEGATIVES_NONE ? "no" : "an");
	uint64_t choices = spec->negative_ids ? spec->negative_id_count : meta->ntypes[type_drawn(meta, spec)].count;
	if (spec->negatives != GW_NEGATIVES_NONE && choices == 0)
		return gw_fail(GW_INVALID, "there are no nodes to draw negatives from");
	if (spec->exclude > 2 * GW_EXCLUDE_REVERSE_IDS - 1)
		return gw_fail(GW_INVALID, "exclude = %u: it is a sum of 1, 2, 4, 8 and 16", spec->exclude);
	return check_reverse_type(client, spec);
}

gw_status gw_edge_seeds_check_ids(const struct gw_client *client, const struct gw_edge_seeds *spec)
{
	uint64_t nodes = client->meta->ntypes[type_drawn(client->meta, spec)].count;
	for (uint64_t i = 0; spec->negative_ids && i < spec->negative_id_count; i++) {
		if ((uint64_t)spec->negative_ids[i] >= nodes)
			return gw_fail(GW_RANGE,
				       "node %lld at position %llu of those to draw from: ids run from 0 to %lld",
				       (long long)spec->negative_ids[i], (unsigned long long)i, (long long)nodes - 1);
	}
	return GW_OK;
}

gw_status gw_edge_seeds_check_count(const struct gw_edge_seeds *spec, uint64_t count)
{
	if (spec->negatives_each > GW_NEGATIVES_MAX || count * spec->negatives_each > GW_NEGATIVES_MAX)
		return gw_fail(GW_LIMIT, "%llu edges with %u negatives each in one mini-batch: at most %u negatives",
			       (unsigned long long)count, spec->negatives_each, GW_NEGATIVES_MAX);
	return GW_OK;
}

gw_status gw_batch_edges_init(struct gw_batch_edges *edges, struct gw_engine *engine)
{
	return gw_edges_op_init(&edges->op, engine);
}

void gw_batch_edges_free(struct gw_batch_edges *edges)
{
	if (edges->op.engine)
		gw_edges_op_free(&edges->op);
	gw_exclude_free(&edges->exclude);
	gw_vec_free(&edges->kept_ids);
	gw_vec_free(&edges->negatives);
	gw_vec_free(&edges->pending);
	gw_vec_free(&edges->src);
	gw_vec_free(&edges->dst);
}

gw_status gw_batch_edges_keep_ids(struct gw_batch_edges *edges)
{
	struct gw_edge_seeds *spec = &edges->spec;
	if (!spec->negative_ids)
		return GW_OK;
	gw_status status = gw_vec_reserve(&edges->kept_ids, spec->negative_id_count * 8);
	if (status != GW_OK)
		return status;
	if (spec->negative_id_count)
		memcpy(edges->kept_ids.data, spec->negative_ids, spec->negative_id_count * 8);
	spec->negative_ids = edges->kept_ids.data;
	return GW_OK;
}

/* --- What is excluded, and the lists: the last step. --- */

static gw_status exclude_edges(struct gw_batch_edges *edges)
{
	const struct gw_edge_seeds *spec = &edges->spec;
	const struct gw_graph_meta *meta = edges_meta(edges);
	const int64_t *src = edges->op.src.data, *dst = edges->op.dst.data;
	uint64_t each = (uint64_t)__builtin_popcount(spec->exclude);
	struct gw_exclude *exclude = &edges->exclude;
	gw_status status = gw_exclude_clear(exclude, meta->num_etypes, edges->count * each);
	for (uint64_t i = 0; i < edges->count && spec->exclude && status == GW_OK; i++) {
		uint64_t edge = (uint64_t)edges->ids[i], from = (uint64_t)src[i], to = (uint64_t)dst[i];
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
	return status;
}

static void batch_edges_end(struct gw_batch_edges *edges, gw_status status)
{
	const struct gw_edge_seeds *spec = &edges->spec;
	const struct gw_graph_meta *meta = edges_meta(edges);
	const struct gw_edge_type *type = &meta->etypes[spec->etype];
	if (status == GW_OK)
		status = exclude_edges(edges);
	edges->lists[0] = (struct gw_seeds){.type = type->src, .count = edges->count, .ids = edges->op.src.data};
	edges->lists[1] = (struct gw_seeds){.type = type->dst, .count = edges->count, .ids = edges->op.dst.data};
	edges->lists[2] = (struct gw_seeds){.type = type_drawn(meta, spec),
					    .count = edges->count * spec->negatives_each,
					    .ids = edges->negatives.data};
	edges->list_count = spec->negatives_each ? 3 : 2;
	edges->view.etype = spec->etype;
	edges->view.negatives = spec->negatives;
	edges->view.negatives_each = spec->negatives_each;
	edges->view.count = edges->count;
	edges->done(edges, status);
}

void gw_batch_edges_show(struct gw_batch_edges *edges, const uint32_t *seed_rows)
{
	edges->view.src_rows = seed_rows;
	edges->view.dst_rows = seed_rows + edges->count;
	edges->view.negative_rows = seed_rows + 2 * edges->count;
}

/* --- Negatives. --- */

/* Draws the negative with this number in the batch. */
static void draw_negative(struct gw_batch_edges *edges, uint64_t number)
{
	const struct gw_edge_seeds *spec = &edges->spec;
	const struct gw_graph_meta *meta = edges_meta(edges);
	uint64_t bound = spec->negative_ids ? spec->negative_id_count : meta->ntypes[type_drawn(meta, spec)].count;
	uint64_t drawn = gw_negative_draw(edges->key, number / spec->negatives_each, number % spec->negatives_each,
					  edges->attempt, bound);
	((int64_t *)edges->negatives.data)[number] = spec->negative_ids ? spec->negative_ids[drawn] : (int64_t)drawn;
}

static void negatives_asked(struct gw_edges_op *op, gw_status status);

/* Asks whether the pending negatives are edges. */
static void ask_pending(struct gw_batch_edges *edges)
{
	const uint32_t *pending = edges->pending.data;
	const int64_t *negatives = edges->negatives.data;
	const int64_t *ends[] = {edges->op.src.data, edges->op.dst.data};
	bool drawn_src = edges->spec.negatives == GW_NEGATIVES_SRC;
	int64_t *src = edges->src.data, *dst = edges->dst.data;
	for (uint64_t i = 0; i < edges->pending_count; i++) {
		uint64_t slot = pending[i] / edges->spec.negatives_each;
		src[i] = drawn_src ? negatives[pending[i]] : ends[0][slot];
		dst[i] = drawn_src ? ends[1][slot] : negatives[pending[i]];
	}
	edges->op.done = negatives_asked;
	gw_edges_op_start(&edges->op, edges->job, GW_EDGE_COUNTS, edges->spec.etype, src, dst, edges->pending_count);
}

/* Those that are edges are drawn again, and asked about again. */
static void negatives_asked(struct gw_edges_op *op, gw_status status)
{
	struct gw_batch_edges *edges = op->owner;
	const uint64_t *counts = op->counts.data;
	uint32_t *pending = edges->pending.data;
	uint64_t left = 0;
	for (uint64_t i = 0; i < edges->pending_count && status == GW_OK; i++) {
		if (counts[i])
			pending[left++] = pending[i];
	}
	edges->pending_count = left;
	if (status != GW_OK || left == 0 || ++edges->attempt == GW_NEGATIVE_ATTEMPTS) {
		edges->view.true_edges = left;
		batch_edges_end(edges, status);
		return;
	}
	for (uint64_t i = 0; i < left; i++)
		draw_negative(edges, pending[i]);
	ask_pending(edges);
}

static void ends_found(struct gw_edges_op *op, gw_status status)
{
	struct gw_batch_edges *edges = op->owner;
	uint64_t n = edges->count * edges->spec.negatives_each;
	bool asks = edges->spec.no_true_edges && n > 0;
	if (status == GW_OK)
		status = gw_vec_reserve(&edges->negatives, n * 8);
	if (status == GW_OK && asks && (status = gw_vec_reserve(&edges->pending, n * 4)) == GW_OK &&
	    (status = gw_vec_reserve(&edges->src, n * 8)) == GW_OK)
		status = gw_vec_reserve(&edges->dst, n * 8);
	for (uint64_t i = 0; i < n && status == GW_OK; i++) {
		draw_negative(edges, i);
		if (asks)
			((uint32_t *)edges->pending.data)[i] = (uint32_t)i;
	}
	edges->pending_count = n;
	if (status != GW_OK || !asks)
		batch_edges_end(edges, status);
	else
		ask_pending(edges);
}

void gw_batch_edges_start(struct gw_batch_edges *edges)
{
	edges->attempt = 0;
	edges->view.true_edges = 0;
	edges->op.done = ends_found;
	edges->op.owner = edges;
	gw_edges_op_start(&edges->op, edges->job, GW_EDGE_ENDS, edges->spec.etype, edges->ids, NULL, edges->count);
}

void gw_batch_edges_cancel(struct gw_batch_edges *edges)
{
	gw_edges_op_cancel(&edges->op);
}
