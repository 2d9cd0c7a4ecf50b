/* See edge_seeds.h. Fails as edges_op.h does, also if an edge does not exist, and if memory runs out. GW_INVALID:
 * reverse_ids names an edge that is not the reverse of the seed. */
#include "client/batch/edge_seeds.h"

#include <stdio.h>
#include <string.h>

#include "sampler/negatives.h"

static const struct gw_graph_meta *seeds_meta(const struct gw_edge_seeds_op *op)
{
	return op->asked.engine->client->meta;
}

uint32_t gw_edge_seeds_type_drawn(const struct gw_graph_meta *meta, const struct gw_edge_seeds *spec)
{
	const struct gw_edge_type *type = &meta->etypes[spec->etype];
	return spec->negatives == GW_NEGATIVES_SRC ? type->src : type->dst;
}

uint64_t gw_edge_seeds_bound(const struct gw_graph_meta *meta, const struct gw_edge_seeds *spec)
{
	return spec->src ? spec->pair_count : meta->etypes[spec->etype].count;
}

/* --- The spec. --- */

/* They have no edge ids, by which edges could be excluded. */
static gw_status check_pairs(const struct gw_client *client, const struct gw_edge_seeds *spec)
{
	if (!spec->src != !spec->dst)
		return gw_fail(GW_INVALID, "%s: seeds by their ends have sources and destinations: one list is missing",
			       client->etypes[spec->etype].name);
	if (spec->src && spec->exclude & (GW_EXCLUDE_EDGES | GW_EXCLUDE_REVERSE_IDS))
		return gw_fail(GW_INVALID,
			       "%s: seeds by their ends have no edge ids: exclude by ends (GW_EXCLUDE_ENDS, "
			       "GW_EXCLUDE_REVERSE, GW_EXCLUDE_REVERSE_TYPE)",
			       client->etypes[spec->etype].name);
	return GW_OK;
}

/* It must exist and have the ends of the seeds' type, swapped. */
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
		return gw_fail(GW_INVALID, "%s is not a reverse of %s: its ends differ",
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
		return gw_fail(GW_INVALID, "negatives = %u: give none, dst or src", (unsigned)spec->negatives);
	if ((spec->negatives == GW_NEGATIVES_NONE) != (spec->negatives_each == 0))
		return gw_fail(GW_INVALID, "%u negatives for each edge, and %s end to draw: give both or none",
			       spec->negatives_each, spec->negatives == GW_NEGATIVES_NONE ? "no" : "an");
	uint64_t choices =
		spec->negative_ids ? spec->negative_id_count : meta->ntypes[gw_edge_seeds_type_drawn(meta, spec)].count;
	if (spec->negatives != GW_NEGATIVES_NONE && choices == 0)
		return gw_fail(GW_INVALID, "there are no nodes to draw negatives from");
	if (spec->exclude > 2 * GW_EXCLUDE_REVERSE_IDS - 1)
		return gw_fail(GW_INVALID, "exclude = %u: it is a sum of 1, 2, 4, 8 and 16", spec->exclude);
	gw_status status = check_pairs(client, spec);
	return status == GW_OK ? check_reverse_type(client, spec) : status;
}

static gw_status check_seed_ends(const char *what, const int64_t *ids, uint64_t count, const struct gw_type_info *type)
{
	for (uint64_t i = 0; i < count; i++) {
		if ((uint64_t)ids[i] >= type->count)
			return gw_fail(GW_RANGE, "%s %lld of the seed at place %llu: %s has ids 0 to %lld", what,
				       (long long)ids[i], (unsigned long long)i, type->name,
				       (long long)type->count - 1);
	}
	return GW_OK;
}

gw_status gw_edge_seeds_check_ids(const struct gw_client *client, const struct gw_edge_seeds *spec)
{
	uint64_t nodes = client->meta->ntypes[gw_edge_seeds_type_drawn(client->meta, spec)].count;
	for (uint64_t i = 0; spec->negative_ids && i < spec->negative_id_count; i++) {
		if ((uint64_t)spec->negative_ids[i] >= nodes)
			return gw_fail(GW_RANGE,
				       "node %lld at position %llu of those to draw from: ids run from 0 to %lld",
				       (long long)spec->negative_ids[i], (unsigned long long)i, (long long)nodes - 1);
	}
	if (!spec->src)
		return GW_OK;
	const struct gw_edge_type *type = &client->meta->etypes[spec->etype];
	gw_status status = check_seed_ends("source", spec->src, spec->pair_count, &client->ntypes[type->src]);
	if (status == GW_OK)
		status = check_seed_ends("destination", spec->dst, spec->pair_count, &client->ntypes[type->dst]);
	return status;
}

