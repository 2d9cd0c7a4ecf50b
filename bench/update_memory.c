/* The parts of graphwire bench update that need no servers: reads, hashes and pushes in memory. See update.c. */
#include "bench/update_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/bare_rows.h"
#include "core/memory/alloc.h"
#include "core/numbers/digest.h"
#include "core/system/clock.h"

#define UPDATE_AHEAD 12u /* rows prefetched ahead, as in the bare loop */
#define UPDATE_HOT   64u /* rows that stay in the cache, to measure the hash */

/* Processor time of this thread. Work in memory never sleeps, and other work on the machine changes this clock less
 * than the elapsed time. */
static uint64_t update_spent_ns(void)
{
	struct timespec spent;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
	return (uint64_t)spent.tv_sec * GW_NS_PER_SECOND + (uint64_t)spent.tv_nsec;
}

/* --- Reads. --- */

static inline __attribute__((always_inline)) void update_prefetch(const uint8_t *row, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes && at < 2048; at += 64)
		__builtin_prefetch(row + at);
	__builtin_prefetch(row + bytes - 1);
}

/* *figure: GB of payload a second. format NULL: plain copies. */
static gw_status update_read(struct gw_update *a, const uint8_t *base, uint64_t stride,
			     const struct gw_row_format *format, double *figure)
{
	uint64_t batches = 0, torn = 0, begun = update_spent_ns(), elapsed;
	uint64_t touched = format ? stride : a->row_bytes;
	do {
		for (uint64_t i = 0; i < a->batch; i++)
			a->offsets[i] = gw_bare_mix(a->next++) % a->rows * stride;
		for (uint64_t i = 0; i < a->batch; i++) {
			if (i + UPDATE_AHEAD < a->batch)
				update_prefetch(base + a->offsets[i + UPDATE_AHEAD], touched);
			if (format)
				torn += !gw_row_copy(format, base + a->offsets[i], a->landing + i * a->row_bytes);
			else
				memcpy(a->landing + i * a->row_bytes, base + a->offsets[i], a->row_bytes);
		}
		batches++;
		elapsed = update_spent_ns() - begun;
	} while ((double)elapsed < a->seconds * 1e9);
	*figure = (double)(batches * a->batch * a->row_bytes) / (double)elapsed;
	return torn ? gw_fail(GW_DIGEST, "%llu torn rows without a writer", (unsigned long long)torn) : GW_OK;
}

static gw_status measure_versioned(void *context, double *figure)
{
	struct gw_update *a = context;
	const struct gw_row_format *format = gw_row_store_format(a->store);
	return update_read(a, gw_arena_base(gw_row_store_arena(a->store)), format->stride, format, figure);
}

static gw_status measure_immutable(void *context, double *figure)
{
	struct gw_update *a = context;
	double plain;
	gw_status status = update_read(a, gw_arena_base(a->bare), a->row_bytes, NULL, &plain);
	if (status == GW_OK) {
		gw_bench_series_add(&a->plain, plain);
		status = update_read(a, gw_arena_base(gw_row_store_arena(a->store)),
				     gw_row_store_format(a->store)->stride, NULL, figure);
	}
	return status;
}

static gw_status update_check_reads(struct gw_update *a)
{
	const struct gw_row_format *format = gw_row_store_format(a->store);
	const uint8_t *base = gw_arena_base(gw_row_store_arena(a->store));
	for (uint64_t row = 0; row < a->rows; row++) {
		struct gw_row_trailer trailer;
		if (!gw_row_copy_with_trailer(format, base + row * format->stride, a->landing, &trailer) ||
		    !gw_row_verify(format, gw_row_store_seed(a->store), row, a->landing, &trailer) ||
		    memcmp(a->landing, gw_arena_base(a->bare) + row * a->row_bytes, a->row_bytes) != 0)
			return gw_fail(GW_DIGEST, "row %llu is wrong", (unsigned long long)row);
	}
	return GW_OK;
}

