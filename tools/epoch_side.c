/* One client's side of an epoch.
 *
 *   client -> type of the seeds, nodes or edges -> fanouts of every hop and edge type -> tensors to fetch
 *          -> seeds from the mask -> their times -> loader
 *
 * Fails if a name is not in the graph, if memory runs out, or if a limit of the client is reached.
 */
#include "tools/epoch_side.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/errors/status.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"

/* The usual names. */
#define FEATURES "feat"
#define LABELS   "label"
#define MASK     "train_mask"

/* NULL: no tensor has this name. */
static const struct gw_tensor *side_find_tensor(const struct gw_client *client, uint32_t ntype, const char *name)
{
	const struct gw_tensor *tensor;
	for (uint32_t i = 0; (tensor = gw_tensor_at(client, i)) != NULL; i++) {
		if (!tensor->of_edges && tensor->type == ntype && strcmp(tensor->name, name) == 0)
			return tensor;
	}
	return NULL;
}

/* A given name must exist. If no name was given and the usual name does not exist, *tensor is NULL. */
static gw_status find_of_seeds(const struct gw_epoch_side *side, const char *given, const char *usual,
			       const struct gw_tensor **tensor)
{
	uint32_t ntype = side->options.spec.ntype;
	*tensor = side_find_tensor(side->client, ntype, given ? given : usual);
	if (!*tensor && !given)
		return GW_OK;
	/* Opens the tensor if it is trainable. If it does not exist, the error names the existing tensors. */
	return gw_node_tensor(side->client, ntype, given ? given : usual, tensor);
}

static gw_status choose_ntype(const struct gw_epoch_plan *plan, const struct gw_epoch_side *side, uint32_t *ntype)
{
	if (plan->ntype)
		return gw_node_type(side->client, plan->ntype, ntype);
	const struct gw_graph_info *graph = gw_client_graph(side->client);
	*ntype = 0;
	for (uint32_t t = 0; t < graph->num_ntypes; t++) {
		if (side_find_tensor(side->client, t, plan->labels ? plan->labels : LABELS)) {
			*ntype = t;
			break;
		}
	}
	return GW_OK;
}

static gw_status side_fill_fanouts(const struct gw_epoch_plan *plan, struct gw_epoch_side *side)
{
	uint32_t hops = plan->fanouts.hops, etypes = gw_client_graph(side->client)->num_etypes;
	side->fanouts = gw_calloc((size_t)hops * etypes, sizeof *side->fanouts);
	if (!side->fanouts)
		return GW_NO_MEMORY;
	for (uint32_t hop = 0; hop < hops; hop++) {
		for (uint32_t e = 0; e < etypes; e++)
			side->fanouts[hop * etypes + e] = plan->fanouts.of_hop[hop];
	}
	for (uint32_t i = 0; i < plan->override_count; i++) {
		const struct gw_epoch_override *override = &plan->overrides[i];
		uint32_t e;
		gw_status status = gw_edge_type(side->client, override->etype, &e);
		if (status != GW_OK)
			return status;
		for (uint32_t hop = 0; hop < hops; hop++)
			side->fanouts[hop * etypes + e] = override->fanouts.of_hop[hop];
	}
	side->options.spec.hops = hops;
	side->options.spec.fanouts = side->fanouts;
	return GW_OK;
}

static gw_status add_fetch(struct gw_epoch_side *side, const struct gw_tensor *tensor, enum gw_fetch_at at)
{
	if (side->options.spec.fetch_count == GW_EPOCH_FETCHES_MAX)
		return gw_fail(GW_LIMIT, "more than %d tensors to fetch", GW_EPOCH_FETCHES_MAX);
	side->fetches[side->options.spec.fetch_count++] = (struct gw_fetch){.tensor = tensor, .at = at};
	return GW_OK;
}

static gw_status choose_fetches(const struct gw_epoch_plan *plan, struct gw_epoch_side *side)
{
	const struct gw_graph_info *graph = gw_client_graph(side->client);
	side->options.spec.fetches = side->fetches;
	for (uint32_t t = 0; t < graph->num_ntypes; t++) {
		const struct gw_tensor *features =
			side_find_tensor(side->client, t, plan->features ? plan->features : FEATURES);
		gw_status status = features ? add_fetch(side, features, GW_AT_INPUTS) : GW_OK;
		if (status != GW_OK)
			return status;
	}
	if (plan->features && side->options.spec.fetch_count == 0)
		return gw_fail(GW_NOT_FOUND, "no node type has a feature \"%s\"; graphwire inspect lists the features",
			       plan->features);
	const struct gw_tensor *labels = NULL;
	gw_status status = GW_OK;
	if (!plan->edges)
		status = find_of_seeds(side, plan->labels, LABELS, &labels);
	else if (plan->labels)
		status = gw_edge_tensor(side->client, side->edges.etype, plan->labels, &labels);
	if (status != GW_OK)
		return status;
	return labels ? add_fetch(side, labels, GW_AT_SEEDS) : GW_OK;
}

/* Ascending. NULL as mask: all ids of the type. */
static gw_status find_seeds(struct gw_epoch_side *side, bool of_edges, uint32_t type, const struct gw_tensor *mask)
{
	const struct gw_split_options options = {.of_edges = of_edges, .type = type, .mask_tensor = mask};
	struct gw_rank_ids *ids;
	gw_status status = gw_split_ids(side->client, &options, &ids);
	if (status != GW_OK)
		return status;
	side->seeds = gw_calloc(ids->count + 1, sizeof *side->seeds);
	if (side->seeds && ids->count)
		memcpy(side->seeds, ids->ids, ids->count * sizeof *side->seeds);
	side->seed_count = ids->count;
	gw_rank_ids_free(ids);
	return side->seeds ? GW_OK : GW_NO_MEMORY;
}

