/* The memory of mini-batches: see batch.h. A batch is created once and grows as needed; its engine keeps it. */
#include "client/batch/batch.h"

#include <string.h>

#include "client/engine/engine.h"
#include "client/rows/tensors.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "sampler/blocks/relabel.h"

static void batch_destroy(struct gw_batch *batch)
{
	for (uint32_t i = 0; i < batch->fetch_capacity; i++) {
		gw_gather_op_free(&batch->work[i].op);
		gw_landed_free(&batch->work[i].rows, batch->engine->client);
	}
	gw_free(batch->work);
	gw_all_edges_free(&batch->all_edges);
	if (batch->has_hop)
		gw_hop_free(&batch->hop);
	gw_batch_edges_free(&batch->edges);
	gw_vec_free(&batch->lists);
	gw_vec_free(&batch->positions);
	gw_blocks_destroy(batch->blocks);
	gw_relabel_destroy(batch->relabel);
	gw_vec_free(&batch->fanouts);
	gw_vec_free(&batch->fetches);
	gw_vec_free(&batch->seeds);
	gw_vec_free(&batch->times[0]);
	gw_vec_free(&batch->times[1]);
	gw_seed_groups_free(&batch->groups);
	gw_vec_free(&batch->sampling);
	gw_vec_free(&batch->columns);
	gw_vec_free(&batch->local);
	gw_vec_free(&batch->local_of_types);
	gw_free(batch->view_blocks);
	gw_free(batch->view_node_counts);
	gw_free(batch->view_nodes);
	gw_free(batch->view_groups);
	gw_free(batch->view_rows);
	gw_free(batch->view_row_counts);
	gw_free(batch);
}

static gw_status batch_create(struct gw_engine *engine, struct gw_batch **out)
{
	const struct gw_graph_meta *meta = engine->client->meta;
	struct gw_batch *batch = gw_calloc(1, sizeof(*batch));
	if (!batch)
		return GW_NO_MEMORY;
	batch->engine = engine;
	batch->ticket.client = engine->client;
	batch->view_blocks = gw_calloc(GW_HOPS_MAX, sizeof(*batch->view_blocks));
	batch->view_node_counts = gw_calloc(meta->num_ntypes, sizeof(*batch->view_node_counts));
	batch->view_nodes = gw_calloc(meta->num_ntypes, sizeof(*batch->view_nodes));
	batch->view_groups = gw_calloc(meta->num_ntypes, sizeof(*batch->view_groups));
	gw_status status = GW_NO_MEMORY;
	if (batch->view_blocks && batch->view_node_counts && batch->view_nodes && batch->view_groups)
		status = gw_blocks_create(meta, &batch->blocks);
	if (status == GW_OK)
		status = gw_hop_init(&batch->hop, engine);
	if (status == GW_OK)
		batch->has_hop = true;
	gw_batch_edges_init(&batch->edges, engine);
	if (status == GW_OK)
		status = gw_relabel_create(meta, engine->client->dense_bytes_max, &batch->relabel);
	if (status != GW_OK) {
		batch_destroy(batch);
		return status;
	}
	*out = batch;
	return GW_OK;
}

/* A separate job in the batch's engine destroys the batch, since the batch's receive buffers are registered with the
 * engine's transports. */
struct discard {
	struct gw_job job;
	struct gw_batch *batch;
};

static void discard_start(struct gw_job *job)
{
	struct discard *discard = (struct discard *)job;
	batch_destroy(discard->batch);
	discard->batch = NULL;
	gw_job_end(job, GW_OK);
}

static void discard_cancel(struct gw_job *job)
{
	(void)job;
}

void gw_batch_discard(struct gw_batch *batch)
{
	if (batch->trace.id)
		gw_batch_trace_end(&batch->trace, &batch->ticket.job, false);
	struct discard discard = {.job = {.start = discard_start, .cancel = discard_cancel}, .batch = batch};
	gw_engine_submit(batch->engine, &discard.job, true);
	gw_job_wait(&discard.job, GW_NO_DEADLINE);
	if (discard.batch) /* the engine has too many jobs: keep the batch for the next mini-batch */
		gw_batch_release(batch);
}

