/* Repeats, medians, the table and the JSON lines of all benchmarks. */
#include "bench/bench.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define SPREAD_MAX 0.25 /* a larger spread of repeats means that the machine was not quiet */

/* ---- options ---- */

const struct gw_option gw_bench_options[] = {
	{.help = "Measuring:", .group = 90},
	{"json", "FILE", "write JSON objects to FILE, one on each line; - is standard output", 90,
	 GW_OPTION_TEXT(struct gw_bench, json_path)},
	{"repeats", "N", "measure N times, at least 5 (default 7)", 90,
	 GW_OPTION_NUMBER(struct gw_bench, repeats, GW_BENCH_REPEATS_MIN, GW_BENCH_REPEATS_MAX)},
	{0},
};

static bool json_continued;

void gw_bench_json_continue(void)
{
	json_continued = true;
}

gw_status gw_bench_open(struct gw_bench *bench)
{
	bench->table = stdout;
	if (bench->repeats == 0)
		bench->repeats = GW_BENCH_REPEATS;
	if (!bench->json_path)
		return GW_OK;
	if (strcmp(bench->json_path, "-") == 0) {
		bench->json = stdout;
		bench->table = stderr;
		return GW_OK;
	}
	bench->json = fopen(bench->json_path, json_continued ? "ae" : "we");
	if (!bench->json)
		return gw_fail_errno(GW_IO, errno, "write %s", bench->json_path);
	return GW_OK;
}

gw_status gw_bench_close(struct gw_bench *bench)
{
	FILE *json = bench->json;
	bench->json = NULL;
	if (!json)
		return GW_OK;
	int failed = ferror(json);
	failed |= json == stdout ? fflush(json) : fclose(json);
	return failed ? gw_fail_errno(GW_IO, errno, "write %s", bench->json_path) : GW_OK;
}

/* ---- measurement ---- */

void gw_bench_series_add(struct gw_bench_series *series, double value)
{
	assert(series->count < GW_BENCH_REPEATS_MAX);
	series->values[series->count++] = value;
}

static int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double gw_bench_quantile(double *values, size_t count, double share)
{
	size_t at = (size_t)((double)count * share);
	if (count == 0)
		return 0;
	qsort(values, count, sizeof(*values), bench_compare);
	return values[at < count ? at : count - 1];
}

static void sort(const struct gw_bench_series *series, struct gw_bench_series *sorted)
{
	*sorted = *series;
	qsort(sorted->values, sorted->count, sizeof(*sorted->values), bench_compare);
}

static double middle(const struct gw_bench_series *sorted)
{
	unsigned n = sorted->count;
	if (n == 0)
		return 0;
	return n % 2 ? sorted->values[n / 2] : (sorted->values[n / 2 - 1] + sorted->values[n / 2]) / 2;
}

double gw_bench_series_median(const struct gw_bench_series *series)
{
	struct gw_bench_series sorted;
	sort(series, &sorted);
	return middle(&sorted);
}

double gw_bench_series_spread(const struct gw_bench_series *series)
{
	struct gw_bench_series sorted;
	sort(series, &sorted);
	double median = middle(&sorted);
	return median > 0 ? (sorted.values[sorted.count - 1] - sorted.values[0]) / median : 0;
}

static gw_status bench_measure(gw_bench_measure function, void *context, struct gw_bench_series *series)
{
	double figure = 0;
	gw_status status = function ? function(context, &figure) : GW_OK;
	if (status == GW_OK && function)
		gw_bench_series_add(series, figure);
	return status;
}

gw_status gw_bench_alternate(const struct gw_bench *bench, gw_bench_measure ceiling, gw_bench_measure value,
			     void *context, struct gw_bench_series *ceilings, struct gw_bench_series *values)
{
	gw_status status = GW_OK;
	for (unsigned i = 0; i < bench->repeats && status == GW_OK; i++) {
		bool value_first = i % 2;
		status = bench_measure(value_first ? value : ceiling, context, value_first ? values : ceilings);
		if (status == GW_OK)
			status = bench_measure(value_first ? ceiling : value, context, value_first ? ceilings : values);
	}
	return status;
}

