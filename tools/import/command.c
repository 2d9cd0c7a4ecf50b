/* graphwire import: the command line. tools/import/plan.c interprets the words; tools/import/run.c does the work. */
#include "tools/import/import.h"

#include <stdio.h>
#include <string.h>

#include "core/graph/records.h"
#include "core/memory/alloc.h"
#include "tools/import/columns.h"
#include "tools/import/combine.h"
#include "tools/import/id_numbers.h"
#include "tools/import/number_table.h"
#include "tools/output_options.h"
#include "tools/phase.h"
#include "tools/store.h"
#include "tools/tools.h"

static const char doc[] =
	"Turn edge lists, NumPy arrays, triples or a chunked graph into a one-part graph. "
	"graphwire partition cuts it.\v"
	"Numeric ids keep their value (dense) unless they are sparse. Sparse ids and names are numbered in the order "
	"of their first appearance and stored as orig_id. An .npz needs no further options: src and dst (or edges), "
	"num_nodes, x, y, train_idx, val_idx, test_idx are recognized. Matrices (Matrix Market, scipy.sparse.save_npz) "
	"and LightGraphs' files contain the number of nodes; row i, column j is the edge from i to j.\n\n"
	"A header may have the known names of ends in any column, order and case: src and dst, source and target, "
	"from and to, u and v, head and tail, user and item, follower and followee, :START_ID and :END_ID, "
	"the same with _id, and SRC and DST of --edges. One line on standard error names the columns in use. "
	"A first line that may be a header or an edge is refused: use --header or --no-header. Other formats, "
	"such as GraphML, GML, JSON, N-Triples and METIS's, are refused by name, unless --format text is given.\n\n"
	"graphwire import table --help describes the conversion of text tables of numbers to .npy, "
	"graphwire import columns --help how to see what import reads, graphwire import combine --help how types of "
	"several graphs become one, graphwire import ids --help how ids alone are numbered.\n\n"
	"Examples:\n"
	"  graphwire import --from edges.tsv.gz --out graph/\n"
	"  graphwire import --from ratings.csv --src-column user --dst-column item \\\n"
	"                   --time when --edge-column stars=rating --out graph/\n"
	"  graphwire import --edges author:writes:paper=writes.csv \\\n"
	"                   --edges paper:cites:paper=cites.csv --reverse \\\n"
	"                   --node-feature paper:feat=paper.npy \\\n"
	"                   --node-mask paper:train_mask=train.npy --out graph/\n"
	"  graphwire import --edges paper:cites:paper=cites.csv \\\n"
	"                   --node-table paper=papers.csv --id-column id \\\n"
	"                   --node-column paper:feat=year,pages \\\n"
	"                   --label-column paper=topic --mask-column paper=split \\\n"
	"                   --out graph/\n"
	"  graphwire import --triples train=train.tsv --triples valid=valid.tsv \\\n"
	"                   --triples test=test.tsv --out kg/\n"
	"  graphwire import --from cora.npz --out cora/\n"
	"  graphwire import --edges user:rates:film=ratings.mtx.gz --weight 3 \\\n"
	"                   --out graph/\n"
	"  graphwire import --from ratings.csv --edge-column stars=rating \\\n"
	"                   --weight stars --out graph/\n"
	"  graphwire import --from chunked/metadata.json --out graph/\n"
	"  graphwire import --from cora.npz --store feat=float16 --out cora/\n";

#define RECORDS_MAX 4u

struct import_arguments {
	struct gw_import_options import;
	struct gw_import_word *words;
	const char *records[RECORDS_MAX];
	const char *stores[GW_STORE_WORDS_MAX];
};

static gw_status add_word(struct import_arguments *a, enum gw_import_kind kind, const char *text)
{
	gw_status status = gw_import_word_check(kind, text);
	if (status != GW_OK)
		return status;
	struct gw_import_word *grown = gw_realloc(a->words, a->import.num_words + 1, sizeof(*a->words));
	if (!grown)
		return GW_NO_MEMORY;
	a->words = grown;
	a->words[a->import.num_words++] = (struct gw_import_word){.kind = kind, .text = text};
	return GW_OK;
}

