/* graphwire generate: writes synthetic graphs as one-part graphs. */
#include <stdio.h>
#include <string.h>

#include "core/graph/times.h"
#include "tools/output_options.h"
#include "tools/phase.h"
#include "tools/rmat.h"
#include "tools/tools.h"

#define FACTOR_MAX   (1ull << 24)
#define FEATURES_MAX (1u << 20)
#define LABELS_MAX   (1u << 30)

static const char doc[] =
	"Generate a synthetic graph. The same options give the same bytes, with any number of threads.\v"
	"rmat is Graph500's generator (.57 .19 .19 .05). It shuffles vertices and keeps parallel edges and loops.\n\n"
	"Examples:\n"
	"  graphwire generate rmat --scale 16 --out graph/\n"
	"  graphwire generate rmat --scale 20 --edge-factor 16 --features 128 \\\n"
	"                          --labels 32 --train-share 0.1 --out graph/\n";

struct generate_arguments {
	struct gw_rmat_options rmat;
	struct gw_builder_options build;
	const char *kind, *out, *name;
};

static gw_status take_kind(void *input, char *text)
{
	struct generate_arguments *a = input;
	if (a->kind || strcmp(text, "rmat") != 0)
		return gw_fail(GW_INVALID, "\"%s\": unknown kind of graph: the only kind is rmat", text);
	a->kind = text;
	return GW_OK;
}

static gw_status generate_take_weight(void *input, char *text)
{
	struct gw_rmat_options *rmat = &((struct generate_arguments *)input)->rmat;
	gw_status status = gw_name_check("edge feature", text);
	if (status == GW_OK)
		status = gw_weight_name_check(text);
	for (uint32_t i = 0; i < rmat->num_weights; i++) {
		if (strcmp(rmat->weights[i], text) == 0)
			return GW_OK;
	}
	if (status == GW_OK && gw_name_is_taken(true, text))
		status = gw_fail(GW_INVALID, "\"%s\": the format reserves this name: choose another", text);
	if (status == GW_OK && rmat->num_weights == GW_WEIGHTS_MAX)
		status = gw_fail(GW_LIMIT, "more than %u", GW_WEIGHTS_MAX);
	if (status == GW_OK)
		rmat->weights[rmat->num_weights++] = text;
	return status;
}

static gw_status take_weights(void *input, char *text)
{
	static char name[] = "weight";
	(void)text;
	return generate_take_weight(input, name);
}

static gw_status generate_take_time(void *input, char *text)
{
	struct generate_arguments *a = input;
	a->rmat.time = text;
	return gw_time_name_check(text);
}

static gw_status generate_take_node_time(void *input, char *text)
{
	struct generate_arguments *a = input;
	a->rmat.node_time = text;
	return gw_name_is_taken(false, text) ? gw_fail(GW_INVALID, "\"%s\": the format reserves this name", text)
					     : gw_time_name_check(text);
}

static gw_status generate_check(void *input)
{
	const struct generate_arguments *a = input;
	if (a->rmat.undirected && a->rmat.reverse)
		return gw_fail(GW_INVALID, "--undirected stores every edge's reverse already: leave out --reverse");
	return gw_name_check("graph", a->name);
}

