/* graphwire bench sample: builds blocks of uniform samples from lists in memory, against a bare loop over the same
 * lists.
 *
 *   make an R-MAT graph -> check batches of both -> bare loop and gw_blocks_run_memory in turn
 *                       -> report, per thread count
 *
 * Every thread has its own memory, allocated before the clock starts, and samples its own batches. A figure is the
 * edges of all threads over the time from the first thread's start to the last thread's end. Fails when out of memory.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/sample_ceiling.h"
#include "core/graph/csc.h"
#include "core/graph/part.h"
#include "core/memory/alloc.h"
#include "core/memory/arena.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "core/system/parallel.h"
#include "sampler/blocks.h"
#include "sampler/relabel.h"
#include "sampler/wide.h"

#define THREADS_MAX 256
#define CHECKED     5 /* batches of each thread that are checked before measuring */

struct sample_arguments;

struct sample_worker {
	struct sample_arguments *arguments;
	uint32_t number;
	struct gw_blocks *blocks;
	struct gw_relabel *relabel;
	struct ceiling ceiling;
	uint64_t edges, inputs;
	gw_status status;
	char error[GW_ERROR_TEXT_MAX];
};

struct sample_arguments {
	struct gw_bench bench;
	uint64_t scale, edge_factor, seeds, batches, threads; /* threads 0: 1, then all processors */
	int32_t fanouts[SAMPLE_HOPS_MAX];
	uint32_t ceiling_fanouts[SAMPLE_HOPS_MAX], hops;
	bool hash;
	/* while it runs */
	struct gw_arena *arena;
	uint32_t *indptr, *indices;
	uint64_t nodes, edges;
	struct gw_graph_meta meta;
	struct gw_node_type ntype;
	struct gw_edge_type etype;
	uint64_t starts[2];
	struct gw_adjacency adjacency;
	int64_t *seed_ids; /* [threads][batches][seeds] */
	struct sample_worker *workers;
	uint32_t workers_used;
	double edges_per_batch, inputs_per_batch;
};

/* ---- options ---- */

static gw_status bench_sample_take_fanouts(void *input, char *text)
{
	struct sample_arguments *a = input;
	return gw_parse_list(text, 1, SAMPLE_FANOUT_MAX, SAMPLE_HOPS_MAX, a->fanouts, &a->hops);
}

#define A struct sample_arguments
static const struct gw_option table[] = {
	{"scale", "N", "an R-MAT graph of 2^N nodes (20)", 0, GW_OPTION_NUMBER(A, scale, 10, 30)},
	{"edge-factor", "N", "edges per node (16)", 0, GW_OPTION_NUMBER(A, edge_factor, 1, 1024)},
	{"fanouts", "LIST", "neighbours per hop, the seeds' first (15,10,5)", 0,
	 GW_OPTION_CALL(bench_sample_take_fanouts)},
	{"seeds", "N", "seeds of a batch (1000)", 0, GW_OPTION_NUMBER(A, seeds, 1, 1 << 20)},
	{"batches", "N", "batches of each thread in a repeat (100)", 0, GW_OPTION_NUMBER(A, batches, CHECKED, 1 << 20)},
	{"threads", "N", "number of threads (measures 1, then one for each processor)", 0,
	 GW_OPTION_NUMBER(A, threads, 1, THREADS_MAX)},
	{"hash", NULL, "relabel by hash maps instead of dense ones", 0, GW_OPTION_FLAG(A, hash)},
	{0},
};
#undef A

/* ---- input ---- */

struct edge_list {
	const struct sample_arguments *arguments;
	struct gw_permutation permutation;
	uint64_t *src, *dst;
};

/* Graph500's R-MAT: for each bit of the ids, 16 random bits choose a quadrant, with probabilities 0.57, 0.19, 0.19,
 * 0.05. */
