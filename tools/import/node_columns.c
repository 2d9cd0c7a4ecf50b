/* Columns of tables of nodes as features: numbers, the label, masks.
 *
 *   --node-column  -> numbers, float32, of one column or of several that are joined (numbers.h)
 *   --label-column -> numbers, int64 if all are whole; or words, which are numbered in their order, and "label.names"
 *   --mask-column  -> 0 and 1, or true and false: a mask with the column's name; or train, val and test: three masks
 *
 * Row r of a table is node r of its type. Errors name the file, the line and the column.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/memory/alloc.h"
#include "tools/import/node_tables.h"
#include "tools/import/number.h"
#include "tools/import/numbering.h"
#include "tools/import/numbers.h"
#include "tools/import/strings.h"
#include "tools/import/words.h"

#define JOINED_MAX GW_IMPORT_COLUMNS_MAX
#define SPLITS     3u

/* The column and its name in the header; without a header the name is what the option says. */
static gw_status find_column(const struct gw_import_space *space, const char *option, const char *column,
			     uint32_t *index, char name[GW_NAME_MAX + 1])
{
	struct gw_text_span fields[64];
	gw_status status = gw_table_find(&space->list_text, &space->list_table.format, column, index);
	if (status != GW_OK)
		return gw_context(status, "%s", option);
	snprintf(name, GW_NAME_MAX + 1, "%s", column);
	if (space->list_table.format.header == GW_HEADER_YES && *index < 64 &&
	    gw_table_peek(&space->list_text, &space->list_table.format, 0, fields, 64) > *index)
		snprintf(name, GW_NAME_MAX + 1, "%.*s", (int)fields[*index].bytes, fields[*index].at);
	return GW_OK;
}

/* The features that columns have become, for the error of a second column. */
struct claims {
	struct claim {
		const struct gw_import_space *space;
		char feature[GW_NAME_MAX + 1];
		const char *columns;
	} * list;
	uint32_t count;
};

static gw_status claim_feature(struct claims *claims, const struct gw_import_space *space, const char *feature,
			       const char *columns)
{
	for (uint32_t i = 0; i < claims->count; i++) {
		const struct claim *other = &claims->list[i];
		if (other->space == space && strcmp(other->feature, feature) == 0)
			return gw_fail(GW_EXISTS, "%s: columns %s and %s would both become the feature \"%s\"",
				       space->list_path, other->columns, columns, feature);
	}
	struct claim *added = &claims->list[claims->count++];
	added->space = space;
	added->columns = columns;
	snprintf(added->feature, sizeof(added->feature), "%s", feature);
	return GW_OK;
}

/* columns: the words of the command line that name the columns. */
static gw_status add_array(struct gw_import *im, struct claims *claims, const struct gw_import_space *space,
			   const char *columns, struct gw_builder_array array)
{
	gw_status status = claim_feature(claims, space, array.name, columns);
	array.ndim = array.shape[1] > 1 ? 2 : 1;
	array.shape[0] = space->count;
	return status != GW_OK ? status : gw_builder_node_array(im->builder, space->ntype, &array);
}

/* ---- numbers ---- */

/* "a,b,c": one column after the other. */
static gw_status join_columns(const struct gw_import_space *space, const char *text, double *values,
			      struct gw_table_column columns[JOINED_MAX], uint32_t *count)
{
	char name[GW_NAME_MAX + 1], word[GW_NAME_MAX + 1];
	bool more = true;
	for (*count = 0; more; (*count)++) {
		size_t bytes = strcspn(text, ",");
		if (*count == JOINED_MAX)
			return gw_fail(GW_LIMIT, "--node-column: more than %u columns", JOINED_MAX);
		if (bytes == 0 || bytes > GW_NAME_MAX)
			return gw_fail(GW_INVALID, "--node-column: a name of a column has 1 to %d bytes", GW_NAME_MAX);
		snprintf(word, sizeof(word), "%.*s", (int)bytes, text);
		struct gw_table_column *column = &columns[*count];
		*column = (struct gw_table_column){.what = "feature"};
		column->values = values + *count;
		gw_status status = find_column(space, "--node-column", word, &column->index, name);
		if (status != GW_OK)
			return status;
		for (uint32_t i = 0; i < *count; i++) {
			if (columns[i].index == column->index)
				return gw_fail(GW_INVALID, "--node-column: column %s occurs twice", word);
		}
		more = text[bytes] == ',';
		text += bytes + more;
	}
	return GW_OK;
}

