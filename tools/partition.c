/* graphwire partition: a graph in one part becomes a graph in many.
 *
 *   options -> input mapped, digests and ranges checked -> assignment -> cut and balance counted -> parts written
 *   -> report
 *
 * Each step names what is wrong and leaves nothing behind; the output folder appears at the end, whole.
 */
#include <argp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/options.h"
#include "tools/plan_report.h"
#include "tools/tools.h"

enum {
	OPT_PARTS = 256,
	OPT_METHOD,
	OPT_OBJTYPE,
	OPT_TRAIN,
	OPT_EDGES,
	OPT_NTYPES,
	OPT_TRAINERS,
	OPT_SEED,
	OPT_OUT,
	OPT_REPLACE,
	OPT_THREADS,
	OPT_MEMORY,
	OPT_JSON,
};

static const struct argp_option options[] = {
	{"num-parts", OPT_PARTS, "N", 0, "how many parts, one for each machine", 0},
	{"out", OPT_OUT, "FOLDER", 0, "where the parts go; must not exist", 0},
	{"method", OPT_METHOD, "metis|random", 0, "metis (default) cuts few edges; random takes any size", 1},
	{"objtype", OPT_OBJTYPE, "cut|vol", 0, "what METIS minimises: edges cut (default) or communication volume", 1},
	{"balance-train", OPT_TRAIN, NULL, 0,
	 "as many training nodes in each part: nodes whose feature \"" GW_PLAN_TRAIN_MASK "\" is set", 1},
	{"balance-edges", OPT_EDGES, NULL, 0, "as many edges in each part (METIS; by chance with random)", 1},
	{"balance-ntypes", OPT_NTYPES, NULL, 0,
	 "as many nodes of each type in each part, not only of all types together (random does so anyway)", 1},
	{"num-trainers-per-machine", OPT_TRAINERS, "N", 0,
	 "above 1: each part is made of N pieces, one for each trainer of its machine, and nodes and edges get an "
	 "int64 "
	 "feature \"" GW_PLAN_TRAINER_ID "\", part * N + trainer, as DGL's node_split and edge_split take it",
	 1},
	{"seed", OPT_SEED, "N", 0, "another seed, another partitioning (default 0); the same seed, the same bytes", 1},
	{"replace", OPT_REPLACE, NULL, 0, "replace an existing graph", 2},
	{"threads", OPT_THREADS, "N", 0, "default: all processors; the result does not depend on it", 2},
	{"memory", OPT_MEMORY, "SIZE", 0, "memory that METIS may take (default: what is free); 20Gi", 2},
	{"json", OPT_JSON, NULL, 0, "the report as one JSON object", 2},
	{0},
};

static const char doc[] =
	"Partition the one-part graph that import or generate made. GRAPH is its JSON or its folder.\v"
	"Nodes of a type are renumbered so that each part owns one range; orig_id keeps their ids of the input. An "
	"edge "
	"lives with its destination. METIS sees one undirected graph of all node types, without loops; by default it "
	"balances the number of nodes. Nodes without neighbours even the parts out.\n\n"
	"Examples:\n"
	"  graphwire partition graph/ --num-parts 4 --out parts/\n"
	"  graphwire partition graph/ --num-parts 4 --balance-train --balance-edges --out parts/\n"
	"  graphwire partition huge/ --num-parts 64 --method random --out parts/\n";

struct arguments {
	struct gw_plan plan;
	const char *graph, *out;
	bool replace, json;
};

static gw_status take_number(const char *arg, uint64_t min, uint64_t max, uint32_t *out)
{
	uint64_t value;
	gw_status status = gw_parse_u64(arg, min, max, &value);
	if (!status)
		*out = (uint32_t)value;
	return status;
}

static gw_status take_choice(const char *arg, const char *const *choices, unsigned *out)
{
	int choice;
	gw_status status = gw_parse_choice(arg, choices, &choice);
	if (!status)
		*out = (unsigned)choice;
	return status;
}

