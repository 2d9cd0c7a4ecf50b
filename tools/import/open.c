/* Opens the inputs and examines them: delimiter, header, columns, whether ids are numbers, the layout of NumPy edges.
 *
 * A node type has text ids if one of its columns, in any file, has a non-number among its first rows. A non-number in a
 * later row is an error that names the line and the option. -1 and 2.0 are errors from the start: as names they would
 * hide a mistake. An input without edges is refused unless the number of nodes is given: it is more often a mistake
 * than a graph.
 */
#include <stdio.h>
#include <string.h>

#include "core/errors/log.h"
#include "tools/import/header.h"
#include "tools/import/import.h"
#include "tools/import/matrix.h"
#include "tools/import/npz.h"
#include "tools/import/other_formats.h"

#define LOOK_ROWS 100u

static bool import_is_name(const char *column)
{
	struct gw_text_span span = {.at = column, .bytes = column ? strlen(column) : 0};
	uint64_t number;
	return column && !gw_text_span_is_id(span, &number);
}

/* The columns that the options name, with the defaults: 1 and 2, or 1, 2, 3 for triples. */
static void column_names(const struct gw_import *im, const struct gw_import_set *set, const char *names[5])
{
	const struct gw_import_options *o = im->options;
	names[0] = o->src_column ? o->src_column : "1";
	names[1] = o->dst_column ? o->dst_column : set->triples ? "3" : "2";
	names[2] = set->triples ? o->rel_column ? o->rel_column : "2" : NULL;
	names[3] = set->time_column;
	names[4] = NULL;
}

static uint32_t plain_number(const char *column)
{
	uint64_t number = 0;
	struct gw_text_span span = {.at = column, .bytes = strlen(column)};
	return gw_text_span_is_id(span, &number) && number >= 1 && number <= GW_TABLE_COLUMNS_MAX ? (uint32_t)number - 1
												  : UINT32_MAX;
}

/* A chunk's metadata has its delimiter. Named columns need a header. */
static void set_format(const struct gw_import *im, const struct gw_import_set *set, const char *const names[5],
		       struct gw_import_file *file)
{
	for (int i = 0; i < 4; i++)
		file->given_names |= import_is_name(names[i]);
	for (uint32_t i = 0; i < set->num_columns; i++)
		file->given_names |= import_is_name(set->columns[i].column);
	file->text_format = im->options->text;
	if (file->delimiter) {
		file->text_format.delimiter = file->delimiter;
		file->text_format.quotes = gw_table_quotes_of(file->delimiter);
		file->text_format.header = GW_HEADER_NONE;
	}
	if (file->given_names && file->text_format.header == GW_HEADER_AUTO)
		file->text_format.header = GW_HEADER_YES;
}

static bool has_given_name(const struct gw_import_options *o, const struct gw_import_file *file)
{
	struct gw_text_span fields[64];
	uint32_t have = gw_table_peek(&file->text, &file->text_format, 0, fields, 64);
	for (uint32_t n = 0; n < o->num_names; n++) {
		for (uint32_t i = 0; i < have && i < 64; i++) {
			if (strlen(o->names[n]) == fields[i].bytes &&
			    memcmp(o->names[n], fields[i].at, fields[i].bytes) == 0)
				return true;
		}
	}
	return false;
}

/* Detects the format by known names, else by the id columns. Ids may be text, so the function then tries the columns
 * that are always numbers. */
