/* graphwire import columns: reads tables of text by the rules of import, and writes CSV of one form.
 *
 *   without columns  -> a line for each file: delimiter, header or not, whether its ends are text, names of its columns
 *   --kind N         -> a line for each file: whether the ids of a column are numbers, signed or text
 *   --column N …     -> a header c0,c1,…, then these columns of all rows of one file
 *
 * A field that was in quotes stays in quotes, because an empty text is no missing value. Unlike
 * import, which reads chunks of lines in parallel, this command reads from the first row to the last. So a quoted field
 * may go on in the next line. Errors name the file, the line and the column.
 */
#include "tools/import/columns.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/errors/log.h"
#include "core/errors/options.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/import/header.h"
#include "tools/import/import.h"
#include "tools/import/node_tables.h"
#include "tools/import/other_formats.h"
#include "tools/import/table_line.h"

#define OUT_BYTES (1u << 20)

enum column_use { USE_VALUE, USE_TEXT_ID, USE_NUMBER_ID, USE_SIGNED_ID };

/* A list of words that an option gives, one at a time. */
struct words {
	const char **at;
	uint32_t count;
};

struct columns_arguments {
	struct gw_import_options import;
	struct words files, names;
	struct gw_table_column columns[GW_TABLE_COLUMNS_MAX];
	bool may_miss[GW_TABLE_COLUMNS_MAX]; /* a missing id of the column is an empty field, and no error */
	uint32_t num_columns, kind;
	bool node_table, warned;
	const char *src_type, *dst_type;
};

static gw_status add_to(struct words *words, const char *text)
{
	const char **grown = gw_realloc(words->at, words->count + 1, sizeof(*words->at));
	if (!grown)
		return GW_NO_MEMORY;
	words->at = grown;
	words->at[words->count++] = text;
	return GW_OK;
}

static gw_status columns_take_file(void *input, char *text)
{
	return add_to(&((struct columns_arguments *)input)->files, text);
}

static gw_status columns_take_name(void *input, char *text)
{
	return add_to(&((struct columns_arguments *)input)->names, text);
}

static gw_status take_column(struct columns_arguments *a, const char *text, enum column_use use, bool may_miss)
{
	static const enum gw_column_kind kinds[] = {[USE_VALUE] = GW_COLUMN_TEXT,
						    [USE_TEXT_ID] = GW_COLUMN_TEXT,
						    [USE_NUMBER_ID] = GW_COLUMN_ID,
						    [USE_SIGNED_ID] = GW_COLUMN_INT};
	uint64_t number;
	if (a->num_columns == GW_TABLE_COLUMNS_MAX)
		return gw_fail(GW_LIMIT, "more than %u columns", GW_TABLE_COLUMNS_MAX);
	gw_status status = gw_parse_u64(text, 1, GW_TABLE_COLUMNS_MAX, &number);
	a->may_miss[a->num_columns] = may_miss;
	a->columns[a->num_columns++] = (struct gw_table_column){
		.index = (uint32_t)number - 1, .kind = kinds[use], .is_id = use != USE_VALUE, .what = "id"};
	return status;
}

#define COLUMN(function, use, may_miss)                                                                                \
	static gw_status function(void *input, char *text)                                                             \
	{                                                                                                              \
		return take_column(input, text, use, may_miss);                                                        \
	}
COLUMN(take_value, USE_VALUE, false)
COLUMN(take_text_id, USE_TEXT_ID, false)
COLUMN(take_number_id, USE_NUMBER_ID, false)
COLUMN(take_signed_id, USE_SIGNED_ID, false)
COLUMN(take_text_key, USE_TEXT_ID, true)
COLUMN(take_number_key, USE_NUMBER_ID, true)
COLUMN(take_signed_key, USE_SIGNED_ID, true)
#undef COLUMN

static gw_status columns_take_delimiter(void *input, char *text)
{
	struct gw_table_format *format = &((struct columns_arguments *)input)->import.text;
	uint64_t code;
	gw_status status = gw_parse_u64(text, 1, 127, &code);
	format->delimiter = status == GW_OK ? (char)code : '\0';
	format->quotes = gw_table_quotes_of(format->delimiter);
	return status;
}

/* ---- output ---- */