static gw_status bench_sample_make_edges(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct edge_list *list = context;
	(void)thread;
	for (uint64_t e = begin; e < end; e++) {
		uint64_t src = 0, dst = 0, random = 0;
		for (uint64_t bit = 0; bit < list->arguments->scale; bit++, random >>= 16) {
			if (bit % 4 == 0)
				random = gw_mix64(e * 8 + bit / 4 + 1);
			uint64_t quadrant = random & 0xffff;
			src |= (uint64_t)(quadrant >= 49807) << bit; /* 0.76 */
			dst |= (uint64_t)((quadrant >= 37356 && quadrant < 49807) || quadrant >= 62259) << bit;
		}
		list->src[e] = gw_permutation_at(&list->permutation, src);
		list->dst[e] = gw_permutation_at(&list->permutation, dst);
	}
	return GW_OK;
}

/* Stores the lists as a part does: offsets and ids of 4 bytes in an arena. */
static gw_status store_lists(struct sample_arguments *a, const struct edge_list *list)
{
	const struct gw_coo coo = {
		.num_src = a->nodes,
		.num_dst = a->nodes,
		.num_edges = a->edges,
		.src = list->src,
		.dst = list->dst,
	};
	struct gw_csc csc;
	gw_status status = gw_csc_build(&coo, 0, &csc);
	if (status != GW_OK)
		return status;
	const struct gw_arena_options pages = {.name = "bench-sample", .numa = GW_NUMA_SPREAD, .shareable = true};
	uint64_t indptr = 0, indices = 0;
	status = gw_arena_create((a->nodes + a->edges + 1) * 4 + 2 * GW_ARENA_ALIGN, &pages, &a->arena);
	if (status == GW_OK)
		status = gw_arena_take(a->arena, (a->nodes + 1) * 4, GW_ARENA_ALIGN, &indptr);
	if (status == GW_OK)
		status = gw_arena_take(a->arena, a->edges * 4, GW_ARENA_ALIGN, &indices);
	if (status == GW_OK) {
		a->indptr = (uint32_t *)(void *)(gw_arena_base(a->arena) + indptr);
		a->indices = (uint32_t *)(void *)(gw_arena_base(a->arena) + indices);
		for (uint64_t i = 0; i <= a->nodes; i++)
			a->indptr[i] = (uint32_t)csc.indptr[i];
		for (uint64_t e = 0; e < a->edges; e++)
			a->indices[e] = (uint32_t)list->src[csc.order[e]];
	}
	gw_csc_free(&csc);
	return status;
}

static gw_status bench_sample_make_graph(struct sample_arguments *a)
{
	a->nodes = 1ull << a->scale;
	a->edges = a->nodes * a->edge_factor;
	if (a->edges > UINT32_MAX)
		return gw_fail(GW_LIMIT, "2^%llu nodes with %llu edges each: at most 2^32 - 1 edges",
			       (unsigned long long)a->scale, (unsigned long long)a->edge_factor);
	struct edge_list list = {
		.arguments = a,
		.permutation = gw_permutation_begin(1, a->nodes),
		.src = gw_malloc(a->edges * sizeof(uint64_t)),
		.dst = gw_malloc(a->edges * sizeof(uint64_t)),
	};
	gw_status status = list.src && list.dst ? GW_OK : GW_NO_MEMORY;
	if (status == GW_OK)
		status = gw_parallel_for(0, a->edges, 1 << 16, bench_sample_make_edges, &list);
	if (status == GW_OK)
		status = store_lists(a, &list);
	gw_free(list.src);
	gw_free(list.dst);
	return status;
}

static void describe_graph(struct sample_arguments *a)
{
	a->starts[1] = a->nodes;
	a->ntype = (struct gw_node_type){.name = "_N", .count = a->nodes, .starts = a->starts, .columns = 1};
	a->etype = (struct gw_edge_type){.name = "_E", .folder = "_N__E__N", .count = a->edges};
	a->meta = (struct gw_graph_meta){
		.num_parts = 1, .num_ntypes = 1, .num_etypes = 1, .ntypes = &a->ntype, .etypes = &a->etype};
	a->adjacency = (struct gw_adjacency){
		.indptr = a->indptr,
		.indices = a->indices,
		.rows = a->nodes,
		.edges = a->edges,
		.columns = 1,
		.indptr_bytes = 4,
		.index_bytes = 4,
	};
}

