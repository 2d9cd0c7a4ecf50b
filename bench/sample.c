/* graphwire bench sample: builds blocks from lists in memory, against the memory's own speed, and against a bare loop
 * over the same lists.
 *
 *   make or read a graph -> for each number of threads and each kind of draw: check batches, record what they touch
 *   -> sweep the replay's prefetch distances -> replay, bare loop and gw_blocks_run_memory in turn -> report
 *   -> disjoint batches (sample_groups.c) -> the same edges as 8 and 32 edge types (sample_types.c)
 *
 * The ceiling is the replay (sample_replay.c). The bare loop (sample_ceiling.c) is the second figure. A figure is the
 * edges of all threads over the time from the first thread's start to the last thread's end. Fails when out of memory.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/sample_bed.h"
#include "bench/sample_groups.h"
#include "bench/sample_types.h"
#include "core/system/parallel.h"
#include "sampler/lanes/wide.h"

struct sample_arguments {
	struct gw_bench bench;
	uint64_t scale, edge_factor, threads; /* threads 0: 1, then all processors */
	const char *part_config;
	bool weight;
	struct sample_bed bed;
};

/* ---- options ---- */

static gw_status bench_sample_take_fanouts(void *input, char *text)
{
	struct sample_arguments *a = input;
	return gw_parse_list(text, 1, SAMPLE_FANOUT_MAX, GW_HOPS_MAX, a->bed.fanouts, &a->bed.hops);
}

#define A struct sample_arguments
static const struct gw_option table[] = {
	{"scale", "N", "an R-MAT graph of 2^N nodes (20)", 0, GW_OPTION_NUMBER(A, scale, 10, 30)},
	{"edge-factor", "N", "edges per node (16)", 0, GW_OPTION_NUMBER(A, edge_factor, 1, 1024)},
	{"part-config", "JSON|FOLDER", "the lists of a partitioned graph with one node type and one edge type", 0,
	 GW_OPTION_TEXT(A, part_config)},
	{"weight", NULL, "also by random weights of the edges: with replacement, and without", 0,
	 GW_OPTION_FLAG(A, weight)},
	{"fanouts", "LIST", "neighbours per hop, the seeds' first (15,10,5)", 0,
	 GW_OPTION_CALL(bench_sample_take_fanouts)},
	{"seeds", "N", "seeds of a batch (1000)", 0, GW_OPTION_NUMBER(A, bed.seeds, 1, 1 << 20)},
	{"batches", "N", "batches of each thread in a repeat (100)", 0,
	 GW_OPTION_NUMBER(A, bed.batches, SAMPLE_CHECKED, 1 << 20)},
	{"threads", "N", "number of threads (measures 1, then one for each processor)", 0,
	 GW_OPTION_NUMBER(A, threads, 1, SAMPLE_THREADS_MAX)},
	{"hash", NULL, "relabel by hash maps instead of dense ones", 0, GW_OPTION_FLAG(A, bed.hash)},
	{"no-edge-ids", NULL, "blocks without ids of edges", 0, GW_OPTION_FLAG(A, bed.no_edge_ids)},
	{0},
};
#undef A

/* ---- the replay's pace ---- */

#define SWEEP_TRIES 12
#define VALUES_MAX  8

/* One distance of the pace, and the values to try. */
struct sweep_step {
	size_t field;
	uint32_t values[VALUES_MAX]; /* the list ends with 0 */
};

static gw_status try_pace(struct sample_bed *bed, uint32_t threads, uint64_t try, double *best)
{
	uint64_t batches = bed->batches;
	double figure;
	bed->count = batches / 8 < SAMPLE_CHECKED ? SAMPLE_CHECKED : batches / 8;
	bed->first = try * bed->count % (batches - bed->count + 1);
	gw_status status = sample_bed_run(bed, threads, sample_by_replay, &figure);
	*best = figure > *best ? figure : *best;
	bed->first = 0;
	bed->count = batches;
	return status;
}

/* Each value is tried several times, in turn with the others, so that a change of the machine's speed affects all. */
static gw_status sweep_one(struct sample_bed *bed, uint32_t threads, const struct sweep_step *step)
{
	uint32_t *field = (uint32_t *)(void *)((char *)&bed->pace + step->field);
	double best[VALUES_MAX] = {0};
	size_t fastest = 0;
	for (uint64_t try = 0; try < SWEEP_TRIES; try++) {
		for (size_t i = 0; i < VALUES_MAX && step->values[i]; i++) {
			*field = step->values[i];
			gw_status status = try_pace(bed, threads, try, &best[i]);
			if (status != GW_OK)
				return status;
		}
	}
	for (size_t i = 1; i < VALUES_MAX; i++)
		fastest = best[i] > best[fastest] ? i : fastest;
	*field = step->values[fastest];
	return GW_OK;
}