static void put_quoted(struct gw_text_span field)
{
	putc_unlocked('"', stdout);
	for (uint64_t i = 0; i < field.bytes; i++) {
		if (field.at[i] == '"' && !field.quoted)
			putc_unlocked('"', stdout);
		putc_unlocked(field.at[i], stdout);
	}
	putc_unlocked('"', stdout);
}

static void put_field(struct gw_text_span field)
{
	bool plain = !field.quoted;
	for (uint64_t i = 0; i < field.bytes && plain; i++)
		plain = field.at[i] != '"' && field.at[i] != ',';
	if (plain)
		fwrite_unlocked(field.at, 1, field.bytes, stdout);
	else
		put_quoted(field);
}

static gw_status put_end(void)
{
	return fflush(stdout) == 0 && !ferror(stdout) ? GW_OK : gw_fail_errno(GW_IO, errno, "standard output");
}

/* ---- rows ---- */

/* The rows of a text, one after the other. */
struct text_row {
	const struct gw_text *text;
	const struct gw_table_format *format;
	const char *at, *end, *next; /* the row, and what follows its line end */
	uint64_t line, next_line;    /* of `at` and of `next`, from 1 */
	uint64_t doubtful;           /* the first line that was skipped as a comment and may be a row; 0: none */
	uint32_t columns;            /* of the first row */
};

static struct text_row text_rows_of(const struct gw_text *text, const struct gw_table_format *format)
{
	return (struct text_row){.text = text,
				 .format = format,
				 .next = text->data + gw_table_text_start(text),
				 .next_line = 1,
				 .columns = gw_table_peek(text, format, 0, NULL, 0)};
}

/* NULL if the text ends before. */
static const char *closing_quote(const char *p, const char *stop)
{
	for (p++; (p = memchr(p, '"', (size_t)(stop - p))) != NULL; p += 2) {
		if (p + 1 == stop || p[1] != '"')
			return p;
	}
	return NULL;
}

/* If a field in quotes goes on beyond the row's end, moves the end to that of the line where it closes. */
static bool extend_row(struct text_row *row)
{
	const char *at = row->at, *stop = row->text->data + row->text->bytes, *quote;
	struct gw_text_span field;
	enum gw_field_state state = GW_FIELD_MORE;
	while (state == GW_FIELD_MORE)
		state = gw_field_next(&at, row->end, row->format, &field);
	while (at < row->end && gw_is_blank(*at))
		at++;
	if (state != GW_FIELD_BAD || *at != '"' || !(quote = closing_quote(at, stop)) || quote < row->end)
		return false;
	while (row->end < quote) {
		row->next = gw_line_next(row->next, stop, &row->end);
		row->next_line++;
	}
	return true;
}

static bool next_row(struct text_row *row)
{
	const char *stop = row->text->data + row->text->bytes;
	bool below = row->at != NULL;
	while (row->next < stop) {
		row->at = row->next;
		row->line = row->next_line++;
		row->next = gw_line_next(row->at, stop, &row->end);
		if (!gw_line_is_row(row->at, row->end, row->format)) {
			if (below && !row->doubtful &&
			    gw_line_is_doubtful(row->at, row->end, row->format, row->columns))
				row->doubtful = row->line;
			continue;
		}
		if (row->format->quotes != GW_QUOTES_NONE && memchr(row->at, '"', (size_t)(row->end - row->at))) {
			while (extend_row(row)) {
			}
		}
		return true;
	}
	return false;
}

/* Cuts the row into at most max fields. *count: those that it has, without empty ones behind a last delimiter. */
static gw_status cut_row(const struct text_row *row, struct gw_text_span *fields, uint32_t max, uint32_t *count)
{
	const char *at = row->at;
	enum gw_field_state state = GW_FIELD_MORE;
	uint32_t have = 0;
	for (*count = 0; state == GW_FIELD_MORE; have++) {
		struct gw_text_span field;
		state = gw_field_next(&at, row->end, row->format, &field);
		if (state == GW_FIELD_BAD)
			return gw_table_fail_quote(row->text->name, row->line, have);
		if (state == GW_FIELD_NONE)
			break;
		if (have < max)
			fields[have] = field;
		if (have < max || field.bytes)
			*count = have + 1;
	}
	return GW_OK;
}

static void skip_header(struct text_row *row)
{
	if (row->format->header == GW_HEADER_YES)
		next_row(row);
}

