/* `graphwire bench [NAME]`: one table of benchmarks. */
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/place.h"
#include "core/memory/alloc.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} benchmarks[] = {
	{"latency", gw_bench_latency, "time of one row, against a bare ping-pong; --matrix: every size and transport"},
	{"gather", gw_bench_gather, "many rows, in memory, mapped and over networks, against bare loops"},
	{"sample", gw_bench_sample, "neighbour sampling in memory, against a bare loop"},
	{"minibatch", gw_bench_minibatch, "mini-batches from servers, against a bare loop for their rows"},
	{"serve", gw_bench_serve, "single seeds from 1 to 64 callers, against bare chains of round trips"},
	{"links", gw_bench_links, "mini-batches of edges, against mini-batches of nodes with as many seeds"},
	{"ids", gw_bench_ids, "nodes by their original ids, against a bare loop with the same index"},
	{"remote", gw_bench_remote, "rows and samples of remote parts, through the client"},
	{"threads", gw_bench_threads, "a server with 1, 2, ... threads, against as many bare loops at once"},
	{"connections", gw_bench_connections, "memory of a server for each connection over TCP"},
	{"update", gw_bench_update, "trainable rows: reads, pushes, training steps, checkpoints"},
	{"convert", gw_bench_convert, "rows to another type, against a memcpy of the bytes that come out"},
	{"disk", gw_bench_disk, "random rows that stay on disk, against bare random reads of blocks"},
	{"load", gw_bench_load, "a partition's files into memory, against a bare read"},
};

#define BENCHMARKS (sizeof(benchmarks) / sizeof(benchmarks[0]))

static void bench_print_help(FILE *to)
{
	fputs("Usage: graphwire bench [NAME] [OPTION...]\n\n"
	      "Without a name: run all, a few minutes. Each benchmark measures its ceiling in the same run, "
	      "checks its results first, and works without any option.\n\n",
	      to);
	for (size_t i = 0; i < BENCHMARKS; i++)
		fprintf(to, "  %-13s%s\n", benchmarks[i].name, benchmarks[i].what);
	fputs("\nOptions of all benchmarks:\n"
	      "  --json FILE   write JSON objects to FILE, one on each line; - is standard output\n"
	      "  --repeats N   measure N times, at least 5 (default 7)\n"
	      "\ngraphwire bench NAME --help shows its options.\n\n"
	      "Examples:\n"
	      "  graphwire bench --json all.json\n"
	      "  graphwire bench sample\n"
	      "  graphwire bench gather --json gather.json\n",
	      to);
}

/* argv[0] becomes the name of the benchmark in usage and error lines. */
static int bench_run(size_t number, int argc, char **argv)
{
	static char name[64];
	snprintf(name, sizeof(name), "graphwire bench %s", benchmarks[number].name);
	argv[0] = name;
	return benchmarks[number].run(argc, argv);
}

/* The options that every benchmark gets. */
struct bench_arguments {
	struct gw_bench bench;
};

static int run_with(size_t number, const struct gw_bench *told)
{
	char *json = gw_format("--json=%s", told->json_path ? told->json_path : "");
	char repeats[32], *argv[4] = {NULL};
	int argc = 1;
	if (!json)
		return 1;
	snprintf(repeats, sizeof(repeats), "--repeats=%u", told->repeats);
	argv[argc++] = repeats;
	if (told->json_path)
		argv[argc++] = json;
	int result = bench_run(number, argc, argv);
	gw_free(json);
	return result;
}

/* Runs all benchmarks; if one fails, the others still run. Some keep this thread on one processor, so the next one
 * starts unpinned. The file of --json is opened first, so that an error shows before anything is measured. */
static int run_all(struct gw_bench *told)
{
	if (gw_bench_open(told) || gw_bench_close(told)) {
		fprintf(stderr, "graphwire bench: %s\n", gw_last_error());
		return 1;
	}
	gw_bench_json_continue();
	int result = 0;
	for (size_t i = 0; i < BENCHMARKS; i++) {
		int one = run_with(i, told);
		result = result ? result : one;
		gw_bench_unpin(pthread_self());
		fflush(stdout);
	}
	return result;
}

static int parse_and_run_all(int argc, char **argv)
{
	static const struct gw_option none[] = {{0}};
	static const struct gw_options options = {
		.table = none,
		.common = gw_bench_options,
		.common_offset = offsetof(struct bench_arguments, bench),
		.argument_missing = "a benchmark's name comes before its options: graphwire bench NAME --json FILE",
		.doc = "Run all benchmarks, a few minutes.\vgraphwire bench --help lists the benchmarks."};
	struct bench_arguments arguments = {.bench = {.name = "all"}};
	static char name[] = "graphwire bench";
	argv[0] = name;
	gw_options_parse(&options, argc, argv, &arguments);
	return run_all(&arguments.bench);
}

int gw_bench_main(int argc, char **argv)
{
	gw_bench_processors(); /* count the processors before a benchmark keeps this thread on one */
	if (argc < 2 || (argv[1][0] == '-' && strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-?") != 0))
		return parse_and_run_all(argc, argv);
	if (argv[1][0] == '-') {
		bench_print_help(stdout);
		return 0;
	}
	for (size_t i = 0; i < BENCHMARKS; i++) {
		if (strcmp(argv[1], benchmarks[i].name) == 0)
			return bench_run(i, argc - 1, argv + 1);
	}
	fprintf(stderr, "graphwire bench: no benchmark \"%.64s\": graphwire bench --help lists them\n", argv[1]);
	return 2;
}
