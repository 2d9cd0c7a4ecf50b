/* graphwire import: the command line. What the words mean is tools/import_plan.c's; the work is tools/import_run.c's.
 */
#include "tools/import.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "tools/import_apt.h"
#include "tools/tools.h"

enum {
	OPT_FROM = 256,
	OPT_EDGES,
	OPT_TRIPLES,
	OPT_FORMAT,
	OPT_OUT,
	OPT_NAME,
	OPT_REPLACE,
	OPT_THREADS,
	OPT_QUIET,
	OPT_DELIMITER,
	OPT_HEADER,
	OPT_NO_HEADER,
	OPT_COMMENT,
	OPT_SRC,
	OPT_DST,
	OPT_REL,
	OPT_WEIGHT,
	OPT_TIME,
	OPT_TIME_DIGITS,
	OPT_EDGE_COLUMN,
	OPT_IDS,
	OPT_NUM_NODES,
	OPT_NODES,
	OPT_RELATIONS,
	OPT_NODE_FEATURE,
	OPT_NODE_MASK,
	OPT_EDGE_FEATURE,
	OPT_UNDIRECTED,
	OPT_REVERSE,
	OPT_TRANSPOSE,
};

static const struct argp_option options[] = {
	{NULL, 0, NULL, 0, "Input (each may be given several times):", 1},
	{"from", OPT_FROM, "FILE", 0,
	 "edges of a homogeneous graph: text (gzip or not), .npy, .npz; or DGL's metadata.json", 1},
	{"edges", OPT_EDGES, "SRC:REL:DST=FILE", 0, "edges of one type", 1},
	{"triples", OPT_TRIPLES, "[SPLIT=]FILE", 0,
	 "head, relation, tail; SPLIT is train, valid or test and becomes a mask", 1},
	{"format", OPT_FORMAT, "FORMAT", 0, "text, npy, npz or dgl, where a file's name does not tell", 1},
	{NULL, 0, NULL, 0, "Text:", 2},
	{"delimiter", OPT_DELIMITER, "CHAR", 0,
	 "tab, comma, semicolon, space or a character (default: by the first line)", 2},
	{"header", OPT_HEADER, NULL, 0,
	 "the first line names the columns (default: it does if there are numbers below it, but none in it, or if it "
	 "says "
	 "src and dst, source and target or the like)",
	 2},
	{"no-header", OPT_NO_HEADER, NULL, 0, "the first line is data", 2},
	{"comment", OPT_COMMENT, "CHARS", 0, "lines that start so are skipped (default #%, none for triples)", 2},
	{"src-column", OPT_SRC, "COLUMN", 0, "name, or number from 1 (default 1)", 2},
	{"dst-column", OPT_DST, "COLUMN", 0, "(default 2; 3 for triples)", 2},
	{"rel-column", OPT_REL, "COLUMN", 0, "relation of triples (default 2)", 2},
	{"weight", OPT_WEIGHT, "COLUMN", 0,
	 "edge feature \"weight\", float32 >= 0, with an alias table for weighted sampling", 2},
	{"time", OPT_TIME, "COLUMN", 0, "edge feature \"time\", int64; lists are sorted by it", 2},
	{"time-digits", OPT_TIME_DIGITS, "N", 0,
	 "decimal digits of the time that are kept: 3 makes seconds milliseconds (default 0)", 2},
	{"edge-column", OPT_EDGE_COLUMN, "NAME=COLUMN", 0, "a further edge feature, float32", 2},
	{NULL, 0, NULL, 0, "Ids:", 3},
	{"ids", OPT_IDS, "KIND", 0, "auto; dense (numbers stay), compact (numbers, numbered anew), text", 3},
	{"num-nodes", OPT_NUM_NODES, "[TYPE=]N", 0, "nodes of a type; ids are dense (default: largest id + 1)", 3},
	{"nodes", OPT_NODES, "[TYPE=]FILE", 0,
	 "ids in the order of their numbers, one a line, or \"number name\" (entities.dict)", 3},
	{"relations", OPT_RELATIONS, "FILE", 0, "the same for the relations of triples", 3},
	{NULL, 0, NULL, 0, "Features (.npy, or .npz:MEMBER):", 4},
	{"node-feature", OPT_NODE_FEATURE, "[TYPE:]NAME=FILE", 0,
	 "row r belongs to input id r, or to line r of --nodes", 4},
	{"node-mask", OPT_NODE_MASK, "[TYPE:]NAME=FILE", 0, "bools or 0 and 1, a row each, or a list of ids", 4},
	{"edge-feature", OPT_EDGE_FEATURE, "[SRC:REL:DST:]NAME=FILE", 0, "row r belongs to input edge r", 4},
	{NULL, 0, NULL, 0, "Structure:", 5},
	{"undirected", OPT_UNDIRECTED, NULL, 0, "store every edge in both directions", 5},
	{"reverse", OPT_REVERSE, NULL, 0, "add DST:rev_REL:SRC for every edge type", 5},
	{"transpose", OPT_TRANSPOSE, NULL, 0, "store out-edges too", 5},
	{NULL, 0, NULL, 0, "Output:", 6},
	{"out", OPT_OUT, "FOLDER", 0, "where the graph goes (must not exist)", 6},
	{"name", OPT_NAME, "NAME", 0, "the graph's name (default: what metadata.json says, else graph)", 6},
	{"replace", OPT_REPLACE, NULL, 0, "replace an existing graph", 6},
	{"threads", OPT_THREADS, "N", 0, "default: all processors", 6},
	{"quiet", OPT_QUIET, NULL, 0, "errors only", 6},
	{0},
};