/* Other readers take the blanks around an id for a part of it. One warning says that they are dropped. */
static void warn_of_blanks(struct columns_arguments *a, const struct text_row *row, struct gw_text_span field,
			   uint32_t index)
{
	const char *end = field.at + field.bytes;
	bool before = field.at > row->at && gw_is_blank(field.at[-1]) && field.at[-1] != row->format->delimiter;
	bool after = end < row->end && gw_is_blank(*end) && *end != row->format->delimiter;
	if (a->warned || field.quoted || row->format->delimiter == ' ' || !(before || after))
		return;
	a->warned = true;
	gw_log(GW_LOG_WARN, "%s, line %llu, column %u: blanks around ids are no part of them", row->text->name,
	       (unsigned long long)row->line, index + 1);
}

static bool id_is_missing(struct gw_text_span field)
{
	return !field.quoted && (!field.bytes || gw_text_span_is_missing(field, true));
}

static gw_status put_row(struct columns_arguments *a, const struct text_row *row, const struct gw_text_span *fields,
			 uint32_t have)
{
	uint64_t value;
	for (uint32_t i = 0; i < a->num_columns; i++) {
		struct gw_table_column *column = &a->columns[i];
		if (column->index >= have)
			return gw_fail(GW_FORMAT, "%s, line %llu: %u column%s, and no column %u", row->text->name,
				       (unsigned long long)row->line, have, have == 1 ? "" : "s", column->index + 1);
		if (i)
			putc_unlocked(',', stdout);
		if (a->may_miss[i] && id_is_missing(fields[column->index]))
			continue;
		column->values = &value;
		gw_status status = column->is_id
					   ? gw_table_field_read(row->text, column, fields[column->index], row->line)
					   : GW_OK;
		if (status != GW_OK)
			return status;
		if (column->is_id)
			warn_of_blanks(a, row, fields[column->index], column->index);
		put_field(fields[column->index]);
	}
	putc_unlocked('\n', stdout);
	return GW_OK;
}

/* Every row has at most as many columns as the first. */
static gw_status put_columns(struct columns_arguments *a, const struct gw_text *text, struct gw_text_span *fields)
{
	struct text_row row = text_rows_of(text, &a->import.text);
	uint32_t width = gw_table_peek(text, &a->import.text, 0, NULL, 0), have;
	for (uint32_t i = 0; i < a->num_columns; i++)
		printf("%sc%u", i ? "," : "", i);
	putc_unlocked('\n', stdout);
	skip_header(&row);
	gw_status status = GW_OK;
	while (status == GW_OK && !ferror(stdout) && next_row(&row)) {
		status = cut_row(&row, fields, width, &have);
		if (status == GW_OK && have > width)
			status = gw_fail(GW_FORMAT, "%s, line %llu: %u columns, but the first row has %u", text->name,
					 (unsigned long long)row.line, have, width);
		if (status == GW_OK)
			status = put_row(a, &row, fields, have);
	}
	return status == GW_OK && row.doubtful ? gw_table_fail_doubtful(text->name, row.doubtful) : status;
}

/* ---- kinds of ids ---- */

static gw_status print_kind(const struct columns_arguments *a, const struct gw_text *text, struct gw_text_span *fields)
{
	struct text_row row = text_rows_of(text, &a->import.text);
	uint64_t value;
	struct gw_table_column as_number = {.kind = GW_COLUMN_ID, .is_id = true, .what = "id", .values = &value};
	struct gw_table_column as_signed = {.kind = GW_COLUMN_INT, .is_id = true, .what = "id", .values = &value};
	uint32_t have;
	enum { NUMBER, SIGNED, TEXT } kind = NUMBER;
	skip_header(&row);
	while (kind != TEXT && next_row(&row)) {
		gw_status status = cut_row(&row, fields, a->kind, &have);
		if (status != GW_OK)
			return status;
		if (have < a->kind)
			continue; /* the reader reports it, and what is missing */
		struct gw_text_span field = fields[a->kind - 1];
		if (!field.bytes || id_is_missing(field))
			continue;
		if (kind == NUMBER && gw_table_field_read(text, &as_number, field, row.line) != GW_OK)
			kind = SIGNED;
		if (kind == SIGNED && gw_table_field_read(text, &as_signed, field, row.line) != GW_OK)
			kind = TEXT;
	}
	puts((const char *const[]){"number", "signed", "text"}[kind]);
	return GW_OK;
}

/* ---- formats ---- */

