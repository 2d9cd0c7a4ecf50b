/* `graphwire bench [NAME]`: one table of benchmarks. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} benchmarks[] = {
	{"latency", gw_bench_latency, "one row, against a bare ping-pong; --matrix: every size and transport"},
	{"gather", gw_bench_gather, "many rows, in memory, mapped and over networks, against bare loops"},
	{"sample", gw_bench_sample, "neighbour sampling in memory, against a bare loop"},
	{"minibatch", gw_bench_minibatch, "whole mini-batches from servers, against a bare loop for their rows"},
	{"remote", gw_bench_remote, "rows and samples through the client, of parts that lie elsewhere"},
	{"threads", gw_bench_threads, "a server of one thread, of two, ..., against as many bare loops at once"},
	{"load", gw_bench_load, "a partition's files into memory, against a bare read"},
};

#define BENCHMARKS (sizeof(benchmarks) / sizeof(benchmarks[0]))

static void print_help(FILE *to)
{
	fputs("Usage: graphwire bench [NAME [OPTION...]]\n\n"
	      "Without a name: all of them, a few minutes. Each measures its ceiling in the same run, checks its "
	      "results first, and works without any option.\n\n",
	      to);
	for (size_t i = 0; i < BENCHMARKS; i++)
		fprintf(to, "  %-10s %s\n", benchmarks[i].name, benchmarks[i].what);
	fputs("\ngraphwire bench NAME --help tells more.\n\n"
	      "Examples:\n"
	      "  graphwire bench sample\n"
	      "  graphwire bench gather --json gather.json\n",
	      to);
}

/* argv[0] becomes what usage and error lines call the benchmark. */
static int run(size_t number, int argc, char **argv)
{
	static char name[64];
	snprintf(name, sizeof(name), "graphwire bench %s", benchmarks[number].name);
	argv[0] = name;
	return benchmarks[number].run(argc, argv);
}

/* All of them, one after the other; a failure does not keep the others from running. Some keep this thread on one
 * processor, which is none of the next one's business. */
static int run_all(void)
{
	int result = 0;
	cpu_set_t allowed;
	bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
	for (size_t i = 0; i < BENCHMARKS; i++) {
		char *argv[] = {NULL, NULL};
		int one = run(i, 1, argv);
		result = result ? result : one;
		if (known)
			sched_setaffinity(0, sizeof(allowed), &allowed);
		fflush(stdout);
	}
	return result;
}

int gw_bench_main(int argc, char **argv)
{
	if (argc < 2)
		return run_all();
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0) {
		print_help(stdout);
		return 0;
	}
	for (size_t i = 0; i < BENCHMARKS; i++) {
		if (strcmp(argv[1], benchmarks[i].name) == 0)
			return run(i, argc - 1, argv + 1);
	}
	if (argv[1][0] == '-')
		fprintf(stderr,
			"graphwire bench: \"%.64s\" comes after a benchmark's name: graphwire bench --help lists "
			"them\n",
			argv[1]);
	else
		fprintf(stderr, "graphwire bench: no benchmark \"%.64s\": graphwire bench --help lists them\n",
			argv[1]);
	return 2;
}