gw_status gw_edge_seeds_check_count(const struct gw_edge_seeds *spec, uint64_t count, uint64_t *total)
{
	if (spec->negatives_each > GW_NEGATIVES_MAX || (*total += count * spec->negatives_each) > GW_NEGATIVES_MAX)
		return gw_fail(GW_LIMIT, "%llu edges with %u negatives each in one mini-batch: at most %u negatives",
			       (unsigned long long)count, spec->negatives_each, GW_NEGATIVES_MAX);
	return GW_OK;
}

gw_status gw_edge_seeds_op_init(struct gw_edge_seeds_op *op, struct gw_engine *engine)
{
	gw_status status = gw_edges_op_init(&op->asked, engine);
	if (status == GW_OK)
		status = gw_edges_op_init(&op->reverses, engine);
	if (status == GW_OK)
		status = gw_existing_init(&op->existing, engine);
	if (status != GW_OK)
		gw_edge_seeds_op_free(op);
	return status;
}

void gw_edge_seeds_op_free(struct gw_edge_seeds_op *op)
{
	if (op->asked.engine)
		gw_edges_op_free(&op->asked);
	if (op->reverses.engine)
		gw_edges_op_free(&op->reverses);
	gw_existing_free(&op->existing);
	gw_vec_free(&op->with_reverses);
	gw_vec_free(&op->kept_ids);
	gw_vec_free(&op->negatives);
	gw_vec_free(&op->pending);
	gw_vec_free(&op->src);
	gw_vec_free(&op->dst);
}

gw_status gw_edge_seeds_op_keep_ids(struct gw_edge_seeds_op *op)
{
	struct gw_edge_seeds *spec = &op->spec;
	if (!spec->negative_ids)
		return GW_OK;
	gw_status status = gw_vec_reserve(&op->kept_ids, spec->negative_id_count * 8);
	if (status != GW_OK)
		return status;
	if (spec->negative_id_count)
		memcpy(op->kept_ids.data, spec->negative_ids, spec->negative_id_count * 8);
	spec->negative_ids = op->kept_ids.data;
	return GW_OK;
}

static void seeds_end(struct gw_edge_seeds_op *op, gw_status status)
{
	op->open = false;
	op->done(op, status);
}

/* --- Reverses by id. --- */

static bool has_reverse_ids(const struct gw_edge_seeds_op *op)
{
	return op->spec.exclude & GW_EXCLUDE_REVERSE_IDS && op->count > 0;
}

/* If edges and reverses have the same type, one request covers both. */
static gw_status list_reverses(struct gw_edge_seeds_op *op)
{
	const struct gw_edge_seeds *spec = &op->spec;
	const struct gw_client *client = op->asked.engine->client;
	uint64_t edges = client->meta->etypes[spec->etype].count;
	uint64_t reverses = client->meta->etypes[spec->reverse_etype].count;
	gw_status status = gw_vec_reserve(&op->with_reverses, 2 * op->count * 8);
	int64_t *ids = op->with_reverses.data;
	for (uint64_t i = 0; i < op->count && status == GW_OK; i++) {
		if ((uint64_t)op->ids[i] >= edges)
			return gw_fail_id("edge", op->ids[i], i, edges);
		int64_t reverse = spec->reverse_ids[op->ids[i]];
		if ((uint64_t)reverse >= reverses)
			return gw_fail(GW_RANGE, "reverse_ids[%lld] is %lld: %s has %llu edges: give one of them",
				       (long long)op->ids[i], (long long)reverse,
				       client->etypes[spec->reverse_etype].name, (unsigned long long)reverses);
		ids[i] = op->ids[i];
		ids[op->count + i] = reverse;
	}
	return status;
}

/* The source and destination of a reverse must be the destination and source of the seed. */
static gw_status check_reverses(const struct gw_edge_seeds_op *op)
{
	const struct gw_edge_seeds *spec = &op->spec;
	const struct gw_client *client = op->asked.engine->client;
	const int64_t *src = op->asked.src.data, *dst = op->asked.dst.data, *ids = op->with_reverses.data;
	bool same = spec->reverse_etype == spec->etype;
	const int64_t *from = same ? src + op->count : op->reverses.src.data;
	const int64_t *to = same ? dst + op->count : op->reverses.dst.data;
	for (uint64_t i = 0; i < op->count; i++) {
		if (from[i] == dst[i] && to[i] == src[i])
			continue;
		return gw_fail(GW_INVALID,
			       "reverse_ids: edge %lld of %s leads from %lld to %lld, and edge %lld of %s, "
			       "its supposed reverse, from %lld to %lld: give ids of this graph (orig_id maps them to "
			       "original ids), or exclude by ends, without reverse_ids",
			       (long long)ids[i], client->etypes[spec->etype].name, (long long)src[i],
			       (long long)dst[i], (long long)ids[op->count + i],
			       client->etypes[spec->reverse_etype].name, (long long)from[i], (long long)to[i]);
	}
	return GW_OK;
}

