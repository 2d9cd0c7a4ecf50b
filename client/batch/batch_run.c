/* The job of a mini-batch: seeds, then hop after hop, then the fetches. Each step ends in an event of the engine.
 *
 *   start -> [edges: ends, negatives (client/batch/batch_edges.c)] -> seeds
 *         -> [all lists in memory] gw_blocks_run_memory ----------------+-> fetches (client/batch/batch_fetch.c)
 *         -> [else] hop 0 -> ... -> hop n - 1 (client/batch/batch_hop.c) +      -> end
 */
#include "client/batch/batch.h"

#include <stddef.h>
#include <string.h>

#include "client/batch/local_lists.h"
#include "client/engine/engine.h"
#include "core/numbers/digest.h"

static void batch_start_hop(struct gw_batch *batch);

static void batch_end(struct gw_batch *batch, gw_status status)
{
	if (batch->trace.id)
		gw_batch_trace_phase(&batch->trace, &batch->ticket.job, GW_BATCH_READY, 0);
	gw_job_end(&batch->ticket.job, status);
}

/* --- Hops. --- */

static void hop_done(struct gw_hop *hop, gw_status status)
{
	struct gw_batch *batch = hop->owner;
	uint64_t began = gw_trace_span_begin();
	if (status == GW_OK)
		status = gw_batch_hop_merge(batch);
	gw_trace_span_end(&gw_batch_spans[GW_SPAN_BLOCK], began, batch->hop_number, 0);
	if (status != GW_OK) {
		batch_end(batch, status);
		return;
	}
	batch->hop_number++;
	if (batch->hop_number < batch->spec.hops)
		batch_start_hop(batch);
	else
		gw_batch_fetch(batch);
}

static void batch_start_hop(struct gw_batch *batch)
{
	uint64_t began = gw_trace_span_begin();
	uint32_t number = batch->hop_number;
	if (batch->trace.id)
		gw_batch_trace_phase(&batch->trace, &batch->ticket.job, GW_BATCH_HOP, number);
	gw_status status = gw_batch_hop_begin(batch);
	if (status != GW_OK) {
		batch_end(batch, status);
		return;
	}
	batch->hop.done = hop_done;
	batch->hop.owner = batch;
	gw_hop_start(&batch->hop, &batch->ticket.job);
	gw_trace_span_end(&gw_batch_spans[GW_SPAN_ASK], began, number, 0);
}

/* The seeds of all lists are stored one after the other. */
static void place_lists(struct gw_batch *batch)
{
	struct gw_seeds *lists = batch->lists.data;
	const int64_t *at = batch->seeds.data;
	const int64_t *until = batch->has_times[0] ? batch->times[0].data : NULL;
	const int64_t *from = batch->has_times[1] ? batch->times[1].data : NULL;
	if (batch->list_count == 1)
		lists[0].count = batch->seed_count;
	for (uint32_t i = 0; i < batch->list_count; i++) {
		lists[i].ids = at;
		lists[i].times = until;
		lists[i].times_from = from;
		at += lists[i].count;
		until += until ? lists[i].count : 0;
		from += from ? lists[i].count : 0;
	}
}

/* False: one cannot be addressed, or memory runs out. */
static bool find_local_columns(struct gw_batch *batch, const struct gw_columns *const **out)
{
	const struct gw_graph_meta *meta = batch->engine->client->meta;
	*out = NULL;
	if (!batch->has_rules)
		return true;
	size_t count = (size_t)meta->num_etypes * meta->num_parts;
	if (gw_vec_reserve(&batch->local, count * sizeof(struct gw_columns)) != GW_OK ||
	    gw_vec_reserve(&batch->local_of_types, meta->num_etypes * sizeof(struct gw_columns *)) != GW_OK)
		return false;
	struct gw_columns *local = batch->local.data;
	const struct gw_columns **of_types = batch->local_of_types.data;
	for (uint32_t e = 0; e < meta->num_etypes; e++) {
		of_types[e] = local + (size_t)e * meta->num_parts;
		for (uint32_t p = 0; p < meta->num_parts; p++) {
			if (!gw_local_columns(batch->engine, p, gw_batch_columns(batch, e),
					      &local[(size_t)e * meta->num_parts + p]))
				return false;
		}
	}
	*out = of_types;
	return true;
}

