/* Opens tables of nodes and reads their ids; node_columns.c reads the other columns.
 *
 *   --node-table -> text opened, header -> column of ids, by --id-column or its name -> ids: text, or whole numbers
 *
 * Ids are text if one of them is not written as a whole number, or if the edges' ids are text. Unlike lists of --nodes,
 * tables never mean places: an id of an edge is an id of the table, or an error.
 */
#include "tools/import/node_tables.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tools/import/other_formats.h"

static void bare_name(const char *at, uint64_t bytes, char out[GW_NAME_MAX + 1])
{
	size_t used = 0;
	for (uint64_t i = 0; i < bytes && used < GW_NAME_MAX; i++) {
		if (isalnum((unsigned char)at[i]) || (unsigned char)at[i] >= 0x80)
			out[used++] = (char)tolower((unsigned char)at[i]);
	}
	out[used] = '\0';
}

/* Whether a column's name says that it has the ids: id, node_id, the type's name, the same with id. */
static bool is_id_name(struct gw_text_span field, const char *type)
{
	char name[GW_NAME_MAX + 1], of[GW_NAME_MAX + 1];
	bare_name(field.at, field.bytes, name);
	bare_name(type, strlen(type), of);
	size_t bytes = strlen(of);
	if (strcmp(name, "id") == 0 || strcmp(name, "nodeid") == 0)
		return true;
	return bytes && strncmp(name, of, bytes) == 0 && (!name[bytes] || strcmp(name + bytes, "id") == 0);
}

static gw_status find_id_column(const struct gw_import_space *space, uint32_t *out)
{
	struct gw_text_span fields[64];
	const struct gw_table_format *format = &space->list_table.format;
	if (space->id_column)
		return gw_context(gw_table_find(&space->list_text, format, space->id_column, out), "--id-column");
	uint32_t have = gw_table_peek(&space->list_text, format, 0, fields, 64), found = 0;
	for (uint32_t i = 0; i < have && i < 64 && format->header == GW_HEADER_YES; i++) {
		if (is_id_name(fields[i], space->name)) {
			*out = i;
			found++;
		}
	}
	if (found == 1)
		return GW_OK;
	return gw_fail(GW_INVALID, "%s: %s named id, node_id or %s: name the column of ids with --id-column",
		       space->list_path, found ? "several columns are" : "no column is", space->name);
}

/* Whether the rows of a text without delimiters but blanks are one field each: the first row is one word, or in quotes
 * as a whole. Blanks would cut other rows into more columns than it has. */
static bool is_one_column(const struct gw_text *text, const struct gw_table_format *blanks)
{
	struct gw_table_format lines = *blanks;
	struct gw_text_span field;
	lines.delimiter = '\n';
	lines.quotes = gw_table_quotes_of('\n');
	return gw_table_peek(text, blanks, 0, NULL, 0) == 1 ||
	       (gw_table_peek(text, &lines, 0, &field, 1) == 1 && field.quoted);
}

gw_status gw_import_table_format(const char *path, const struct gw_text *text, struct gw_table_format *format)
{
	uint64_t line;
	const bool chosen = format->delimiter;
	format->header = format->header == GW_HEADER_NONE ? GW_HEADER_NONE : GW_HEADER_YES;
	gw_table_sniff(text, NULL, 0, format);
	if (!chosen && format->delimiter == ' ' && is_one_column(text, format)) {
		format->delimiter = '\n';
		format->quotes = gw_table_quotes_of('\n');
	}
	return format->header == GW_HEADER_YES && gw_table_repeats(text, format, &line)
		       ? gw_table_fail_repeat(path, line)
		       : GW_OK;
}

