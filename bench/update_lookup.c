/* The lookup of tensors, a part of graphwire bench update. Several threads pull and push single rows at once from a
 * server's table, as the handlers of a server's calls do. Each call handles one short row, so the lookup is a large
 * share of its time.
 *
 *   lookup   1, 2 and 4 threads; 4 and 1,000 tensors: each call finds a tensor by its shard epoch, and unreferences it.
 *            The ceiling is the same calls on the same rows, of tensors that were found once
 *
 * Each push adds 1 to all elements of a row. All elements of a row that was pulled without tearing are therefore equal.
 * At the end the rows of all tensors add up to the number of pushes.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "bench/bare_rows.h"
#include "bench/place.h"
#include "bench/update_private.h"
#include "client/state/client.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "tensors/table.h"

#define LOOKUP_TENSORS 1000u
#define LOOKUP_THREADS 4u
#define LOOKUP_ROWS    64u /* rows of a tensor on each part */
#define LOOKUP_COLUMNS 16u
#define LOOKUP_EXACT   (1u << 24) /* below this value, floats count exactly in steps of 1 */

struct lookup_thread {
	struct lookup *lookup;
	uint32_t number;
	pthread_t id;
	uint64_t calls, spent_ns;
	gw_status status;
	char error[GW_ERROR_TEXT_MAX];
};

struct lookup {
	struct gw_update *arguments;
	struct gw_tensor_table *table;
	struct gw_shard *shards[LOOKUP_TENSORS]; /* referenced; the ceiling uses them without a lookup */
	uint64_t epochs[LOOKUP_TENSORS];
	uint32_t tensors, threads;
	bool pushes;
	bool finds; /* whether each call finds its tensor; false: the ceiling */
	atomic_bool stop;
	uint64_t pushed;                          /* pushes to the first `tensors` tensors */
	struct gw_bench_series spent, bare_spent; /* ns of processor time of a call; of a call of the ceiling */
	struct lookup_thread running[LOOKUP_THREADS];
};

/* --- A call. --- */

static gw_status lookup_pull(const struct gw_shard *shard, uint64_t row)
{
	float values[LOOKUP_COLUMNS];
	gw_status status = gw_row_store_read(shard->store, &row, 1, values);
	for (uint32_t c = 1; c < LOOKUP_COLUMNS && status == GW_OK; c++) {
		if (values[c] < values[0] || values[c] > values[0])
			status = gw_fail(GW_DIGEST, "a row is torn");
	}
	return status;
}