static gw_status take_value(int key, const char *arg, struct arguments *a)
{
	static const char *const methods[] = {"metis", "random", NULL};
	static const char *const objectives[] = {"cut", "vol", NULL};
	switch (key) {
	case OPT_PARTS:
		return take_number(arg, 1, GW_PARTS_MAX, &a->plan.parts);
	case OPT_TRAINERS:
		return take_number(arg, 1, GW_PARTS_MAX, &a->plan.trainers);
	case OPT_THREADS:
		return take_number(arg, 1, 256, &a->plan.threads);
	case OPT_METHOD:
		return take_choice(arg, methods, &a->plan.method);
	case OPT_OBJTYPE:
		return take_choice(arg, objectives, &a->plan.objective);
	case OPT_SEED:
		return gw_parse_u64(arg, 0, UINT64_MAX, &a->plan.seed);
	default:
		return gw_parse_u64(arg, 1, UINT64_MAX, &a->plan.memory_max);
	}
}

static void check_end(struct argp_state *state, const struct arguments *a)
{
	if (!a->graph)
		argp_error(state, "which graph? Name its JSON or its folder");
	if (a->plan.parts == 0)
		argp_error(state, "--num-parts N is missing: how many parts?");
	if (!a->out)
		argp_error(state, "--out FOLDER is missing: where shall the parts go?");
	if ((uint64_t)a->plan.parts * a->plan.trainers > GW_PARTS_MAX)
		argp_error(state, "parts times trainers: %llu, but %u is the most",
			   (unsigned long long)a->plan.parts * a->plan.trainers, GW_PARTS_MAX);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	switch (key) {
	case OPT_TRAIN:
		a->plan.balance_train = true;
		return 0;
	case OPT_EDGES:
		a->plan.balance_edges = true;
		return 0;
	case OPT_NTYPES:
		a->plan.balance_ntypes = true;
		return 0;
	case OPT_OUT:
		a->out = arg;
		return 0;
	case OPT_REPLACE:
		a->replace = true;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 0)
			return ARGP_ERR_UNKNOWN;
		a->graph = arg;
		return 0;
	case ARGP_KEY_END:
		check_end(state, a);
		return 0;
	default:
		if (key < OPT_PARTS || key > OPT_JSON)
			return ARGP_ERR_UNKNOWN;
		if (take_value(key, arg, a) != GW_OK)
			argp_error(state, "%s", gw_last_error());
		return 0;
	}
}

static double seconds_since(uint64_t start_ns)
{
	return (double)(gw_now_ns() - start_ns) * 1e-9;
}

/* The checks walked the whole mapping: its pages leave this process again, so that memory is left to METIS. */
static void drop_mapping(const struct gw_part *part)
{
	const struct gw_array *array;
	for (uint32_t i = 0; (array = gw_part_array_at(part, i)); i++) {
		uintptr_t begin = ((uintptr_t)array->data + 4095) & ~(uintptr_t)4095;
		uintptr_t end = ((uintptr_t)array->data + array->rows * array->row_bytes) & ~(uintptr_t)4095;
		if (array->data && begin < end)
			madvise((void *)begin, end - begin, MADV_DONTNEED);
	}
}

static uint64_t peak_bytes(int who)
{
	struct rusage usage;
	getrusage(who, &usage);
	return (uint64_t)usage.ru_maxrss * 1024;
}

/* An output that is there already is refused before hours of work, not after; the input itself, even with --replace. */
static gw_status check_output(const struct arguments *a, const struct gw_graph_meta *meta)
{
	struct stat in, out;
	if (!a->replace && lstat(a->out, &out) == 0)
		return gw_fail(GW_EXISTS, "%s: exists already; remove it, or add --replace", a->out);
	if (a->replace && stat(a->out, &out) == 0 && stat(meta->folder[0] ? meta->folder : ".", &in) == 0 &&
	    in.st_dev == out.st_dev && in.st_ino == out.st_ino)
		return gw_fail(GW_INVALID, "%s: is the graph to be partitioned; choose another --out", a->out);
	return a->replace ? gw_meta_check_replaceable(a->out) : GW_OK;
}