static void print_format(const struct gw_import_file *file, struct gw_text_span *fields)
{
	const struct gw_table_format *format = &file->text_format;
	uint32_t have = gw_table_peek(&file->text, format, 0, fields, GW_TABLE_COLUMNS_MAX);
	printf("%d,%d,%u,%d,%u,%d", format->delimiter, format->header == GW_HEADER_YES, file->id_columns[0] + 1,
	       file->text_ids[0], file->id_columns[1] + 1, file->text_ids[1]);
	for (uint32_t i = 0; i < have && i < GW_TABLE_COLUMNS_MAX; i++) {
		putc_unlocked(',', stdout);
		if (format->header == GW_HEADER_YES)
			put_quoted(fields[i]);
		else
			printf("%u", i + 1);
	}
	putc_unlocked('\n', stdout);
}

/* A caller that names columns expects a header. */
static void warn_of_edges(const struct columns_arguments *a, const struct gw_import_set *set)
{
	bool header = a->import.text.header != GW_HEADER_AUTO;
	for (uint32_t i = 0; i < set->num_files; i++)
		header |= set->files[i].text_format.header == GW_HEADER_YES;
	if (!header)
		gw_log(GW_LOG_WARN,
		       "%s: no header: the first line is an edge, and the columns have the names 1, 2 and so on",
		       set->files[0].path);
}

/* Decides as import does. */
static gw_status examine_and_print_edges(struct gw_import *im, const struct columns_arguments *a,
					 struct gw_text_span *fields)
{
	struct gw_import_set *set;
	gw_status status = gw_import_set_add(im, a->src_type, "_E", a->dst_type, &set);
	for (uint32_t i = 0; i < a->files.count && status == GW_OK; i++)
		status = gw_import_file_add(set, a->files.at[i], GW_FROM_TEXT, GW_SPLIT_NONE);
	for (uint32_t i = 0; i < a->files.count && status == GW_OK; i++) {
		status = gw_import_text_examine(im, set, &set->files[i]);
		if (status == GW_OK && set->files[i].matrix.what)
			status = gw_fail(GW_UNSUPPORTED, "%s: a %s matrix: graphwire import reads it", a->files.at[i],
					 set->files[i].matrix.what);
		if (status == GW_OK)
			status = gw_import_header_report(im, set, i);
		if (status == GW_OK)
			gw_import_text_kinds(im, set, &set->files[i]);
	}
	if (status == GW_OK)
		status = gw_import_header_settle(set);
	if (status == GW_OK)
		warn_of_edges(a, set);
	for (uint32_t i = 0; i < a->files.count && status == GW_OK; i++)
		print_format(&set->files[i], fields);
	return status;
}

static gw_status columns_examine(struct columns_arguments *a, struct gw_text_span *fields)
{
	struct gw_import im = {.options = &a->import, .threads = gw_processors()};
	a->import.names = a->names.at;
	a->import.num_names = a->names.count;
	a->import.build.quiet = true;
	gw_status status = gw_builder_create("graph", &im.builder);
	if (status == GW_OK)
		status = examine_and_print_edges(&im, a, fields);
	gw_import_close(&im);
	return status;
}

/* A file whose format is known, or a table of nodes, whose first line is a header unless the options deny it. */
static gw_status read_file_of(struct columns_arguments *a, const char *path, struct gw_text_span *fields)
{
	struct gw_import_file file = {.path = path, .text_format = a->import.text};
	gw_status status = gw_text_open(path, NULL, &file.text);
	if (status != GW_OK)
		return status;
	if (a->num_columns)
		status = put_columns(a, &file.text, fields);
	else if (a->kind)
		status = print_kind(a, &file.text, fields);
	else
		status = gw_other_formats_check(&file.text);
	if (status == GW_OK && !a->num_columns && !a->kind)
		status = gw_import_table_format(path, &file.text, &file.text_format);
	if (status == GW_OK && !a->num_columns && !a->kind)
		print_format(&file, fields);
	gw_text_close(&file.text);
	return status;
}

