/* The workers of bench sample: a thread each, which samples its own batches in one of three ways. */
#ifndef GW_BENCH_SAMPLE_BED_H
#define GW_BENCH_SAMPLE_BED_H

#include "bench/bench.h"
#include "bench/sample_ceiling.h"
#include "bench/sample_graph.h"
#include "bench/sample_replay.h"
#include "sampler/blocks/blocks.h"

#define SAMPLE_THREADS_MAX 256
#define SAMPLE_CHECKED     5 /* batches of each worker that are checked row by row before measuring */

enum sample_kind { SAMPLE_UNIFORM, SAMPLE_BY_WEIGHT_REPLACE, SAMPLE_BY_WEIGHT, SAMPLE_KINDS };

struct sample_bed;

struct sample_worker {
	struct sample_bed *bed;
	uint32_t number;
	struct gw_blocks *blocks;
	struct gw_relabel *relabel;
	struct ceiling ceiling;      /* the bare loop */
	struct replay replay;        /* the memory's own ceiling */
	uint64_t edges, inputs, sum; /* results of a run; sum: of ids, by the replay */
	gw_status status;
	char error[GW_ERROR_TEXT_MAX];
};

struct sample_bed {
	struct sample_graph graph;
	uint64_t seeds, batches;
	uint32_t hops;
	int32_t fanouts[GW_HOPS_MAX];
	bool hash, no_edge_ids; /* no_edge_ids: those that are checked have them */
	/* while it runs */
	enum sample_kind kind;
	struct replay_pace pace;
	uint64_t first, count; /* the batches of each worker that sample_bed_run handles */
	int64_t *seed_ids;     /* [workers][batches][seeds] */
	struct sample_worker *workers;
	uint32_t worker_count;
	double edges_per_batch, inputs_per_batch; /* of the last run */
};

/* Creates the workers; the graph exists. Free with sample_bed_end, after a failure too. */
gw_status sample_bed_begin(struct sample_bed *bed, uint32_t workers);
void sample_bed_end(struct sample_bed *bed);

const int64_t *sample_seeds_of(const struct sample_worker *worker, uint64_t batch);
uint64_t sample_key_of(const struct sample_worker *worker, uint64_t batch); /* the stream of the batch's draws */

/* Samples one batch with the bed's kind: worker->blocks has the result. */
gw_status sample_one_batch(struct sample_worker *worker, uint64_t batch, bool no_edge_ids);

/* What a worker does with its batches [bed->first, + bed->count). */
typedef gw_status (*sample_body)(struct sample_worker *worker);
gw_status sample_by_graphwire(struct sample_worker *worker);
gw_status sample_by_bare_loop(struct sample_worker *worker);
gw_status sample_by_replay(struct sample_worker *worker);

/* Runs a body in that many threads. *figure: millions of edges per second, over the time from the first thread's start
 * to the last thread's end. */
gw_status sample_bed_run(struct sample_bed *bed, uint32_t threads, sample_body body, double *figure);

/* ---- sample_check.c ---- */

/* Checks batches of the bed's kind, and of its bare loop; GW_FORMAT if one is not a sample of the graph. Then records
 * the trace of all batches. Draws by weight are repeated from the law in sampler/kinds/weighted.c, and compared. */
gw_status sample_check_and_record(struct sample_bed *bed, uint32_t threads);

#endif