gw_status gw_update_reads(struct gw_update *a)
{
	static struct gw_bench_series ceilings, values;
	gw_status status = update_check_reads(a);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, measure_immutable, measure_versioned, a, &ceilings, &values);
	if (status != GW_OK)
		return status;
	char title[96], note[160];
	double plain = gw_bench_series_median(&a->plain);
	snprintf(title, sizeof(title), "reads in memory, %llu B", (unsigned long long)a->row_bytes);
	snprintf(note, sizeof(note), "a memcpy at the same stride of %u; at %llu: %.4g GB/s, ratio %.3f",
		 gw_row_store_format(a->store)->stride, (unsigned long long)a->row_bytes, plain,
		 gw_bench_series_median(&values) / plain);
	const struct gw_bench_result result = {
		.title = title,
		.unit = "GB/s",
		.values = &values,
		.ceilings = &ceilings,
		.verified = true,
		.note = note,
		.fields = {{"row_bytes", (double)a->row_bytes, NULL},
			   {"plain_stride_gb_per_s", plain, NULL},
			   {"plain_stride_ratio", gw_bench_series_median(&values) / plain, NULL}},
	};
	gw_bench_report(&a->bench, &result);
	return GW_OK;
}

/* --- The hash. --- */

static gw_status measure_verify(void *context, double *figure)
{
	const struct gw_update *a = context;
	const struct gw_row_format *format = gw_row_store_format(a->store);
	const uint8_t *base = gw_arena_base(gw_row_store_arena(a->store));
	uint64_t wrong = 0, hashed = 0, begun = update_spent_ns(), elapsed;
	do {
		for (uint64_t row = 0; row < UPDATE_HOT; row++) {
			struct gw_row_trailer trailer;
			const uint8_t *at = base + row * format->stride;
			memcpy(&trailer, at + gw_row_trailer_at(format), sizeof(trailer));
			wrong += !gw_row_verify(format, gw_row_store_seed(a->store), row, at, &trailer);
		}
		hashed += UPDATE_HOT;
		elapsed = update_spent_ns() - begun;
	} while ((double)elapsed < a->seconds * 1e9);
	*figure = (double)elapsed / (double)hashed;
	return wrong ? gw_fail(GW_DIGEST, "a row does not verify") : GW_OK;
}

static gw_status measure_hash(void *context, double *figure)
{
	const struct gw_update *a = context;
	const uint8_t *base = gw_arena_base(a->bare);
	static volatile uint64_t kept; /* keeps the compiler from removing hashes */
	uint64_t hashed = 0, sum = 0, begun = update_spent_ns(), elapsed;
	do {
		for (uint64_t row = 0; row < UPDATE_HOT; row++)
			sum += gw_digest(base + row * a->row_bytes, a->row_bytes);
		hashed += UPDATE_HOT;
		elapsed = update_spent_ns() - begun;
	} while ((double)elapsed < a->seconds * 1e9);
	kept = sum;
	(void)kept;
	*figure = (double)elapsed / (double)hashed;
	return GW_OK;
}

gw_status gw_update_hash(struct gw_update *a)
{
	static struct gw_bench_series ceilings, values;
	gw_status status = gw_bench_alternate(&a->bench, measure_hash, measure_verify, a, &ceilings, &values);
	if (status != GW_OK)
		return status;
	char title[96];
	snprintf(title, sizeof(title), "verifying a row of %llu B", (unsigned long long)a->row_bytes);
	const struct gw_bench_result result = {
		.title = title,
		.unit = "ns",
		.values = &values,
		.ceilings = &ceilings,
		.lower_is_better = true,
		.verified = true,
		.note = "in the cache; the ceiling: libxxhash's XXH3 of the payload alone"};
	gw_bench_report(&a->bench, &result);
	return GW_OK;
}

/* --- Pushes in memory. --- */

