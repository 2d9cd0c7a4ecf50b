/* Creates the workers of bench sample, and runs them.
 *
 * Every worker has its own memory, allocated before the clock starts. Fails when out of memory.
 */
#include "bench/sample_bed.h"

#include <errno.h>
#include <pthread.h>

#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"

static gw_status begin_worker(struct sample_bed *bed, uint32_t number)
{
	const struct sample_graph *graph = &bed->graph;
	const struct ceiling_graph bare = {
		.indptr = graph->indptr, .indices = graph->indices, .table = graph->table, .nodes = graph->nodes};
	struct sample_worker *worker = &bed->workers[number];
	uint32_t fanouts[GW_HOPS_MAX];
	for (uint32_t hop = 0; hop < bed->hops; hop++)
		fanouts[hop] = (uint32_t)bed->fanouts[hop];
	worker->bed = bed;
	worker->number = number;
	gw_status status = gw_blocks_create(&graph->meta, &worker->blocks);
	if (status == GW_OK)
		status = gw_relabel_create(&graph->meta, bed->hash ? 0 : UINT64_MAX, &worker->relabel);
	if (status == GW_OK)
		status = replay_begin(&worker->replay, graph, worker->relabel, bed->hops);
	if (status == GW_OK && ceiling_begin(&worker->ceiling, &bare, fanouts, bed->hops, bed->seeds))
		status = gw_fail_errno(GW_NO_MEMORY, errno, "memory of the bare loop");
	return status;
}

gw_status sample_bed_begin(struct sample_bed *bed, uint32_t workers)
{
	bed->workers = gw_calloc(workers, sizeof(*bed->workers));
	bed->seed_ids = gw_malloc(workers * bed->batches * bed->seeds * sizeof(int64_t));
	if (!bed->workers || !bed->seed_ids)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < workers * bed->batches * bed->seeds; i++)
		bed->seed_ids[i] = (int64_t)(gw_mix64(i) % bed->graph.nodes);
	for (uint32_t i = 0; i < workers; i++) {
		bed->worker_count = i + 1;
		gw_status status = begin_worker(bed, i);
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}

void sample_bed_end(struct sample_bed *bed)
{
	for (uint32_t i = 0; i < bed->worker_count; i++) {
		gw_blocks_destroy(bed->workers[i].blocks);
		gw_relabel_destroy(bed->workers[i].relabel);
		ceiling_end(&bed->workers[i].ceiling);
		replay_end(&bed->workers[i].replay);
	}
	gw_free(bed->workers);
	gw_free(bed->seed_ids);
	sample_graph_end(&bed->graph);
}

const int64_t *sample_seeds_of(const struct sample_worker *worker, uint64_t batch)
{
	return worker->bed->seed_ids + sample_key_of(worker, batch) * worker->bed->seeds;
}

uint64_t sample_key_of(const struct sample_worker *worker, uint64_t batch)
{
	return worker->number * worker->bed->batches + batch;
}

gw_status sample_one_batch(struct sample_worker *worker, uint64_t batch, bool no_edge_ids)
{
	const struct sample_bed *bed = worker->bed;
	const struct gw_adjacency *parts[1] = {&bed->graph.adjacency};
	const struct gw_columns column = {
		.at = {[GW_COLUMN_ALIAS] = bed->graph.table, [GW_COLUMN_WEIGHT] = bed->graph.weights}};
	const struct gw_columns *columns[1] = {&column};
	const struct gw_edge_sampling by_weight = {
		.kind = &gw_sample_weighted,
		.forms = {[GW_COLUMN_ALIAS] = {8, GW_UINT32}, [GW_COLUMN_WEIGHT] = {4, GW_FLOAT32}},
	};
	const struct gw_blocks_spec spec = {
		.hops = bed->hops,
		.fanouts = bed->fanouts,
		.replace = bed->kind == SAMPLE_BY_WEIGHT_REPLACE,
		.no_edge_ids = no_edge_ids,
		.sampling = bed->kind == SAMPLE_UNIFORM ? NULL : &by_weight,
	};
	gw_status status = gw_blocks_begin(worker->blocks, worker->relabel, &spec, 1, sample_key_of(worker, batch), 0,
					   sample_seeds_of(worker, batch), bed->seeds);
	return status != GW_OK ? status : gw_blocks_run_memory(worker->blocks, parts, columns);
}

gw_status sample_by_graphwire(struct sample_worker *worker)
{
	const struct sample_bed *bed = worker->bed;
	for (uint64_t b = bed->first; b < bed->first + bed->count; b++) {
		gw_status status = sample_one_batch(worker, b, bed->no_edge_ids);
		if (status != GW_OK)
			return status;
		uint64_t count;
		gw_blocks_nodes(worker->blocks, 0, &count);
		worker->edges += gw_blocks_edge_count(worker->blocks);
		worker->inputs += count;
	}
	return GW_OK;
}

gw_status sample_by_bare_loop(struct sample_worker *worker)
{
	const struct sample_bed *bed = worker->bed;
	for (uint64_t b = bed->first; b < bed->first + bed->count; b++) {
		worker->edges += ceiling_batch(&worker->ceiling, sample_key_of(worker, b), sample_seeds_of(worker, b),
					       (uint32_t)bed->seeds, bed->kind == SAMPLE_BY_WEIGHT_REPLACE);
		worker->inputs += worker->ceiling.node_count;
	}
	return GW_OK;
}

gw_status sample_by_replay(struct sample_worker *worker)
{
	const struct sample_bed *bed = worker->bed;
	for (uint64_t b = bed->first; b < bed->first + bed->count; b++)
		worker->edges += replay_batch(&worker->replay, b, &bed->pace, &worker->sum);
	return GW_OK;
}

/* ---- threads ---- */

struct sample_thread {
	struct sample_worker *worker;
	sample_body body;
};

static void *sample_thread_run(void *context)
{
	const struct sample_thread *thread = context;
	struct sample_worker *worker = thread->worker;
	worker->edges = worker->inputs = worker->sum = 0;
	worker->status = thread->body(worker);
	if (worker->status != GW_OK)
		snprintf(worker->error, sizeof(worker->error), "%s", gw_last_error());
	return NULL;
}

gw_status sample_bed_run(struct sample_bed *bed, uint32_t threads, sample_body body, double *figure)
{
	struct sample_thread contexts[SAMPLE_THREADS_MAX];
	pthread_t handles[SAMPLE_THREADS_MAX];
	uint32_t started = 0;
	uint64_t begin = gw_now_ns(), edges = 0, inputs = 0;
	gw_status status = GW_OK;
	for (; started < threads; started++) {
		contexts[started] = (struct sample_thread){.worker = &bed->workers[started], .body = body};
		int error = pthread_create(&handles[started], NULL, sample_thread_run, &contexts[started]);
		if (error) {
			status = gw_fail_errno(GW_NO_MEMORY, error, "thread %u", started);
			break;
		}
	}
	for (uint32_t i = 0; i < started; i++) {
		pthread_join(handles[i], NULL);
		if (status == GW_OK && bed->workers[i].status != GW_OK)
			status = gw_fail_text(bed->workers[i].status, bed->workers[i].error);
		edges += bed->workers[i].edges;
		inputs += bed->workers[i].inputs;
	}
	*figure = (double)edges / (double)(gw_now_ns() - begin) * 1e3;
	bed->edges_per_batch = (double)edges / (double)(threads * bed->count);
	bed->inputs_per_batch = (double)inputs / (double)(threads * bed->count);
	return status;
}
