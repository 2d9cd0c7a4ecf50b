/* graphwire partition: cuts a graph of one part into many parts.
 *
 *   options -> input mapped, digests and ranges checked -> assignment -> cut and balance counted -> parts written
 *   -> report
 *
 * A step that fails names the fault and leaves no files. The output folder appears at the end, complete.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "core/errors/options.h"
#include "core/files/filemap.h"
#include "core/files/staging.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "tools/builder/builder.h"
#include "tools/partition/report.h"
#include "tools/tables_record.h"
#include "tools/tools.h"
#include "tools/weights.h"

static const char doc[] =
	"Partition a one-part graph of import or generate. GRAPH is its JSON or its folder.\v"
	"Nodes of a type are renumbered so that each part owns one range; orig_id keeps their input ids. "
	"An edge lives with its destination. METIS sees one undirected graph of all node types, without loops; "
	"by default it balances the number of nodes. Nodes without neighbours fill the smaller parts.\n\n"
	"Examples:\n"
	"  graphwire partition graph/ --num-parts 4 --out parts/\n"
	"  graphwire partition graph/ --num-parts 4 --balance-train --balance-edges \\\n"
	"                      --out parts/\n"
	"  graphwire partition ratings/ --num-parts 2 --weight stars \\\n"
	"                      --weight user:sees:film:seconds --out parts/\n"
	"  graphwire partition papers/ --num-parts 4 --time year --out parts/\n"
	"  graphwire partition papers/ --num-parts 4 --store feat=float16 --out parts/\n"
	"  graphwire partition papers/ --num-parts 4 --replicate 5% --fanouts 15,10,5 \\\n"
	"                      --out parts/\n"
	"  graphwire partition huge/ --num-parts 64 --method random --out parts/\n"
	"  graphwire partition graph/ --num-parts 4 --assignment graph.part.4 \\\n"
	"                      --out parts/\n";

#define NUMBERS_WORDS_MAX 256u

struct partition_arguments {
	struct gw_plan plan;
	const char *graph, *out;
	bool replace, json;
	const char *weights[GW_WEIGHTS_MAX], *times[GW_TIME_WORDS_MAX], *numbers[NUMBERS_WORDS_MAX],
		*given[NUMBERS_WORDS_MAX];
	const char *stores[GW_STORE_WORDS_MAX];
	uint32_t num_weights, num_times, num_numbers, num_stores;
	struct gw_replicate_plan replicas;
};

static gw_status partition_take_numbers(void *input, char *text)
{
	struct partition_arguments *a = input;
	if (a->num_numbers == NUMBERS_WORDS_MAX)
		return gw_fail(GW_LIMIT, "more than %u", NUMBERS_WORDS_MAX);
	a->numbers[a->num_numbers++] = text;
	return GW_OK;
}

static gw_status partition_take_given(void *input, char *text)
{
	struct partition_arguments *a = input;
	if (a->plan.given_count == NUMBERS_WORDS_MAX)
		return gw_fail(GW_LIMIT, "more than %u", NUMBERS_WORDS_MAX);
	a->given[a->plan.given_count++] = text;
	return GW_OK;
}

static gw_status partition_take_weight(void *input, char *text)
{
	struct partition_arguments *a = input;
	if (strchr(text, ':') && !gw_weight_is_typed(text))
		return gw_fail(GW_INVALID, "\"%.200s\": write NAME or SRC:REL:DST:NAME", text);
	if (a->num_weights == GW_WEIGHTS_MAX)
		return gw_fail(GW_LIMIT, "more than %u", GW_WEIGHTS_MAX);
	a->weights[a->num_weights++] = text;
	return GW_OK;
}

static gw_status partition_take_time(void *input, char *text)
{
	struct partition_arguments *a = input;
	gw_status status = gw_time_word_check(text);
	if (status == GW_OK && a->num_times == GW_TIME_WORDS_MAX)
		status = gw_fail(GW_LIMIT, "more than %u", GW_TIME_WORDS_MAX);
	if (status == GW_OK)
		a->times[a->num_times++] = text;
	return status;
}

static gw_status partition_take_store(void *input, char *text)
{
	struct partition_arguments *a = input;
	gw_status status = gw_store_word_check(text);
	if (status == GW_OK && a->num_stores == GW_STORE_WORDS_MAX)
		status = gw_fail(GW_LIMIT, "more than %u", GW_STORE_WORDS_MAX);
	if (status == GW_OK)
		a->stores[a->num_stores++] = text;
	return status;
}

static gw_status partition_take_replicate(void *input, char *text)
{
	return gw_replicate_rows_parse(text, &((struct partition_arguments *)input)->replicas);
}

static gw_status partition_take_by(void *input, char *text)
{
	struct gw_replicate_plan *plan = &((struct partition_arguments *)input)->replicas;
	plan->by_set = true;
	return gw_replicate_by_parse(text, plan);
}

static gw_status partition_take_fanouts(void *input, char *text)
{
	return gw_replicate_fanouts_parse(text, &((struct partition_arguments *)input)->replicas);
}

static gw_status partition_take_fanout(void *input, char *text)
{
	return gw_replicate_fanout_parse(text, &((struct partition_arguments *)input)->replicas);
}

static gw_status check_replicas(const struct partition_arguments *a)
{
	const struct gw_replicate_plan *plan = &a->replicas;
	bool described = plan->by_set || plan->fanouts.hops || plan->override_count;
	if (!plan->set)
		return described ? gw_fail(GW_INVALID, "--by and --fanouts say which rows: add --replicate") : GW_OK;
	if (plan->fanouts.hops == 0)
		return gw_fail(GW_INVALID, "--replicate: give the trainers' --fanouts, such as 15,10,5");
	if (a->plan.parts == 1)
		return gw_fail(GW_INVALID, "--replicate: in one part no row is remote");
	return GW_OK;
}

static gw_status partition_check(void *input)
{
	struct partition_arguments *a = input;
	struct gw_plan *plan = &a->plan;
	if (plan->given_count == 0 && plan->method == GW_PLAN_GIVEN)
		plan->method = GW_PLAN_METIS;
	if (plan->objective == GW_PLAN_VOL && (plan->method == GW_PLAN_LP || plan->method == GW_PLAN_KAMINPAR))
		return gw_fail(GW_INVALID, "--objtype vol is of METIS: leave it out, or use --method metis");
	if (plan->given_count && plan->method != GW_PLAN_GIVEN)
		return gw_fail(GW_INVALID, "--assignment replaces --method: give one of them");
	if (plan->given_count && (plan->balance_train || plan->balance_edges || plan->balance_ntypes || a->num_numbers))
		return gw_fail(GW_INVALID,
			       "--assignment says where each node goes: leave out the options that balance");
	if (plan->given_count && plan->trainers > 1)
		return gw_fail(GW_INVALID, "--assignment has no pieces for --num-trainers-per-machine: leave it out");
	if (plan->balance_train && a->num_numbers)
		return gw_fail(GW_INVALID, "--balance-nodes replaces --balance-train: give one of them");
	if ((uint64_t)plan->parts * plan->trainers > GW_PARTS_MAX)
		return gw_fail(GW_LIMIT, "parts times trainers: %llu, but at most %u are allowed",
			       (unsigned long long)plan->parts * plan->trainers, GW_PARTS_MAX);
	return check_replicas(a);
}

static const char *const methods[] = {"metis", "random", "kaminpar", "lp", "auto", NULL};
static const char *const objectives[] = {"cut", "vol", NULL};

#define A struct partition_arguments
static const struct gw_option table[] = {
	{"num-parts", "N", "number of parts, one for each machine", 0,
	 GW_OPTION_NUMBER(A, plan.parts, 1, GW_PARTS_MAX, .missing = "give the number of parts")},
	{"out", "FOLDER", "write the parts here (must not exist)", 0,
	 GW_OPTION_TEXT(A, out, .missing = "name a new folder for the parts")},
	{"method", "metis|lp|kaminpar|random|auto",
	 "metis (default) cuts few edges; lp, label propagation, cuts about as few in less memory and time, for any size; "
	 "kaminpar runs Python's module of that name; random needs least; auto takes metis if it fits, else lp, else random",
	 1, GW_OPTION_CHOICE(A, plan.method, methods)},
	{"python", "PROGRAM",
	 "the Python that has the module kaminpar (default python3); install it with pip install kaminpar", 1,
	 GW_OPTION_TEXT(A, plan.python)},
	{"assignment", "[TYPE=]FILE|FOLDER",
	 "take the part of each node from another partitioner: FILE.npy of integers, or text with PART or NODE PART on each "
	 "line, for the nodes of the type, or of all types in the graph's order; FOLDER: TYPE.npy or TYPE.txt of each type; "
	 "may be repeated",
	 1, GW_OPTION_CALL(partition_take_given)},
	{"objtype", "cut|vol", "what METIS minimises: edges cut (default) or communication volume", 1,
	 GW_OPTION_CHOICE(A, plan.objective, objectives)},
	{"balance-train", NULL, "balance training nodes: nodes whose feature \"" GW_PLAN_TRAIN_MASK "\" is set", 1,
	 GW_OPTION_FLAG(A, plan.balance_train)},
	{"balance-edges", NULL, "balance edges (with random they balance by chance)", 1,
	 GW_OPTION_FLAG(A, plan.balance_edges)},
	{"balance-ntypes", NULL, "balance the nodes of each type, not only all nodes together (random always does)", 1,
	 GW_OPTION_FLAG(A, plan.balance_ntypes)},
	{"balance-nodes", "[TYPE=]FILE",
	 "balance the nodes of each class: FILE.npy has a class number, uint8 from 0 to 31, of each node of the type; "
	 "the types are balanced too; may be repeated",
	 1, GW_OPTION_CALL(partition_take_numbers)},
	{"num-trainers-per-machine", "N",
	 "above 1: each part has N pieces, one for each trainer of its machine, "
	 "and nodes and edges get an int64 feature \"" GW_PLAN_TRAINER_ID
	 "\", part * N + trainer, for DGL's node_split and edge_split",
	 1, GW_OPTION_NUMBER(A, plan.trainers, 1, GW_PARTS_MAX)},
	{"weight", "[SRC:REL:DST:]NAME",
	 "add an alias table, 8 bytes an edge, to an edge feature of numbers >= 0: draws by weight read it; without a "
	 "type, to NAME of every edge type that has it; may be repeated. Tables of the input stay in any case",
	 1, GW_OPTION_CALL(partition_take_weight)},
	{"time", "[SRC:REL:DST:]NAME",
	 "sort the lists of each edge type with an edge feature NAME by it; of the others, by the feature NAME of the "
	 "source type's nodes, whose times are then stored for each edge as NAME.source, 4 or 8 bytes an edge "
	 "(--time NAME.source: in any case); nodes with NAME get an index of it. int64, int32, float64 or float32; may "
	 "be repeated. Lists that the input has by time stay so in any case",
	 1, GW_OPTION_CALL(partition_take_time)},
	{"store", "[TYPE:]NAME=DTYPE",
	 "store the rows of a feature as float16, bfloat16 or int8_row (8 bits a number, scale and offset a row): clients "
	 "fetch fewer bytes, and get the rows in their original type. TYPE is a node type or SRC:REL:DST; without it, "
	 "NAME of all types; may be repeated",
	 1, GW_OPTION_CALL(partition_take_store)},
	{"replicate", "SHARE%|SIZE",
	 "copy rows of other parts that a part's trainers will want most into the part: this share of the rows of each "
	 "node type, or so many bytes a part; graphwire replicate has more options",
	 1, GW_OPTION_CALL(partition_take_replicate)},
	{"by", "vip|degree|epochs:N", "which rows (default vip); graphwire replicate --help explains them", 1,
	 GW_OPTION_CALL(partition_take_by)},
	{"fanouts", "N,N,...", "the trainers' fanouts, for --replicate", 1, GW_OPTION_CALL(partition_take_fanouts)},
	{"fanout", "ETYPE=N,N,...", "their fanouts of one edge type; may be repeated", 1,
	 GW_OPTION_CALL(partition_take_fanout)},
	{"batch-size", "N", "their seeds of a mini-batch (default 1000)", 1,
	 GW_OPTION_NUMBER(A, replicas.batch_size, 1, 1u << 24)},
	{"seed", "N",
	 "seed of the partitioning (default 0); the same seed gives the same bytes, with kaminpar if --threads is 1", 1,
	 GW_OPTION_NUMBER(A, plan.seed, 0, UINT64_MAX)},
	{"replace", NULL, "replace an existing graph; other files in its folder stay", 2, GW_OPTION_FLAG(A, replace)},
	{"threads", "N", "default: all processors; the result does not depend on it, but with kaminpar", 2,
	 GW_OPTION_NUMBER(A, plan.threads, 1, 256)},
	{"memory", "SIZE",
	 "memory that the method may use, such as 20Gi (default: the free memory); with too little for its clusters lp may "
	 "cut more edges; lists of a part beyond half of it are in temporary files in the folder of FOLDER",
	 2, GW_OPTION_NUMBER(A, plan.memory_max, 1, UINT64_MAX)},
	{"json", NULL, "the report as one JSON object", 2, GW_OPTION_FLAG(A, json)},
	{0},
};
#undef A

static double partition_seconds_since(uint64_t start_ns)
{
	return (double)(gw_now_ns() - start_ns) * 1e-9;
}

static void drop_mapping(const struct gw_part *part)
{
	const struct gw_array *array;
	for (uint32_t i = 0; (array = gw_part_array_at(part, i)); i++)
		gw_filemap_drop(array->data, array->data + array->rows * array->row_bytes);
}

static uint64_t peak_bytes(int who)
{
	struct rusage usage;
	getrusage(who, &usage);
	return (uint64_t)usage.ru_maxrss * 1024;
}

/* Refuses an existing output, or one without a parent folder, before hours of work, not after. Refuses the input as
 * output, even with --replace. */