/* The seeds are known. From here on, seeds that are edges and seeds that are nodes are handled alike. */
static void batch_sample(struct gw_batch *batch)
{
	const struct gw_adjacency *const *lists = gw_local_lists_of_all(batch->engine);
	const struct gw_columns *const *columns = NULL;
	bool of_edges = batch->edges.type_count > 0;
	const struct gw_seeds *seeds = of_edges ? batch->edges.lists.data : batch->lists.data;
	uint32_t list_count = of_edges ? batch->edges.list_count : batch->list_count;
	gw_status status = GW_OK;
	if (batch->disjoint)
		status = gw_seed_groups_set(&batch->groups, &batch->time_form, seeds, list_count);
	if (batch->disjoint)
		memcpy(batch->spec.groups, batch->groups.tables, sizeof(batch->spec.groups));
	if (status == GW_OK)
		status = gw_blocks_begin_lists(batch->blocks, batch->relabel, &batch->spec, batch->seed, batch->stream,
					       seeds, list_count, batch->disjoint ? batch->groups.numbers.data : NULL);
	if (status == GW_OK && lists && find_local_columns(batch, &columns)) {
		uint64_t began = gw_trace_span_begin();
		if (batch->trace.id)
			gw_batch_trace_phase(&batch->trace, &batch->ticket.job, GW_BATCH_SAMPLING, 0);
		status = gw_blocks_run_memory(batch->blocks, lists, columns);
		gw_trace_span_end(&gw_batch_spans[GW_SPAN_SAMPLE], began, 0, 0);
		if (status == GW_OK) {
			if (batch->engine->lists_link)
				gw_link_count(&batch->engine->lists_link->counts.held_hops, batch->spec.hops);
			gw_batch_fetch(batch);
			return;
		}
	}
	if (status != GW_OK)
		batch_end(batch, status);
	else
		batch_start_hop(batch);
}

static void batch_edges_done(struct gw_batch_edges *edges, gw_status status)
{
	struct gw_batch *batch = edges->owner;
	batch->asking = false;
	if (status == GW_OK)
		batch_sample(batch);
	else
		batch_end(batch, status);
}

static void batch_ask(struct gw_batch *batch)
{
	struct gw_batch_edges *edges = &batch->edges;
	edges->done = batch_edges_done;
	edges->owner = batch;
	batch->asking = true;
	if (batch->trace.id)
		gw_batch_trace_phase(&batch->trace, &batch->ticket.job, GW_BATCH_EDGES, 0);
	gw_batch_edges_start(edges, &batch->ticket.job, batch->seed, batch->stream, batch->lists.data);
}

static void batch_begin(struct gw_batch *batch)
{
	batch->hop_number = 0;
	batch->fetching = false;
	batch->asking = false;
	uint64_t began = gw_trace_span_begin();
	gw_status status = batch->fill_seeds ? batch->fill_seeds(batch) : GW_OK;
	gw_trace_span_end(&gw_batch_spans[GW_SPAN_SEEDS], began, 0, 0);
	if (status != GW_OK) {
		batch_end(batch, status);
		return;
	}
	place_lists(batch);
	if (batch->edges.type_count)
		batch_ask(batch);
	else
		batch_sample(batch);
}

static void batch_start(struct gw_job *job)
{
	uint64_t began = gw_trace_span_begin();
	batch_begin((struct gw_batch *)job);
	gw_trace_span_end(&gw_batch_spans[GW_SPAN_START], began, 0, 0); /* the batch may be gone */
}

static void batch_cancel(struct gw_job *job)
{
	struct gw_batch *batch = (struct gw_batch *)job;
	if (batch->fetching)
		gw_fan_in_cancel(&batch->gathers);
	else if (batch->asking)
		gw_batch_edges_cancel(&batch->edges);
	else
		gw_hop_cancel(&batch->hop);
}

struct gw_job *gw_batch_job(struct gw_batch *batch)
{
	batch->ticket.job.start = batch_start;
	batch->ticket.job.cancel = batch_cancel;
	return &batch->ticket.job;
}