/* --- Negatives. --- */

static uint64_t negative_draw(const struct gw_edge_seeds_op *op, uint64_t number, uint64_t bound)
{
	uint32_t each = op->spec.negatives_each;
	return gw_negative_draw(op->key, number / each, number % each, op->attempt, bound);
}

static void negatives_asked(struct gw_edges_op *asked, gw_status status);

static void ask_whether_edges(struct gw_edge_seeds_op *op)
{
	const uint32_t *pending = op->pending.data;
	const int64_t *negatives = op->negatives.data;
	const int64_t *ends[] = {op->asked.src.data, op->asked.dst.data};
	bool drawn_src = op->spec.negatives == GW_NEGATIVES_SRC;
	int64_t *src = op->src.data, *dst = op->dst.data;
	for (uint64_t i = 0; i < op->pending_count; i++) {
		uint64_t slot = pending[i] / op->spec.negatives_each;
		src[i] = drawn_src ? negatives[pending[i]] : ends[0][slot];
		dst[i] = drawn_src ? ends[1][slot] : negatives[pending[i]];
	}
	op->asked.done = negatives_asked;
	gw_edges_op_start(&op->asked, op->job, GW_EDGE_COUNTS, op->spec.etype, src, dst, op->pending_count);
}

static void negatives_drawn(struct gw_edge_seeds_op *op, gw_status status)
{
	if (status == GW_OK && op->spec.no_true_edges)
		ask_whether_edges(op);
	else
		seeds_end(op, status);
}

static void existing_drawn(struct gw_existing *existing, gw_status status)
{
	struct gw_edge_seeds_op *op = existing->owner;
	char time[32];
	uint64_t slot = existing->slot;
	if (status == GW_OK || slot == UINT64_MAX) {
		negatives_drawn(op, status);
		return;
	}
	if (op->real_times)
		snprintf(time, sizeof(time), "%.17g", ((const double *)op->times)[slot]);
	else
		snprintf(time, sizeof(time), "%lld", (long long)((const int64_t *)op->times)[slot]);
	seeds_end(op,
		  gw_context(status, "a negative for %s %lld of %s, seed %llu of the batch, time %s",
			     op->spec.src ? "pair" : "edge", (long long)op->ids[slot],
			     op->asked.engine->client->etypes[op->spec.etype].name, (unsigned long long)slot, time));
}

static void draw_existing(struct gw_edge_seeds_op *op)
{
	struct gw_existing *existing = &op->existing;
	existing->done = existing_drawn;
	existing->numbers = op->pending.data;
	existing->count = op->pending_count;
	existing->negatives = op->negatives.data;
	existing->key = op->key;
	existing->each = op->spec.negatives_each;
	existing->attempt = op->attempt;
	gw_existing_draw(existing);
}

/* Draws the negatives that are pending. */
static void draw_negatives(struct gw_edge_seeds_op *op)
{
	const struct gw_edge_seeds *spec = &op->spec;
	const struct gw_graph_meta *meta = seeds_meta(op);
	const uint32_t *pending = op->pending.data;
	uint64_t nodes = meta->ntypes[gw_edge_seeds_type_drawn(meta, spec)].count;
	uint64_t bound = spec->negative_ids ? spec->negative_id_count : nodes;
	if (op->exist) {
		draw_existing(op);
		return;
	}
	for (uint64_t i = 0; i < op->pending_count; i++) {
		uint64_t drawn = negative_draw(op, pending[i], bound);
		((int64_t *)op->negatives.data)[pending[i]] =
			spec->negative_ids ? spec->negative_ids[drawn] : (int64_t)drawn;
	}
	negatives_drawn(op, GW_OK);
}

/* Draws the negatives that are edges again, and checks the new ones. */
static void negatives_asked(struct gw_edges_op *asked, gw_status status)
{
	struct gw_edge_seeds_op *op = asked->owner;
	const uint64_t *counts = asked->counts.data;
	uint32_t *pending = op->pending.data;
	uint64_t left = 0;
	for (uint64_t i = 0; i < op->pending_count && status == GW_OK; i++) {
		if (counts[i])
			pending[left++] = pending[i];
	}
	op->pending_count = left;
	if (status != GW_OK || left == 0 || ++op->attempt == GW_NEGATIVE_ATTEMPTS) {
		op->true_edges = left;
		seeds_end(op, status);
		return;
	}
	draw_negatives(op);
}

