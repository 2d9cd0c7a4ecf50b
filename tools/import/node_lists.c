/* Reads the lists of --nodes and --relations: ids in the order of their numbers.
 *
 *   text -> a name or number on each line, or "number name" in either order; OpenKE's dictionaries begin with a count
 *   .npy -> whole numbers
 *   .npz -> strings (strings.h)
 *
 * Errors: numbers that are not 0 to the last, each once; a line of another layout; a count that is wrong.
 */
#include "tools/import/node_lists.h"

#include <stdlib.h>
#include <string.h>

#include "tools/import/node_tables.h"
#include "tools/import/other_formats.h"
#include "tools/import/strings.h"

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* places[i] is the number of line i. Keeps the line of each number, because rows of features belong to lines. */
static gw_status place_list(struct gw_import *im, struct gw_import_space *space, const uint64_t *places)
{
	uint64_t rows = space->list_table.rows;
	bool in_order = true;
	gw_status status = GW_OK;
	uint64_t *placed = gw_import_take(im, rows, 8, &status);
	uint64_t *check = gw_import_take(im, rows, 8, &status);
	uint64_t *lines = gw_import_take(im, rows, 8, &status);
	if (status != GW_OK)
		return status;
	memcpy(check, places, rows * 8);
	qsort(check, rows, 8, compare_ids);
	for (uint64_t i = 0; i < rows; i++) {
		if (check[i] != i)
			return gw_fail(GW_FORMAT, "%s: its numbers are not 0 to %llu, each once", space->list_path,
				       (unsigned long long)(rows - 1));
	}
	for (uint64_t i = 0; i < rows; i++) {
		placed[places[i]] = space->list[i];
		lines[places[i]] = i;
		in_order &= places[i] == i;
	}
	space->list = placed;
	space->lines = in_order ? NULL : lines;
	return GW_OK;
}

/* The layout of a list. */
struct list_form {
	struct gw_table_format format;
	bool numbered, names_first; /* two columns: a number and a name */
	bool first_is_id;
	bool has_count; /* the first line has the number of the lines that follow: */
	uint64_t counted;
};

/* OpenKE's dictionaries: a first line with the number of lines, then a name and its number on each line. */
static bool has_count_line(const struct gw_import_space *space, struct list_form *out)
{
	static const char delimiters[] = {'\t', ' '};
	for (size_t i = 0; i < sizeof(delimiters); i++) {
		struct gw_table_format format = {.delimiter = delimiters[i], .header = GW_HEADER_YES};
		struct gw_text_span first[3], second[3];
		uint64_t number;
		if (gw_table_peek(&space->list_text, &format, 0, first, 3) != 1 ||
		    gw_table_peek(&space->list_text, &format, 1, second, 3) != 2 ||
		    !gw_text_span_is_id(first[0], &out->counted))
			continue;
		bool names_first = gw_text_span_is_id(second[1], &number);
		if (!names_first && !gw_text_span_is_id(second[0], &number))
			continue;
		out->format = format;
		out->has_count = out->numbered = true;
		out->names_first = names_first;
		return true;
	}
	return false;
}

/* A line is a name, with any blanks and commas in it, unless it has exactly two fields: a number and a name. */
static gw_status look_at_list(const struct gw_import_space *space, struct list_form *out)
{
	struct gw_table_format format = {.header = GW_HEADER_NONE};
	struct gw_text_span fields[3] = {{0}};
	uint64_t number;
	*out = (struct list_form){0};
	if (has_count_line(space, out))
		return GW_OK;
	gw_table_sniff(&space->list_text, NULL, 0, &format);
	uint32_t have = gw_table_peek(&space->list_text, &format, 0, fields, 3);
	bool first = have > 0 && gw_text_span_is_id(fields[0], &number),
	     second = have == 2 && gw_text_span_is_id(fields[1], &number), tab = format.delimiter == '\t';
	*out = (struct list_form){.numbered = have == 2 && (first || second), .names_first = !first, .format = format};
	if (have > 2 && (first || tab))
		return gw_fail(GW_FORMAT, "%s: a list has one column, or two columns: number and name",
			       space->list_path);
	if (have == 2 && tab && !out->numbered)
		return gw_fail(GW_FORMAT, "%s: one of its two columns must be a number", space->list_path);
	if (!out->numbered && !tab) {
		out->format.quotes = format.quotes && have && fields[0].quoted ? GW_QUOTES_STRICT : GW_QUOTES_NONE;
		out->format.delimiter = '\n';
	}
	if (tab) /* the dictionaries of triples, whose names may have quotes */
		out->format.quotes = GW_QUOTES_NONE;
	out->first_is_id = first && have == 1;
	return GW_OK;
}