static const char doc[] =
	"Turn edge lists, NumPy arrays, triples or a chunked graph into a one-part graph; graphwire partition cuts "
	"it.\v"
	"Ids that are numbers keep their value (dense) unless they are sparse; sparse ones and names are numbered in "
	"the "
	"order of their first appearance and kept as orig_id. An .npz needs no further options: src and dst (or "
	"edges), "
	"num_nodes, x, y, train_idx, val_idx, test_idx are recognized. graphwire import apt --help tells about "
	"packages.\n\n"
	"Examples:\n"
	"  graphwire import --from edges.tsv.gz --out graph/\n"
	"  graphwire import --from ratings.csv --src-column user --dst-column item \\\n"
	"                   --time when --edge-column stars=rating --out graph/\n"
	"  graphwire import --edges author:writes:paper=writes.csv \\\n"
	"                   --edges paper:cites:paper=cites.csv --reverse \\\n"
	"                   --node-feature paper:feat=paper.npy \\\n"
	"                   --node-mask paper:train_mask=train.npy --out graph/\n"
	"  graphwire import --triples train=train.tsv --triples valid=valid.tsv \\\n"
	"                   --triples test=test.tsv --out kg/\n"
	"  graphwire import --from cora.npz --out cora/\n"
	"  graphwire import --from chunked/metadata.json --out graph/\n"
	"  graphwire import apt --out packages/\n";

struct arguments {
	struct gw_import_options import;
	struct gw_import_word *words;
	bool comments_given;
};

static error_t add_word(struct arguments *a, enum gw_import_kind kind, const char *text)
{
	struct gw_import_word *grown = gw_realloc(a->words, a->import.num_words + 1, sizeof(*a->words));
	if (!grown)
		return ENOMEM;
	a->words = grown;
	a->words[a->import.num_words++] = (struct gw_import_word){.kind = kind, .text = text};
	return 0;
}

static gw_status parse_delimiter(const char *text, char *out)
{
	static const struct {
		const char *name;
		char delimiter;
	} names[] = {{"tab", '\t'}, {"\\t", '\t'}, {"comma", ','}, {"semicolon", ';'}, {"space", ' '}, {"pipe", '|'}};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i].name, text) == 0) {
			*out = names[i].delimiter;
			return GW_OK;
		}
	}
	if (strlen(text) != 1 || text[0] == '"' || text[0] == '\n')
		return gw_fail(GW_INVALID, "--delimiter \"%.32s\" is not one character", text);
	*out = text[0];
	return GW_OK;
}

static gw_status take_value(int key, const char *arg, struct arguments *a)
{
	static const char *const formats[] = {"auto", "text", "npy", "npz", "dgl", NULL};
	static const char *const ids[] = {"auto", "dense", "compact", "text", NULL};
	struct gw_import_options *o = &a->import;
	uint64_t value = 0;
	int choice = 0;
	gw_status status = GW_OK;
	switch (key) {
	case OPT_FORMAT:
		status = gw_parse_choice(arg, formats, &choice);
		o->format = (enum gw_import_format)choice;
		return status;
	case OPT_IDS:
		status = gw_parse_choice(arg, ids, &choice);
		o->ids = (enum gw_import_ids)choice;
		return status;
	case OPT_THREADS:
		status = gw_parse_u64(arg, 1, 256, &value);
		o->build.threads = (unsigned)value;
		return status;
	case OPT_TIME_DIGITS:
		status = gw_parse_u64(arg, 0, 9, &value);
		o->time_digits = (uint32_t)value;
		return status;
	case OPT_DELIMITER:
		status = parse_delimiter(arg, &o->text.delimiter);
		o->text.quotes = o->text.delimiter == ',' || o->text.delimiter == ';';
		return status;
	default:
		if (strlen(arg) > GW_TABLE_COMMENTS_MAX)
			return gw_fail(GW_INVALID, "--comment takes at most %u characters", GW_TABLE_COMMENTS_MAX);
		snprintf(o->text.comments, sizeof(o->text.comments), "%s", arg);
		a->comments_given = true;
		return GW_OK;
	}
}