static gw_status open_node_table(struct gw_import *im, struct gw_import_space *space)
{
	struct gw_table_format format = im->options->text;
	gw_status status = gw_text_open(space->list_path, gw_import_memory(im).spill, &space->list_text);
	if (status == GW_OK && im->options->format != GW_FROM_TEXT)
		status = gw_other_formats_check(&space->list_text);
	if (status != GW_OK)
		return status;
	im->input_bytes += space->list_text.file_bytes;
	status = gw_import_table_format(space->list_path, &space->list_text, &format);
	if (status != GW_OK)
		return status;
	status = gw_table_scan(&space->list_text, &format, im->threads, &space->list_table);
	return status == GW_OK && space->list_table.doubtful && !im->options->comments_given
		       ? gw_table_fail_doubtful(space->list_path, space->list_table.doubtful)
		       : status;
}

static gw_status read_texts(struct gw_import *im, const struct gw_import_space *space, struct gw_table_column read,
			    uint64_t **out)
{
	gw_status status = GW_OK;
	read.values = *out = gw_import_take(im, space->list_table.rows, 8, &status);
	return status != GW_OK ? status : gw_table_read(&space->list_table, &read, 1, im->threads);
}

gw_status gw_import_table_texts(struct gw_import *im, const struct gw_import_space *space, uint32_t column,
				const char *what, bool may_be_empty, uint64_t **out)
{
	const struct gw_table_column read = {
		.index = column, .kind = GW_COLUMN_TEXT, .what = what, .may_be_empty = may_be_empty};
	return read_texts(im, space, read, out);
}

static bool node_tables_are_ids(const struct gw_import_space *space, const uint64_t *texts)
{
	for (uint64_t i = 0; i < space->list_table.rows; i++) {
		struct gw_text_span span = gw_text_span(space->list_text.data, texts[i]);
		uint64_t value;
		if (!gw_text_span_is_id(span, &value) || (span.bytes > 1 && span.at[0] == '0'))
			return false;
	}
	return true;
}

static gw_status open_ids(struct gw_import *im, struct gw_import_space *space)
{
	uint32_t column;
	uint64_t *texts;
	gw_status status = open_node_table(im, space);
	if (status == GW_OK)
		status = find_id_column(space, &column);
	if (status == GW_OK)
		status = read_texts(im, space,
				    (struct gw_table_column){.index = column,
							     .kind = GW_COLUMN_TEXT,
							     .is_id = im->options->ids == GW_IDS_AUTO,
							     .what = "id"},
				    &texts);
	if (status != GW_OK)
		return status;
	space->list = texts;
	space->list_column = column;
	if (space->ids == GW_IDS_AUTO && !node_tables_are_ids(space, texts))
		space->ids = GW_IDS_TEXT;
	return GW_OK;
}

gw_status gw_import_open_tables(struct gw_import *im)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < im->num_spaces && status == GW_OK; i++)
		status = im->spaces[i].is_table ? open_ids(im, &im->spaces[i]) : GW_OK;
	return status;
}

gw_status gw_import_table_ids(struct gw_import *im, struct gw_import_space *space)
{
	space->list_is_text = space->ids == GW_IDS_TEXT;
	if (space->list_is_text)
		return GW_OK;
	struct gw_table_column read = {
		.index = space->list_column, .kind = GW_COLUMN_ID, .what = "id", .values = space->list};
	return gw_table_read(&space->list_table, &read, 1, im->threads);
}

gw_status gw_import_table_space(struct gw_import *im, const char *type, const char *option,
				struct gw_import_space **out)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < im->num_spaces; i++) {
		if (!im->spaces[i].is_table || (type && strcmp(im->spaces[i].name, type) != 0))
			continue;
		*out = &im->spaces[i];
		found++;
	}
	if (found == 1)
		return GW_OK;
	if (found)
		return gw_fail(GW_INVALID, "%s: several node types have a --node-table: name the type", option);
	return type ? gw_fail(GW_NOT_FOUND, "%s: node type \"%s\" has no --node-table", option, type)
		    : gw_fail(GW_NOT_FOUND, "%s: no node type has a --node-table", option);
}
