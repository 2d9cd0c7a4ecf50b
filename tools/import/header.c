/* Finds the id columns of text: by the names of its header, by options, or by their places.
 *
 *   options name columns                  -> these
 *   line 1 has known names (names.h)      -> these, wherever they are; line 1 is a header
 *   line 1 is a header by --header or by  -> the first columns that have names, unless the names say that they are
 *   its numbers (gw_table_sniff)             no ends
 *   else line 1 is an edge                -> the first columns; refused if line 1 may be a header
 *
 * A wrong column makes a wrong graph without an error. So an uncertain first line is refused, with the options that
 * decide it, and the columns of a header are printed.
 */
#include "tools/import/header.h"

#include <stdio.h>
#include <string.h>

#include "core/errors/status.h"
#include "core/memory/alloc.h"
#include "tools/import/names.h"

#define CHOOSE "name the columns with --src-column and --dst-column"

static gw_status header_fields(const struct gw_import_file *file, struct gw_text_span **out, uint32_t *count)
{
	*out = gw_calloc(GW_TABLE_COLUMNS_MAX, sizeof(**out));
	if (!*out)
		return GW_NO_MEMORY;
	*count = gw_table_peek(&file->text, &file->text_format, 0, *out, GW_TABLE_COLUMNS_MAX);
	*count = *count < GW_TABLE_COLUMNS_MAX ? *count : GW_TABLE_COLUMNS_MAX;
	return GW_OK;
}

static const char *header_type_name(const struct gw_import *im, uint32_t space)
{
	return im->spaces[space].name;
}

/* The columns that options name. */
struct given_columns {
	const char *names[3]; /* NULL: open */
};

static struct given_columns given_columns(const struct gw_import *im, const struct gw_import_set *set)
{
	const struct gw_import_options *o = im->options;
	return (struct given_columns){{o->src_column, o->dst_column, set->triples ? o->rel_column : NULL}};
}

static gw_status find_given(const struct gw_import *im, const struct gw_import_set *set, struct gw_import_file *file)
{
	const struct given_columns given = given_columns(im, set);
	gw_status status = GW_OK;
	for (int i = 0; i < 3 && status == GW_OK; i++) {
		if (given.names[i])
			status = gw_table_find(&file->text, &file->text_format, given.names[i], &file->id_columns[i]);
	}
	return status;
}

/* Whether rows below the first of a file repeat one of these words, which are the first row of this file, or of
 * another file of the set. Then that first row is an edge. */
static bool words_recur(const struct gw_import_set *set, const struct gw_import_file *file,
			const struct gw_import_file *below, const struct gw_text_span *fields, uint32_t count)
{
	for (int i = 0; i < (set->triples ? 3 : 2); i++) {
		const uint32_t *columns = i == 2 ? &below->id_columns[2] : below->id_columns;
		if (file->id_columns[i] < count &&
		    gw_table_recurs(&below->text, &below->text_format, fields[file->id_columns[i]], columns,
				    i == 2 ? 1 : 2))
			return true;
	}
	return false;
}

static gw_status fail_first_row(const struct gw_import_file *file, const char *why)
{
	return gw_fail(GW_FORMAT, "%s, line 1: %s: if it is a header, use --header; if it is an edge, use --no-header",
		       file->path, why);
}

/* The relation of a triple whose ends have known names: a known name, or the one column that is left. */
static gw_status find_relation(struct gw_import_file *file, const struct gw_text_span *fields, uint32_t count)
{
	uint32_t *columns = file->id_columns;
	switch (gw_names_relation(fields, count, &columns[2])) {
	case GW_NAMES_FOUND:
		return GW_OK;
	case GW_NAMES_SEVERAL:
		return gw_fail(GW_FORMAT,
			       "%s, line 1: several columns have the name of a relation: name one with --rel-column",
			       file->path);
	default:
		if (count != 3)
			return gw_fail(GW_FORMAT,
				       "%s, line 1: no column has a known name of relations: name it with --rel-column",
				       file->path);
		columns[2] = 3 - columns[0] - columns[1];
		return GW_OK;
	}
}

