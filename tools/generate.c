/* graphwire generate: synthetic graphs, written as one-part graphs. */
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "core/base/options.h"
#include "core/base/parallel.h"
#include "tools/phase.h"
#include "tools/rmat.h"
#include "tools/tools.h"

#define FACTOR_MAX   (1ull << 24)
#define FEATURES_MAX (1u << 20)
#define LABELS_MAX   (1u << 30)

enum {
	OPT_SCALE = 256,
	OPT_FACTOR,
	OPT_SEED,
	OPT_FEATURES,
	OPT_LABELS,
	OPT_TRAIN,
	OPT_VAL,
	OPT_TEST,
	OPT_WEIGHTS,
	OPT_UNDIRECTED,
	OPT_REVERSE,
	OPT_TRANSPOSE,
	OPT_OUT,
	OPT_NAME,
	OPT_REPLACE,
	OPT_THREADS,
	OPT_QUIET,
};

static const struct argp_option options[] = {
	{"scale", OPT_SCALE, "N", 0, "2^N nodes (default 16)", 0},
	{"edge-factor", OPT_FACTOR, "N", 0, "edges per node (default 16)", 0},
	{"seed", OPT_SEED, "N", 0, "another seed, another graph (default 1)", 0},
	{"features", OPT_FEATURES, "D", 0, "float32 node feature \"feat\" of D columns", 0},
	{"labels", OPT_LABELS, "C", 0, "int64 node array \"label\" of C classes", 0},
	{"train-share", OPT_TRAIN, "S", 0, "share of the nodes in \"train_mask\" (0 to 1)", 0},
	{"val-share", OPT_VAL, "S", 0, "share of the nodes in \"val_mask\"", 0},
	{"test-share", OPT_TEST, "S", 0,
	 "share of the nodes in \"test_mask\" (default: half of what --train-share leaves each for val and test)", 0},
	{"weights", OPT_WEIGHTS, NULL, 0, "edge feature \"weight\" with its alias table", 0},
	{"undirected", OPT_UNDIRECTED, NULL, 0, "every edge in both directions", 0},
	{"reverse", OPT_REVERSE, NULL, 0, "add the edge type rev__E", 0},
	{"transpose", OPT_TRANSPOSE, NULL, 0, "store out-edges too", 0},
	{"out", OPT_OUT, "FOLDER", 0, "where the graph goes (must not exist)", 1},
	{"name", OPT_NAME, "NAME", 0, "the graph's name (default rmat)", 1},
	{"replace", OPT_REPLACE, NULL, 0, "replace an existing graph", 1},
	{"threads", OPT_THREADS, "N", 0, "default: all processors", 1},
	{"quiet", OPT_QUIET, NULL, 0, "errors only", 1},
	{0},
};

static const char doc[] =
	"Generate a synthetic graph: the same bytes for the same options, whatever the number of threads.\v"
	"rmat is Graph500's generator (.57 .19 .19 .05), vertices shuffled, parallel edges and loops kept.\n\n"
	"Examples:\n"
	"  graphwire generate rmat --scale 16 --out graph/\n"
	"  graphwire generate rmat --scale 20 --edge-factor 16 --features 128 --labels 32 \\\n"
	"                          --train-share 0.1 --out graph/\n";

struct arguments {
	struct gw_rmat_options rmat;
	struct gw_builder_options build;
	const char *kind, *out, *name;
};

static gw_status parse_number(const char *arg, uint64_t min, uint64_t max, uint32_t *out)
{
	uint64_t value;
	gw_status status = gw_parse_u64(arg, min, max, &value);
	if (status == GW_OK)
		*out = (uint32_t)value;
	return status;
}