struct joining {
	const struct gw_table *table;
	struct gw_table_column *columns;
	uint32_t count;
	unsigned threads;
};

static gw_status read_joined(void *context, enum gw_column_kind kind)
{
	const struct joining *j = context;
	for (uint32_t i = 0; i < j->count; i++)
		j->columns[i].kind = kind;
	return gw_table_read(j->table, j->columns, j->count, j->threads);
}

static uint32_t count_columns(const char *text)
{
	uint32_t count = 1;
	for (; *text; text++)
		count += *text == ',';
	return count;
}

static gw_status add_numbers(struct gw_import *im, struct claims *claims, const char *text)
{
	struct gw_import_parts parts;
	struct gw_import_space *space;
	struct gw_table_column columns[JOINED_MAX];
	uint32_t count = 0;
	gw_status status = gw_import_word_split(text, 1, &parts);
	if (status == GW_OK)
		status = gw_import_table_space(im, parts.count == 2 ? parts.names[0] : NULL, "--node-column", &space);
	if (status != GW_OK)
		return status;
	uint64_t values_count = space->count * count_columns(parts.value);
	double *values = gw_import_take(im, values_count, sizeof(*values), &status);
	if (status == GW_OK)
		status = join_columns(space, parts.value, values, columns, &count);
	for (uint32_t i = 0; i < count && status == GW_OK; i++)
		columns[i].stride = count;
	struct joining joining = {
		.table = &space->list_table, .columns = columns, .count = count, .threads = im->threads};
	enum gw_column_kind kind;
	if (status == GW_OK)
		status = gw_numbers_choose(GW_NUMBERS_FLOAT, read_joined, &joining, &kind);
	if (status != GW_OK)
		return status;
	struct gw_builder_array array = {.name = parts.names[parts.count - 1],
					 .dtype = gw_numbers_pack(kind, values, values_count),
					 .shape = {0, count},
					 .data = values};
	return add_array(im, claims, space, parts.value, array);
}

/* A column whose cells are looked at as text first. */
struct text_column {
	const char *option, *what;
	bool may_be_empty;
	struct gw_import_parts parts; /* of the option's value */
	struct gw_import_space *space;
	uint32_t index;
	char name[GW_NAME_MAX + 1];
	uint64_t *texts; /* [space->count] */
};

static gw_status open_text_column(struct gw_import *im, const char *text, struct text_column *c)
{
	gw_status status = gw_import_word_split(text, 0, &c->parts);
	if (status == GW_OK)
		status = gw_import_table_space(im, c->parts.count ? c->parts.names[0] : NULL, c->option, &c->space);
	if (status == GW_OK)
		status = find_column(c->space, c->option, c->parts.value, &c->index, c->name);
	return status == GW_OK ? gw_import_table_texts(im, c->space, c->index, c->what, c->may_be_empty, &c->texts)
			       : status;
}

/* ---- the label ---- */

struct category {
	const char *at;
	uint64_t bytes, number;
};