gw_status gw_import_header_find(const struct gw_import *im, const struct gw_import_set *set,
				struct gw_import_file *file, bool *found)
{
	const struct given_columns given = given_columns(im, set);
	struct gw_text_span *fields;
	uint32_t count, ends[2];
	*found = false;
	if (file->text_format.header == GW_HEADER_NONE || file->delimiter)
		return GW_OK;
	if (!gw_table_first_row_ends(&file->text, &file->text_format))
		return gw_fail(
			GW_FORMAT,
			"%s, line 1: a quoted field that does not end on its line: such fields are not supported",
			file->path);
	gw_status status = header_fields(file, &fields, &count);
	if (status != GW_OK)
		return status;
	enum gw_names_found names = given.names[0] && given.names[1]
					    ? GW_NAMES_NONE
					    : gw_names_ends(fields, count, header_type_name(im, set->src),
							    header_type_name(im, set->dst), &ends[0], &ends[1]);
	if (names == GW_NAMES_SEVERAL)
		status =
			gw_fail(GW_FORMAT, "%s, line 1: several columns have known names of ends: " CHOOSE, file->path);
	if (status != GW_OK || names != GW_NAMES_FOUND)
		goto free_all;
	for (int i = 0; i < 2; i++)
		file->id_columns[i] = ends[i];
	if (set->triples && !given.names[2])
		status = find_relation(file, fields, count);
	uint64_t line;
	if (status == GW_OK && file->text_format.header == GW_HEADER_AUTO &&
	    gw_table_repeats(&file->text, &file->text_format, &line))
		status = gw_table_fail_repeat(file->path, line);
	if (status == GW_OK && file->text_format.header == GW_HEADER_AUTO &&
	    words_recur(set, file, file, fields, count))
		status = fail_first_row(file, "it has known names of columns, but lines below have them as ids");
	file->text_format.header = GW_HEADER_YES;
	if (status == GW_OK)
		status = find_given(im, set, file);
	if (status == GW_OK && file->id_columns[0] == file->id_columns[1])
		status = gw_fail(GW_FORMAT, "%s, line 1: both ends would be column %u: " CHOOSE, file->path,
				 file->id_columns[0] + 1);
	*found = file->known_names = status == GW_OK;
free_all:
	gw_free(fields);
	return status;
}

/* The first columns that have names. The index that pandas writes has none. */
static void set_defaults(const struct gw_import_set *set, struct gw_import_file *file,
			 const struct gw_text_span *fields, uint32_t count)
{
	uint32_t named[3] = {0, 1, 2}, have = 0, wanted = set->triples ? 3 : 2;
	for (uint32_t i = 0; i < count && have < wanted && file->text_format.header == GW_HEADER_YES; i++) {
		if (!gw_names_is_unnamed(fields[i]))
			named[have++] = i;
	}
	for (; have > 0 && have < wanted; have++) /* too few columns: the rows will say so */
		named[have] = named[have - 1] + 1;
	file->id_columns[0] = named[0];
	file->id_columns[1] = named[set->triples ? 2 : 1];
	file->id_columns[2] = set->triples ? named[1] : 0;
}

/* Whether the names of the header contradict the places of the ends: "time,a,b", or "movie,user" for user:rates:film.
 */
static gw_status check_names(const struct gw_import *im, const struct gw_import_set *set,
			     const struct gw_import_file *file, const struct gw_text_span *fields, uint32_t count)
{
	const struct given_columns given = given_columns(im, set);
	const char *from = header_type_name(im, set->src), *to = header_type_name(im, set->dst);
	uint32_t named = 0;
	for (uint32_t i = 0; i < count; i++)
		named += !gw_names_is_unnamed(fields[i]);
	for (int i = 0; i < 2; i++) {
		uint32_t column = file->id_columns[i];
		if (given.names[i] || column >= count)
			continue;
		bool turned = i == 0 ? gw_names_is_destination(fields[column], from, to)
				     : gw_names_is_source(fields[column], from, to);
		if (turned || (named > 2 && !set->triples && gw_names_is_other(fields[column])))
			return gw_fail(GW_FORMAT,
				       "%s, line 1: column %u, \"%.*s\", would be the %s, "
				       "but its name says otherwise: " CHOOSE,
				       file->path, column + 1,
				       (int)(fields[column].bytes < 40 ? fields[column].bytes : 40), fields[column].at,
				       i == 0 ? "source" : "destination");
	}
	return GW_OK;
}