/* What the JSON alone says is too much for METIS, before its arrays are read; for all it says, every edge is a loop. */
static gw_status check_counts(const struct gw_plan *plan, const struct gw_graph_meta *meta)
{
	uint64_t nodes = 0, edges = 0;
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		nodes += meta->ntypes[t].count;
	for (uint32_t e = 0; e < meta->num_etypes; e++)
		edges += meta->etypes[e].count;
	if (plan->method != GW_PLAN_METIS || (uint64_t)plan->parts * plan->trainers == 1)
		return GW_OK;
	return gw_metis_check_counts(nodes, 0, edges, 1);
}

static gw_status run_part(const struct arguments *a, const struct gw_part *part, struct gw_plan_report *report)
{
	struct gw_assignment assignment = {0};
	struct gw_plan_quality quality = {0};
	struct gw_split_stats split;
	uint64_t measure_ns;
	const struct gw_plan *plan = &a->plan;
	gw_status status = gw_assignment_make(plan, part, &assignment);
	if (!status)
		status = plan->method == GW_PLAN_METIS ? gw_assign_metis(plan, part, &assignment)
						       : gw_assign_random(plan, part, &assignment);
	measure_ns = gw_now_ns();
	if (!status)
		status = gw_plan_quality_measure(plan, part, &assignment, &quality);
	report->measure_s = seconds_since(measure_ns);
	if (!status)
		status = gw_split(plan, part, &assignment, a->out, a->replace, &split);
	if (!status) {
		report->assignment = &assignment;
		report->quality = &quality;
		report->split = &split;
		report->volume = plan->objective == GW_PLAN_VOL;
		report->peak_bytes = peak_bytes(RUSAGE_SELF);
		report->peak_metis_bytes = assignment.has_objective ? peak_bytes(RUSAGE_CHILDREN) : 0;
		report->total_s += seconds_since(measure_ns) + assignment.symmetric_s + assignment.method_s;
		status = gw_plan_report_print(report, a->json);
	}
	report->assignment = NULL;
	report->quality = NULL;
	report->split = NULL;
	gw_plan_quality_free(&quality);
	gw_assignment_free(&assignment);
	return status;
}

static gw_status run(const struct arguments *a)
{
	struct gw_part_options open = {.mapped = true, .load = {.verify_threads = a->plan.threads}};
	struct gw_graph_meta *meta = NULL;
	struct gw_part *part = NULL;
	uint64_t start_ns = gw_now_ns();
	gw_status status = gw_meta_read(a->graph, &meta);
	if (!status)
		status = check_output(a, meta);
	if (!status && meta->num_parts != 1)
		status = gw_fail(GW_INVALID, "%s: in %u parts already; partition the one-part graph it was made from",
				 a->graph, meta->num_parts);
	if (!status)
		status = check_counts(&a->plan, meta);
	if (!status)
		status = gw_part_open(meta, 0, &open, &part);
	if (status) {
		gw_meta_destroy(meta);
		return status;
	}
	drop_mapping(part);
	snprintf(meta->part_method, sizeof(meta->part_method), "%s",
		 a->plan.method == GW_PLAN_METIS ? "metis" : "random");
	struct gw_plan_report report = {.meta = meta, .open_s = seconds_since(start_ns)};
	report.total_s = report.open_s;
	char *config = gw_format("%s/%s.json", a->out, meta->graph_name);
	report.config = config;
	status = config ? run_part(a, part, &report) : GW_NO_MEMORY;
	gw_free(config);
	gw_part_close(part);
	gw_meta_destroy(meta);
	return status;
}

int gw_tool_partition(int argc, char **argv)
{
	static const struct argp argp = {options, parse, "GRAPH", doc, NULL, NULL, NULL};
	struct arguments a = {.plan = {.trainers = 1}};
	if (gw_options_parse(&argp, argc, argv, &a) != 0)
		return 2;
	gw_status status = run(&a);
	if (status) {
		fprintf(stderr, "graphwire partition: %s\n", gw_last_error());
		return 1;
	}
	return 0;
}