static int compare_categories(const void *a, const void *b)
{
	const struct category *x = a, *y = b;
	int order = memcmp(x->at, y->at, x->bytes < y->bytes ? x->bytes : y->bytes);
	return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static gw_status sort_categories(struct gw_import *im, const struct gw_import_space *space, uint64_t count,
				 const uint64_t *offsets, const char *bytes, uint64_t *numbers)
{
	gw_status status = GW_OK;
	struct category *sorted = gw_import_take(im, count, sizeof(*sorted), &status);
	uint64_t *places = gw_import_take(im, count, 8, &status);
	uint64_t *starts = gw_import_take(im, count + 1, 8, &status);
	char *joined = gw_import_take(im, offsets[count], 1, &status);
	if (status != GW_OK)
		return status;
	for (uint64_t i = 0; i < count; i++)
		sorted[i] = (struct category){bytes + offsets[i], offsets[i + 1] - offsets[i], i};
	qsort(sorted, count, sizeof(*sorted), compare_categories);
	starts[0] = 0;
	for (uint64_t i = 0; i < count; i++) {
		places[sorted[i].number] = i;
		memcpy(joined + starts[i], sorted[i].at, sorted[i].bytes);
		starts[i + 1] = starts[i] + sorted[i].bytes;
	}
	for (uint64_t i = 0; i < space->count; i++)
		numbers[i] = places[numbers[i]];
	return gw_builder_node_strings(im->builder, space->ntype, "label.names", count, starts, joined);
}

static gw_status number_labels(struct gw_import *im, const struct gw_import_space *space, uint64_t *texts)
{
	struct gw_numbering_column column = {
		.first = texts, .rows = space->count, .text = space->list_text.data ? space->list_text.data : ""};
	struct gw_numbering numbering = {0};
	uint64_t *offsets = NULL;
	char *bytes = NULL;
	const struct gw_numbering_memory memory = gw_import_memory(im);
	gw_status status = gw_numbering_create(&column, 1, im->threads, &memory, &numbering);
	if (status == GW_OK)
		status = gw_import_numbered_strings(im, &numbering, &column, &offsets, &bytes);
	if (status == GW_OK)
		status = sort_categories(im, space, numbering.count, offsets, bytes, texts);
	gw_numbering_free(&numbering);
	return status;
}

/* Whether the labels are numbers, and not words. A label that is missing among numbers is an error: as a word it would
 * renumber the others. */
static gw_status label_kind(const struct gw_import_space *space, const char *name, const uint64_t *texts, bool *numbers)
{
	uint64_t missing = GW_NONE;
	bool any = false, words = false;
	for (uint64_t i = 0; i < space->count && !words; i++) {
		struct gw_text_span span = gw_text_span(space->list_text.data, texts[i]);
		double value;
		if (!gw_numbers_is_missing(span)) {
			words = gw_scan_real(span.at, span.at + span.bytes, &value) != span.at + span.bytes;
			any |= !words;
		} else if (missing == GW_NONE) {
			missing = i;
		}
	}
	*numbers = !words && (any || space->count == 0);
	if (!*numbers || missing == GW_NONE)
		return GW_OK;
	struct gw_text_span span = gw_text_span(space->list_text.data, texts[missing]);
	return gw_fail(GW_FORMAT,
		       "%s, line %llu: column %s is \"%.*s\" among numbers: the label is missing: "
		       "fill it in, or leave out the row",
		       space->list_path, (unsigned long long)gw_table_line(&space->list_table, missing), name,
		       (int)span.bytes, span.at);
}

static gw_status add_label(struct gw_import *im, struct claims *claims, const char *text)
{
	struct text_column column = {.option = "--label-column", .what = "label", .may_be_empty = false};
	bool numbers = false;
	gw_status status = open_text_column(im, text, &column);
	if (status == GW_OK)
		status = label_kind(column.space, column.name, column.texts, &numbers);
	if (status != GW_OK)
		return status;
	const struct gw_import_space *space = column.space;
	struct gw_table_column read = {.index = column.index, .what = "label", .values = column.texts};
	struct joining joining = {.table = &space->list_table, .columns = &read, .count = 1, .threads = im->threads};
	enum gw_column_kind kind = GW_COLUMN_WHOLE;
	status = numbers ? gw_numbers_choose(GW_NUMBERS_WHOLE, read_joined, &joining, &kind)
			 : number_labels(im, space, column.texts);
	if (status != GW_OK)
		return status;
	struct gw_builder_array array = {
		.name = "label", .dtype = gw_numbers_pack(kind, column.texts, space->count), .data = column.texts};
	return add_array(im, claims, space, column.parts.value, array);
}

/* ---- masks ---- */

enum mask_word { MASK_BAD, MASK_NO, MASK_YES, MASK_TRAIN, MASK_VAL, MASK_TEST, MASK_NONE };

static enum mask_word mask_word(struct gw_text_span span)
{
	static const struct {
		const char *word;
		enum mask_word means;
	} words[] = {{"0", MASK_NO},           {"false", MASK_NO},       {"1", MASK_YES},     {"true", MASK_YES},
		     {"train", MASK_TRAIN},    {"training", MASK_TRAIN}, {"val", MASK_VAL},   {"valid", MASK_VAL},
		     {"validation", MASK_VAL}, {"test", MASK_TEST},      {"none", MASK_NONE}, {"", MASK_NONE}};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].word) == span.bytes && strncasecmp(words[i].word, span.at, span.bytes) == 0)
			return words[i].means;
	}
	int64_t flag;
	bool is_flag = gw_scan_whole(span.at, span.at + span.bytes, &flag) == span.at + span.bytes; /* 1.0 */
	return !is_flag || flag < 0 || flag > 1 ? MASK_BAD : flag ? MASK_YES : MASK_NO;
}

