/* The last step of a mini-batch: fetches the rows of its features, labels and edges, with one gather per fetch, all at
 * once.
 *
 *   nodes of the blocks | seeds | edges -> ids -> gw_gather_op_start (client/rows/gather.c), into the batch's memory,
 *                                                 whose end they fill if they become wider there; in a loader with
 *                                                 look-ahead, earlier batches may have fetched some of them
 *                                       -> all gathers done: the mini-batch as the caller sees it -> the job ends
 *
 * The first gather that fails cancels the others, and the job ends with its error.
 */
#include <stddef.h>
#include <string.h>

#include "client/batch/batch.h"
#include "client/engine/engine.h"
#include "client/rows/tensors.h"

static void fill_view(struct gw_batch *batch)
{
	const struct gw_graph_meta *meta = batch->engine->client->meta;
	struct gw_minibatch *view = &batch->view;
	for (uint32_t h = 0; h < batch->spec.hops; h++)
		batch->view_blocks[h] = gw_blocks_hop(batch->blocks, h);
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		batch->view_nodes[t] = gw_blocks_nodes(batch->blocks, t, &batch->view_node_counts[t]);
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		batch->view_groups[t] = gw_blocks_node_groups(batch->blocks, t);
	uint64_t seed_rows;
	const uint32_t *rows = gw_blocks_seed_rows(batch->blocks, &seed_rows);
	view->stream = batch->stream;
	view->seed_count = batch->seed_count;
	view->seeds = batch->seeds.data;
	view->seed_rows = batch->edges.type_count ? NULL : rows;
	view->hops = batch->spec.hops;
	view->num_ntypes = meta->num_ntypes;
	view->blocks = batch->view_blocks;
	view->node_counts = batch->view_node_counts;
	view->nodes = batch->view_nodes;
	view->edge_count = gw_blocks_edge_count(batch->blocks);
	view->sampled = batch->all_edges.asked ? batch->all_edges.lists.data : NULL;
	view->fetch_count = batch->fetch_count;
	view->rows = batch->view_rows;
	view->row_counts = batch->view_row_counts;
	view->edge_type_count = batch->edges.type_count;
	view->edges = batch->edges.type_count ? gw_batch_edges_show(&batch->edges, rows) : NULL;
	view->seed_list_count = view->edges ? 0 : batch->list_count;
	view->seed_lists = batch->lists.data;
	view->groups = batch->disjoint ? batch->view_groups : NULL;
	view->group_count = batch->disjoint ? batch->groups.count : 0;
	view->seed_times = batch->has_times[0] ? batch->times[0].data : NULL;
}

static struct gw_batch *batch_of_gathers(struct gw_fan_in *gathers)
{
	return (struct gw_batch *)((char *)gathers - offsetof(struct gw_batch, gathers));
}

static void fetches_done(struct gw_fan_in *gathers, gw_status status)
{
	struct gw_batch *batch = batch_of_gathers(gathers);
	batch->fetching = false;
	if (status == GW_OK)
		fill_view(batch);
	if (batch->trace.id)
		gw_batch_trace_phase(&batch->trace, &batch->ticket.job, GW_BATCH_READY, 0);
	gw_job_end(&batch->ticket.job, status);
}

static void fetches_cancel(struct gw_fan_in *gathers)
{
	struct gw_batch *batch = batch_of_gathers(gathers);
	for (uint32_t i = 0; i < batch->fetch_count; i++) {
		if (gw_gather_op_is_open(&batch->work[i].op))
			gw_gather_op_cancel(&batch->work[i].op);
	}
}

static const struct gw_sampled_edges *all_edges(struct gw_batch *batch)
{
	return gw_all_edges_list(&batch->all_edges, batch->blocks, batch->spec.hops,
				 batch->engine->client->meta->num_etypes, batch->spec.wide_indices);
}

static void fetch_done(struct gw_gather_op *op, gw_status status)
{
	struct gw_batch *batch = op->owner;
	gw_fan_in_end_one(&batch->gathers, status);
}