static gw_status make_workers(struct sample_arguments *a, uint32_t count)
{
	const struct ceiling_graph graph = {.indptr = a->indptr, .indices = a->indices, .nodes = a->nodes};
	a->workers = gw_calloc(count, sizeof(*a->workers));
	a->seed_ids = gw_malloc(count * a->batches * a->seeds * sizeof(int64_t));
	if (!a->workers || !a->seed_ids)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < count * a->batches * a->seeds; i++)
		a->seed_ids[i] = (int64_t)(gw_mix64(i) % a->nodes);
	for (uint32_t i = 0; i < count; i++) {
		struct sample_worker *worker = &a->workers[i];
		worker->arguments = a;
		worker->number = i;
		a->workers_used = i + 1;
		gw_status status = gw_blocks_create(&a->meta, &worker->blocks);
		if (status == GW_OK)
			status = gw_relabel_create(&a->meta, a->hash ? 0 : UINT64_MAX, &worker->relabel);
		if (status == GW_OK && ceiling_begin(&worker->ceiling, &graph, a->ceiling_fanouts, a->hops, a->seeds))
			status = gw_fail_errno(GW_NO_MEMORY, errno, "memory of the bare loop");
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}

/* ---- the work ---- */

static const int64_t *bench_seeds_of(const struct sample_worker *worker, uint64_t batch)
{
	const struct sample_arguments *a = worker->arguments;
	return a->seed_ids + (worker->number * a->batches + batch) * a->seeds;
}

static gw_status sample_batch(struct sample_worker *worker, uint64_t batch)
{
	const struct sample_arguments *a = worker->arguments;
	const struct gw_adjacency *parts[1] = {&a->adjacency};
	const struct gw_blocks_spec spec = {.hops = a->hops, .fanouts = a->fanouts};
	gw_status status =
		gw_blocks_begin(worker->blocks, worker->relabel, &spec, 1, worker->number * a->batches + batch, 0,
				bench_seeds_of(worker, batch), a->seeds);
	return status != GW_OK ? status : gw_blocks_run_memory(worker->blocks, parts, NULL);
}

static void *run_worker(void *context)
{
	struct sample_worker *worker = context;
	worker->edges = worker->inputs = 0;
	worker->status = GW_OK;
	for (uint64_t b = 0; b < worker->arguments->batches; b++) {
		worker->status = sample_batch(worker, b);
		if (worker->status) {
			snprintf(worker->error, sizeof(worker->error), "%s", gw_last_error());
			break;
		}
		uint64_t count;
		gw_blocks_nodes(worker->blocks, 0, &count);
		worker->edges += gw_blocks_edge_count(worker->blocks);
		worker->inputs += count;
	}
	return NULL;
}

static void *run_ceiling(void *context)
{
	struct sample_worker *worker = context;
	const struct sample_arguments *a = worker->arguments;
	worker->edges = worker->inputs = 0;
	worker->status = GW_OK;
	for (uint64_t b = 0; b < a->batches; b++) {
		worker->edges += ceiling_batch(&worker->ceiling, worker->number * a->batches + b,
					       bench_seeds_of(worker, b), (uint32_t)a->seeds);
		worker->inputs += worker->ceiling.node_count;
	}
	return NULL;
}

/* Runs body in `threads` threads of this process; the figure is millions of edges per second. */
static gw_status run_threads(struct sample_arguments *a, void *(*body)(void *context), double *figure)
{
	pthread_t threads[THREADS_MAX];
	uint32_t started = 0;
	uint64_t begin = gw_now_ns(), edges = 0, inputs = 0;
	gw_status status = GW_OK;
	for (; started < a->threads && status == GW_OK; started++) {
		int error = pthread_create(&threads[started], NULL, body, &a->workers[started]);
		if (error) {
			status = gw_fail_errno(GW_NO_MEMORY, error, "thread %u", started);
			break;
		}
	}
	for (uint32_t i = 0; i < started; i++) {
		pthread_join(threads[i], NULL);
		if (status == GW_OK && a->workers[i].status)
			status = gw_fail_text(a->workers[i].status, a->workers[i].error);
		edges += a->workers[i].edges;
		inputs += a->workers[i].inputs;
	}
	*figure = (double)edges / (double)(gw_now_ns() - begin) * 1e3;
	a->edges_per_batch = (double)edges / (double)(a->threads * a->batches);
	a->inputs_per_batch = (double)inputs / (double)(a->threads * a->batches);
	return status;
}