gw_status gw_batch_acquire(struct gw_engine *engine, struct gw_batch **out)
{
	struct gw_client *client = engine->client;
	pthread_mutex_lock(&client->batches_lock);
	struct gw_batch *batch = client->unused[engine->number];
	if (batch)
		client->unused[engine->number] = batch->next_unused;
	pthread_mutex_unlock(&client->batches_lock);
	*out = batch;
	return batch ? GW_OK : batch_create(engine, out);
}

void gw_batch_release(struct gw_batch *batch)
{
	struct gw_client *client = batch->engine->client;
	if (batch->trace.id)
		gw_batch_trace_end(&batch->trace, &batch->ticket.job, false);
	for (uint32_t i = 0; client->memory.release && i < batch->fetch_capacity; i++)
		gw_landed_return(&batch->work[i].rows, client);
	pthread_mutex_lock(&client->batches_lock);
	batch->next_unused = client->unused[batch->engine->number];
	client->unused[batch->engine->number] = batch;
	pthread_mutex_unlock(&client->batches_lock);
}

void gw_batches_free(struct gw_client *client)
{
	for (uint32_t i = 0; client->unused && i <= client->engine_count; i++) {
		while (client->unused[i]) {
			struct gw_batch *batch = client->unused[i];
			client->unused[i] = batch->next_unused;
			batch_destroy(batch);
		}
	}
}

static gw_status check_fanouts(const struct gw_client *client, const struct gw_sample_spec *spec)
{
	uint32_t etypes = client->meta->num_etypes;
	for (uint32_t hop = 0; hop < spec->hops; hop++) {
		for (uint32_t e = 0; e < etypes; e++) {
			int32_t fanout = spec->fanouts[(size_t)hop * etypes + e];
			if (fanout < GW_ALL_NEIGHBOURS || fanout > GW_FANOUT_MAX)
				return gw_fail(GW_INVALID,
					       "hop %u, edge type %s: fanout %d: give -1 for all, or 0 to %d", hop,
					       client->etypes[e].name, fanout, GW_FANOUT_MAX);
		}
	}
	return GW_OK;
}

/* NULL: no element has the edge type. */
static const struct gw_edge_seeds *edges_of_type(const struct gw_sample_spec *spec, uint32_t etype)
{
	for (uint32_t i = 0; spec->edges && i < gw_spec_edge_types(spec); i++) {
		if (spec->edges[i].etype == etype)
			return &spec->edges[i];
	}
	return NULL;
}

static gw_status check_at_seeds(const struct gw_client *client, const struct gw_sample_spec *spec, uint32_t number,
				struct gw_seed_types types)
{
	const struct gw_tensor *tensor = spec->fetches[number].tensor;
	uint32_t seeds = spec->edges ? spec->edges->etype : types.list_count ? types.lists[0].type : spec->ntype;
	bool found = tensor->type == seeds;
	for (uint32_t i = 1; i < types.list_count; i++)
		found = found || types.lists[i].type == tensor->type;
	const struct gw_edge_seeds *pairs = edges_of_type(spec, tensor->type);
	if (found && pairs && pairs->src)
		return gw_fail(GW_INVALID, "fetch %u: \"%s\" is a feature of edges: seeds by their ends do not have it",
			       number, tensor->name);
	if (found)
		return GW_OK;
	const struct gw_type_info *infos = spec->edges ? client->etypes : client->ntypes;
	return gw_fail(GW_INVALID, "fetch %u: \"%s\" belongs to %s, the seeds to %s%s", number, tensor->name,
		       infos[tensor->type].name, infos[seeds].name, types.list_count > 1 ? " and others" : "");
}