static gw_status lookup_push(struct lookup *lookup, struct gw_shard *shard, uint64_t row,
			     struct gw_row_push_scratch *own)
{
	static const float ones[LOOKUP_COLUMNS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	static const struct gw_optimizer optimizer = {.kind = GW_SGD, .combine = GW_COMBINE_EACH, .rate = -1};
	struct gw_row_push_scratch scratch;
	if (!lookup->finds)
		return gw_row_store_push(shard->store, &optimizer, &row, 1, ones, NULL, own);
	gw_status status = gw_shard_prepare(lookup->table, shard, optimizer.kind);
	if (status != GW_OK)
		return status;
	gw_tensor_table_acquire_scratch(lookup->table, &scratch);
	status = gw_row_store_push(shard->store, &optimizer, &row, 1, ones, NULL, &scratch);
	gw_tensor_table_release_scratch(lookup->table, &scratch);
	return status;
}

static gw_status lookup_call(struct lookup *lookup, uint64_t random, struct gw_row_push_scratch *own)
{
	const uint32_t tensor = (uint32_t)(random >> 32) % lookup->tensors;
	struct gw_shard *shard = lookup->shards[tensor];
	const uint64_t row = random % gw_row_store_rows(shard->store);
	gw_status status = GW_OK;
	if (lookup->finds)
		status = gw_tensor_table_find(lookup->table, lookup->epochs[tensor], &shard);
	if (status != GW_OK)
		return status;
	if (shard != lookup->shards[tensor])
		status = gw_fail(GW_DIGEST, "the lookup found another tensor");
	else
		status = lookup->pushes ? lookup_push(lookup, shard, row, own) : lookup_pull(shard, row);
	if (lookup->finds)
		gw_shard_unref(lookup->table, shard);
	return status;
}

static void *lookup_run_thread(void *context)
{
	struct lookup_thread *thread = context;
	struct gw_row_push_scratch own = {0};
	uint64_t next = (uint64_t)thread->number << 40;
	thread->status = GW_OK;
	for (thread->calls = 0; !atomic_load_explicit(&thread->lookup->stop, memory_order_relaxed); thread->calls++) {
		thread->status = lookup_call(thread->lookup, gw_bare_mix(next++), &own);
		if (thread->status != GW_OK)
			break;
	}
	if (thread->status != GW_OK)
		snprintf(thread->error, sizeof(thread->error), "%s", gw_last_error());
	struct timespec spent;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
	thread->spent_ns = (uint64_t)spent.tv_sec * GW_NS_PER_SECOND + (uint64_t)spent.tv_nsec;
	gw_row_push_scratch_free(&own);
	return NULL;
}

/* --- A case. --- */

/* *figure: elapsed ns divided by the calls of all threads. */
static gw_status lookup_measure(struct lookup *lookup, bool finds, double *figure)
{
	const double seconds = lookup->arguments->seconds / 5;
	struct timespec pause = {.tv_sec = (time_t)seconds};
	uint64_t calls = 0, spent_ns = 0, begun = gw_now_ns();
	uint32_t started = 0;
	gw_status status = GW_OK;
	pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
	lookup->finds = finds;
	atomic_store(&lookup->stop, false);
	for (; started < lookup->threads && status == GW_OK; started++) {
		struct lookup_thread *thread = &lookup->running[started];
		*thread = (struct lookup_thread){.lookup = lookup, .number = started};
		int error = pthread_create(&thread->id, NULL, lookup_run_thread, thread);
		if (error) {
			status = gw_fail_errno(GW_LIMIT, error, "cannot start a thread for pulls and pushes");
			break;
		}
		gw_bench_unpin(thread->id);
	}
	if (status == GW_OK)
		nanosleep(&pause, NULL);
	atomic_store(&lookup->stop, true);
	for (uint32_t i = 0; i < started; i++) {
		struct lookup_thread *thread = &lookup->running[i];
		pthread_join(thread->id, NULL);
		calls += thread->calls;
		spent_ns += thread->spent_ns;
		lookup->pushed += lookup->pushes ? thread->calls : 0;
		if (thread->status != GW_OK && status == GW_OK)
			status = gw_fail_text(thread->status, thread->error);
	}
	calls = calls ? calls : 1;
	*figure = (double)(gw_now_ns() - begun) / (double)calls;
	gw_bench_series_add(finds ? &lookup->spent : &lookup->bare_spent, (double)spent_ns / (double)calls);
	return status;
}

static gw_status lookup_measure_found(void *context, double *figure)
{
	return lookup_measure(context, false, figure);
}

static gw_status lookup_measure_finding(void *context, double *figure)
{
	return lookup_measure(context, true, figure);
}

static gw_status lookup_check_sum(const struct lookup *lookup)
{
	double sum = 0;
	for (uint32_t i = 0; i < lookup->tensors; i++) {
		struct gw_row_store *store = lookup->shards[i]->store;
		for (uint64_t row = 0; row < gw_row_store_rows(store); row++) {
			float values[LOOKUP_COLUMNS];
			gw_status status = gw_row_store_read(store, &row, 1, values);
			if (status != GW_OK)
				return status;
			if (values[0] >= LOOKUP_EXACT)
				return gw_fail(GW_LIMIT, "too many pushes to count exactly: give a smaller --seconds");
			sum += (double)values[0];
		}
	}
	if (sum < (double)lookup->pushed || sum > (double)lookup->pushed)
		return gw_fail(GW_DIGEST, "%llu pushes give %.0f", (unsigned long long)lookup->pushed, sum);
	return GW_OK;
}

static gw_status lookup_run_case(struct lookup *lookup, bool pushes, uint32_t threads)
{
	static struct gw_bench_series ceilings, values;
	ceilings.count = values.count = lookup->spent.count = lookup->bare_spent.count = 0;
	lookup->pushes = pushes;
	lookup->threads = threads;
	gw_status status = gw_bench_alternate(&lookup->arguments->bench, lookup_measure_found, lookup_measure_finding,
					      lookup, &ceilings, &values);
	if (status == GW_OK)
		status = lookup_check_sum(lookup);
	if (status != GW_OK)
		return status;
	char title[96], note[160];
	const double spent = gw_bench_series_median(&lookup->spent),
		     bare_spent = gw_bench_series_median(&lookup->bare_spent);
	snprintf(note, sizeof(note),
		 "elapsed time divided by the calls of all threads; processor time of a call %.4g ns, "
		 "of the ceiling's %.4g; the ceiling: tensors that were found once",
		 spent, bare_spent);
	snprintf(title, sizeof(title), "%s of single rows, %u thread%s, %u tensors", pushes ? "pushes" : "pulls",
		 threads, threads == 1 ? "" : "s", lookup->tensors);
	const struct gw_bench_result result = {.title = title,
					       .unit = "ns",
					       .values = &values,
					       .ceilings = &ceilings,
					       .lower_is_better = true,
					       .verified = true,
					       .note = note,
					       .fields = {{"threads", threads, NULL},
							  {"tensors", lookup->tensors, NULL},
							  {"processor_ns", spent, NULL},
							  {"ceiling_processor_ns", bare_spent, NULL}}};
	gw_bench_report(&lookup->arguments->bench, &result);
	return GW_OK;
}

/* --- Creating and freeing. --- */

static gw_status lookup_make_tensor(struct lookup *lookup, uint32_t number)
{
	const uint32_t parts = lookup->arguments->alone->server_count;
	struct gw_tensor_create_call call = {.plan = {.shape = {(uint64_t)LOOKUP_ROWS * parts, LOOKUP_COLUMNS},
						      .dtype = GW_FLOAT32,
						      .ndim = 2,
						      .placement = GW_PLACE_EVEN,
						      .initial = GW_INITIAL_ZERO}};
	struct gw_tensor_state tensor = {0};
	const uint64_t *epochs;
	gw_status status = GW_OK;
	snprintf(call.plan.name, sizeof(call.plan.name), "lookup%u", number);
	while (status == GW_OK && !tensor.ready) {
		gw_shard_unref(lookup->table, lookup->shards[number]);
		sched_yield();
		status = gw_tensor_table_make(lookup->table, &call, &tensor, &epochs, &lookup->shards[number]);
	}
	lookup->epochs[number] = tensor.epoch;
	return status;
}

static void lookup_free(struct lookup *lookup)
{
	struct gw_error_kept kept;
	gw_error_keep(&kept);
	for (uint32_t i = 0; i < LOOKUP_TENSORS && lookup->shards[i]; i++) {
		uint32_t count;
		(void)gw_tensor_table_delete(lookup->table, "", lookup->shards[i]->plan.name, 0, &count);
		gw_shard_unref(lookup->table, lookup->shards[i]);
		lookup->shards[i] = NULL;
	}
	gw_error_restore(&kept);
}

static gw_status lookup_run_tensors(struct lookup *lookup, uint32_t tensors)
{
	gw_status status = GW_OK;
	lookup->tensors = tensors;
	lookup->pushed = 0;
	for (uint32_t i = 0; i < tensors && status == GW_OK; i++)
		status = lookup_make_tensor(lookup, i);
	for (uint32_t threads = 1; threads <= LOOKUP_THREADS && status == GW_OK; threads *= 2) {
		status = lookup_run_case(lookup, false, threads);
		if (status == GW_OK)
			status = lookup_run_case(lookup, true, threads);
	}
	lookup_free(lookup);
	return status;
}

gw_status gw_update_lookup(struct gw_update *a)
{
	static struct lookup lookup;
	lookup = (struct lookup){.arguments = a, .table = a->alone->servers[0].table};
	gw_status status = lookup_run_tensors(&lookup, 4);
	return status == GW_OK ? lookup_run_tensors(&lookup, LOOKUP_TENSORS) : status;
}