static gw_status measure_ceiling(void *context, double *figure)
{
	return run_threads(context, run_ceiling, figure);
}

static gw_status measure_sample(void *context, double *figure)
{
	return run_threads(context, run_worker, figure);
}

/* ---- checking ---- */

/* Whether every edge of a hop belongs to its destination, occurs once, and has the right source number; and whether
 * each destination has min(degree, fanout) edges. */
static bool edges_are_legal(const struct sample_arguments *a, const struct gw_block_edges *edges, const int64_t *nodes,
			    uint64_t fanout)
{
	const int32_t *sources = edges->indices;
	for (uint64_t row = 0; row < edges->dst_count; row++) {
		uint64_t begin = a->indptr[nodes[row]], end = a->indptr[nodes[row] + 1];
		uint64_t first = (uint64_t)edges->indptr[row], last = (uint64_t)edges->indptr[row + 1];
		if (last - first != (end - begin < fanout ? end - begin : fanout))
			return false;
		for (uint64_t e = first; e < last; e++) {
			uint64_t edge = (uint64_t)edges->edge_ids[e];
			if (edge < begin || edge >= end || (e > first && edge <= (uint64_t)edges->edge_ids[e - 1]) ||
			    nodes[sources[e]] != a->indices[edge])
				return false;
		}
	}
	return true;
}

static gw_status check_batch(struct sample_worker *worker, uint64_t batch, uint8_t *seen)
{
	const struct sample_arguments *a = worker->arguments;
	gw_status status = sample_batch(worker, batch);
	if (status != GW_OK)
		return status;
	uint64_t count, rows_count, dst_count = 0;
	const int64_t *nodes = gw_blocks_nodes(worker->blocks, 0, &count), *seeds = bench_seeds_of(worker, batch);
	const uint32_t *rows = gw_blocks_seed_rows(worker->blocks, &rows_count);
	bool legal = rows_count == a->seeds;
	for (uint64_t i = 0; i < rows_count && legal; i++)
		legal = nodes[rows[i]] == seeds[i];
	for (uint32_t hop = 0; hop < a->hops && legal; hop++) {
		const struct gw_block *block = gw_blocks_hop(worker->blocks, hop);
		legal = block->edges[0].dst_count >= dst_count && block->src_counts[0] <= count &&
			edges_are_legal(a, &block->edges[0], nodes, (uint64_t)a->fanouts[hop]);
		dst_count = block->src_counts[0];
	}
	legal = legal && dst_count == count;
	memset(seen, 0, a->nodes);
	for (uint64_t i = 0; i < count && legal; i++)
		legal = seen[nodes[i]]++ == 0;
	return legal ? GW_OK : gw_fail(GW_FORMAT, "batch %llu is not a sample of the graph", (unsigned long long)batch);
}

static gw_status check_ceiling(struct sample_worker *worker, uint64_t batch)
{
	const struct sample_arguments *a = worker->arguments;
	struct ceiling *c = &worker->ceiling;
	ceiling_batch(c, worker->number * a->batches + batch, bench_seeds_of(worker, batch), (uint32_t)a->seeds);
	for (uint64_t e = 0; e < c->last_edges; e++) {
		if (c->source[e] >= c->node_count || c->nodes[c->source[e]] != a->indices[c->edge_id[e]])
			return gw_fail(GW_FORMAT, "the bare loop's batch %llu is not a sample of the graph",
				       (unsigned long long)batch);
	}
	return GW_OK;
}

static gw_status bench_sample_verify(struct sample_arguments *a, uint32_t workers)
{
	uint8_t *seen = gw_malloc(a->nodes);
	gw_status status = seen ? GW_OK : GW_NO_MEMORY;
	for (uint32_t i = 0; i < workers; i++) {
		for (uint64_t b = 0; b < CHECKED && status == GW_OK; b++) {
			status = check_batch(&a->workers[i], b, seen);
			if (status == GW_OK)
				status = check_ceiling(&a->workers[i], b);
		}
	}
	gw_free(seen);
	return status;
}

/* ---- the benchmark ---- */