static gw_status check_fetch(const struct gw_client *client, const struct gw_sample_spec *spec, uint32_t number,
			     struct gw_seed_types types)
{
	const struct gw_fetch *fetch = &spec->fetches[number];
	gw_status status = gw_tensor_check(client, fetch->tensor);
	if (status != GW_OK)
		return gw_context(status, "fetch %u", number);
	const struct gw_tensor *tensor = fetch->tensor;
	struct gw_conversion conversion;
	status = gw_tensor_conversion(tensor, fetch->convert, &conversion);
	if (status != GW_OK)
		return gw_context(status, "fetch %u", number);
	if ((unsigned)fetch->at > GW_AT_EDGES)
		return gw_fail(GW_INVALID, "fetch %u: at = %u: it is inputs, seeds or edges", number,
			       (unsigned)fetch->at);
	if (tensor->placement > GW_PLACE_EDGES)
		return gw_fail(GW_INVALID, "fetch %u: rows of \"%s\" belong to no nodes or edges", number,
			       tensor->name);
	if (fetch->at == GW_AT_EDGES && spec->no_edge_ids)
		return gw_fail(GW_INVALID,
			       "fetch %u: rows of sampled edges need their ids, and the spec has no_edge_ids", number);
	bool of_edges = fetch->at == GW_AT_EDGES || (fetch->at == GW_AT_SEEDS && spec->edges);
	if (tensor->of_edges != of_edges)
		return gw_fail(GW_INVALID, "fetch %u: \"%s\" is a feature of %s", number, tensor->name,
			       tensor->of_edges ? "edges" : "nodes");
	return fetch->at == GW_AT_SEEDS ? check_at_seeds(client, spec, number, types) : GW_OK;
}

static gw_status check_rules(struct gw_client *client, const struct gw_sample_spec *spec)
{
	const struct gw_edge_columns *columns;
	gw_status status = GW_OK;
	if ((unsigned)spec->frontier > GW_FRONTIER_NEW)
		return gw_fail(GW_INVALID, "the spec's frontier %u: it is all nodes or the new ones",
			       (unsigned)spec->frontier);
	for (uint32_t e = 0; spec->rules && e < client->meta->num_etypes && status == GW_OK; e++)
		status = gw_edge_columns_find(client, e, &spec->rules[e], &columns);
	return status;
}

static gw_status check_edge_lists(const struct gw_client *client, const struct gw_sample_spec *spec,
				  struct gw_seed_types types)
{
	uint32_t count = gw_spec_edge_types(spec);
	if (count > client->meta->num_etypes)
		return gw_fail(GW_INVALID, "the spec's edges are of %u types: the graph has %u", count,
			       client->meta->num_etypes);
	for (uint32_t i = 0; i < count; i++) {
		gw_status status = gw_edge_seeds_check(client, &spec->edges[i]);
		if (status != GW_OK)
			return status;
		for (uint32_t j = 0; j < i; j++) {
			if (spec->edges[j].etype == spec->edges[i].etype)
				return gw_fail(GW_INVALID, "the spec's edges %u and %u are both of %s", j, i,
					       client->etypes[spec->edges[i].etype].name);
		}
		if (i < types.list_count && types.lists[i].type != spec->edges[i].etype)
			return gw_fail(GW_INVALID, "list %u: seeds of edge type %u, where the spec's are of %s", i,
				       types.lists[i].type, client->etypes[spec->edges[i].etype].name);
	}
	if (types.list_count ? types.list_count != count : count > 1)
		return gw_fail(GW_INVALID, "%u lists of seeds that are edges of %u types: give one for each, in order",
			       types.list_count, count);
	return GW_OK;
}

gw_status gw_seed_types_check(const struct gw_client *client, const struct gw_sample_spec *spec,
			      struct gw_seed_types types)
{
	const struct gw_graph_meta *meta = client->meta;
	if (spec->edges)
		return check_edge_lists(client, spec, types);
	if (types.list_count == 0 || types.list_count > meta->num_ntypes)
		return gw_fail(GW_INVALID, "%u lists of seeds: give 1 to %u, one for each node type", types.list_count,
			       meta->num_ntypes);
	for (uint32_t i = 0; i < types.list_count; i++) {
		uint32_t type = types.lists[i].type;
		if (type >= meta->num_ntypes)
			return gw_fail(GW_RANGE, "list %u: node type %u of %u", i, type, meta->num_ntypes);
		for (uint32_t j = 0; j < i; j++) {
			if (types.lists[j].type == type)
				return gw_fail(GW_INVALID, "lists %u and %u are both of %s", j, i,
					       client->ntypes[type].name);
		}
	}
	return GW_OK;
}

