/* Turns the words of the command line into the plan of an import: node spaces, edge sets and their files.
 *
 * Words are "name=FILE" with types in front ("paper:feat=FILE", "author:writes:paper=FILE"). A word without types means
 * the one type of a homogeneous graph, "_N" and "_N:_E:_N".
 */
#include <stdio.h>
#include <string.h>

#include "core/errors/options.h"
#include "core/memory/alloc.h"
#include "tools/import/import.h"
#include "tools/import/words.h"

/* Whether the text starts as paths do. A path may contain '='. */
static bool starts_as_path(const char *text)
{
	return text[0] == '/' || strncmp(text, "./", 2) == 0 || strncmp(text, "../", 3) == 0;
}

/* "src:rel:dst=FILE" or FILE. The text is also a path if no ':' comes before '='. */
static gw_status split_edges(const char *text, struct gw_import_parts *parts)
{
	const char *equals = strchr(text, '='), *colon = strchr(text, ':');
	*parts = (struct gw_import_parts){.value = text};
	if (!equals || !colon || colon > equals || starts_as_path(text))
		return GW_OK;
	gw_status status = gw_import_word_split(text, 3, parts);
	if (status == GW_OK && parts->count != 3)
		status = gw_fail(GW_INVALID, "\"%.200s\": write edges as SRC:REL:DST=FILE", text);
	return status;
}

static gw_status plan_edges(struct gw_import *im, const char *text)
{
	struct gw_import_parts parts;
	struct gw_import_set *set;
	enum gw_import_format format = im->options->format;
	gw_status status = split_edges(text, &parts);
	if (status != GW_OK)
		return status;
	if (format == GW_FROM_AUTO)
		format = gw_import_format_of(parts.value);
	if (parts.count == 0 && format == GW_FROM_DGL)
		return gw_import_chunked(im, parts.value);
	status = parts.count ? gw_import_set_add(im, parts.names[0], parts.names[1], parts.names[2], &set)
			     : gw_import_set_add(im, "_N", "_E", "_N", &set);
	return status != GW_OK ? status : gw_import_file_add(set, parts.value, format, GW_SPLIT_NONE);
}

/* "src:rel:dst" */
static gw_status split_edge_type(const char *text, struct gw_import_parts *parts)
{
	char word[3 * GW_NAME_MAX + 4];
	*parts = (struct gw_import_parts){.value = text};
	if ((size_t)snprintf(word, sizeof(word), "%s=", text) >= sizeof(word))
		return gw_fail(GW_INVALID, "\"%.200s\": a name has at most %d bytes", text, GW_NAME_MAX);
	gw_status status = strchr(text, '=') ? GW_OK : gw_import_word_split(word, 3, parts);
	parts->value = text;
	return status == GW_OK && parts->count != 3
		       ? gw_fail(GW_INVALID, "\"%.200s\": write an edge type as SRC:REL:DST", text)
		       : status;
}

static gw_status plan_reverse(struct gw_import *im, const char *text)
{
	struct gw_import_parts parts;
	struct gw_import_set *set;
	gw_status status = split_edge_type(text, &parts);
	if (status == GW_OK)
		status = gw_context(gw_import_set_of(im, &parts, "SRC:REL:DST", &set), "--reverse-of");
	if (status == GW_OK)
		set->reverse = true;
	return status;
}

/* "train=FILE" or FILE. */
static gw_status split_triples(const char *text, struct gw_import_parts *parts, int *split)
{
	static const char *const splits[] = {"", "train", "valid", "test", NULL};
	*split = GW_SPLIT_NONE;
	*parts = (struct gw_import_parts){.value = text};
	if (starts_as_path(text))
		return GW_OK;
	gw_status status = gw_import_word_split(text, 0, parts);
	if (status != GW_OK || parts->count != 1)
		return status;
	if (strcmp(parts->names[0], "val") != 0)
		return gw_parse_choice(parts->names[0], splits, split);
	*split = GW_SPLIT_VALID;
	return GW_OK;
}

static gw_status plan_triples(struct gw_import *im, const char *text)
{
	struct gw_import_parts parts;
	struct gw_import_set *set;
	int split;
	gw_status status = split_triples(text, &parts, &split);
	if (status != GW_OK)
		return gw_context(status, "--triples");
	status = gw_import_set_add(im, "_N", "_E", "_N", &set);
	if (status != GW_OK)
		return status;
	set->triples = true;
	return gw_import_file_add(set, parts.value, GW_FROM_TEXT, (enum gw_import_split)split);
}

/* Finds the node type that a word names. The type must have edges: another name is more often a typing mistake than a
 * type. */
static gw_status find_space(const struct gw_import *im, const char *word, const char *name,
			    struct gw_import_space **out)
{
	char types[256] = "";
	size_t used = 0;
	*out = gw_import_space_find(im, name);
	if (*out)
		return GW_OK;
	for (uint32_t i = 0; i < im->num_spaces; i++) {
		if (used + strlen(im->spaces[i].name) + 3 < sizeof(types))
			used += (size_t)snprintf(types + used, sizeof(types) - used, "%s%s", i ? ", " : "",
						 im->spaces[i].name);
	}
	return gw_fail(
		GW_NOT_FOUND,
		"%s: no edges have a node type \"%s\"; they have: %s. A type without edges is named by --node-type",
		word, name, types);
}