static gw_status take_value(int key, const char *arg, struct arguments *a)
{
	switch (key) {
	case OPT_SCALE:
		return parse_number(arg, 1, GW_RMAT_SCALE_MAX, &a->rmat.scale);
	case OPT_FACTOR:
		return gw_parse_u64(arg, 0, FACTOR_MAX, &a->rmat.edge_factor);
	case OPT_SEED:
		return gw_parse_u64(arg, 0, UINT64_MAX, &a->rmat.seed);
	case OPT_FEATURES:
		return parse_number(arg, 1, FEATURES_MAX, &a->rmat.features);
	case OPT_LABELS:
		return parse_number(arg, 1, LABELS_MAX, &a->rmat.labels);
	case OPT_TRAIN:
		return gw_parse_double(arg, 0, 1, &a->rmat.train_share);
	case OPT_VAL:
		return gw_parse_double(arg, 0, 1, &a->rmat.val_share);
	case OPT_TEST:
		return gw_parse_double(arg, 0, 1, &a->rmat.test_share);
	default:
		return parse_number(arg, 1, 256, &a->build.threads);
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	switch (key) {
	case OPT_WEIGHTS:
		a->rmat.weights = true;
		return 0;
	case OPT_UNDIRECTED:
		a->rmat.undirected = true;
		return 0;
	case OPT_REVERSE:
		a->rmat.reverse = true;
		return 0;
	case OPT_TRANSPOSE:
		a->rmat.transpose = true;
		return 0;
	case OPT_OUT:
		a->out = arg;
		return 0;
	case OPT_NAME:
		a->name = arg;
		return 0;
	case OPT_REPLACE:
		a->build.replace = true;
		return 0;
	case OPT_QUIET:
		a->build.quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 0)
			return ARGP_ERR_UNKNOWN;
		a->kind = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->kind || strcmp(a->kind, "rmat") != 0)
			argp_error(state, "which graph? There is: rmat");
		if (!a->out)
			argp_error(state, "--out FOLDER is missing: where shall the graph go?");
		if (a->rmat.undirected && a->rmat.reverse)
			argp_error(state, "--undirected holds every edge's reverse already: leave out --reverse");
		return 0;
	default:
		if (key < OPT_SCALE || key > OPT_THREADS)
			return ARGP_ERR_UNKNOWN;
		if (take_value(key, arg, a) != GW_OK)
			argp_error(state, "%s", gw_last_error());
		return 0;
	}
}

static gw_status generate(const struct arguments *a)
{
	struct gw_builder *builder;
	struct gw_builder_stats stats = {0};
	gw_status status = gw_builder_target_check(a->out, a->build.replace);
	if (status == GW_OK)
		status = gw_builder_create(a->name, &builder);
	if (status)
		return status;
	struct gw_phase phase = gw_phase_begin(a->build.threads, a->build.quiet);
	status = gw_rmat_build(&a->rmat, builder);
	if (status == GW_OK) {
		gw_phase_end(&phase, "generate", 0);
		phase = gw_phase_begin(a->build.threads, a->build.quiet);
		status = gw_builder_write(builder, a->out, &a->build, &stats);
	}
	if (status == GW_OK) {
		gw_phase_end(&phase, "sort and write", stats.bytes);
		char nodes[GW_UNIT_TEXT_MAX], edges[GW_UNIT_TEXT_MAX];
		printf("%s/%s.json: %s nodes, %s edges\n", a->out, a->name, gw_text_count(nodes, (double)stats.nodes),
		       gw_text_count(edges, (double)stats.edges));
	}
	gw_builder_destroy(builder);
	return status;
}

int gw_tool_generate(int argc, char **argv)
{
	static const struct argp argp = {options, parse, "rmat", doc, NULL, NULL, NULL};
	struct arguments a = {.rmat = {.scale = 16, .edge_factor = 16, .seed = 1, .val_share = -1, .test_share = -1},
			      .name = "rmat"};
	if (gw_options_parse(&argp, argc, argv, &a) != 0)
		return 2;
	double rest = 1 - a.rmat.train_share;
	if (a.rmat.train_share == 0)
		rest = 0; /* no split at all, unless one is asked for */
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
	if (status) {
		fprintf(stderr, "graphwire generate: %s\n", gw_last_error());
		return 1;
	}
	return 0;
}