gw_status gw_spec_check(struct gw_client *client, const struct gw_sample_spec *spec, struct gw_seed_types types)
{
	const struct gw_graph_meta *meta = client->meta;
	gw_status status = check_rules(client, spec);
	if (status == GW_OK)
		status = gw_held_out_check(client, spec->held_out);
	if (status != GW_OK)
		return status;
	if (!spec->edges && spec->edge_type_count)
		return gw_fail(GW_INVALID, "the spec has no list of the edges of its %u types", spec->edge_type_count);
	if (spec->edges && (status = check_edge_lists(client, spec, types)) != GW_OK)
		return status;
	for (uint32_t i = 0; i < gw_spec_edge_types(spec); i++) {
		const struct gw_node_times *times;
		status = gw_node_times_find(client, &spec->edges[i], &times);
		if (status != GW_OK)
			return status;
	}
	if (!spec->edges && !types.list_count && spec->ntype >= meta->num_ntypes)
		return gw_fail(GW_RANGE, "seed node type %u of %u", spec->ntype, meta->num_ntypes);
	if (spec->hops < 1 || spec->hops > GW_HOPS_MAX)
		return gw_fail(GW_RANGE, "%u hops: 1 to %d", spec->hops, GW_HOPS_MAX);
	if (!spec->fanouts && meta->num_etypes)
		return gw_fail(GW_INVALID, "the spec has no fanouts: [hops][edge types] of them");
	if (spec->fetch_count > GW_FETCHES_MAX)
		return gw_fail(GW_LIMIT, "%u fetches: at most %d", spec->fetch_count, GW_FETCHES_MAX);
	if (spec->fetch_count > 0 && !spec->fetches)
		return gw_fail(GW_INVALID, "the spec has no list of its %u fetches", spec->fetch_count);
	status = check_fanouts(client, spec);
	for (uint32_t i = 0; i < spec->fetch_count && status == GW_OK; i++)
		status = check_fetch(client, spec, i, types);
	return status;
}

gw_status gw_seed_lists_check_times(struct gw_client *client, const struct gw_sample_spec *spec,
				    const struct gw_seeds *lists, uint32_t list_count, uint64_t most)
{
	struct gw_seed_times form = {.real = spec->real_times, .strict = spec->strict_times};
	uint64_t each = 1;
	gw_status status = gw_seed_times_of(client, spec->rules, 0, client->meta->num_etypes, &form);
	if (status != GW_OK)
		return status;
	for (uint32_t i = 0; i < gw_spec_edge_types(spec); i++) {
		each = 2 + (uint64_t)spec->edges[i].negatives_each > each ? 2 + spec->edges[i].negatives_each : each;
		form.negatives = form.negatives || spec->edges[i].exist_time;
	}
	return gw_seed_times_check(&form, lists, list_count, most * each);
}

static gw_status grow_fetches(struct gw_batch *batch, uint32_t count)
{
	if (count <= batch->fetch_capacity)
		return GW_OK;
	struct gw_batch_fetch *work = gw_realloc(batch->work, count, sizeof(*work));
	if (!work)
		return GW_NO_MEMORY;
	batch->work = work;
	const void **rows = gw_realloc((void *)batch->view_rows, count, sizeof(*rows));
	if (!rows)
		return GW_NO_MEMORY;
	batch->view_rows = rows;
	uint64_t *row_counts = gw_realloc(batch->view_row_counts, count, sizeof(*row_counts));
	if (!row_counts)
		return GW_NO_MEMORY;
	batch->view_row_counts = row_counts;
	while (batch->fetch_capacity < count) {
		struct gw_batch_fetch *fetch = &work[batch->fetch_capacity];
		memset(fetch, 0, sizeof(*fetch));
		gw_status status = gw_gather_op_init(&fetch->op, batch->engine);
		if (status != GW_OK)
			return status;
		batch->fetch_capacity++;
	}
	return GW_OK;
}

/* Those of the lists, or the type of the spec if it has no lists. */
static gw_status set_types(struct gw_batch *batch, const struct gw_sample_spec *spec, struct gw_seed_types types)
{
	uint32_t count = types.list_count ? types.list_count : 1;
	if (gw_vec_reserve(&batch->lists, count * sizeof(struct gw_seeds)) != GW_OK)
		return GW_NO_MEMORY;
	struct gw_seeds *lists = batch->lists.data;
	for (uint32_t i = 0; i < count; i++)
		lists[i] = (struct gw_seeds){.type = types.list_count ? types.lists[i].type
						     : spec->edges    ? spec->edges->etype
								      : spec->ntype};
	batch->list_count = count;
	return gw_batch_edges_take(&batch->edges, spec->edges, gw_spec_edge_types(spec));
}