/* All of them, for the first attempt. */
static gw_status list_negatives(struct gw_edge_seeds_op *op)
{
	uint64_t n = op->pending_count = op->count * op->spec.negatives_each;
	if (gw_vec_reserve(&op->negatives, n * 8) != GW_OK || gw_vec_reserve(&op->pending, n * 4) != GW_OK)
		return GW_NO_MEMORY;
	if (op->spec.no_true_edges &&
	    (gw_vec_reserve(&op->src, n * 8) != GW_OK || gw_vec_reserve(&op->dst, n * 8) != GW_OK))
		return GW_NO_MEMORY;
	uint32_t *pending = op->pending.data;
	for (uint64_t i = 0; i < n; i++)
		pending[i] = (uint32_t)i;
	return GW_OK;
}

static struct gw_edge_seeds_op *op_of_ends(struct gw_fan_in *ends)
{
	return (struct gw_edge_seeds_op *)((char *)ends - offsetof(struct gw_edge_seeds_op, ends));
}

/* The ends are known, and the number of nodes that exist at each time, if negatives need it. */
static void ends_found(struct gw_fan_in *ends, gw_status status)
{
	struct gw_edge_seeds_op *op = op_of_ends(ends);
	if (status == GW_OK && has_reverse_ids(op))
		status = check_reverses(op);
	if (status == GW_OK)
		status = list_negatives(op);
	if (status == GW_OK && op->pending_count > 0)
		draw_negatives(op);
	else
		seeds_end(op, status);
}

/* --- Ends. --- */

static void ends_cancel(struct gw_fan_in *ends)
{
	struct gw_edge_seeds_op *op = op_of_ends(ends);
	gw_edges_op_cancel(&op->asked);
	gw_edges_op_cancel(&op->reverses);
	gw_existing_cancel(&op->existing);
}

static void ends_answered(struct gw_edges_op *asked, gw_status status)
{
	struct gw_edge_seeds_op *op = asked->owner;
	gw_fan_in_end_one(&op->ends, status);
}

static void ask_ends(struct gw_edge_seeds_op *op, struct gw_edges_op *asked, uint32_t etype, const int64_t *ids,
		     uint64_t n)
{
	if (op->ends.status != GW_OK)
		return;
	asked->done = ends_answered;
	asked->owner = op;
	gw_fan_in_add(&op->ends);
	gw_edges_op_start(asked, op->job, GW_EDGE_ENDS, etype, ids, NULL, n);
}

static void existing_counted(struct gw_existing *existing, gw_status status)
{
	struct gw_edge_seeds_op *op = existing->owner;
	gw_fan_in_end_one(&op->ends, status);
}

static void count_existing(struct gw_edge_seeds_op *op)
{
	if (!op->exist || op->count == 0 || op->ends.status != GW_OK)
		return;
	op->existing.done = existing_counted;
	op->existing.owner = op;
	gw_fan_in_add(&op->ends);
	gw_existing_count(&op->existing, op->job, op->exist, op->real_times, op->times, op->count);
}

/* Copies the ends of pairs to where the answers for edges come. */
static gw_status take_pairs(struct gw_edge_seeds_op *op)
{
	const struct gw_edge_seeds *spec = &op->spec;
	gw_status status = gw_vec_reserve(&op->asked.src, op->count * 8);
	if (status == GW_OK)
		status = gw_vec_reserve(&op->asked.dst, op->count * 8);
	int64_t *src = op->asked.src.data, *dst = op->asked.dst.data;
	for (uint64_t i = 0; i < op->count && status == GW_OK; i++) {
		if ((uint64_t)op->ids[i] >= spec->pair_count)
			return gw_fail_id("pair", op->ids[i], i, spec->pair_count);
		src[i] = spec->src[op->ids[i]];
		dst[i] = spec->dst[op->ids[i]];
	}
	op->asked.owner = op;
	return status;
}

void gw_edge_seeds_op_start(struct gw_edge_seeds_op *op)
{
	const struct gw_edge_seeds *spec = &op->spec;
	bool mapped = has_reverse_ids(op), same = spec->reverse_etype == spec->etype;
	op->open = true;
	op->attempt = 0;
	op->true_edges = 0;
	gw_fan_in_begin(&op->ends, op->job, ends_cancel, ends_found);
	gw_status status = spec->src ? take_pairs(op) : mapped ? list_reverses(op) : GW_OK;
	if (status == GW_OK && !spec->src) {
		const int64_t *both = op->with_reverses.data;
		ask_ends(op, &op->asked, spec->etype, mapped ? both : op->ids,
			 mapped && same ? 2 * op->count : op->count);
		if (mapped && !same)
			ask_ends(op, &op->reverses, spec->reverse_etype, both + op->count, op->count);
	}
	if (status == GW_OK)
		count_existing(op);
	gw_fan_in_end_one(&op->ends, status);
}

void gw_edge_seeds_op_cancel(struct gw_edge_seeds_op *op)
{
	if (op->open && op->ends.open)
		gw_fan_in_cancel(&op->ends);
	else if (op->open)
		ends_cancel(&op->ends);
}