/* --- Mini-batches as callers see them. --- */

static struct gw_batch *batch_of(const struct gw_minibatch *minibatch)
{
	return (struct gw_batch *)((uintptr_t)minibatch - offsetof(struct gw_batch, view));
}

static uint64_t digest_groups(uint64_t digest, const struct gw_minibatch *minibatch)
{
	for (uint32_t t = 0; t < minibatch->num_ntypes; t++)
		digest = gw_digest_add(digest, minibatch->groups[t], minibatch->node_counts[t] * sizeof(uint32_t));
	return minibatch->seed_times ? gw_digest_add(digest, minibatch->seed_times, minibatch->seed_count * 8) : digest;
}

/* Adds to the digest the fields that only batches in groups, of several node types or of edges have. For other batches
 * it adds nothing, so that their digests equal those of older versions. */
static uint64_t digest_seeds(uint64_t digest, const struct gw_minibatch *minibatch)
{
	for (uint32_t i = 0; minibatch->edges && i < minibatch->edge_type_count; i++) {
		const struct gw_edge_batch *edges = &minibatch->edges[i];
		uint64_t head[] = {edges->etype, edges->negatives, edges->negatives_each, edges->true_edges};
		digest = gw_digest_add(digest, head, sizeof(head));
		digest = gw_digest_add(digest, edges->src_rows, edges->count * 4);
		digest = gw_digest_add(digest, edges->dst_rows, edges->count * 4);
		digest = gw_digest_add(digest, edges->negative_rows, edges->count * edges->negatives_each * 4);
		if (minibatch->edge_type_count > 1)
			digest = gw_digest_add(digest, &edges->count, sizeof(edges->count));
	}
	if (minibatch->groups)
		digest = digest_groups(digest, minibatch);
	for (uint32_t i = 0; i < minibatch->seed_list_count && minibatch->seed_list_count > 1; i++) {
		uint64_t head[] = {minibatch->seed_lists[i].type, minibatch->seed_lists[i].count};
		digest = gw_digest_add(digest, head, sizeof(head));
	}
	return digest;
}

uint64_t gw_minibatch_digest(const struct gw_minibatch *minibatch)
{
	const struct gw_batch *batch = batch_of(minibatch);
	size_t index_bytes = batch->spec.wide_indices ? 8 : 4;
	uint64_t digest = gw_digest_add(0, minibatch->seeds, minibatch->seed_count * 8);
	if (!minibatch->edges)
		digest = gw_digest_add(digest, minibatch->seed_rows, minibatch->seed_count * 4);
	digest = digest_seeds(digest, minibatch);
	for (uint32_t h = 0; h < minibatch->hops; h++) {
		const struct gw_block *block = minibatch->blocks[h];
		digest = gw_digest_add(digest, block->dst_counts, minibatch->num_ntypes * sizeof(uint64_t));
		digest = gw_digest_add(digest, block->src_counts, minibatch->num_ntypes * sizeof(uint64_t));
		for (uint32_t i = 0; i < block->edges_count; i++) {
			const struct gw_block_edges *edges = &block->edges[i];
			digest = gw_digest_add(digest, &edges->etype, 4);
			digest = gw_digest_add(digest, edges->indptr, (edges->dst_count + 1) * 8);
			digest = gw_digest_add(digest, edges->indices, edges->edge_count * index_bytes);
			if (edges->edge_ids)
				digest = gw_digest_add(digest, edges->edge_ids, edges->edge_count * 8);
		}
	}
	for (uint32_t t = 0; t < minibatch->num_ntypes; t++)
		digest = gw_digest_add(digest, minibatch->nodes[t], minibatch->node_counts[t] * 8);
	for (uint32_t i = 0; i < minibatch->fetch_count; i++)
		digest = gw_digest_add(digest, minibatch->rows[i], minibatch->row_counts[i] * batch->work[i].row_bytes);
	return digest;
}

void gw_minibatch_release(struct gw_minibatch *minibatch)
{
	if (minibatch && !gw_client_is_inherited(batch_of(minibatch)->engine->client))
		gw_batch_release(batch_of(minibatch));
}