static gw_status set_rules(struct gw_batch *batch, const struct gw_edge_rule *rules)
{
	struct gw_client *client = batch->engine->client;
	uint32_t etypes = client->meta->num_etypes;
	batch->has_rules = false;
	gw_status status = gw_seed_times_of(client, rules, 0, etypes, &batch->time_form);
	if (status != GW_OK || !rules)
		return status;
	if (gw_vec_reserve(&batch->sampling, etypes * sizeof(struct gw_edge_sampling)) != GW_OK ||
	    gw_vec_reserve(&batch->columns, etypes * sizeof(struct gw_edge_columns *)) != GW_OK)
		return GW_NO_MEMORY;
	struct gw_edge_sampling *sampling = batch->sampling.data;
	const struct gw_edge_columns **columns = batch->columns.data;
	for (uint32_t e = 0; e < etypes; e++) {
		status = gw_edge_columns_find(client, e, &rules[e], &columns[e]);
		if (status != GW_OK)
			return status;
		sampling[e] = columns[e] ? columns[e]->sampling : (struct gw_edge_sampling){0};
		batch->has_rules |= columns[e] != NULL;
	}
	return GW_OK;
}

/* wide: rows of uint32 become int64. */
static void widen_fetches(struct gw_batch *batch, bool wide)
{
	struct gw_fetch *fetches = batch->fetches.data;
	for (uint32_t i = 0; wide && i < batch->fetch_count; i++) {
		if (fetches[i].convert == 0 && fetches[i].tensor->dtype == GW_UINT32)
			fetches[i].convert = GW_INT64;
	}
}

gw_status gw_batch_set_spec(struct gw_batch *batch, const struct gw_sample_spec *spec, struct gw_seed_types types)
{
	struct gw_client *client = batch->engine->client;
	gw_status status = gw_spec_check(client, spec, types);
	if (status == GW_OK)
		status = set_rules(batch, spec->rules);
	if (status == GW_OK)
		status = set_types(batch, spec, types);
	if (status == GW_OK)
		status = grow_fetches(batch, spec->fetch_count);
	size_t fanout_bytes = (size_t)spec->hops * client->meta->num_etypes * sizeof(int32_t);
	size_t fetch_bytes = spec->fetch_count * sizeof(struct gw_fetch);
	if (status == GW_OK)
		status = gw_vec_reserve(&batch->fanouts, fanout_bytes);
	if (status == GW_OK)
		status = gw_vec_reserve(&batch->fetches, fetch_bytes);
	if (status != GW_OK)
		return status;
	if (fanout_bytes)
		memcpy(batch->fanouts.data, spec->fanouts, fanout_bytes);
	if (fetch_bytes)
		memcpy(batch->fetches.data, spec->fetches, fetch_bytes);
	batch->fetch_count = spec->fetch_count;
	widen_fetches(batch, spec->wide_rows);
	batch->all_edges.asked = spec->sampled_edges;
	batch->all_edges.no_ids = spec->no_edge_ids;
	batch->time_form.real = spec->real_times;
	batch->time_form.strict = spec->strict_times;
	batch->edges.real_times = spec->real_times;
	batch->disjoint = spec->disjoint || batch->time_form.uses;
	batch->spec = (struct gw_blocks_spec){.hops = spec->hops,
					      .fanouts = batch->fanouts.data,
					      .replace = spec->replace,
					      .wide_indices = spec->wide_indices,
					      .no_edge_ids = spec->no_edge_ids,
					      .new_only = spec->frontier == GW_FRONTIER_NEW,
					      .sampling = batch->has_rules ? batch->sampling.data : NULL,
					      .exclude = spec->edges ? &batch->edges.exclude : NULL,
					      .held_out = spec->held_out ? &spec->held_out->edges : NULL};
	return GW_OK;
}