static gw_status check_output(const struct partition_arguments *a, const struct gw_graph_meta *meta)
{
	struct stat out;
	if (!a->replace && lstat(a->out, &out) == 0)
		return gw_fail(GW_EXISTS, "%s: exists already; remove it, or add --replace", a->out);
	gw_status status = gw_staging_check_parent(a->out);
	if (status == GW_OK && a->replace)
		status = gw_meta_check_replaceable(a->out, NULL);
	if (status == GW_OK && a->replace)
		status = gw_builder_input_check(a->out, meta->folder[0] ? meta->folder : ".");
	for (uint32_t i = 0; i < a->plan.given_count && status == GW_OK && a->replace; i++) {
		const char *word = a->given[i], *equals = strchr(word, '=');
		struct stat given;
		const char *path = stat(word, &given) != 0 && equals ? equals + 1 : word;
		if (stat(path, &given) == 0 && S_ISREG(given.st_mode))
			status = gw_builder_input_check(a->out, path);
	}
	return status;
}

/* Before reading the arrays: refuses METIS in a build without METIS, and by its JSON a graph that is too large for
 * METIS. The JSON does not show which edges are loops, so all may be. */
static gw_status partition_check_counts(const struct gw_plan *plan, const struct gw_graph_meta *meta)
{
	uint64_t nodes = 0, edges = 0;
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		nodes += meta->ntypes[t].count;
	for (uint32_t e = 0; e < meta->num_etypes; e++)
		edges += meta->etypes[e].count;
	if (plan->method == GW_PLAN_KAMINPAR)
		return gw_kaminpar_check(plan);
	if (plan->method != GW_PLAN_METIS || (uint64_t)plan->parts * plan->trainers == 1)
		return GW_OK;
	gw_status status = gw_metis_check_built();
	return status == GW_OK ? gw_metis_check_counts(nodes, 0, edges, 1) : status;
}