#define A struct columns_arguments
static const struct gw_option columns_table[] = {
	{"from", "FILE", "a table of text, gzip or not; may be repeated", 0, GW_OPTION_CALL(columns_take_file)},
	{"node-table", NULL, "its rows are nodes, not edges", 0, GW_OPTION_FLAG(A, node_table)},
	{"src-type", "TYPE", "the node type of the sources, for names of columns", 0, GW_OPTION_TEXT(A, src_type)},
	{"dst-type", "TYPE", "... and that of the destinations", 0, GW_OPTION_TEXT(A, dst_type)},
	{"src-column", "COLUMN", "as for import", 0, GW_OPTION_TEXT(A, import.src_column)},
	{"dst-column", "COLUMN", "as for import", 0, GW_OPTION_TEXT(A, import.dst_column)},
	{"named", "NAME", "a first row with this name is a header; may be repeated", 0,
	 GW_OPTION_CALL(columns_take_name)},
	{"header", NULL, "the first line names the columns", 0, GW_OPTION_VALUE(A, import.text.header, GW_HEADER_YES)},
	{"no-header", NULL, "the first line is data", 0, GW_OPTION_VALUE(A, import.text.header, GW_HEADER_NONE)},
	{"delimiter", "CODE", "its number in ASCII", 0, GW_OPTION_CALL(columns_take_delimiter)},
	{"kind", "N", "print whether the ids of column N are numbers, signed or text", 0,
	 GW_OPTION_NUMBER(A, kind, 1, GW_TABLE_COLUMNS_MAX)},
	{"column", "N", "write this column, from 1; may be repeated, as the next six", 0, GW_OPTION_CALL(take_value)},
	{"text-id", "N", "... a column of ids that are text", 0, GW_OPTION_CALL(take_text_id)},
	{"number-id", "N", "... of ids that are whole numbers from 0", 0, GW_OPTION_CALL(take_number_id)},
	{"signed-id", "N", "... of ids that are whole numbers", 0, GW_OPTION_CALL(take_signed_id)},
	{"text-key", "N", "as --text-id, and a missing one is an empty field", 0, GW_OPTION_CALL(take_text_key)},
	{"number-key", "N", "as --number-id, ...", 0, GW_OPTION_CALL(take_number_key)},
	{"signed-key", "N", "as --signed-id, ...", 0, GW_OPTION_CALL(take_signed_key)},
	{0},
};
#undef A

static const char columns_doc[] =
	"Print how import reads tables of text, or write columns of one table as CSV.\v"
	"Without columns, a line for each file has the delimiter's number in ASCII; 1 if the first line is a header; "
	"the column of the sources, from 1, and 1 if they are text; the same of the destinations; and the names of the "
	"columns. With columns, the rows follow a header c0,c1 and so on; a field that was in quotes is in quotes.\n\n"
	"Example:\n"
	"  graphwire import columns --from edges.tsv.gz\n";

static gw_status columns_check(void *input)
{
	const struct columns_arguments *a = input;
	if (a->files.count == 0)
		return gw_fail(GW_INVALID, "name a file with --from");
	if (a->num_columns && a->files.count > 1)
		return gw_fail(GW_INVALID, "columns are those of one file: give --from once");
	if ((a->num_columns || a->kind) && (!a->import.text.delimiter || a->import.text.header == GW_HEADER_AUTO))
		return gw_fail(GW_INVALID, "columns need --delimiter, and --header or --no-header");
	return GW_OK;
}

int gw_import_columns_main(int argc, char **argv)
{
	static const struct gw_options options = {.table = columns_table, .doc = columns_doc, .check = columns_check};
	static char buffer[OUT_BYTES];
	struct columns_arguments *a = gw_calloc(1, sizeof(*a));
	struct gw_text_span *fields = gw_calloc(GW_TABLE_COLUMNS_MAX, sizeof(*fields));
	gw_status status = a && fields ? GW_OK : GW_NO_MEMORY;
	if (status == GW_OK) {
		a->src_type = a->dst_type = "_N";
		snprintf(a->import.text.comments, sizeof(a->import.text.comments), "#%%");
		gw_options_parse(&options, argc, argv, a);
		setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
		if (!a->node_table && !a->num_columns && !a->kind)
			status = columns_examine(a, fields);
		for (uint32_t i = 0;
		     i < a->files.count && status == GW_OK && (a->node_table || a->num_columns || a->kind); i++)
			status = read_file_of(a, a->files.at[i], fields);
		gw_free(a->files.at);
		gw_free(a->names.at);
	}
	if (status == GW_OK)
		status = put_end();
	gw_free(fields);
	gw_free(a);
	return gw_exit_status("import columns", status);
}