static gw_status bench_sample_measure(struct sample_arguments *a)
{
	static struct gw_bench_series ceilings, values; /* 8 KB each */
	ceilings.count = values.count = 0;
	gw_status status = gw_bench_alternate(&a->bench, measure_ceiling, measure_sample, a, &ceilings, &values);
	double figure;
	if (status == GW_OK)
		status = measure_sample(a, &figure); /* so that edges and inputs per batch are those of the sampler */
	if (status != GW_OK)
		return status;
	char title[96], note[160];
	snprintf(title, sizeof(title), "R-MAT %llu x %llu, %llu thread%s", (unsigned long long)a->scale,
		 (unsigned long long)a->edge_factor, (unsigned long long)a->threads, a->threads == 1 ? "" : "s");
	snprintf(note, sizeof(note), "%.0f edges and %.0f nodes a batch; %s maps; vectors: %s", a->edges_per_batch,
		 a->inputs_per_batch, a->hash ? "hash" : "dense", gw_vectors_name(gw_vectors_used()));
	const struct gw_bench_result result = {
		.title = title,
		.unit = "M edges/s",
		.values = &values,
		.ceilings = &ceilings,
		.verified = true,
		.note = note,
		.fields = {{"threads", .number = (double)a->threads},
			   {"seeds", .number = (double)a->seeds},
			   {"edges_per_batch", .number = a->edges_per_batch},
			   {"inputs_per_batch", .number = a->inputs_per_batch},
			   {"batches_per_s", .number = gw_bench_series_median(&values) * 1e6 / a->edges_per_batch},
			   {"vectors", .text = gw_vectors_name(gw_vectors_used())}},
	};
	gw_bench_report(&a->bench, &result);
	return GW_OK;
}

static gw_status bench_sample_run(struct sample_arguments *a)
{
	uint32_t all = gw_processors() < THREADS_MAX ? gw_processors() : THREADS_MAX;
	uint32_t workers = a->threads ? (uint32_t)a->threads : all;
	bool both = a->threads == 0 && all > 1;
	gw_status status = gw_bench_open(&a->bench);
	if (status == GW_OK)
		status = bench_sample_make_graph(a);
	if (status == GW_OK) {
		describe_graph(a);
		status = make_workers(a, workers);
	}
	if (status == GW_OK)
		status = bench_sample_verify(a, workers);
	if (a->threads == 0)
		a->threads = 1;
	if (status == GW_OK)
		status = bench_sample_measure(a);
	if (status == GW_OK && both) {
		a->threads = all;
		status = bench_sample_measure(a);
	}
	for (uint32_t i = 0; i < a->workers_used; i++) {
		gw_blocks_destroy(a->workers[i].blocks);
		gw_relabel_destroy(a->workers[i].relabel);
		ceiling_end(&a->workers[i].ceiling);
	}
	gw_free(a->workers);
	gw_free(a->seed_ids);
	gw_arena_destroy(a->arena);
	gw_status closed = gw_bench_close(&a->bench);
	return status != GW_OK ? status : closed;
}

int gw_bench_sample(int argc, char **argv)
{
	static const char doc[] =
		"Measures how fast blocks of uniform samples are built from lists in memory, against a bare loop over "
		"the same lists.\vExamples:\n"
		"  graphwire bench sample\n"
		"  graphwire bench sample --fanouts 10,25 --threads 4 --json sample.json\n";
	static const struct gw_options options = {.table = table,
						  .common = gw_bench_options,
						  .common_offset = offsetof(struct sample_arguments, bench),
						  .doc = doc};
	static struct sample_arguments a; /* its series and lists are too big for a small stack */
	a = (struct sample_arguments){.bench = {.name = "sample"},
				      .scale = 20,
				      .edge_factor = 16,
				      .seeds = 1000,
				      .batches = 100,
				      .fanouts = {15, 10, 5},
				      .hops = 3};
	gw_options_parse(&options, argc, argv, &a);
	for (uint32_t hop = 0; hop < a.hops; hop++)
		a.ceiling_fanouts[hop] = (uint32_t)a.fanouts[hop];
	gw_status status = bench_sample_run(&a);
	return gw_exit_status("graphwire bench sample", status);
}