static void keep_seeds(struct gw_epoch_side *side, int64_t begin, int64_t end)
{
	uint64_t kept = 0;
	for (uint64_t i = 0; i < side->seed_count; i++) {
		if (side->seeds[i] >= begin && side->seeds[i] < end)
			side->seeds[kept++] = side->seeds[i];
	}
	side->seed_count = kept;
}

static gw_status no_seeds(const struct gw_epoch_plan *plan, const struct gw_epoch_side *side,
			  const struct gw_tensor *mask)
{
	const char *type = gw_client_graph(side->client)->ntypes[side->options.spec.ntype].name;
	char where[32] = "the graph";
	if (plan->one_part)
		snprintf(where, sizeof where, "part %" PRIu32, plan->part);
	if (mask)
		return gw_fail(GW_NOT_FOUND, "no seeds: mask \"%s\" is set for no %s of %s", mask->name, type, where);
	return gw_fail(GW_NOT_FOUND, "no seeds: %s has no %s", where, type);
}

/* Every node if no such mask exists. */
static gw_status choose_seeds(const struct gw_epoch_plan *plan, struct gw_epoch_side *side)
{
	uint32_t ntype = side->options.spec.ntype;
	int64_t begin, end;
	const struct gw_tensor *mask;
	gw_status status = find_of_seeds(side, plan->mask, MASK, &mask);
	if (status == GW_OK)
		status = find_seeds(side, false, ntype, mask);
	if (status == GW_OK && plan->one_part) {
		status = gw_part_range(side->client, ntype, plan->part, &begin, &end);
		if (status == GW_OK)
			keep_seeds(side, begin, end);
	}
	if (status == GW_OK && side->seed_count == 0)
		status = no_seeds(plan, side, mask);
	side->options.ids = side->seeds;
	side->options.id_count = side->seed_count;
	return status;
}

/* Reverses are excluded as far as the graph names its reverse types. */
static gw_status choose_edges(const struct gw_epoch_plan *plan, struct gw_epoch_side *side)
{
	struct gw_edge_seeds *edges = &side->edges;
	gw_status status = gw_edge_type(side->client, plan->edges, &edges->etype);
	if (status != GW_OK)
		return status;
	edges->negatives = plan->negatives ? GW_NEGATIVES_DST : GW_NEGATIVES_NONE;
	edges->negatives_each = plan->negatives;
	edges->no_true_edges = plan->no_true_edges;
	if (!plan->keep_edges)
		edges->exclude = GW_EXCLUDE_EDGES;
	if (!plan->keep_edges && gw_client_graph(side->client)->etypes[edges->etype].reverse != UINT32_MAX)
		edges->exclude |= GW_EXCLUDE_REVERSE;
	side->options.spec.edges = edges;
	return GW_OK;
}

/* All edges if no such mask exists; the loader lists them by itself. */
static gw_status choose_edge_seeds(const struct gw_epoch_plan *plan, struct gw_epoch_side *side)
{
	const struct gw_tensor *mask;
	if (!plan->mask && gw_client_graph(side->client)->etypes[side->edges.etype].count == 0)
		return gw_fail(GW_NOT_FOUND, "no seeds: %s has no edges", plan->edges);
	if (!plan->mask)
		return GW_OK;
	gw_status status = gw_edge_tensor(side->client, side->edges.etype, plan->mask, &mask);
	if (status == GW_OK)
		status = find_seeds(side, true, side->edges.etype, mask);
	if (status != GW_OK)
		return status;
	side->options.ids = side->seeds;
	side->options.id_count = side->seed_count;
	return side->seed_count ? GW_OK
				: gw_fail(GW_NOT_FOUND, "no seeds: mask \"%s\" is set for no edge of %s", plan->mask,
					  plan->edges);
}

gw_status gw_epoch_side_open(const struct gw_epoch_plan *plan, const struct gw_client_options *client,
			     struct gw_epoch_side *side)
{
	*side = (struct gw_epoch_side){0};
	gw_status status = gw_client_open(client, &side->client);
	if (status == GW_OK && plan->edges)
		status = choose_edges(plan, side);
	else if (status == GW_OK)
		status = choose_ntype(plan, side, &side->options.spec.ntype);
	if (status == GW_OK)
		status = side_fill_fanouts(plan, side);
	if (status == GW_OK)
		status = choose_fetches(plan, side);
	if (status == GW_OK)
		status = plan->edges ? choose_edge_seeds(plan, side) : choose_seeds(plan, side);
	if (status == GW_OK)
		status = gw_epoch_times_set(&plan->times, side->client, &side->options, &side->edges, &side->times);
	if (status == GW_OK) {
		side->options.spec.replace = plan->replace;
		side->options.spec.disjoint = plan->disjoint;
		side->options.batch_size = plan->batch_size;
		side->options.depth = plan->depth;
		side->options.seed = plan->seed;
		side->options.shuffle = true;
		side->options.world = 1;
		side->options.last = GW_LAST_SHORT;
		side->begun_ns = gw_now_ns();
		status = gw_loader_open(side->client, &side->options, &side->loader);
	}
	if (status != GW_OK)
		gw_epoch_side_close(side);
	return status;
}

void gw_epoch_side_close(struct gw_epoch_side *side)
{
	if (side->loader)
		gw_loader_close(side->loader);
	gw_free(side->seeds);
	gw_free(side->fanouts);
	gw_epoch_times_free(&side->times);
	if (side->client)
		gw_client_close(side->client);
	*side = (struct gw_epoch_side){0};
}