static gw_status sweep(struct sample_bed *bed, uint32_t threads)
{
	static const struct sweep_step steps[] = {
		{offsetof(struct replay_pace, level), {1, 2}},
		{offsetof(struct replay_pace, slots), {8, 16, 32, 64, 128, 256}},
		{offsetof(struct replay_pace, run), {16, 32, 64, 128, 256, 512, REPLAY_RUN_MAX}},
		{offsetof(struct replay_pace, offsets), {4, 8, 16, 32, 64}},
	};
	gw_status status = GW_OK;
	bed->pace = (struct replay_pace){.run = 256, .offsets = 16, .slots = 64, .level = 2};
	for (size_t s = 0; s < sizeof(steps) / sizeof(*steps) && status == GW_OK; s++)
		status = sweep_one(bed, threads, &steps[s]);
	return status;
}

/* ---- the benchmark ---- */

struct sample_series {
	struct gw_bench_series replay, bare, graphwire;
};

/* Measures all three in turn; the first one changes from repeat to repeat. */
static gw_status measure_in_turn(struct sample_arguments *a, uint32_t threads, struct sample_series *series)
{
	const struct {
		sample_body body;
		struct gw_bench_series *series;
	} turns[] = {
		{sample_by_replay, &series->replay},
		{sample_by_bare_loop, &series->bare},
		{sample_by_graphwire, &series->graphwire},
	};
	gw_status status = GW_OK;
	for (unsigned i = 0; i < a->bench.repeats && status == GW_OK; i++) {
		for (unsigned t = 0; t < 3 && status == GW_OK; t++) {
			unsigned turn = (i + t) % 3;
			double figure;
			if (turn == 1 && a->bed.kind == SAMPLE_BY_WEIGHT)
				continue;
			status = sample_bed_run(&a->bed, threads, turns[turn].body, &figure);
			if (status == GW_OK)
				gw_bench_series_add(turns[turn].series, figure);
		}
	}
	double figure;
	/* so that edges and inputs per batch are those of the sampler */
	return status != GW_OK ? status : sample_bed_run(&a->bed, threads, sample_by_graphwire, &figure);
}

static const char *const kind_names[SAMPLE_KINDS] = {"uniform", "by weight, replace", "by weight"};

/* Ratios of figures that were measured one after the other: a machine that changes its speed changes both. */
struct pair_ratios {
	double quarter, half, three_quarters;
};

static struct pair_ratios ratios_of(const struct gw_bench_series *values, const struct gw_bench_series *others)
{
	static double ratios[GW_BENCH_REPEATS_MAX]; /* 8 KB */
	for (unsigned i = 0; i < others->count; i++)
		ratios[i] = values->values[i] / others->values[i];
	return (struct pair_ratios){gw_bench_quantile(ratios, others->count, 0.25),
				    gw_bench_quantile(ratios, others->count, 0.5),
				    gw_bench_quantile(ratios, others->count, 0.75)};
}

static void bench_sample_report(struct sample_arguments *a, uint32_t threads, const struct sample_series *series)
{
	const struct sample_bed *bed = &a->bed;
	double bare = gw_bench_series_median(&series->bare), value = gw_bench_series_median(&series->graphwire);
	struct pair_ratios of_ceiling = ratios_of(&series->graphwire, &series->replay);
	struct pair_ratios of_loop = ratios_of(&series->graphwire, &series->bare);
	char title[160], note[600], loop[100] = "no bare loop";
	snprintf(title, sizeof(title), "%s, %s, %u thread%s", bed->graph.title, kind_names[bed->kind], threads,
		 threads == 1 ? "" : "s");
	if (bare > 0)
		snprintf(loop, sizeof(loop), "bare loop: %.4g M edges/s, ratio %.3f (%.3f to %.3f)", bare, of_loop.half,
			 of_loop.quarter, of_loop.three_quarters);
	snprintf(
		note, sizeof(note),
		"ratios of neighbouring repeats, median (quartiles): ceiling %.3f (%.3f to %.3f); %s\n"
		"%-10s %.0f edges and %.0f nodes a batch; %s maps%s; vectors: %s\n"
		"%-10s the ceiling prefetches in runs of %u lists, offsets %u lists ahead, slots %u neighbours ahead,\n"
		"%-10s neighbours into the cache of level %u",
		of_ceiling.half, of_ceiling.quarter, of_ceiling.three_quarters, loop, "", bed->edges_per_batch,
		bed->inputs_per_batch, bed->hash ? "hash" : "dense", bed->no_edge_ids ? ", no edge ids" : "",
		gw_vectors_name(gw_vectors_used()), "", bed->pace.run, bed->pace.offsets, bed->pace.slots, "",
		bed->pace.level);
	struct gw_bench_result result = {
		.title = title,
		.unit = "M edges/s",
		.values = &series->graphwire,
		.ceilings = &series->replay,
		.verified = true,
		.note = note,
		.fields = {{"threads", .number = threads},
			   {"kind", .text = kind_names[bed->kind]},
			   {"seeds", .number = (double)bed->seeds},
			   {"edges_per_batch", .number = bed->edges_per_batch},
			   {"inputs_per_batch", .number = bed->inputs_per_batch},
			   {"batches_per_s", .number = value * 1e6 / bed->edges_per_batch},
			   {"pair_ratio", .number = of_ceiling.half},
			   {"run", .number = bed->pace.run},
			   {"offsets_ahead", .number = bed->pace.offsets},
			   {"slots_ahead", .number = bed->pace.slots},
			   {"level", .number = bed->pace.level},
			   {"vectors", .text = gw_vectors_name(gw_vectors_used())}},
	};
	if (bare > 0) {
		result.fields[12] = (struct gw_bench_field){"bare_loop", .number = bare};
		result.fields[13] = (struct gw_bench_field){"bare_loop_ratio", .number = value / bare};
		result.fields[14] = (struct gw_bench_field){"bare_loop_pair_ratio", .number = of_loop.half};
	}
	gw_bench_report(&a->bench, &result);
}

