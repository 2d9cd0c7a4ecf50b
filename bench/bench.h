/* The common part of all benchmarks: options, alternating repeats, medians, and two forms of output.
 *
 *   parse (own options + gw_bench_options) -> make input -> check results -> gw_bench_alternate -> gw_bench_report
 *
 * Each figure is reported with a ceiling that the same run measured alternately. A benchmark checks its results before
 * it reports them: gw_bench_report refuses (assert) a result that is not marked as verified.
 */
#ifndef GW_BENCH_BENCH_H
#define GW_BENCH_BENCH_H

#include <stdbool.h>
#include <stdio.h>

#include "core/errors/options.h"

#define GW_BENCH_REPEATS     7 /* default; medians of fewer than 5 are not shown */
#define GW_BENCH_REPEATS_MIN 5
#define GW_BENCH_REPEATS_MAX 1000
#define GW_BENCH_FIELDS_MAX  24

/* `graphwire bench`: argv[1] names the benchmark. */
int gw_bench_main(int argc, char **argv);

/* The entry of each benchmark: argv[0] is its name. Exit status 0, 1 (failed) or 2 (usage). */
int gw_bench_connections(int argc, char **argv);
int gw_bench_convert(int argc, char **argv);
int gw_bench_disk(int argc, char **argv);
int gw_bench_gather(int argc, char **argv);
int gw_bench_ids(int argc, char **argv);
int gw_bench_latency(int argc, char **argv);
int gw_bench_load(int argc, char **argv);
int gw_bench_minibatch(int argc, char **argv);
int gw_bench_links(int argc, char **argv);
int gw_bench_remote(int argc, char **argv);
int gw_bench_sample(int argc, char **argv);
int gw_bench_serve(int argc, char **argv);
int gw_bench_threads(int argc, char **argv);
int gw_bench_update(int argc, char **argv);

/* ---- common options ---- */

struct gw_bench {
	const char *name;      /* "load"; a benchmark sets it before parsing, like other defaults */
	unsigned repeats;      /* --repeats; 0: gw_bench_open sets GW_BENCH_REPEATS */
	const char *json_path; /* --json F or -; NULL: none */
	FILE *json;            /* gw_bench_open opens it; one object on each line; NULL: none */
	FILE *table; /* gw_bench_open sets it: the table for people on stdout, or on stderr if JSON goes to stdout */
	bool head_shown;
};

/* --json and --repeats, the common table of a benchmark's options: .common = gw_bench_options, .common_offset =
 * offsetof(struct arguments, bench) */
extern const struct gw_option gw_bench_options[];

/* Opens the file of --json. Call it after parsing. gw_bench_close returns a status, because a full disk may be noticed
 * only then. */
gw_status gw_bench_open(struct gw_bench *bench);
gw_status gw_bench_close(struct gw_bench *bench);

/* Makes later benchmarks append to the file of --json: for several benchmarks in one process. */
void gw_bench_json_continue(void);

/* ---- measurement ---- */

/* The figures of one case's repeats. */
struct gw_bench_series {
	double values[GW_BENCH_REPEATS_MAX];
	unsigned count;
};

void gw_bench_series_add(struct gw_bench_series *series, double value);
double gw_bench_series_median(const struct gw_bench_series *series); /* 0 when empty */
double gw_bench_series_spread(const struct gw_bench_series *series); /* (largest - smallest) / median */

/* Sorts the values and returns the one with `share` of the values below it; 0 if there are no values. */
double gw_bench_quantile(double *values, size_t count, double share);

/* One measurement: does the work and sets its figure. */
typedef gw_status (*gw_bench_measure)(void *context, double *figure);

/* Measures ceiling and case `repeats` times each, alternately. The order changes from repeat to repeat, so that a
 * change of the machine's speed affects both. ceiling may be NULL. The first failure ends the call. */
gw_status gw_bench_alternate(const struct gw_bench *bench, gw_bench_measure ceiling, gw_bench_measure value,
			     void *context, struct gw_bench_series *ceilings, struct gw_bench_series *values);

/* The CPU seconds (user and system, all threads) of this process. */
double gw_bench_cpu_seconds(void);

/* ---- report ---- */

/* One more member of the JSON object. Its value is text, or number if text is NULL. */
struct gw_bench_field {
	const char *name;
	double number;
	const char *text;
};

struct gw_bench_result {
	const char *title; /* the case: "8 x 256 MiB" */
	const char *unit;  /* "GB/s", "us", "M edges/s" */
	const struct gw_bench_series *values;
	const struct gw_bench_series *ceilings; /* NULL: no ceiling; the ratio is median / median */
	bool lower_is_better; /* shown in the table; the ratio of a latency to its ceiling is above 1 */
	bool verified;        /* the results were checked: must be true */
	struct gw_bench_field fields[GW_BENCH_FIELDS_MAX]; /* the list ends at an entry without a name */
	const char *note; /* one line for people: what limits the figure, or what to try; or NULL */
};

/* Prints a line of the table and, with --json, a JSON object:
 * {"bench","case","value","unit","ceiling","ratio","verified", "repeats","spread","ceiling_spread", then the fields}.
 * Warns if the repeats differ too much to be meaningful. */
void gw_bench_report(struct gw_bench *bench, const struct gw_bench_result *result);
/* Prints the JSON object only, for a benchmark with its own table. */
void gw_bench_report_json(const struct gw_bench *bench, const struct gw_bench_result *result);
/* Reports a case that could not be measured, and why: a line, and {"bench","case","missing"}. */
void gw_bench_missing(const struct gw_bench *bench, const char *what, const char *why);

#endif