#define A struct generate_arguments
static const struct gw_option table[] = {
	{"scale", "N", "2^N nodes (default 16)", 0, GW_OPTION_NUMBER(A, rmat.scale, 1, GW_RMAT_SCALE_MAX)},
	{"edge-factor", "N", "edges per node (default 16)", 0, GW_OPTION_NUMBER(A, rmat.edge_factor, 0, FACTOR_MAX)},
	{"seed", "N", "seed of the generator (default 1)", 0, GW_OPTION_NUMBER(A, rmat.seed, 0, UINT64_MAX)},
	{"features", "D", "float32 node feature \"feat\" of D columns", 0,
	 GW_OPTION_NUMBER(A, rmat.features, 1, FEATURES_MAX)},
	{"labels", "C", "int64 node array \"label\" of C classes", 0, GW_OPTION_NUMBER(A, rmat.labels, 1, LABELS_MAX)},
	{"train-share", "S", "share of the nodes in \"train_mask\" (0 to 1)", 0,
	 GW_OPTION_REAL(A, rmat.train_share, 0, 1)},
	{"val-share", "S", "share of the nodes in \"val_mask\"", 0, GW_OPTION_REAL(A, rmat.val_share, 0, 1)},
	{"test-share", "S",
	 "share of the nodes in \"test_mask\" (default: val and test get half each of the nodes outside "
	 "\"train_mask\")",
	 0, GW_OPTION_REAL(A, rmat.test_share, 0, 1)},
	{"weight", "NAME",
	 "edge feature of this name, float32 above 0 up to 1, with an alias table for draws by weight, "
	 "8 bytes an edge; may be repeated",
	 0, GW_OPTION_CALL(generate_take_weight)},
	{"weights", NULL, "the same as --weight weight", 0, GW_OPTION_CALL(take_weights)},
	{"time", "NAME",
	 "edge feature of this name, int64 from 0 below the number of edges; the lists are sorted by it", 0,
	 GW_OPTION_CALL(generate_take_time, .once = true)},
	{"node-time", "NAME",
	 "node feature of this name, int64 from 0 below the number of nodes; without --time, the lists are sorted by the "
	 "times of the sources, which are stored for each edge as NAME.source, 8 bytes an edge",
	 0, GW_OPTION_CALL(generate_take_node_time, .once = true)},
	{"undirected", NULL, "every edge in both directions", 0, GW_OPTION_FLAG(A, rmat.undirected)},
	{"reverse", NULL, "add the edge type rev__E", 0, GW_OPTION_FLAG(A, rmat.reverse)},
	{"transpose", NULL, "store out-edges too", 0, GW_OPTION_FLAG(A, rmat.transpose)},
	GW_OUTPUT_OPTIONS(A, , "rmat", 1),
	{0},
};
#undef A

static gw_status generate(const struct generate_arguments *a)
{
	struct gw_builder *builder;
	struct gw_builder_stats stats = {0};
	gw_status status = gw_builder_target_check(a->out, a->build.replace);
	if (status == GW_OK)
		status = gw_builder_create(a->name, &builder);
	if (status != GW_OK)
		return status;
	status = gw_builder_limit(builder, a->out, a->build.memory, a->build.quiet);
	gw_phase_hush(a->build.quiet);
	struct gw_phase phase = gw_phase_begin(a->build.threads, a->build.quiet);
	if (status == GW_OK)
		status = gw_rmat_build(&a->rmat, builder);
	if (status == GW_OK) {
		gw_phase_end(&phase, "generate", 0);
		phase = gw_phase_begin(a->build.threads, a->build.quiet);
		struct gw_builder_options build = a->build;
		const char *times[2];
		if (a->rmat.time)
			times[build.num_times++] = a->rmat.time;
		if (a->rmat.node_time && !a->rmat.time)
			times[build.num_times++] = a->rmat.node_time;
		build.times = times;
		status = gw_builder_write(builder, a->out, &build, &stats);
	}
	if (status == GW_OK) {
		gw_phase_end(&phase, "sort and write", stats.bytes);
		gw_phase_print_runs(a->build.quiet, stats.runs, stats.file_bytes);
		gw_phase_print_times(a->build.quiet, stats.times_bytes);
		gw_phase_print_graph(a->build.quiet, a->out, a->name, stats.nodes, stats.edges);
	}
	gw_builder_destroy(builder);
	return status;
}

int gw_tool_generate(int argc, char **argv)
{
	static const struct gw_options options = {.table = table,
						  .argument = "rmat",
						  .argument_to = GW_OPTION_CALL(take_kind),
						  .argument_missing = "name the kind of graph; the only kind is rmat",
						  .doc = doc,
						  .check = generate_check};
	struct generate_arguments a = {
		.rmat = {.scale = 16, .edge_factor = 16, .seed = 1, .val_share = -1, .test_share = -1}, .name = "rmat"};
	gw_options_parse(&options, argc, argv, &a);
	double rest = 1 - a.rmat.train_share;
	if (a.rmat.train_share == 0)
		rest = 0; /* no split unless --train-share asks for one */
	if (a.rmat.val_share < 0)
		a.rmat.val_share = rest / 2;
	if (a.rmat.test_share < 0)
		a.rmat.test_share = rest - rest / 2;
	a.rmat.threads = a.build.threads;
	if (a.rmat.train_share + a.rmat.val_share + a.rmat.test_share > 1.0000001) {
		fprintf(stderr, "graphwire generate: the shares of train, val and test exceed 1\n");
		return 2;
	}
	gw_status status = generate(&a);
	return gw_exit_status("graphwire generate", status);
}