static bool take_flag(int key, char *arg, struct gw_import_options *o)
{
	switch (key) {
	case OPT_HEADER:
		o->text.header = GW_HEADER_YES;
		return true;
	case OPT_NO_HEADER:
		o->text.header = GW_HEADER_NONE;
		return true;
	case OPT_UNDIRECTED:
		o->undirected = true;
		return true;
	case OPT_REVERSE:
		o->reverse = true;
		return true;
	case OPT_TRANSPOSE:
		o->transpose = true;
		return true;
	case OPT_REPLACE:
		o->build.replace = true;
		return true;
	case OPT_QUIET:
		o->build.quiet = true;
		return true;
	case OPT_OUT:
		o->out = arg;
		return true;
	case OPT_NAME:
		o->name = arg;
		return true;
	case OPT_SRC:
		o->src_column = arg;
		return true;
	case OPT_DST:
		o->dst_column = arg;
		return true;
	case OPT_REL:
		o->rel_column = arg;
		return true;
	case OPT_WEIGHT:
		o->weight_column = arg;
		return true;
	case OPT_TIME:
		o->time_column = arg;
		return true;
	case OPT_RELATIONS:
		o->relations = arg;
		return true;
	default:
		return false;
	}
}

static int word_kind(int key)
{
	switch (key) {
	case OPT_FROM:
	case OPT_EDGES:
		return GW_IMPORT_EDGES;
	case OPT_TRIPLES:
		return GW_IMPORT_TRIPLES;
	case OPT_NODES:
		return GW_IMPORT_NODES;
	case OPT_NUM_NODES:
		return GW_IMPORT_NUM_NODES;
	case OPT_NODE_FEATURE:
		return GW_IMPORT_NODE_FEATURE;
	case OPT_NODE_MASK:
		return GW_IMPORT_NODE_MASK;
	case OPT_EDGE_FEATURE:
		return GW_IMPORT_EDGE_FEATURE;
	case OPT_EDGE_COLUMN:
		return GW_IMPORT_EDGE_COLUMN;
	default:
		return -1;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	if (key == ARGP_KEY_ARG)
		argp_error(state, "\"%s\": inputs are named by --from, --edges or --triples", arg);
	if (key == ARGP_KEY_END) {
		if (!a->import.out)
			argp_error(state, "--out FOLDER is missing: where shall the graph go?");
		if (a->import.undirected && a->import.reverse)
			argp_error(state, "--undirected holds every edge's reverse already: leave out --reverse");
		return 0;
	}
	if (key < OPT_FROM || key > OPT_TRANSPOSE)
		return ARGP_ERR_UNKNOWN;
	int kind = word_kind(key);
	if (kind >= 0)
		return add_word(a, (enum gw_import_kind)kind, arg);
	if (!take_flag(key, arg, &a->import) && take_value(key, arg, a) != GW_OK)
		argp_error(state, "%s", gw_last_error());
	return 0;
}

int gw_tool_import(int argc, char **argv)
{
	static const struct argp argp = {options, parse, NULL, doc, NULL, NULL, NULL};
	struct arguments a = {0};
	struct gw_builder_stats stats = {0};
	char name[GW_NAME_MAX + 1];
	if (argc > 1 && strcmp(argv[1], "apt") == 0) {
		static char apt[] = "graphwire import apt";
		argv[1] = apt;
		return gw_import_apt_main(argc - 1, argv + 1);
	}
	if (gw_options_parse(&argp, argc, argv, &a) != 0) {
		gw_free(a.words);
		return 2;
	}
	bool triples = false;
	for (uint32_t i = 0; i < a.import.num_words; i++)
		triples |= a.words[i].kind == GW_IMPORT_TRIPLES;
	if (!a.comments_given)
		snprintf(a.import.text.comments, sizeof(a.import.text.comments), "%s", triples ? "" : "#%");
	a.import.words = a.words;
	gw_status status = gw_import_run(&a.import, &stats, name);
	gw_free(a.words);
	if (status) {
		fprintf(stderr, "graphwire import: %s\n", gw_last_error());
		return 1;
	}
	char nodes[GW_UNIT_TEXT_MAX], edges[GW_UNIT_TEXT_MAX];
	printf("%s/%s.json: %s nodes, %s edges\n", a.import.out, name, gw_text_count(nodes, (double)stats.nodes),
	       gw_text_count(edges, (double)stats.edges));
	return 0;
}