static gw_status sniff_text(const struct gw_import *im, const struct gw_import_set *set, struct gw_import_file *file)
{
	const char *names[5];
	uint32_t numbers[2 + GW_IMPORT_COLUMNS_MAX], others = 0;
	bool found;
	column_names(im, set, names);
	set_format(im, set, names, file);
	struct gw_table_format trial = file->text_format;
	gw_table_sniff(&file->text, NULL, 0, &trial); /* the delimiter */
	file->text_format.delimiter = trial.delimiter;
	file->text_format.quotes = set->triples && trial.delimiter == '\t' ? GW_QUOTES_NONE : trial.quotes;
	if (file->text_format.header == GW_HEADER_AUTO && has_given_name(im->options, file)) {
		file->given_names = true;
		file->text_format.header = GW_HEADER_YES;
	}
	gw_status status = gw_import_header_find(im, set, file, &found);
	if (status != GW_OK || found)
		return status;
	const uint32_t ids[2] = {plain_number(names[0]), plain_number(names[1])};
	trial = file->text_format;
	gw_table_sniff(&file->text, ids, set->triples ? 0 : 2, &trial);
	if (trial.header != GW_HEADER_YES && file->text_format.header == GW_HEADER_AUTO) {
		if (names[3])
			numbers[others++] = plain_number(names[3]);
		for (uint32_t i = 0; i < set->num_columns; i++)
			numbers[others++] = plain_number(set->columns[i].column);
		trial = file->text_format;
		gw_table_sniff(&file->text, numbers, others, &trial);
	}
	file->text_format = trial;
	return gw_import_header_default(im, set, file);
}

/* Digits with a sign or a point: a number, but not an id. */
static bool is_other_number(struct gw_text_span field)
{
	const char *p = field.at, *end = field.at + field.bytes;
	bool sign = p < end && (*p == '-' || *p == '+'), digits = false, point = false;
	for (p += sign; p < end; p++) {
		if (*p == '.' && !point)
			point = true;
		else if (*p >= '0' && *p <= '9')
			digits = true;
		else
			return false;
	}
	return digits && (sign || point);
}

/* Whether the first rows have a non-number in this column. *mixed: the first such word if numbers come before it,
 * since it may be a mistake that makes all ids of the type text; else *mixed is unchanged. */
static bool column_is_text(const struct gw_import_file *file, uint32_t column, struct gw_import_mixed *mixed)
{
	struct gw_text_span fields[64];
	uint32_t skip = file->text_format.header == GW_HEADER_YES;
	bool numbers = false;
	for (uint32_t row = skip; row < skip + LOOK_ROWS && column < 64; row++) {
		uint64_t value;
		uint32_t have = gw_table_peek(&file->text, &file->text_format, row, fields, 64);
		if (have == 0)
			return false;
		if (column >= have)
			continue;
		if (is_other_number(fields[column]) || gw_text_span_is_marked(fields[column]) ||
		    (!fields[column].quoted && gw_text_span_is_missing(fields[column], true)))
			continue; /* the parser reports the error */
		if (!gw_text_span_is_id(fields[column], &value) ||
		    (fields[column].bytes > 1 && fields[column].at[0] == '0')) {
			if (numbers && !mixed->word.at)
				*mixed = (struct gw_import_mixed){.row = row - skip, .word = fields[column]};
			return true; /* as ids, "007" and "7" are two names */
		}
		numbers = true;
	}
	return false;
}

/* The columns of a matrix have no names: 1 is the row, 2 the column, 3 the value. */
static gw_status look_at_matrix_columns(const struct gw_import *im, const struct gw_import_set *set,
					struct gw_import_file *file)
{
	const char *names[5];
	bool named = false;
	column_names(im, set, names);
	for (int i = 0; i < 4; i++)
		named |= import_is_name(names[i]);
	for (uint32_t i = 0; i < set->num_columns; i++)
		named |= import_is_name(set->columns[i].column);
	uint32_t src = plain_number(names[0]), dst = plain_number(names[1]);
	file->matrix.swapped = src == 1;
	if (named || src > 1 || dst != 1 - src)
		return gw_fail(GW_INVALID,
			       "%s: the columns of a %s matrix have no names: 1 is the row, 2 the column, 3 its value",
			       file->path, file->matrix.what);
	if (file->matrix.skew && (set->num_columns || names[3]))
		return gw_fail(GW_UNSUPPORTED,
			       "%s: the values of a skew-symmetric matrix change sign across the diagonal: "
			       "leave out the columns, or write it as general",
			       file->path);
	return GW_OK;
}