double gw_bench_cpu_seconds(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* ---- report ---- */

static void print_string(FILE *to, const char *text)
{
	fputc('"', to);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(to, "\\%c", *c);
		else if (*c < 0x20)
			fprintf(to, "\\u%04x", *c);
		else
			fputc(*c, to);
	}
	fputc('"', to);
}

static void print_number(FILE *to, const char *name, double number)
{
	fputc(',', to);
	print_string(to, name);
	if (isfinite(number))
		fprintf(to, ":%.9g", number);
	else
		fputs(":null", to); /* JSON has no infinities */
}

static void bench_print_text(FILE *to, const char *name, const char *text)
{
	fputc(',', to);
	print_string(to, name);
	fputc(':', to);
	print_string(to, text);
}

static void bench_print_json(const struct gw_bench *bench, const struct gw_bench_result *result)
{
	FILE *to = bench->json;
	if (!to)
		return;
	double value = gw_bench_series_median(result->values);
	double ceiling = result->ceilings ? gw_bench_series_median(result->ceilings) : 0;
	fputs("{\"bench\":", to);
	print_string(to, bench->name);
	bench_print_text(to, "case", result->title);
	print_number(to, "value", value);
	bench_print_text(to, "unit", result->unit);
	if (ceiling > 0) {
		print_number(to, "ceiling", ceiling);
		print_number(to, "ratio", value / ceiling);
	}
	fputs(",\"verified\":true", to);
	print_number(to, "repeats", result->values->count);
	print_number(to, "spread", gw_bench_series_spread(result->values));
	if (result->ceilings)
		print_number(to, "ceiling_spread", gw_bench_series_spread(result->ceilings));
	for (int i = 0; i < GW_BENCH_FIELDS_MAX && result->fields[i].name; i++) {
		const struct gw_bench_field *field = &result->fields[i];
		if (field->text)
			bench_print_text(to, field->name, field->text);
		else
			print_number(to, field->name, field->number);
	}
	fputs("}\n", to);
	fflush(to);
}

static void bench_print_row(struct gw_bench *bench, const struct gw_bench_result *result, double value, double ceiling)
{
	FILE *to = bench->table;
	if (!bench->head_shown)
		fprintf(to, "%-10s %-50s %12s %-12s %12s %7s\n", "benchmark", "case", "median", "", "ceiling", "ratio");
	bench->head_shown = true;
	fprintf(to, "%-10s %-50s %12.4g %-12s", bench->name, result->title, value, result->unit);
	if (ceiling > 0)
		fprintf(to, " %12.4g %7.3f%s", ceiling, value / ceiling,
			result->lower_is_better ? " (lower is better)" : "");
	fputc('\n', to);
	if (result->note)
		fprintf(to, "%-10s %s\n", "", result->note);
	double spread = gw_bench_series_spread(result->values);
	double ceiling_spread = result->ceilings ? gw_bench_series_spread(result->ceilings) : 0;
	if (spread > SPREAD_MAX || ceiling_spread > SPREAD_MAX)
		fprintf(to, "%-10s the machine was not quiet: repeats differ by %.0f %%, the ceiling's by %.0f %%\n",
			"", 100 * spread, 100 * ceiling_spread);
	fflush(to);
}

void gw_bench_report_json(const struct gw_bench *bench, const struct gw_bench_result *result)
{
	assert(result->verified);
	assert(result->values->count >= GW_BENCH_REPEATS_MIN);
	bench_print_json(bench, result);
}

void gw_bench_missing(const struct gw_bench *bench, const char *what, const char *why)
{
	fprintf(bench->table, "%s: not measured: %s\n", what, why);
	if (!bench->json)
		return;
	fputs("{\"bench\":", bench->json);
	print_string(bench->json, bench->name);
	bench_print_text(bench->json, "case", what);
	bench_print_text(bench->json, "missing", why);
	fputs("}\n", bench->json);
}

void gw_bench_report(struct gw_bench *bench, const struct gw_bench_result *result)
{
	double value = gw_bench_series_median(result->values);
	double ceiling = result->ceilings ? gw_bench_series_median(result->ceilings) : 0;
	bench_print_row(bench, result, value, ceiling);
	gw_bench_report_json(bench, result);
}
