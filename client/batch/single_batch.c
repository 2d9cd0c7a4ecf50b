/* gw_sample, gw_sample_lists and their starts: see single_batch.h. */
#include "client/batch/single_batch.h"

#include <string.h>

#include "client/engine/engine.h"

static void finish_batch(struct gw_ticket *ticket, gw_status status)
{
	struct gw_batch *batch = (struct gw_batch *)ticket;
	struct gw_minibatch **out = batch->owner;
	gw_held_out_close(batch->held_out);
	batch->held_out = NULL;
	gw_ahead_close(batch->ahead);
	batch->ahead = NULL;
	if (status == GW_OK && batch->trace.id)
		gw_batch_trace_end(&batch->trace, &batch->ticket.job, true);
	if (status == GW_OK)
		*out = &batch->view;
	else
		gw_batch_release(batch);
}

static gw_status check_call(const struct gw_client *client, const struct gw_single_batch *call, uint64_t *n)
{
	gw_status status = GW_OK;
	*n = 0;
	if (call->typed)
		status = gw_seed_types_check(client, call->spec, (struct gw_seed_types){call->lists, call->list_count});
	for (uint32_t i = 0; i < call->list_count && status == GW_OK; i++) {
		if (call->lists[i].count > GW_SEEDS_MAX || (*n += call->lists[i].count) > GW_SEEDS_MAX)
			return gw_fail(GW_LIMIT, "%llu seeds in one mini-batch: at most %u",
				       (unsigned long long)(*n > GW_SEEDS_MAX ? *n : call->lists[i].count),
				       GW_SEEDS_MAX);
	}
	return status;
}

/* Copies the times of all lists; every list has them, or none. */
static gw_status take_times(struct gw_batch *batch, const struct gw_single_batch *call, uint64_t n)
{
	for (uint32_t k = 0; k < 2; k++) {
		uint64_t at = 0;
		batch->has_times[k] = false;
		if (gw_vec_reserve(&batch->times[k], n * sizeof(int64_t)) != GW_OK)
			return GW_NO_MEMORY;
		for (uint32_t i = 0; i < call->list_count; i++) {
			const struct gw_seeds *list = &call->lists[i];
			const void *times = k ? list->times_from : list->times;
			if (times && list->count)
				memcpy((int64_t *)batch->times[k].data + at, times, list->count * sizeof(int64_t));
			batch->has_times[k] |= times != NULL;
			at += list->count;
		}
	}
	return GW_OK;
}

static gw_status batch_take_call(struct gw_batch *batch, const struct gw_single_batch *call, uint64_t n)
{
	struct gw_seed_types types = {call->lists, call->typed ? call->list_count : 0};
	gw_status status = gw_batch_set_spec(batch, call->spec, types);
	if (status == GW_OK)
		status = gw_seed_lists_check_times(batch->engine->client, call->spec, call->lists, call->list_count, n);
	uint64_t negatives = 0;
	for (uint32_t i = 0; i < batch->edges.type_count && status == GW_OK; i++) {
		status = gw_edge_seeds_check_ids(batch->engine->client, &call->spec->edges[i]);
		if (status == GW_OK)
			status = gw_edge_seeds_check_count(&call->spec->edges[i], call->lists[i].count, &negatives);
	}
	if (status == GW_OK)
		status = gw_batch_edges_keep_ids(&batch->edges);
	if (status == GW_OK)
		status = gw_vec_reserve(&batch->seeds, n * 8);
	if (status == GW_OK)
		status = take_times(batch, call, n);
	if (status != GW_OK)
		return status;
	int64_t *seeds = batch->seeds.data;
	for (uint32_t i = 0; i < call->list_count; i++) {
		if (call->lists[i].count)
			memcpy(seeds, call->lists[i].ids, call->lists[i].count * 8);
		seeds += call->lists[i].count;
		if (call->typed)
			((struct gw_seeds *)batch->lists.data)[i].count = call->lists[i].count;
	}
	batch->seed_count = n;
	return GW_OK;
}