/* A first row whose number of columns differs from all rows below is probably a header. Read as an edge, it would
 * create nodes that do not exist. */
static gw_status check_first_row(const struct gw_import_file *file)
{
	const struct gw_text *text = &file->text;
	const struct gw_table_format *format = &file->text_format;
	uint32_t first = gw_table_peek(text, format, 0, NULL, 0), below = gw_table_peek(text, format, 1, NULL, 0);
	if (below == 0 || first == below)
		return GW_OK;
	for (uint32_t row = 2; row < LOOK_ROWS; row++) {
		uint32_t have = gw_table_peek(text, format, row, NULL, 0);
		if (have == 0)
			break;
		if (have != below)
			return GW_OK; /* rows of this table differ in any case */
	}
	return gw_fail(GW_FORMAT,
		       "%s, line %llu: %u column%s, but %u in the lines below: if it is a header, use --header; "
		       "if it is an edge, use --no-header",
		       file->path, (unsigned long long)gw_table_line_of(text, format, 0), first, first == 1 ? "" : "s",
		       below);
}

/* Files that were joined have the header again, and it would be an edge. */
static gw_status check_repeats(const struct gw_import_file *file)
{
	uint64_t line;
	if (file->text_format.header != GW_HEADER_YES || file->matrix.what ||
	    !gw_table_repeats(&file->text, &file->text_format, &line))
		return GW_OK;
	return gw_table_fail_repeat(file->path, line);
}

gw_status gw_import_text_examine(struct gw_import *im, struct gw_import_set *set, struct gw_import_file *file)
{
	struct gw_spill *spill = gw_import_memory(im).spill;
	gw_status status = file->delimiter ? gw_text_open_file(file->path, spill, &file->text)
					   : gw_text_open(file->path, spill, &file->text);
	if (status != GW_OK)
		return status;
	im->input_bytes += file->text.file_bytes;
	if (im->options->format != GW_FROM_TEXT && !file->delimiter)
		status = gw_other_formats_check(&file->text);
	if (status != GW_OK)
		return status;
	file->text_format = im->options->text;
	if (!set->triples && !file->delimiter)
		status = gw_import_matrix_text(&file->text, &file->text_format, &file->matrix);
	if (status == GW_OK && file->matrix.what)
		status = look_at_matrix_columns(im, set, file);
	else if (status == GW_OK)
		status = sniff_text(im, set, file);
	if (status == GW_OK && file->matrix.what)
		status = gw_import_header_default(im, set, file);
	else if (status == GW_OK)
		status = gw_import_header_check(im, file);
	if (status == GW_OK)
		status = check_repeats(file);
	if (status != GW_OK)
		return status;
	bool guessed = !file->matrix.what && !file->delimiter && im->options->text.header == GW_HEADER_AUTO;
	for (int i = 0; i < (set->triples ? 3 : 2); i++) {
		file->text_ids[i] = !file->matrix.what && column_is_text(file, file->id_columns[i], &file->mixed[i]);
		/* Entities are names, even if they look like numbers, unless a dictionary numbers them. */
		const struct gw_import_space *space = i == 2 ? &im->relations : &im->spaces[i ? set->dst : set->src];
		if (set->triples && !space->list_path && space->num_nodes == GW_NONE) {
			file->text_ids[i] = true;
			file->mixed[i] = (struct gw_import_mixed){0};
		}
	}
	guessed &= file->text_format.header == GW_HEADER_NONE;
	if (guessed && !set->triples && im->options->format != GW_FROM_TEXT)
		status = gw_other_formats_check_numbers(&file->text, &file->text_format);
	return status == GW_OK && guessed ? check_first_row(file) : status;
}