const struct gw_optimizer gw_update_optimizer = {
	.kind = GW_ADAGRAD_ROWS, .combine = GW_COMBINE_EACH, .rate = 0.1f, .eps = 1e-10f};

static gw_status measure_push(void *context, double *figure)
{
	struct gw_update *a = context;
	uint64_t pushed = 0, begun = update_spent_ns(), elapsed;
	gw_status status = GW_OK;
	do {
		for (uint64_t i = 0; i < a->step_rows; i++)
			a->numbers[i] = gw_bare_mix(a->next++) % a->rows;
		status = gw_row_store_push(a->store, &gw_update_optimizer, a->numbers, a->step_rows, a->gradients, NULL,
					   &a->scratch);
		pushed += a->step_rows;
		elapsed = update_spent_ns() - begun;
	} while (status == GW_OK && (double)elapsed < a->seconds * 1e9);
	*figure = (double)pushed * 1e3 / (double)elapsed;
	return status;
}

static gw_status measure_arithmetic(void *context, double *figure)
{
	struct gw_update *a = context;
	uint32_t columns = gw_update_columns(a), stride = columns + 4;
	uint64_t pushed = 0, begun = update_spent_ns(), elapsed, hash;
	do {
		for (uint64_t i = 0; i < a->step_rows; i++)
			a->numbers[i] = gw_bare_mix(a->next++) % a->rows;
		for (uint64_t i = 0; i < a->step_rows; i++) {
			float *row = a->bare_rows + a->numbers[i] * stride;
			if (i + 1 < a->step_rows)
				update_prefetch((const uint8_t *)(a->bare_rows + a->numbers[i + 1] * stride),
						a->row_bytes);
			gw_bare_update(row, row + columns, &hash, a->gradients + i * columns, columns);
			memcpy(row + columns + 2, &hash, sizeof(hash));
		}
		pushed += a->step_rows;
		elapsed = update_spent_ns() - begun;
	} while ((double)elapsed < a->seconds * 1e9);
	*figure = (double)pushed * 1e3 / (double)elapsed;
	return GW_OK;
}

/* A formula gives the expected row. */
static gw_status update_check_push(struct gw_update *a)
{
	uint32_t columns = gw_update_columns(a);
	uint64_t row = a->rows / 2;
	float *seen = (float *)(void *)a->landing;
	const float *before = (const float *)(const void *)(gw_arena_base(a->bare) + row * a->row_bytes);
	double squares = 0;
	for (uint32_t i = 0; i < columns; i++)
		squares += (double)a->gradients[i] * (double)a->gradients[i] / columns;
	gw_status status = gw_row_store_push(a->store, &gw_update_optimizer, &row, 1, a->gradients, NULL, &a->scratch);
	if (status == GW_OK)
		status = gw_row_store_read(a->store, &row, 1, seen);
	for (uint32_t i = 0; i < columns && status == GW_OK; i++) {
		double wanted = (double)before[i] - 0.1 * (double)a->gradients[i] / (sqrt(squares) + 1e-10);
		if (fabs((double)seen[i] - wanted) > 1e-5)
			status = gw_fail(GW_DIGEST, "a push gives %g instead of %g", (double)seen[i], wanted);
	}
	return status;
}

gw_status gw_update_push(struct gw_update *a)
{
	static struct gw_bench_series ceilings, values;
	gw_status status = update_check_push(a);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, measure_arithmetic, measure_push, a, &ceilings, &values);
	if (status != GW_OK)
		return status;
	char title[96];
	snprintf(title, sizeof(title), "pushes in memory, %llu x %llu B", (unsigned long long)a->step_rows,
		 (unsigned long long)a->row_bytes);
	const struct gw_bench_result result = {
		.title = title,
		.unit = "M rows/s",
		.values = &values,
		.ceilings = &ceilings,
		.verified = true,
		.note = "row-wise Adagrad; the ceiling: its arithmetic and a hash, in place, one thread, no locks"};
	gw_bench_report(&a->bench, &result);
	return GW_OK;
}