static gw_status bench_sample_measure(struct sample_arguments *a, uint32_t threads)
{
	static struct sample_series series; /* 8 KB each */
	gw_status status = GW_OK;
	for (uint32_t kind = 0; kind < (a->weight ? SAMPLE_KINDS : 1) && status == GW_OK; kind++) {
		series.replay.count = series.bare.count = series.graphwire.count = 0;
		a->bed.kind = (enum sample_kind)kind;
		status = sample_check_and_record(&a->bed, threads);
		if (status == GW_OK)
			status = sweep(&a->bed, threads);
		if (status == GW_OK)
			status = measure_in_turn(a, threads, &series);
		if (status == GW_OK)
			bench_sample_report(a, threads, &series);
	}
	return status;
}

static gw_status bench_sample_run(struct sample_arguments *a)
{
	uint32_t all = gw_processors() < SAMPLE_THREADS_MAX ? gw_processors() : SAMPLE_THREADS_MAX;
	uint32_t first = a->threads ? (uint32_t)a->threads : 1, last = a->threads ? first : all;
	gw_status status = gw_bench_open(&a->bench);
	if (status == GW_OK)
		status = a->part_config ? sample_graph_read(&a->bed.graph, a->part_config)
					: sample_graph_make(&a->bed.graph, a->scale, a->edge_factor);
	if (status == GW_OK && a->weight)
		status = sample_graph_weigh(&a->bed.graph);
	if (status == GW_OK)
		status = sample_bed_begin(&a->bed, last);
	if (status == GW_OK)
		status = bench_sample_measure(a, first);
	if (status == GW_OK && last != first)
		status = bench_sample_measure(a, last);
	if (first == 1 && status == GW_OK)
		status = sample_groups_measure(&a->bench, &a->bed.graph, a->bed.seeds, a->bed.fanouts, a->bed.hops);
	for (uint32_t types = 8; types <= 32 && first == 1 && status == GW_OK; types *= 4)
		status = sample_types_measure(&a->bench, &a->bed.graph, types);
	sample_bed_end(&a->bed);
	gw_status closed = gw_bench_close(&a->bench);
	return status != GW_OK ? status : closed;
}

int gw_bench_sample(int argc, char **argv)
{
	static const char doc[] =
		"Measures how fast blocks are built from lists in memory. The ceiling is the memory's own: "
		"the same places read and written again, at the best prefetch distance, and nothing else. "
		"A bare loop that does the same work over the same lists is measured, too.\vExamples:\n"
		"  graphwire bench sample\n"
		"  graphwire bench sample --weight --part-config parts/\n"
		"  graphwire bench sample --fanouts 10,25 --threads 4 --json sample.json\n";
	static const struct gw_options options = {.table = table,
						  .common = gw_bench_options,
						  .common_offset = offsetof(struct sample_arguments, bench),
						  .doc = doc};
	static struct sample_arguments a; /* its lists are too big for a small stack */
	a = (struct sample_arguments){
		.bench = {.name = "sample"},
		.scale = 20,
		.edge_factor = 16,
		.bed = {.seeds = 1000,
			.batches = 100,
			.fanouts = {15, 10, 5},
			.hops = 3,
			.pace = {.run = 256, .offsets = 16, .slots = 64, .level = 2}},
	};
	gw_options_parse(&options, argc, argv, &a);
	a.bed.count = a.bed.batches;
	return gw_exit_status("graphwire bench sample", bench_sample_run(&a));
}
