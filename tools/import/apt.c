/* graphwire import apt: imports the machine's own package graph, from `apt-cache dumpavail` or a file with its
 * output. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/import/apt.h"
#include "tools/import/apt_graph.h"
#include "tools/output_options.h"
#include "tools/phase.h"

extern char **environ;

#define A struct gw_import_apt
static const struct gw_option table[] = {
	{"from", "FILE", "the output of apt-cache dumpavail, gzip or not; - is standard input (default: run apt-cache)",
	 0, GW_OPTION_TEXT(A, from)},
	{"seed", "N", "seed of the train/val/test split (default 1)", 0, GW_OPTION_NUMBER(A, apt.seed, 0, UINT64_MAX)},
	{"transpose", NULL, "store out-edges too", 0, GW_OPTION_FLAG(A, apt.transpose)},
	GW_OUTPUT_OPTIONS(A, , "packages", 1),
	{0},
};
#undef A

static const char doc[] =
	"Turn a Debian package index into a heterogeneous graph: package, source, maintainer; "
	"depends, recommends, suggests, conflicts, built-from, maintained-by, each with its reverse.\v"
	"Every alternative of \"a | b\" gets an edge. A virtual package stands for all packages that provide it. "
	"Version constraints and architecture qualifiers are ignored. Package features are the words of the "
	"description, hashed to 128 float32. The label is the archive section, "
	"which nothing else in the graph contains.\n\n"
	"Examples:\n"
	"  graphwire import apt --out packages/\n"
	"  apt-cache dumpavail | graphwire import apt --from - --out packages/\n";

/* Runs apt-cache dumpavail and reads all of its output. */
static gw_status run_apt_cache(struct gw_text *text)
{
	char *arguments[] = {"apt-cache", "dumpavail", NULL};
	int ends[2], wait_status = 0;
	pid_t child;
	posix_spawn_file_actions_t actions;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return gw_fail_errno(GW_IO, errno, "pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	int error = posix_spawnp(&child, "apt-cache", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (error) {
		close(ends[0]);
		return gw_fail_errno(
			GW_NOT_FOUND, error,
			"apt-cache: this is not a Debian system; pass the output of apt-cache dumpavail from a Debian "
			"system with --from");
	}
	gw_status status = gw_text_open_fd("apt-cache dumpavail", ends[0], text);
	close(ends[0]);
	while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR)
		;
	if (status == GW_OK && wait_status != 0) {
		gw_text_close(text);
		return gw_fail(GW_IO, "apt-cache dumpavail failed: run it by hand to see why");
	}
	return status;
}

gw_status gw_import_apt_run(const struct gw_import_apt *a, struct gw_builder_stats *stats)
{
	struct gw_builder *builder;
	struct gw_text text = {0};
	struct gw_apt_stats apt = {0};
	struct gw_apt_options apt_options = a->apt;
	apt_options.threads = a->build.threads;
	gw_status status = gw_builder_target_check(a->out, a->build.replace);
	if (status == GW_OK)
		status = gw_builder_create(a->name, &builder);
	if (status != GW_OK)
		return status;
	struct gw_phase phase = gw_phase_begin(1, a->build.quiet);
	status = a->from ? gw_text_open(a->from, &text) : run_apt_cache(&text);
	if (status != GW_OK)
		goto destroy_builder;
	gw_phase_end(&phase, a->from ? "open" : "apt-cache dumpavail", text.bytes);
	phase = gw_phase_begin(a->build.threads, a->build.quiet);
	status = gw_apt_build(&text, &apt_options, builder, &apt);
	if (status != GW_OK)
		goto close_text;
	gw_phase_end(&phase, "parse and resolve", text.bytes);
	if (!a->build.quiet)
		fprintf(stderr,
			"%llu packages of %llu stanzas; %llu names in relations that no package has or provides\n",
			(unsigned long long)apt.packages, (unsigned long long)apt.stanzas,
			(unsigned long long)apt.unresolved);
	phase = gw_phase_begin(a->build.threads, a->build.quiet);
	status = gw_builder_write(builder, a->out, &a->build, stats);
	if (status == GW_OK)
		gw_phase_end(&phase, "sort and write", stats->bytes);
close_text:
	gw_text_close(&text);
destroy_builder:
	gw_builder_destroy(builder);
	return status;
}

static gw_status apt_check(void *input)
{
	return gw_name_check("graph", ((const struct gw_import_apt *)input)->name);
}

int gw_import_apt_main(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table, .argument_missing = "name the input with --from", .doc = doc, .check = apt_check};
	struct gw_import_apt a = {.name = "packages", .apt = {.seed = 1}};
	struct gw_builder_stats stats = {0};
	gw_options_parse(&options, argc, argv, &a);
	gw_phase_hush(a.build.quiet);
	if (gw_import_apt_run(&a, &stats) != GW_OK) {
		fprintf(stderr, "graphwire import apt: %s\n", gw_last_error());
		return 1;
	}
	gw_phase_print_graph(a.build.quiet, a.out, a.name, stats.nodes, stats.edges);
	return 0;
}