static const int64_t *seeds_of(const struct gw_batch *batch, uint32_t type, uint64_t *count)
{
	const int64_t *ids = NULL;
	*count = 0;
	const struct gw_seeds *lists = batch->lists.data;
	for (uint32_t i = 0; i < batch->list_count; i++) {
		if (lists[i].type != type)
			continue;
		ids = lists[i].ids;
		*count = lists[i].count;
	}
	return ids;
}

static gw_status start_fetch(struct gw_batch *batch, uint32_t number)
{
	const struct gw_fetch *fetch = &((const struct gw_fetch *)batch->fetches.data)[number];
	struct gw_batch_fetch *work = &batch->work[number];
	const struct gw_rows *rows = &((const struct gw_client_tensor *)fetch->tensor)->rows;
	const int64_t *ids = NULL;
	uint64_t n = 0;
	if (fetch->at == GW_AT_INPUTS) {
		ids = gw_blocks_nodes(batch->blocks, fetch->tensor->type, &n);
	} else if (fetch->at == GW_AT_SEEDS) {
		ids = seeds_of(batch, fetch->tensor->type, &n);
	} else {
		const struct gw_sampled_edges *lists = all_edges(batch);
		if (!lists)
			return GW_NO_MEMORY;
		ids = lists[fetch->tensor->type].ids;
		n = lists[fetch->tensor->type].count;
	}
	struct gw_landing to = {0};
	gw_status status = gw_tensor_conversion(fetch->tensor, fetch->convert, &to.conversion);
	const bool converts = to.conversion.to_bytes > 0;
	struct gw_row_window *window = batch->windows ? batch->windows[number] : NULL;
	batch->view_row_counts[number] = n;
	work->op.counts = batch->counts;
	if (batch->counts) {
		to = (struct gw_landing){0};
		n = window ? n : 0;
	}
	work->row_bytes = converts ? to.conversion.to_bytes : rows->row_bytes;
	if (status == GW_OK && !batch->counts)
		status = gw_landed_reserve(&work->rows, batch->engine,
					   converts ? gw_conversion_room(&to.conversion, n) : n * rows->row_bytes);
	if (status != GW_OK)
		return status;
	if (!batch->counts) {
		to.buffer = gw_landed_buffer(&work->rows);
		to.out = gw_landed_data(&work->rows);
		to.rows = to.out + (converts ? gw_conversion_start(&to.conversion, n) : 0);
		batch->view_rows[number] = to.out;
	}
	if (n == 0 && window && !batch->counts)
		gw_row_window_pass(window, batch->number);
	if (n == 0)
		return GW_OK;
	work->op.share.window = window;
	work->op.share.number = batch->number;
	work->op.done = fetch_done;
	work->op.owner = batch;
	gw_fan_in_add(&batch->gathers);
	gw_gather_op_start(&work->op, &batch->ticket.job, rows, ids, n, &to, fetch->at != GW_AT_SEEDS);
	return GW_OK;
}

void gw_batch_fetch(struct gw_batch *batch)
{
	uint64_t began = gw_trace_span_begin();
	batch->fetching = true;
	batch->all_edges.listed = false;
	if (batch->trace.id)
		gw_batch_trace_phase(&batch->trace, &batch->ticket.job, GW_BATCH_ROWS, 0);
	gw_fan_in_begin(&batch->gathers, &batch->ticket.job, fetches_cancel, fetches_done);
	gw_status status = batch->all_edges.asked && !all_edges(batch) ? GW_NO_MEMORY : GW_OK;
	for (uint32_t i = 0; i < batch->fetch_count && status == GW_OK && batch->gathers.status == GW_OK; i++)
		status = start_fetch(batch, i);
	gw_trace_span_end(&gw_batch_spans[GW_SPAN_FETCH], began, 0, 0);
	gw_fan_in_end_one(&batch->gathers, status);
}