static gw_status open_text(struct gw_import *im, struct gw_import_set *set, struct gw_import_file *file)
{
	gw_status status = gw_import_text_examine(im, set, file);
	if (status == GW_OK)
		status = gw_table_scan(&file->text, &file->text_format, im->threads, &file->table);
	if (status == GW_OK && file->table.doubtful && !im->options->comments_given && !file->matrix.what)
		status = gw_table_fail_doubtful(file->path, file->table.doubtful);
	file->rows = file->table.rows;
	return status;
}

static gw_status open_npz_edges(struct gw_import *im, struct gw_import_set *set, struct gw_import_file *file)
{
	static const char *const pairs[][2] = {{"src", "dst"}, {"row", "col"}, {"source", "target"}};
	static const char *const singles[] = {"edges", "edge_index", "edge_list"};
	struct gw_npz *npz;
	gw_status status = gw_import_archive(im, file->path, &npz);
	if (status == GW_OK && set->src == set->dst)
		status = gw_import_archive_features(im, npz, file->path, set->src);
	if (status == GW_OK)
		status = gw_import_matrix_npz(npz, file);
	if (status != GW_OK || file->matrix.what)
		return status;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (!gw_npz_has(npz, pairs[i][0]) || !gw_npz_has(npz, pairs[i][1]))
			continue;
		status = gw_npz_read(npz, pairs[i][0], &file->arrays[0]);
		return status != GW_OK ? status : gw_npz_read(npz, pairs[i][1], &file->arrays[1]);
	}
	for (size_t i = 0; i < sizeof(singles) / sizeof(singles[0]); i++) {
		if (gw_npz_has(npz, singles[i]))
			return gw_npz_read(npz, singles[i], &file->arrays[0]);
	}
	return gw_fail(GW_NOT_FOUND,
		       "%s: no edges: no members \"src\" and \"dst\", \"edges\" or \"edge_index\", "
		       "and no matrix of scipy.sparse.save_npz",
		       file->path);
}

static bool is_integer(gw_dtype dtype)
{
	return dtype == GW_UINT8 || dtype == GW_INT8 || dtype == GW_UINT16 || dtype == GW_INT16 || dtype == GW_INT32 ||
	       dtype == GW_UINT32 || dtype == GW_INT64 || dtype == GW_UINT64;
}

static gw_status check_edge_arrays(struct gw_import *im, const struct gw_import_set *set, struct gw_import_file *file)
{
	const struct gw_npy *a = &file->arrays[0].npy, *b = &file->arrays[1].npy;
	bool pair = file->arrays[1].mapping != NULL;
	if (!is_integer(a->dtype) || (pair && !is_integer(b->dtype)))
		return gw_fail(GW_FORMAT, "%s: edges of dtype %s: ids are whole numbers", file->path,
			       gw_dtype_name(is_integer(a->dtype) ? b->dtype : a->dtype));
	im->input_bytes += a->data_bytes + (pair ? b->data_bytes : 0);
	if (file->matrix.what) {
		file->rows = file->matrix.entries;
		return GW_OK;
	}
	if (pair) {
		if (a->ndim != 1 || b->ndim != 1 || a->shape[0] != b->shape[0])
			return gw_fail(GW_FORMAT, "%s: source and destination ids are not two columns of one length",
				       file->path);
		file->rows = a->shape[0];
		return GW_OK;
	}
	if (a->ndim != 2 || (a->shape[0] != 2 && a->shape[1] != 2))
		return gw_fail(GW_FORMAT, "%s: edges must be an array of shape [E, 2] or [2, E]", file->path);
	if (a->shape[0] == 2 && a->shape[1] == 2 && !set->rows_key) /* chunks always have an edge in each row */
		return gw_fail(
			GW_FORMAT,
			"%s: two edges of shape [2, 2] may be rows or columns: save the members src and dst in an .npz",
			file->path);
	file->rows = a->shape[1] == 2 ? a->shape[0] : a->shape[1];
	return GW_OK;
}

