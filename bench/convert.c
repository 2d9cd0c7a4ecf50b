/* graphwire bench convert: rows from one type to another, against a memcpy of as many bytes as come out.
 *
 *   rows of random numbers -> a conversion by every width of vectors gives the same bytes -> conversion and memcpy
 *   alternately, in one thread -> report
 *
 * The rows of a batch are converted by the thread that fetches them. The memory is larger than the caches by default,
 * as the rows of a batch are.
 */
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "core/memory/alloc.h"
#include "core/numbers/convert.h"
#include "core/numbers/dtype.h"
#include "core/numbers/rng.h"
#include "core/numbers/vectors.h"
#include "core/system/clock.h"

struct convert_arguments {
	struct gw_bench bench;
	uint64_t rows, columns, rounds;
	/* in use while the benchmark runs */
	struct gw_conversion conversion; /* the case */
	uint8_t *from, *to, *copied;
};

#define A struct convert_arguments
static const struct gw_option table[] = {
	{"rows", "N", "rows of a conversion (default 50k)", 0, GW_OPTION_NUMBER(A, rows, 1, 1ull << 30)},
	{"columns", "N", "numbers of a row (default 128)", 0, GW_OPTION_NUMBER(A, columns, 1, 1 << 20)},
	{"rounds", "N", "conversions of one measurement (default 3)", 0, GW_OPTION_NUMBER(A, rounds, 1, 1 << 30)},
	{0},
};
#undef A

static const struct {
	gw_dtype from, to;
} cases[] = {
	{GW_FLOAT16, GW_FLOAT32}, {GW_BFLOAT16, GW_FLOAT32}, {GW_INT8_ROW, GW_FLOAT32},  {GW_FLOAT16, GW_BFLOAT16},
	{GW_FLOAT32, GW_FLOAT16}, {GW_FLOAT32, GW_BFLOAT16}, {GW_INT8_ROW, GW_BFLOAT16}, {GW_UINT32, GW_INT64},
};

static gw_status convert_rows(void *context, double *figure)
{
	struct convert_arguments *a = context;
	uint64_t start_ns = gw_now_ns();
	for (uint64_t i = 0; i < a->rounds; i++)
		gw_convert_rows(&a->conversion, a->from, a->to, a->rows);
	*figure = (double)(a->rounds * a->rows * a->conversion.to_bytes) / (double)(gw_now_ns() - start_ns);
	return GW_OK;
}

static gw_status convert_copy(void *context, double *figure)
{
	struct convert_arguments *a = context;
	const uint64_t bytes = a->rows * a->conversion.to_bytes;
	uint64_t start_ns = gw_now_ns();
	for (uint64_t i = 0; i < a->rounds; i++) {
		memcpy(a->to, a->copied, bytes);
		__asm__ volatile("" ::"r"(a->to) : "memory"); /* no copy may be left out */
	}
	*figure = (double)(a->rounds * bytes) / (double)(gw_now_ns() - start_ns);
	return GW_OK;
}

/* Every width of vectors gives the bytes of the portable code. */
static gw_status convert_check(struct convert_arguments *a, gw_dtype from, gw_dtype to)
{
	const enum gw_vectors used = gw_vectors_used();
	gw_status status = GW_OK;
	for (enum gw_vectors vectors = GW_VECTORS_OFF; vectors < GW_VECTORS_COUNT && status == GW_OK; vectors++) {
		if (!gw_vectors_set(vectors))
			continue;
		a->conversion = gw_conversion_of(from, to, a->columns);
		gw_convert_rows(&a->conversion, a->from, vectors == GW_VECTORS_OFF ? a->copied : a->to, a->rows);
		if (vectors != GW_VECTORS_OFF && memcmp(a->to, a->copied, a->rows * a->conversion.to_bytes) != 0)
			status = gw_fail(GW_INVALID, "%s to %s: \"%s\" gives other bytes", gw_dtype_name(from),
					 gw_dtype_name(to), gw_vectors_name(vectors));
	}
	gw_vectors_set(used);
	a->conversion = gw_conversion_of(from, to, a->columns);
	return status;
}

static gw_status convert_case(struct convert_arguments *a, gw_dtype from, gw_dtype to)
{
	char title[64];
	static struct gw_bench_series ceilings, values;
	gw_status status = convert_check(a, from, to);
	ceilings.count = values.count = 0;
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, convert_copy, convert_rows, a, &ceilings, &values);
	if (status != GW_OK)
		return status;
	snprintf(title, sizeof(title), "%s to %s", gw_dtype_name(from), gw_dtype_name(to));
	gw_bench_report(&a->bench,
			&(struct gw_bench_result){.title = title,
						  .unit = "GB/s",
						  .values = &values,
						  .ceilings = &ceilings,
						  .verified = true,
						  .fields = {{"rows", .number = (double)a->rows},
							     {"columns", .number = (double)a->columns},
							     {"vectors", .text = gw_vectors_name(gw_vectors_used())}}});
	return GW_OK;
}

static gw_status convert_run(struct convert_arguments *a)
{
	const uint64_t bytes = a->rows * (a->columns + 2) * 8;
	a->from = gw_malloc(bytes);
	a->to = gw_calloc(bytes, 1);
	a->copied = gw_calloc(bytes, 1);
	if (!a->from || !a->to || !a->copied)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < bytes / 8; i++) {
		uint64_t bits = gw_mix64(i) & 0x3fff3fff3fff3fff; /* finite numbers of every type */
		memcpy(a->from + i * 8, &bits, sizeof(bits));
	}
	gw_status status = gw_bench_open(&a->bench);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && status == GW_OK; i++)
		status = convert_case(a, cases[i].from, cases[i].to);
	gw_status closed = gw_bench_close(&a->bench);
	return status == GW_OK ? closed : status;
}

int gw_bench_convert(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct convert_arguments, bench),
		.doc = "Measure the conversion of rows to another type, against a memcpy of the bytes that come out.\v"
		       "GRAPHWIRE_VECTORS=off, four, avx2 or avx512 in the environment chooses the vectors.\n\n"
		       "Examples:\n  graphwire bench convert\n  graphwire bench convert --columns 768 --rows 10k\n"};
	struct convert_arguments a = {.bench = {.name = "convert"}, .rows = 50000, .columns = 128, .rounds = 3};
	gw_options_parse(&options, argc, argv, &a);
	gw_status status = convert_run(&a);
	gw_free(a.from);
	gw_free(a.to);
	gw_free(a.copied);
	return gw_exit_status("graphwire bench convert", status);
}