/* "type=VALUE" or VALUE, about the nodes of a type. */
static gw_status plan_nodes(struct gw_import *im, const struct gw_import_word *word)
{
	struct gw_import_parts parts;
	struct gw_import_space *space;
	bool list = word->kind == GW_IMPORT_NODES, is_table = word->kind == GW_IMPORT_NODE_TABLE;
	const char *option = list                                ? "--nodes"
			     : is_table                          ? "--node-table"
			     : word->kind == GW_IMPORT_ID_COLUMN ? "--id-column"
								 : "--num-nodes";
	gw_status status = gw_import_word_split(word->text, 0, &parts);
	if (status == GW_OK && word->kind == GW_IMPORT_ID_COLUMN && parts.count == 0) {
		for (uint32_t i = 0; i < im->num_spaces; i++) {
			if (!im->spaces[i].id_column)
				im->spaces[i].id_column = parts.value;
		}
		return GW_OK;
	}
	if (status == GW_OK)
		status = find_space(im, option, parts.count ? parts.names[0] : "_N", &space);
	if (status != GW_OK)
		return status;
	if ((list || is_table) && space->list_path && (is_table || space->is_table))
		return gw_fail(GW_INVALID, "%s: node type %s has a list or a table already, %s", option, space->name,
			       space->list_path);
	if (list || is_table) {
		space->list_path = parts.value;
		space->is_table = is_table;
		return GW_OK;
	}
	if (word->kind == GW_IMPORT_ID_COLUMN) {
		space->id_column = parts.value;
		return GW_OK;
	}
	status = gw_parse_u64(parts.value, 0, GW_NONE - 1, &space->num_nodes);
	if (status == GW_OK && space->ids == GW_IDS_AUTO)
		space->ids = GW_IDS_DENSE;
	return status != GW_OK ? gw_context(status, "--num-nodes") : GW_OK;
}

static gw_status add_column(struct gw_import_set *set, const char *name, const char *column, bool weight)
{
	gw_status status = gw_name_check("edge feature", name);
	if (status != GW_OK)
		return status;
	if (set->num_columns == GW_IMPORT_COLUMNS_MAX)
		return gw_fail(GW_LIMIT, "more than %u edge columns", GW_IMPORT_COLUMNS_MAX);
	if (!set->columns) {
		set->columns = gw_calloc(GW_IMPORT_COLUMNS_MAX, sizeof(*set->columns));
		if (!set->columns)
			return GW_NO_MEMORY;
	}
	struct gw_import_column *added = &set->columns[set->num_columns++];
	snprintf(added->name, sizeof(added->name), "%s", name);
	added->column = column;
	added->weight = weight;
	return GW_OK;
}

/* Weight, time and other columns apply to every text input. */
static gw_status plan_columns(struct gw_import *im, struct gw_import_set *set)
{
	gw_status status = GW_OK;
	if (set->weight_column)
		status = add_column(set, "weight", set->weight_column, true);
	for (uint32_t i = 0; i < im->options->num_words && status == GW_OK; i++) {
		struct gw_import_parts parts;
		if (im->options->words[i].kind != GW_IMPORT_EDGE_COLUMN)
			continue;
		status = gw_import_word_split(im->options->words[i].text, 0, &parts);
		if (status == GW_OK)
			status = add_column(set, parts.names[0], parts.value,
					    gw_import_is_weight(im, (uint32_t)(set - im->sets), parts.names[0]));
	}
	bool wanted = set->num_columns || set->time_column;
	for (uint32_t f = 0; f < set->num_files && status == GW_OK && wanted; f++) {
		if (set->files[f].format != GW_FROM_TEXT)
			status = gw_fail(GW_INVALID, "%s: only text has columns: pass arrays with --edge-feature",
					 set->files[f].path);
	}
	return status;
}

static gw_status check_count(const struct gw_import_parts *parts)
{
	uint64_t count;
	return gw_parse_u64(parts->value, 0, GW_NONE - 1, &count);
}

/* Checks the names of a feature, with or without types in front. */
static gw_status check_feature(const char *text, const struct gw_import_parts *parts, bool edge)
{
	if (parts->count != 1 && parts->count != (edge ? 4u : 2u))
		return gw_fail(GW_INVALID, "\"%.200s\": write features as %s:NAME=FILE", text,
			       edge ? "SRC:REL:DST" : "TYPE");
	return gw_name_check("feature", parts->names[parts->count - 1]);
}

gw_status gw_import_column_check(const char *column)
{
	uint64_t number;
	struct gw_text_span span = {.at = column, .bytes = strlen(column)};
	if (!gw_text_span_is_id(span, &number) || (number >= 1 && number <= GW_TABLE_COLUMNS_MAX))
		return GW_OK;
	return gw_fail(GW_RANGE, "column %s: columns are numbered from 1 to %u", column, GW_TABLE_COLUMNS_MAX);
}