#define WORD(function, kind)                                                                                           \
	static gw_status function(void *input, char *text)                                                             \
	{                                                                                                              \
		return add_word(input, kind, text);                                                                    \
	}
WORD(take_edges, GW_IMPORT_EDGES)
WORD(take_triples, GW_IMPORT_TRIPLES)
WORD(take_node_type, GW_IMPORT_NODE_TYPE)
WORD(take_nodes, GW_IMPORT_NODES)
WORD(take_node_table, GW_IMPORT_NODE_TABLE)
WORD(take_id_column, GW_IMPORT_ID_COLUMN)
WORD(take_node_column, GW_IMPORT_NODE_COLUMN)
WORD(take_label_column, GW_IMPORT_LABEL_COLUMN)
WORD(take_mask_column, GW_IMPORT_MASK_COLUMN)
WORD(take_num_nodes, GW_IMPORT_NUM_NODES)
WORD(take_node_feature, GW_IMPORT_NODE_FEATURE)
WORD(take_node_mask, GW_IMPORT_NODE_MASK)
WORD(take_edge_feature, GW_IMPORT_EDGE_FEATURE)
WORD(take_edge_time, GW_IMPORT_EDGE_TIME)
WORD(take_edge_column, GW_IMPORT_EDGE_COLUMN)
WORD(take_weight, GW_IMPORT_WEIGHT)
WORD(import_take_time, GW_IMPORT_TIME)
WORD(take_reverse, GW_IMPORT_REVERSE)
#undef WORD

static gw_status import_take_record(void *input, char *text)
{
	struct import_arguments *a = input;
	if (a->import.build.num_records == RECORDS_MAX)
		return gw_fail(GW_LIMIT, "more than %u", RECORDS_MAX);
	a->records[a->import.build.num_records++] = text;
	return gw_record_check(text);
}

static gw_status import_take_store(void *input, char *text)
{
	struct import_arguments *a = input;
	gw_status status = gw_store_word_check(text);
	if (status == GW_OK && a->import.build.num_stores == GW_STORE_WORDS_MAX)
		status = gw_fail(GW_LIMIT, "more than %u", GW_STORE_WORDS_MAX);
	if (status == GW_OK)
		a->stores[a->import.build.num_stores++] = text;
	return status;
}

static gw_status take_tables(void *input, char *text)
{
	(void)input;
	return gw_fail(GW_UNSUPPORTED,
		       "the Python package reads tables with keys: python -m graphwire import --tables %.200s", text);
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
	if (strlen(text) != 1 || strchr("\"\n\r", text[0]))
		return gw_fail(GW_INVALID, "\"%.32s\" is not one character", text);
	*out = text[0];
	return GW_OK;
}

static gw_status take_delimiter(void *input, char *text)
{
	struct gw_table_format *format = &((struct import_arguments *)input)->import.text;
	gw_status status = parse_delimiter(text, &format->delimiter);
	format->quotes = gw_table_quotes_of(format->delimiter);
	return status;
}

static gw_status take_time_digits(void *input, char *text)
{
	struct gw_import_options *options = &((struct import_arguments *)input)->import;
	uint64_t digits = 0;
	gw_status status = gw_parse_u64(text, 0, 9, &digits);
	options->time_digits = (uint32_t)digits;
	options->time_digits_given = true;
	return status;
}

static gw_status take_comments(void *input, char *text)
{
	struct import_arguments *a = input;
	if (strlen(text) > GW_TABLE_COMMENTS_MAX)
		return gw_fail(GW_INVALID, "at most %u characters", GW_TABLE_COMMENTS_MAX);
	snprintf(a->import.text.comments, sizeof(a->import.text.comments), "%s", text);
	a->import.comments_given = true;
	return GW_OK;
}