/* The parts are in place already: a second rename adds the replicas. */
static gw_status replicate_parts(const struct partition_arguments *a, struct gw_plan_report *report,
				 struct gw_replicate_report *replicas)
{
	gw_status status = gw_replicate(&a->replicas, report->config, false, replicas);
	report->replicas = replicas;
	return status == GW_OK ? status
			       : gw_context(status, "%s: the parts are whole, and have no replicas", report->config);
}

static gw_status run_part(struct partition_arguments *a, const struct gw_part *part, struct gw_plan_report *report)
{
	struct gw_assignment assignment = {0};
	struct gw_plan_quality quality = {0};
	struct gw_split_stats split;
	struct gw_replicate_report replicas = {0};
	uint64_t measure_ns;
	struct gw_plan *plan = &a->plan;
	gw_status status = gw_assignment_make(plan, part, &assignment);
	if (status == GW_OK)
		status = gw_assign(plan, part, &assignment);
	report->method = gw_plan_method_name(plan->method);
	measure_ns = gw_now_ns();
	if (status == GW_OK)
		status = gw_plan_quality_measure(plan, part, &assignment, &quality);
	report->measure_s = partition_seconds_since(measure_ns);
	if (status == GW_OK)
		status = gw_split(plan, part, &assignment, a->out, a->replace, &split);
	if (status == GW_OK)
		status = gw_tables_record_copy(report->meta, a->out, split.graph_id);
	if (status == GW_OK && a->replicas.set)
		status = replicate_parts(a, report, &replicas);
	if (status == GW_OK) {
		if (plan->chosen)
			assignment.note =
				plan->method == GW_PLAN_METIS ? "auto took metis, whose memory suffices"
				: plan->method == GW_PLAN_LP
					? "auto took lp, because METIS does not take this graph, or not within the memory"
					: "auto took random, because METIS and lp do not take this graph, or not within "
					  "the memory";
		report->assignment = &assignment;
		report->quality = &quality;
		report->split = &split;
		report->volume = plan->objective == GW_PLAN_VOL;
		report->peak_bytes = peak_bytes(RUSAGE_SELF);
		report->peak_process_bytes = assignment.process ? peak_bytes(RUSAGE_CHILDREN) : 0;
		report->total_s += partition_seconds_since(measure_ns) + assignment.symmetric_s + assignment.method_s;
		status = gw_plan_report_print(report, a->json);
	}
	report->assignment = NULL;
	report->quality = NULL;
	report->split = NULL;
	report->replicas = NULL;
	gw_replicate_report_free(&replicas);
	gw_plan_quality_free(&quality);
	gw_assignment_free(&assignment);
	return status;
}

