/* The program: one table of subcommands. Each command is one line of the table; no other code here names a command.
 * */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "core/errors/signals.h"
#include "core/errors/units.h"
#include "core/files/filemap.h"
#include "core/files/staging.h"
#include "core/system/stdio.h"
#include "server/server.h"
#include "tools/tools.h"

#define NAME_MAX_BYTES 64

/* jemalloc reads this option. It turns off the per-thread caches: in jemalloc 5.3.0, a thread whose cache cannot be
 * set up (no address space) dies in its first malloc instead of getting NULL. No hot path allocates, so the caches are
 * of little use: METIS and an epoch take the same time without them. MALLOC_CONF in the environment overrides this
 * value. */
extern const char *malloc_conf;
__attribute__((visibility("default"))) const char *malloc_conf = "tcache:false";

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{"import", gw_tool_import, "convert edge lists, NumPy, triples, chunked graphs or packages to a graph"},
	{"generate", gw_tool_generate, "generate a synthetic graph"},
	{"partition", gw_tool_partition, "cut a graph by METIS, label propagation or KaMinPar, or at random"},
	{"replicate", gw_tool_replicate, "copy the rows that a part's trainers want most into the part"},
	{"verify", gw_tool_verify, "check every digest, offset, id and list of a graph"},
	{"inspect", gw_tool_inspect, "show the types, arrays, parts, degrees and cut of a graph"},
	{"serve", gw_serve_main, "serve a part to clients"},
	{"stat", gw_tool_stat, "show what servers hold and what they have done"},
	{"top", gw_tool_top, "show what servers and their clients do, again and again"},
	{"doctor", gw_tool_doctor, "find what this host and its servers lack, what that costs and how to fix it"},
	{"bench", gw_bench_main, "measure this machine and Graphwire on it"},
	{"epoch", gw_tool_epoch, "stream an epoch of mini-batches, timed and compared"},
	{"checkpoint", gw_tool_checkpoint, "write trainable tensors to this host's disk"},
	{"restore", gw_tool_restore, "read a checkpoint back into servers of the same graph"},
	{"end-job", gw_tool_end_job, "delete the tensors of a finished job"},
	{"agent", gw_tool_agent, "run the processes of a job on this host, for deploy/launch.py"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void cmd_print_help(FILE *to)
{
	fputs("Usage: graphwire COMMAND [OPTION...]\n\n"
	      "A distributed graph service for training graph neural networks.\n\n",
	      to);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].what);
	fputs("\n  --help, --version\n\ngraphwire COMMAND --help shows the options and examples.\n", to);
}

/* The edits between two names (a letter added, removed or changed, or two letters swapped): Damerau's distance, by
 * the usual table. */
static size_t distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	size_t table[NAME_MAX_BYTES + 1][NAME_MAX_BYTES + 1];
	if (n > NAME_MAX_BYTES || m > NAME_MAX_BYTES)
		return SIZE_MAX;
	for (size_t i = 0; i <= n; i++) {
		for (size_t j = 0; j <= m; j++) {
			if (i == 0 || j == 0) {
				table[i][j] = i + j;
				continue;
			}
			size_t best = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			if (table[i - 1][j] + 1 < best)
				best = table[i - 1][j] + 1;
			if (table[i][j - 1] + 1 < best)
				best = table[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    table[i - 2][j - 2] + 1 < best)
				best = table[i - 2][j - 2] + 1;
			table[i][j] = best;
		}
	}
	return table[n][m];
}

static int unknown_command(const char *name)
{
	const char *nearest = NULL;
	size_t least = 4; /* with more edits, the command is not suggested */
	for (size_t i = 0; i < COMMANDS; i++) {
		size_t edits = *name && strncmp(commands[i].name, name, strlen(name)) == 0
				       ? 1
				       : distance(commands[i].name, name);
		if (edits < least) {
			least = edits;
			nearest = commands[i].name;
		}
	}
	char shown[65];
	gw_text_printable(shown, sizeof(shown), name);
	if (nearest)
		fprintf(stderr, "graphwire: no command \"%s\": did you mean \"%s\"?\n", shown, nearest);
	else
		fprintf(stderr, "graphwire: no command \"%s\": graphwire --help lists the commands\n", shown);
	return 2;
}

/* A full disk is noticed only when the output is flushed. A command whose output could not be written has failed. */
static int cmd_finish(const char *name, int result)
{
	if ((fflush(stdout) == 0 && !ferror(stdout)) || result != 0)
		return result;
	fprintf(stderr, "%s: standard output: %s\n", name, strerror(errno));
	return 1;
}

/* Deletes half-written folders before the process ends. A command that reacts to signals in another way (a server
 * that drains) sets its own handlers. */
static void clean_up_and_die(int number)
{
	gw_staging_cleanup();
	gw_die_of_signal(number);
}

/* A signal that the parent ignores (nohup, a shell's background job) stays ignored. SIGXFSZ is ignored so that a file
 * that exceeds the limit of this process (ulimit -f) becomes an error of the writer, which names the file. */
static void cmd_catch_signals(const char *name)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = clean_up_and_die}, before;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
	signal(SIGXFSZ, SIG_IGN);
	gw_filemap_guard(name, gw_staging_cleanup);
}

int main(int argc, char **argv)
{
	gw_stdio_hold();
	if (argc < 2) {
		fputs("graphwire: no command given: graphwire --help lists the commands\n", stderr);
		return 2;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		cmd_print_help(stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		puts("graphwire " GRAPHWIRE_VERSION);
		return 0;
	}
	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(argv[1], commands[i].name) != 0)
			continue;
		static char name[NAME_MAX_BYTES];
		snprintf(name, sizeof(name), "graphwire %s", commands[i].name);
		cmd_catch_signals(name);
		argv[1] = name; /* usage lines print this name */
		return cmd_finish(name, commands[i].run(argc - 1, argv + 1));
	}
	return unknown_command(argv[1]);
}