static gw_status import_check(void *input)
{
	const struct gw_import_options *o = &((const struct import_arguments *)input)->import;
	const struct {
		const char *option, *column;
	} columns[] = {{"src-column", o->src_column}, {"dst-column", o->dst_column}, {"rel-column", o->rel_column}};
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		gw_status status = columns[i].column ? gw_import_column_check(columns[i].column) : GW_OK;
		if (status != GW_OK)
			return gw_context(status, "--%s", columns[i].option);
	}
	if (o->name && gw_name_check("graph", o->name) != GW_OK)
		return GW_INVALID;
	bool inputs = false, reverse_of = false;
	for (uint32_t i = 0; i < o->num_words; i++) {
		enum gw_import_kind kind = ((const struct import_arguments *)input)->words[i].kind;
		inputs |= kind == GW_IMPORT_EDGES || kind == GW_IMPORT_TRIPLES || kind == GW_IMPORT_NODE_TYPE;
		reverse_of |= kind == GW_IMPORT_REVERSE;
	}
	if (!inputs)
		return gw_fail(GW_INVALID, "nothing to import: name an input with --from, --edges or --triples");
	if (o->undirected && (o->reverse || reverse_of))
		return gw_fail(GW_INVALID, "--undirected stores every edge's reverse already: leave out --reverse%s",
			       o->reverse ? "" : "-of");
	return GW_OK;
}

static const char *const formats[] = {"auto", "text", "npy", "npz", "dgl", NULL};
static const char *const id_kinds[] = {"auto", "dense", "compact", "text", NULL};

