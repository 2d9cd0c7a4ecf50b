/* graphwire replicate: copies the rows that a part's trainers will want most into the part. */
#include <stdio.h>

#include "core/errors/options.h"
#include "tools/replicate/replicate.h"
#include "tools/tools.h"

static const char doc[] =
	"Copy the rows of other parts that a part's trainers will want most into the part, so that trainers on its host "
	"read them from memory. PARTS is the JSON or the folder of a partitioned graph, with all parts.\v"
	"The replicas of an earlier run are replaced; --rows 0 removes them. The graph's id, and every mini-batch, stays "
	"the same. Servers that run keep what they loaded; start them again.\n\n"
	"vip: how likely a mini-batch has the row, from the lists and the fanouts. degree: how many lists name it. "
	"epochs:N: how many mini-batches of N epochs have it, counted with the loader itself.\n\n"
	"Examples:\n"
	"  graphwire replicate parts/ --rows 5% --fanouts 15,10,5 --batch-size 1024\n"
	"  graphwire replicate parts/ --rows 20Gi --by epochs:3 --fanouts 25,10 \\\n"
	"                      --features paper:feat\n"
	"  graphwire replicate parts/ --rows 0\n";

struct replicate_arguments {
	struct gw_replicate_plan plan;
	const char *config;
	bool no_verify, json;
};

static gw_status take_rows(void *input, char *text)
{
	return gw_replicate_rows_parse(text, &((struct replicate_arguments *)input)->plan);
}

static gw_status take_by(void *input, char *text)
{
	return gw_replicate_by_parse(text, &((struct replicate_arguments *)input)->plan);
}

static gw_status replicate_take_fanouts(void *input, char *text)
{
	return gw_replicate_fanouts_parse(text, &((struct replicate_arguments *)input)->plan);
}

static gw_status take_fanout(void *input, char *text)
{
	return gw_replicate_fanout_parse(text, &((struct replicate_arguments *)input)->plan);
}

static gw_status take_features(void *input, char *text)
{
	struct gw_replicate_plan *plan = &((struct replicate_arguments *)input)->plan;
	return gw_split_list(text, GW_REPLICATE_WORDS_MAX, plan->features, &plan->num_features);
}

static gw_status replicate_check(void *input)
{
	const struct replicate_arguments *a = input;
	bool any = a->plan.share > 0 || a->plan.bytes > 0;
	if (!a->plan.set)
		return gw_fail(GW_INVALID, "--rows is missing: say how many rows, such as 5%% or 20Gi");
	return any && a->plan.fanouts.hops == 0
		       ? gw_fail(GW_INVALID, "--fanouts is missing: give those of the trainers, such as 15,10,5")
		       : GW_OK;
}

#define A struct replicate_arguments
static const struct gw_option table[] = {
	{"rows", "SHARE%|SIZE",
	 "how many rows a part gets: a share of the rows of each node type, or the bytes of all its replicas; 0 removes "
	 "the replicas",
	 0, GW_OPTION_CALL(take_rows)},
	{"by", "vip|degree|epochs:N", "which rows (default vip)", 0, GW_OPTION_CALL(take_by)},
	{"fanouts", "N,N,...", "the fanouts of the trainers, hop by hop from the seeds; -1: all neighbours", 0,
	 GW_OPTION_CALL(replicate_take_fanouts)},
	{"fanout", "ETYPE=N,N,...", "fanouts of one edge type; may be repeated", 0, GW_OPTION_CALL(take_fanout)},
	{"batch-size", "N", "seeds of a mini-batch (default 1000)", 0,
	 GW_OPTION_NUMBER(A, plan.batch_size, 1, 1u << 24)},
	{"features", "[TYPE:]NAME,...",
	 "the node features whose rows are copied (default: those with more than one number a row)", 1,
	 GW_OPTION_CALL(take_features)},
	{"ntype", "NAME", "node type of the seeds (default: the first with the mask, or with labels)", 1,
	 GW_OPTION_TEXT(A, plan.ntype)},
	{"mask", "NAME", "the seeds are the nodes where this is set (default: train_mask, if it exists)", 1,
	 GW_OPTION_TEXT(A, plan.mask)},
	{"seed", "N", "seed of the epochs that --by epochs:N counts (default 1)", 1,
	 GW_OPTION_NUMBER(A, plan.seed, 0, UINT64_MAX)},
	{"no-verify", NULL, "do not compare the digests of the graph's arrays first", 2, GW_OPTION_FLAG(A, no_verify)},
	{"threads", "N", "default: all processors; the result does not depend on it", 2,
	 GW_OPTION_NUMBER(A, plan.threads, 1, 256)},
	{"json", NULL, "the report as one JSON object", 2, GW_OPTION_FLAG(A, json)},
	{0},
};
#undef A

int gw_tool_replicate(int argc, char **argv)
{
	static const struct gw_options options = {.table = table,
						  .argument = "PARTS",
						  .argument_to = GW_OPTION_TEXT(struct replicate_arguments, config),
						  .argument_missing =
							  "name the JSON or the folder of a partitioned graph",
						  .doc = doc,
						  .check = replicate_check};
	struct replicate_arguments a = {.plan = {.batch_size = 1000, .seed = 1}};
	struct gw_replicate_report report;
	gw_options_parse(&options, argc, argv, &a);
	gw_status status = gw_replicate(&a.plan, a.config, !a.no_verify, &report);
	if (status == GW_OK)
		status = gw_replicate_report_print(&report, a.json);
	gw_replicate_report_free(&report);
	return gw_exit_status("graphwire replicate", status);
}