static gw_status partition_command_run(const struct partition_arguments *a)
{
	struct gw_part_options open = {.mapped = true, .load = {.verify_threads = a->plan.threads}};
	struct gw_graph_meta *meta = NULL;
	struct gw_part *part = NULL;
	uint64_t start_ns = gw_now_ns();
	gw_status status = gw_meta_read(a->graph, &meta);
	if (status == GW_OK)
		status = check_output(a, meta);
	if (status == GW_OK && meta->num_parts != 1)
		status = gw_fail(GW_INVALID, "%s: in %u parts already; partition the one-part graph it came from",
				 a->graph, meta->num_parts);
	if (status == GW_OK)
		status = partition_check_counts(&a->plan, meta);
	if (status == GW_OK)
		status = gw_part_open(meta, 0, &open, &part);
	if (status != GW_OK) {
		gw_meta_destroy(meta);
		return status;
	}
	struct partition_arguments found = *a;
	struct gw_plan_number_files *numbers;
	status = gw_plan_numbers_read(a->numbers, a->num_numbers, meta, &numbers);
	if (status == GW_OK)
		status = gw_plan_weights_find(a->weights, a->num_weights, part, a->plan.threads, &found.plan.weights);
	if (status == GW_OK)
		status = gw_plan_times_find(a->times, a->num_times, part, a->plan.threads, &found.plan.times);
	if (status == GW_OK)
		status = gw_plan_stores_find(a->stores, a->num_stores, part, a->plan.threads, &found.plan.weights,
					     &found.plan.times, &found.plan.stores);
	if (status != GW_OK)
		goto close_part;
	found.plan.numbers = gw_plan_numbers_of(numbers);
	found.plan.given = a->given;
	found.plan.out = a->out;
	drop_mapping(part);
	status = gw_plan_choose(&found.plan, part);
	if (status != GW_OK)
		goto close_part;
	struct gw_plan_report report = {.meta = meta, .open_s = partition_seconds_since(start_ns)};
	report.total_s = report.open_s;
	char *config = gw_format("%s/%s.json", a->out, meta->graph_name);
	report.config = config;
	status = config ? run_part(&found, part, &report) : GW_NO_MEMORY;
	gw_free(config);
close_part:
	gw_plan_weights_free(&found.plan.weights);
	gw_time_plan_free(&found.plan.times);
	gw_store_plan_free(&found.plan.stores);
	gw_plan_numbers_free(numbers);
	gw_part_close(part);
	gw_meta_destroy(meta);
	return status;
}

int gw_tool_partition(int argc, char **argv)
{
	static const struct gw_options options = {.table = table,
						  .argument = "GRAPH",
						  .argument_to = GW_OPTION_TEXT(struct partition_arguments, graph),
						  .argument_missing = "name the JSON or the folder of a graph",
						  .doc = doc,
						  .check = partition_check};
	struct partition_arguments a = {
		.plan = {.trainers = 1, .method = GW_PLAN_GIVEN, .python = "python3"}, /* until --method says another */
		.replicas = {.batch_size = 1000, .seed = 1}};
	gw_options_parse(&options, argc, argv, &a);
	a.replicas.threads = a.plan.threads;
	gw_status status = partition_command_run(&a);
	return gw_exit_status("graphwire partition", status);
}