#define A struct import_arguments
static const struct gw_option table[] = {
	{.help = "Input (each option may be repeated):", .group = 1},
	{"from", "FILE", "edges of a homogeneous graph: text (gzip or not), .npy, .npz; or DGL's metadata.json", 1,
	 GW_OPTION_CALL(take_edges)},
	{"edges", "SRC:REL:DST=FILE", "edges of one type", 1, GW_OPTION_CALL(take_edges)},
	{"triples", "[SPLIT=]FILE", "head, relation, tail; SPLIT is train, valid or test and becomes a mask", 1,
	 GW_OPTION_CALL(take_triples)},
	{"tables", "FILE",
	 "tables with keys, as a JSON file describes them (docs/TABLES.md); for the graphwire of the Python package, "
	 "with --out, --name, --missing drop or error, --unit UNIT, --rebuild, --resume and the options of Structure "
	 "and Output",
	 1, GW_OPTION_CALL(take_tables)},
	{"format", "FORMAT", "text, npy, npz or dgl (default: by the file's name)", 1,
	 GW_OPTION_CHOICE(A, import.format, formats)},
	{.help = "Text:", .group = 2},
	{"delimiter", "CHAR", "tab, comma, semicolon, space or a character (default: by the first line)", 2,
	 GW_OPTION_CALL(take_delimiter)},
	{"header", NULL,
	 "the first line names the columns (default: yes if it has known names of ends, "
	 "or if it has no numbers and the lines below have)",
	 2, GW_OPTION_VALUE(A, import.text.header, GW_HEADER_YES)},
	{"no-header", NULL, "the first line is data", 2, GW_OPTION_VALUE(A, import.text.header, GW_HEADER_NONE)},
	{"comment", "CHARS", "skip lines that start with one of these (default #%, none for triples)", 2,
	 GW_OPTION_CALL(take_comments)},
	{"src-column", "COLUMN", "name, or number from 1 (default: by the header, else 1)", 2,
	 GW_OPTION_TEXT(A, import.src_column)},
	{"dst-column", "COLUMN", "(default: by the header, else 2; 3 for triples)", 2,
	 GW_OPTION_TEXT(A, import.dst_column)},
	{"rel-column", "COLUMN", "relation of triples (default: by the header, else 2)", 2,
	 GW_OPTION_TEXT(A, import.rel_column)},
	{"time", "[SRC:REL:DST:]NAME",
	 "sort the lists of each edge type with an edge feature NAME by it; of the others, by the feature NAME of the "
	 "source type's nodes, whose times are then stored for each edge as NAME.source, 4 or 8 bytes an edge "
	 "(--time NAME.source: in any case); nodes with NAME get an index of it. int64, int32, float64 or float32; may "
	 "be repeated. If no such feature exists, NAME is a column of text and becomes the edge feature \"time\", int64",
	 2, GW_OPTION_CALL(import_take_time)},
	{"time-digits", "N",
	 "decimal digits of the time to keep, the others are dropped: 3 turns seconds into milliseconds (default: "
	 "whole numbers; another time is refused)",
	 2, GW_OPTION_CALL(take_time_digits)},
	{"edge-column", "NAME=COLUMN",
	 "another edge feature, float32; int64 if float32 does not hold its values and all are whole", 2,
	 GW_OPTION_CALL(take_edge_column)},
	{.help = "Ids:", .group = 3},
	{"ids", "KIND", "auto, dense (keep numbers), compact (renumber numbers) or text", 3,
	 GW_OPTION_CHOICE(A, import.ids, id_kinds)},
	{"node-type", "TYPE", "a node type, with edges or without; types named so come first, in this order", 3,
	 GW_OPTION_CALL(take_node_type)},
	{"num-nodes", "[TYPE=]N", "number of nodes of a type; ids are dense (default: largest id + 1)", 3,
	 GW_OPTION_CALL(take_num_nodes)},
	{"nodes", "[TYPE=]FILE",
	 "ids in the order of their numbers, one on each line, or \"number name\" (entities.dict); "
	 "or .npy, or .npz of strings",
	 3, GW_OPTION_CALL(take_nodes)},
	{"relations", "FILE", "the same for the relations of triples", 3, GW_OPTION_TEXT(A, import.relations)},
	{.help = "Features (.npy, or .npz:MEMBER):", .group = 4},
	{"node-feature", "[TYPE:]NAME=FILE",
	 "row r belongs to input id r, or to line r of --nodes; an .npz of offsets and bytes, "
	 "or X.offsets.npy with X.bytes.npy, has strings",
	 4, GW_OPTION_CALL(take_node_feature)},
	{"node-mask", "[TYPE:]NAME=FILE", "a bool, 0 or 1 for each row, or a list of ids", 4,
	 GW_OPTION_CALL(take_node_mask)},
	{"edge-feature", "[SRC:REL:DST:]NAME=FILE", "row r belongs to input edge r", 4,
	 GW_OPTION_CALL(take_edge_feature)},
	{"edge-time", "[SRC:REL:DST=]FILE",
	 "edge feature \"time\" from an .npy of int64, one for each input edge; lists are sorted by it", 4,
	 GW_OPTION_CALL(take_edge_time)},
	{"weight", "[SRC:REL:DST:]NAME",
	 "add an alias table, 8 bytes an edge, to an edge feature of numbers >= 0: draws by weight read it; "
	 "without a type, to NAME of every edge type that has it. If no such feature exists, "
	 "NAME is a column of text and becomes the feature \"weight\", float32",
	 4, GW_OPTION_CALL(take_weight)},
	{"store", "[TYPE:]NAME=DTYPE",
	 "store the rows of a feature as float16, bfloat16 or int8_row (8 bits a number, scale and offset a row): clients "
	 "fetch fewer bytes, and get the rows in their original type. TYPE is a node type or SRC:REL:DST; without it, "
	 "NAME of all types",
	 4, GW_OPTION_CALL(import_take_store)},
	{.help = "Tables of nodes (text with a header, a node in each row):", .group = 5},
	{"node-table", "[TYPE=]FILE",
	 "nodes in the order of their numbers; an edge with an id that is in no row is refused", 5,
	 GW_OPTION_CALL(take_node_table)},
	{"id-column", "[TYPE=]COLUMN", "name, or number from 1 (default: the column named id, node_id or TYPE)", 5,
	 GW_OPTION_CALL(take_id_column)},
	{"node-column", "[TYPE:]NAME=COLUMN[,COLUMN...]",
	 "feature, float32; int64 if float32 does not hold its values and all are whole; "
	 "several columns are joined to one row",
	 5, GW_OPTION_CALL(take_node_column)},
	{"label-column", "[TYPE=]COLUMN",
	 "feature \"label\": int64 of whole numbers, such as 1 and 2.0, float32 of others; "
	 "words are numbered in their order, and \"label.names\" has them",
	 5, GW_OPTION_CALL(take_label_column)},
	{"mask-column", "[TYPE=]COLUMN",
	 "0 and 1: a mask with the column's name; train, val, test, and none or nothing: "
	 "train_mask, val_mask and test_mask",
	 5, GW_OPTION_CALL(take_mask_column)},
	{.help = "Structure:", .group = 6},
	{"undirected", NULL, "store every edge in both directions", 6, GW_OPTION_FLAG(A, import.undirected)},
	{"reverse", NULL, "add DST:rev_REL:SRC for every edge type", 6, GW_OPTION_FLAG(A, import.reverse)},
	{"reverse-of", "SRC:REL:DST", "add DST:rev_REL:SRC for this edge type; may be repeated", 6,
	 GW_OPTION_CALL(take_reverse)},
	{"edge-ids", NULL, "store each edge's input row as orig_id; edges with features always have it", 6,
	 GW_OPTION_FLAG(A, import.edge_ids)},
	{"transpose", NULL, "store out-edges too", 6, GW_OPTION_FLAG(A, import.transpose)},
	{.help = "Output:", .group = 7},
	{"record", "KIND=FILE", "store this JSON in the graph's folder, as NAME.KIND.json: tables or build (FORMAT.md)",
	 7, GW_OPTION_CALL(import_take_record)},
	GW_OUTPUT_OPTIONS(A, import., "from metadata.json, else graph", 7),
	{0},
};
#undef A