gw_status gw_import_word_check(enum gw_import_kind kind, const char *text)
{
	struct gw_import_parts parts;
	int split;
	gw_status status;
	switch (kind) {
	case GW_IMPORT_EDGES:
	case GW_IMPORT_EDGE_TIME:
		status = split_edges(text, &parts);
		break;
	case GW_IMPORT_TRIPLES:
		return split_triples(text, &parts, &split);
	case GW_IMPORT_NODE_TYPE:
		return gw_name_check("node type", text);
	case GW_IMPORT_NODES:
	case GW_IMPORT_NUM_NODES:
	case GW_IMPORT_NODE_TABLE:
		status = gw_import_word_split(text, 0, &parts);
		if (status == GW_OK && kind == GW_IMPORT_NUM_NODES)
			status = check_count(&parts);
		break;
	case GW_IMPORT_WEIGHT:
	case GW_IMPORT_TIME:
		return gw_import_column_check(text);
	case GW_IMPORT_REVERSE:
		status = split_edge_type(text, &parts);
		break;
	case GW_IMPORT_EDGE_COLUMN:
		status = gw_import_word_split(text, 0, &parts);
		if (status == GW_OK && parts.count != 1)
			status = gw_fail(GW_INVALID, "write an edge column as NAME=COLUMN");
		if (status == GW_OK)
			status = gw_name_check("edge feature", parts.names[0]);
		return status != GW_OK ? status : gw_import_column_check(parts.value);
	case GW_IMPORT_ID_COLUMN:
	case GW_IMPORT_LABEL_COLUMN:
	case GW_IMPORT_MASK_COLUMN:
		status = gw_import_word_split(text, 0, &parts);
		if (status == GW_OK)
			status = gw_import_column_check(parts.value);
		break;
	case GW_IMPORT_NODE_COLUMN:
		status = gw_import_word_split(text, 1, &parts);
		if (status == GW_OK && parts.count == 0)
			status = gw_fail(GW_INVALID, "\"%.200s\": write columns as TYPE:NAME=COLUMN", text);
		return status != GW_OK ? status : gw_name_check("feature", parts.names[parts.count - 1]);
	default:
		status = gw_import_word_split(text, 3, &parts);
		return status != GW_OK ? status : check_feature(text, &parts, kind == GW_IMPORT_EDGE_FEATURE);
	}
	for (uint32_t i = 0; i < parts.count && status == GW_OK; i++)
		status = gw_name_check(i == 1 ? "edge type" : "node type", parts.names[i]);
	return status;
}

gw_status gw_import_plan(struct gw_import *im)
{
	gw_status status = GW_OK;
	bool edges = im->num_spaces > 0;
	im->relations.list_path = im->options->relations;
	im->relations.num_nodes = GW_NONE;
	/* The types that --node-type names come first, so that a caller can choose the order of types. */
	for (uint32_t i = 0; i < im->options->num_words && status == GW_OK; i++) {
		const struct gw_import_word *word = &im->options->words[i];
		uint32_t space;
		if (word->kind == GW_IMPORT_NODE_TYPE)
			status = gw_import_space(im, word->text, &space);
	}
	for (uint32_t i = 0; i < im->options->num_words && status == GW_OK; i++) {
		const struct gw_import_word *word = &im->options->words[i];
		edges = edges || word->kind == GW_IMPORT_EDGES || word->kind == GW_IMPORT_TRIPLES;
		if (word->kind == GW_IMPORT_EDGES)
			status = plan_edges(im, word->text);
		else if (word->kind == GW_IMPORT_TRIPLES)
			status = plan_triples(im, word->text);
	}
	if (status == GW_OK && !edges && im->num_spaces == 0)
		return gw_fail(GW_INVALID, "nothing to import: name an input with --from, --edges or --triples");
	/* This loop comes second, because the edges define the types, wherever they are on the command line. */
	for (uint32_t i = 0; i < im->options->num_words && status == GW_OK; i++) {
		const struct gw_import_word *word = &im->options->words[i];
		if (word->kind == GW_IMPORT_NODES || word->kind == GW_IMPORT_NUM_NODES ||
		    word->kind == GW_IMPORT_NODE_TABLE || word->kind == GW_IMPORT_ID_COLUMN)
			status = plan_nodes(im, word);
		else if (word->kind == GW_IMPORT_REVERSE)
			status = plan_reverse(im, word->text);
	}
	if (status == GW_OK)
		status = gw_import_plan_weights(im);
	if (status == GW_OK)
		status = gw_import_plan_times(im);
	for (uint32_t i = 0; i < im->num_sets && status == GW_OK; i++) {
		for (uint32_t f = 0; f < im->sets[i].num_files; f++) {
			if (im->sets[i].triples && im->sets[i].files[f].format != GW_FROM_TEXT)
				status = gw_fail(GW_INVALID, "%s: triples and edges cannot be mixed in one type",
						 im->sets[i].files[f].path);
		}
		if (status == GW_OK)
			status = plan_columns(im, &im->sets[i]);
	}
	return status;
}