/* Whether a column may have this name. Names have letters, and no signs of paths and addresses. */
static bool may_be_name(struct gw_text_span field)
{
	bool letters = false;
	for (uint64_t i = 0; i < field.bytes; i++) {
		char c = field.at[i];
		if (c == '/' || c == '@')
			return false;
		letters |= (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (unsigned char)c >= 0x80;
	}
	return letters;
}

/* Whether the first row, of words that no row below repeats, may be a header whose names are not known. If lists name
 * the ids, a header among them is an error in any case. */
static bool is_doubtful(const struct gw_import *im, const struct gw_import_set *set, const struct gw_import_file *file,
			const struct gw_text_span *fields, uint32_t count)
{
	bool listed = im->spaces[set->src].list_path && im->spaces[set->dst].list_path;
	for (int i = 0; i < 2; i++) {
		if (file->id_columns[i] >= count || !may_be_name(fields[file->id_columns[i]]))
			return false;
	}
	return !listed && !words_recur(set, file, file, fields, count);
}

gw_status gw_import_header_settle(const struct gw_import_set *set)
{
	for (uint32_t f = 0; f < set->num_files; f++) {
		const struct gw_import_file *file = &set->files[f];
		struct gw_text_span *fields;
		uint32_t count;
		if (!file->doubtful)
			continue;
		gw_status status = header_fields(file, &fields, &count);
		bool recurs = false;
		for (uint32_t i = 0; i < set->num_files && status == GW_OK && !recurs; i++)
			recurs = i != f && set->files[i].format == GW_FROM_TEXT &&
				 words_recur(set, file, &set->files[i], fields, count);
		gw_free(fields);
		if (status != GW_OK)
			return status;
		if (!recurs)
			return fail_first_row(file,
					      "no name of a column is known, and no line below repeats its words");
	}
	return GW_OK;
}

gw_status gw_import_header_default(const struct gw_import *im, const struct gw_import_set *set,
				   struct gw_import_file *file)
{
	struct gw_text_span *fields;
	uint32_t count;
	gw_status status = header_fields(file, &fields, &count);
	if (status != GW_OK)
		return status;
	bool open = im->options->text.header == GW_HEADER_AUTO && !file->delimiter && !file->matrix.what;
	if (open && count > 1 && gw_names_is_unnamed(fields[0])) /* no id is empty: the index of pandas */
		file->text_format.header = GW_HEADER_YES;
	set_defaults(set, file, fields, file->matrix.what ? 0 : count);
	status = find_given(im, set, file);
	if (status != GW_OK || file->matrix.what || file->delimiter)
		goto free_all;
	if (open && file->text_format.header == GW_HEADER_YES && !file->known_names && !file->given_names &&
	    words_recur(set, file, file, fields, count))
		status = fail_first_row(file, "no name of a column is known, and a line below has its words as ids");
	else if (file->text_format.header == GW_HEADER_YES)
		status = check_names(im, set, file, fields, count);
	else if (open)
		file->doubtful = is_doubtful(im, set, file, fields, count);
free_all:
	gw_free(fields);
	return status;
}

#define CHECKED_ROWS 100u

/* A header that is shorter than the rows names other columns than one thinks: R leaves out the name of its row names,
 * and a decimal comma adds a column. */
static gw_status check_width(const struct gw_import_file *file)
{
	const struct gw_text *text = &file->text;
	uint32_t width = gw_table_peek(text, &file->text_format, 0, NULL, 0);
	struct gw_text_span *fields = gw_calloc(GW_TABLE_COLUMNS_MAX, sizeof(*fields));
	if (!fields)
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	for (uint32_t row = 1; row <= CHECKED_ROWS && status == GW_OK; row++) {
		uint32_t have = gw_table_peek(text, &file->text_format, row, fields, GW_TABLE_COLUMNS_MAX);
		if (have == 0)
			break;
		have = have < GW_TABLE_COLUMNS_MAX ? have : GW_TABLE_COLUMNS_MAX;
		while (have > width && fields[have - 1].bytes == 0) /* a delimiter at the end of the line */
			have--;
		if (have > width)
			status = gw_fail(
				GW_FORMAT,
				"%s, line 1: a header of %u column%s, but row %u below it has %u: its names may belong "
				"to other columns: give columns by number, with --no-header or --header",
				file->path, width, width == 1 ? "" : "s", row, have);
	}
	gw_free(fields);
	return status;
}

gw_status gw_import_header_check(const struct gw_import *im, const struct gw_import_file *file)
{
	if (im->options->text.delimiter == 0 && !file->delimiter &&
	    !gw_table_delimiter_is_clear(&file->text, &file->text_format))
		return gw_fail(GW_FORMAT,
			       "%s, line 1: the delimiter may be a comma, a semicolon or a tab: use --delimiter",
			       file->path);
	/* With --header and columns by number, the user has counted them. */
	bool named = file->known_names || im->options->text.header != GW_HEADER_YES || file->given_names;
	return file->text_format.header == GW_HEADER_YES && named ? check_width(file) : GW_OK;
}

/* edges.csv: source = column 2 "src", destination = column 3 "dst" */
static gw_status header_print_columns(const struct gw_import_set *set, const struct gw_import_file *file)
{
	static const char *const ends[] = {"source", "destination", "relation"};
	static const char *const parts[] = {"head", "tail", "relation"};
	struct gw_text_span *fields;
	uint32_t count;
	gw_status status = header_fields(file, &fields, &count);
	if (status != GW_OK)
		return status;
	char line[GW_ERROR_TEXT_MAX];
	size_t used = (size_t)snprintf(line, sizeof(line), "%.512s:", file->path);
	for (int i = 0; i < (set->triples ? 3 : 2); i++) {
		uint32_t column = file->id_columns[i];
		struct gw_text_span name = column < count ? fields[column] : (struct gw_text_span){.at = ""};
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%s %s = column %u \"%.*s\"", i ? "," : "",
					 (set->triples ? parts : ends)[i], column + 1,
					 (int)(name.bytes < 64 ? name.bytes : 64), name.at);
	}
	gw_text_keep_plain(line);
	fprintf(stderr, "%s\n", line);
	gw_free(fields);
	return GW_OK;
}

static bool same_columns(const struct gw_import_file *a, const struct gw_import_file *b)
{
	return memcmp(a->id_columns, b->id_columns, sizeof(a->id_columns)) == 0;
}

gw_status gw_import_header_report(const struct gw_import *im, const struct gw_import_set *set, uint32_t number)
{
	const struct gw_import_file *file = &set->files[number];
	bool header = file->text_format.header == GW_HEADER_YES;
	for (uint32_t f = 0; f < number; f++) {
		const struct gw_import_file *other = &set->files[f];
		bool text = other->format == GW_FROM_TEXT && !other->matrix.what;
		if (!text || same_columns(file, other) || (header && other->text_format.header == GW_HEADER_YES))
			continue;
		return gw_fail(GW_FORMAT,
			       "%s has a header whose ends are other columns than those of %s, which has none: " CHOOSE,
			       header ? file->path : other->path, header ? other->path : file->path);
	}
	if (!header || im->options->build.quiet ||
	    (number > 0 && set->files[number - 1].known_names && same_columns(file, &set->files[number - 1])))
		return GW_OK;
	return header_print_columns(set, file);
}