int gw_tool_import(int argc, char **argv)
{
	static const struct gw_options options = {.table = table,
						  .argument_missing = "name inputs with --from, --edges or --triples",
						  .doc = doc,
						  .check = import_check};
	struct import_arguments a = {0};
	struct gw_builder_stats stats = {0};
	char name[GW_NAME_MAX + 1];
	if (argc > 1 && strcmp(argv[1], "apt") == 0) {
		fputs("graphwire import: \"apt\" is gone: examples/debian_packages.py writes the packages as tables, "
		      "and "
		      "its --help names the command that imports them\n",
		      stderr);
		return 2;
	}
	if (argc > 1 && strcmp(argv[1], "table") == 0) {
		static char name_of_table[] = "graphwire import table";
		argv[1] = name_of_table;
		return gw_number_table_main(argc - 1, argv + 1);
	}
	if (argc > 1 && strcmp(argv[1], "columns") == 0) {
		static char name_of_columns[] = "graphwire import columns";
		argv[1] = name_of_columns;
		return gw_import_columns_main(argc - 1, argv + 1);
	}
	if (argc > 1 && strcmp(argv[1], "ids") == 0) {
		static char name_of_ids[] = "graphwire import ids";
		argv[1] = name_of_ids;
		return gw_id_numbers_main(argc - 1, argv + 1);
	}
	if (argc > 1 && strcmp(argv[1], "combine") == 0) {
		static char name_of_combine[] = "graphwire import combine";
		argv[1] = name_of_combine;
		return gw_combine_main(argc - 1, argv + 1);
	}
	gw_options_parse(&options, argc, argv, &a);
	bool triples = false;
	for (uint32_t i = 0; i < a.import.num_words; i++)
		triples |= a.words[i].kind == GW_IMPORT_TRIPLES;
	if (!a.import.comments_given)
		snprintf(a.import.text.comments, sizeof(a.import.text.comments), "%s", triples ? "" : "#%");
	a.import.words = a.words;
	a.import.build.records = a.records;
	a.import.build.stores = a.stores;
	gw_phase_hush(a.import.build.quiet);
	gw_status status = gw_import_run(&a.import, &stats, name);
	gw_free(a.words);
	if (status == GW_OK)
		gw_phase_print_graph(a.import.build.quiet, a.import.out, name, stats.nodes, stats.edges);
	return gw_exit_status("graphwire import", status);
}