static gw_status single_make(struct gw_engine *engine, const struct gw_single_batch *call, uint64_t n,
			     struct gw_batch **out)
{
	struct gw_batch *batch;
	gw_status status = gw_batch_acquire(engine, &batch);
	if (status != GW_OK)
		return status;
	status = batch_take_call(batch, call, n);
	if (status != GW_OK) {
		gw_batch_release(batch);
		return status;
	}
	batch->seed = call->seed;
	batch->stream = call->stream;
	batch->view.epoch = 0;
	batch->view.step = 0;
	batch->fill_seeds = NULL;
	batch->windows = gw_ahead_windows(call->ahead);
	batch->number = call->number;
	batch->counts = false;
	*out = batch;
	return GW_OK;
}

gw_status gw_single_batch_make(struct gw_engine *engine, const struct gw_single_batch *call, struct gw_batch **out)
{
	uint64_t n = 0;
	gw_status status = check_call(engine->client, call, &n);
	return status == GW_OK ? single_make(engine, call, n, out) : status;
}

gw_status gw_single_batch_start(struct gw_client *client, const struct gw_single_batch *call, bool soon,
				struct gw_minibatch **out, struct gw_ticket **ticket)
{
	*out = NULL;
	*ticket = NULL;
	uint64_t n = 0;
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = check_call(client, call, &n);
	struct gw_batch *batch = NULL;
	if (status == GW_OK)
		status = single_make(gw_engine_for_call(client, n <= GW_SHORT_SEEDS), call, n, &batch);
	if (status != GW_OK)
		return status;
	batch->owner = out;
	batch->ticket.finish = finish_batch;
	batch->held_out = gw_held_out_share(call->spec->held_out);
	batch->ahead = gw_ahead_share(call->ahead);
	if (gw_trace_is_on())
		gw_batch_trace_begin(&batch->trace, &batch->ticket.job, 0, call->stream);
	gw_engine_submit(batch->engine, gw_batch_job(batch), soon);
	*ticket = &batch->ticket;
	return GW_OK;
}

static gw_status sample_run(struct gw_client *client, const struct gw_single_batch *call, struct gw_minibatch **out)
{
	struct gw_ticket *ticket;
	gw_status status = gw_single_batch_start(client, call, true, out, &ticket);
	return status == GW_OK ? gw_ticket_finish(ticket) : status;
}

gw_status gw_sample_start(struct gw_client *client, const struct gw_sample_spec *spec, uint64_t seed, uint64_t stream,
			  const int64_t *seeds, uint64_t n, struct gw_minibatch **out, struct gw_ticket **ticket)
{
	const struct gw_seeds list = {.ids = seeds, .count = n};
	const struct gw_single_batch call = {
		.spec = spec, .seed = seed, .stream = stream, .lists = &list, .list_count = 1};
	return gw_single_batch_start(client, &call, false, out, ticket);
}

gw_status gw_sample(struct gw_client *client, const struct gw_sample_spec *spec, uint64_t seed, uint64_t stream,
		    const int64_t *seeds, uint64_t n, struct gw_minibatch **out)
{
	const struct gw_seeds list = {.ids = seeds, .count = n};
	const struct gw_single_batch call = {
		.spec = spec, .seed = seed, .stream = stream, .lists = &list, .list_count = 1};
	return sample_run(client, &call, out);
}

gw_status gw_sample_lists_start(struct gw_client *client, const struct gw_sample_spec *spec, uint64_t seed,
				uint64_t stream, const struct gw_seeds *lists, uint32_t list_count,
				struct gw_minibatch **out, struct gw_ticket **ticket)
{
	const struct gw_single_batch call = {
		.spec = spec, .seed = seed, .stream = stream, .lists = lists, .list_count = list_count, .typed = true};
	return gw_single_batch_start(client, &call, false, out, ticket);
}

gw_status gw_sample_lists(struct gw_client *client, const struct gw_sample_spec *spec, uint64_t seed, uint64_t stream,
			  const struct gw_seeds *lists, uint32_t list_count, struct gw_minibatch **out)
{
	const struct gw_single_batch call = {
		.spec = spec, .seed = seed, .stream = stream, .lists = lists, .list_count = list_count, .typed = true};
	return sample_run(client, &call, out);
}