/* Refuses "7 New York": a blank would cut the name. */
static gw_status check_line_ends(const struct gw_import_space *space)
{
	const struct gw_text *text = &space->list_text;
	const char *stop = text->data + text->bytes;
	for (uint64_t i = 0; i < space->list_table.rows; i++) {
		struct gw_text_span span = gw_text_span(text->data, space->list[i]);
		const char *at = span.at + span.bytes;
		while (at < stop && (*at == ' ' || *at == '\t' || *at == '"'))
			at++;
		if (at < stop && *at != '\n' && *at != '\r')
			return gw_fail(GW_FORMAT,
				       "%s, line %llu: more than a number and a name: put a tab between them",
				       space->list_path, (unsigned long long)gw_table_line(&space->list_table, i));
	}
	return GW_OK;
}

/* Reads a list of ids, one on each line, alone or with its number, in either order. */
static gw_status read_text_list(struct gw_import *im, struct gw_import_space *space)
{
	struct list_form form;
	gw_status status = gw_text_open(space->list_path, gw_import_memory(im).spill, &space->list_text);
	if (status == GW_OK && im->options->format != GW_FROM_TEXT)
		status = gw_other_formats_check(&space->list_text);
	if (status == GW_OK)
		status = look_at_list(space, &form);
	if (status == GW_OK)
		status = gw_table_scan(&space->list_text, &form.format, im->threads, &space->list_table);
	if (status != GW_OK)
		return status;
	uint64_t rows = space->list_table.rows, *places = NULL;
	if (form.has_count && form.counted != rows)
		return gw_fail(GW_FORMAT, "%s: its first line promises %llu lines, but %llu lines follow",
			       space->list_path, (unsigned long long)form.counted, (unsigned long long)rows);
	space->list = gw_import_take(im, rows, 8, &status);
	if (form.numbered)
		places = gw_import_take(im, rows, 8, &status);
	if (status != GW_OK)
		return status;
	/* A list without numbers is text if the edges' ids are text, or if its first id is not a number. */
	space->list_is_text = !form.first_is_id || space->ids == GW_IDS_TEXT;
	struct gw_table_column columns[2] = {
		{.index = form.numbered && !form.names_first ? 1 : 0,
		 .kind = space->list_is_text ? GW_COLUMN_TEXT : GW_COLUMN_ID,
		 .what = "id",
		 .values = space->list},
		{.index = form.names_first ? 1 : 0, .kind = GW_COLUMN_ID, .what = "number", .values = places}};
	status = gw_table_read(&space->list_table, columns, form.numbered ? 2 : 1, im->threads);
	if (status != GW_OK || !form.numbered)
		return status;
	status = form.names_first ? GW_OK : check_line_ends(space);
	return status != GW_OK ? status : place_list(im, space, places);
}

static gw_status read_number_list(struct gw_import *im, struct gw_import_space *space)
{
	const struct gw_npy_file *array;
	gw_status status = gw_import_array(im, space->list_path, &array);
	if (status == GW_OK && array->npy.ndim != 1)
		status = gw_fail(GW_FORMAT, "%s: a list of ids has one dimension", space->list_path);
	if (status != GW_OK)
		return status;
	space->list_table.rows = array->npy.shape[0];
	space->list = gw_import_take(im, space->list_table.rows, 8, &status);
	if (status == GW_OK && space->ids == GW_IDS_TEXT)
		status = gw_fail(GW_INVALID, "%s: its ids are numbers, but node type %s has text ids", space->list_path,
				 space->name);
	return status != GW_OK ? status
			       : gw_import_whole(&array->npy, array->data, 0, 1, space->list_table.rows,
						 space->list_path, im->threads, space->list);
}

static gw_status read_string_list(struct gw_import *im, struct gw_import_space *space)
{
	struct gw_import_strings strings;
	gw_status status = gw_import_strings_read(im, space->list_path, &strings);
	if (status == GW_OK)
		status = gw_text_borrow(space->list_path, strings.bytes, strings.offsets[strings.count],
					&space->list_text);
	space->list = gw_import_take(im, status == GW_OK ? strings.count : 0, 8, &status);
	if (status != GW_OK)
		return status;
	for (uint64_t i = 0; i < strings.count; i++) {
		uint64_t bytes = strings.offsets[i + 1] - strings.offsets[i];
		if (bytes > GW_TABLE_FIELD_MAX)
			return gw_fail(GW_LIMIT, "%s: string %llu has %llu bytes; an id has at most %u",
				       space->list_path, (unsigned long long)i, (unsigned long long)bytes,
				       GW_TABLE_FIELD_MAX);
		space->list[i] = gw_text_ref(strings.offsets[i], bytes, false);
	}
	space->list_table.rows = strings.count;
	space->list_is_text = true;
	return GW_OK;
}

gw_status gw_import_list_read(struct gw_import *im, struct gw_import_space *space)
{
	if (space->is_table)
		return gw_import_table_ids(im, space);
	switch (gw_import_format_of(space->list_path)) {
	case GW_FROM_NPY:
		return read_number_list(im, space);
	case GW_FROM_NPZ:
		return read_string_list(im, space);
	default:
		return read_text_list(im, space);
	}
}

uint64_t gw_import_list_line(const struct gw_import_space *space, uint64_t number)
{
	uint64_t row = space->lines ? space->lines[number] : number;
	return space->list_table.count ? gw_table_line(&space->list_table, row) : row + 1;
}