static gw_status import_open_file(struct gw_import *im, struct gw_import_set *set, struct gw_import_file *file)
{
	gw_status status = GW_OK;
	switch (file->format) {
	case GW_FROM_NPY:
		status = gw_npy_open(file->path, &file->arrays[0]);
		break;
	case GW_FROM_NPZ:
		status = open_npz_edges(im, set, file);
		break;
	case GW_FROM_DGL:
		return gw_fail(GW_INVALID, "%s: a chunked graph defines its own types: pass it with --from",
			       file->path);
	default:
		return open_text(im, set, file);
	}
	return status != GW_OK ? status : check_edge_arrays(im, set, file);
}

static bool count_is_given(const struct gw_import_space *space)
{
	return space->num_nodes != GW_NONE || space->list_path || space->shape_path;
}

static gw_status check_rows(const struct gw_import *im, const struct gw_import_set *set)
{
	if (set->rows_key && set->rows != set->rows_expected)
		return gw_fail(GW_FORMAT, "%s%s: edge type %s has %llu edges there, but \"%s\" gives %llu",
			       set->num_files ? set->files[0].path : "no file",
			       set->num_files > 1 ? " and the other files of its type" : "", set->rel,
			       (unsigned long long)set->rows, set->rows_key, (unsigned long long)set->rows_expected);
	if (set->rows || !set->num_files ||
	    (count_is_given(&im->spaces[set->src]) && count_is_given(&im->spaces[set->dst])))
		return GW_OK;
	return gw_fail(GW_FORMAT, "%s%s: no edges: a graph without edges needs --num-nodes", set->files[0].path,
		       set->num_files > 1 ? " and the other files of its type" : "");
}

/* One word turns all ids into text. The warning informs the user before the graph is used. */
static void report_mixed(const struct gw_import_file *file, const struct gw_import_mixed *mixed,
			 const struct gw_import_space *space)
{
	bool header = file->text_format.header == GW_HEADER_YES;
	if (!mixed->word.at)
		return;
	gw_log(GW_LOG_WARN,
	       "%s, line %llu: \"%.*s\" is not a number, so all ids of node type %s are read as text; "
	       "--ids compact or dense refuses it",
	       file->path,
	       (unsigned long long)gw_table_line_of(&file->text, &file->text_format, (uint32_t)mixed->row + header),
	       (int)(mixed->word.bytes < 40 ? mixed->word.bytes : 40), mixed->word.at, space->name);
}

void gw_import_text_kinds(struct gw_import *im, const struct gw_import_set *set, const struct gw_import_file *file)
{
	if (file->text_ids[2])
		im->relations.ids = GW_IDS_TEXT;
	for (int side = 0; side < 2; side++) {
		struct gw_import_space *space = &im->spaces[side ? set->dst : set->src];
		if (file->text_ids[side] && space->ids == GW_IDS_AUTO) {
			space->ids = GW_IDS_TEXT;
			report_mixed(file, &file->mixed[side], space);
		}
	}
}

static gw_status open_set(struct gw_import *im, struct gw_import_set *set)
{
	for (uint32_t f = 0; f < set->num_files; f++) {
		struct gw_import_file *file = &set->files[f];
		gw_status status = import_open_file(im, set, file);
		if (status != GW_OK)
			return status;
		if (file->format == GW_FROM_TEXT && !file->matrix.what)
			status = gw_import_header_report(im, set, f);
		if (status != GW_OK)
			return status;
		file->first_row = set->rows;
		set->rows += file->rows;
		if (!set->triples)
			status = gw_import_matrix_claim(im, set, file);
		if (status != GW_OK)
			return status;
		gw_import_text_kinds(im, set, file);
	}
	gw_status status = gw_import_header_settle(set);
	return status != GW_OK ? status : check_rows(im, set);
}

gw_status gw_import_open_all(struct gw_import *im)
{
	gw_status status = GW_OK;
	for (uint32_t s = 0; s < im->num_sets && status == GW_OK; s++)
		status = open_set(im, &im->sets[s]);
	return status;
}