/* *splits: words of splits, not flags. */
static gw_status mask_words(const struct gw_import_space *space, const char *name, uint64_t *texts, bool *splits)
{
	for (uint64_t i = 0; i < space->count; i++) {
		struct gw_text_span span = gw_text_span(space->list_text.data, texts[i]);
		enum mask_word word = mask_word(span);
		*splits = i ? *splits : word > MASK_YES;
		if (word == MASK_BAD || *splits != (word > MASK_YES))
			return gw_fail(
				GW_FORMAT,
				"%s, line %llu: column %s is \"%.*s\": a mask is 0 or 1 in each row, or train, val, "
				"test, none or empty in each row",
				space->list_path, (unsigned long long)gw_table_line(&space->list_table, i), name,
				(int)(span.bytes < 40 ? span.bytes : 40), span.at);
		texts[i] = word;
	}
	return GW_OK;
}

static gw_status add_mask(struct gw_import *im, struct claims *claims, const struct text_column *column,
			  const char *name, enum mask_word which)
{
	uint64_t rows = column->space->count;
	gw_status status = gw_name_check("feature", name);
	uint8_t *mask = gw_import_take(im, rows, 1, &status);
	for (uint64_t i = 0; i < rows && status == GW_OK; i++)
		mask[i] = column->texts[i] == which;
	struct gw_builder_array array = {.name = name, .dtype = GW_BOOL, .data = mask};
	return status != GW_OK ? status : add_array(im, claims, column->space, column->parts.value, array);
}

static gw_status add_masks(struct gw_import *im, struct claims *claims, const char *text)
{
	struct text_column column = {.option = "--mask-column", .what = "mask", .may_be_empty = true};
	bool splits = false;
	gw_status status = open_text_column(im, text, &column);
	if (status == GW_OK)
		status = mask_words(column.space, column.name, column.texts, &splits);
	if (status != GW_OK || !splits)
		return status != GW_OK ? status : add_mask(im, claims, &column, column.name, MASK_YES);
	static const char *const names[SPLITS] = {"train_mask", "val_mask", "test_mask"};
	for (uint32_t i = 0; i < SPLITS && status == GW_OK; i++)
		status = add_mask(im, claims, &column, names[i], (enum mask_word)(MASK_TRAIN + i));
	return status;
}

gw_status gw_import_table_columns(struct gw_import *im)
{
	gw_status status = GW_OK;
	struct claims claims = {0};
	claims.list = gw_import_take(im, (uint64_t)im->options->num_words * SPLITS, sizeof(*claims.list), &status);
	for (uint32_t i = 0; i < im->options->num_words && status == GW_OK; i++) {
		const struct gw_import_word *word = &im->options->words[i];
		if (word->kind == GW_IMPORT_NODE_COLUMN)
			status = add_numbers(im, &claims, word->text);
		else if (word->kind == GW_IMPORT_LABEL_COLUMN)
			status = add_label(im, &claims, word->text);
		else if (word->kind == GW_IMPORT_MASK_COLUMN)
			status = add_masks(im, &claims, word->text);
	}
	return status;
}
