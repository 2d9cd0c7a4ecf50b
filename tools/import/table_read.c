/* Reads the columns of a table: each chunk on its own, values directly to their final place.
 *
 * Plain fields (whole-number ids without quotes) are parsed while they are scanned; other fields are cut first, then
 * parsed. Errors: a missing column, a field that is not a number, an empty or too long text, quotes that do not close.
 */
#include <stdio.h>

#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/import/number.h"
#include "tools/import/table_line.h"

struct reading {
	const struct gw_table *table;
	const struct gw_table_column **plan; /* [fields]: the column of each field, or NULL */
	uint32_t fields;
	bool plain; /* the first fields are ids and nothing else is read: try the fast path first for each line */
};

#define ROOM 32 /* bytes after a field that the fast path may read without an end check */

static enum gw_field_state quoted_field(const char **at, const char *end, const struct gw_table_format *format,
					struct gw_text_span *field)
{
	const char *p = *at + 1;
	*field = (struct gw_text_span){.at = p, .quoted = true};
	for (;;) {
		const char *quote = memchr(p, '"', (size_t)(end - p));
		if (!quote)
			return GW_FIELD_BAD;
		if (quote + 1 < end && quote[1] == '"') {
			field->escaped = true;
			p = quote + 2;
			continue;
		}
		field->bytes = (uint64_t)(quote - field->at);
		p = quote + 1;
		break;
	}
	while (p < end && *p != format->delimiter && gw_is_blank(*p))
		p++;
	if (p < end && *p != format->delimiter)
		return GW_FIELD_BAD;
	*at = p < end ? p + 1 : p;
	return p < end ? GW_FIELD_MORE : GW_FIELD_LAST;
}

/* Whether the field at p has a second quote: it is then a text that begins with a quote, such as "Al" Smith. */
static bool quote_closes(const char *p, const char *end, char delimiter)
{
	for (p++; p < end && *p != delimiter; p++) {
		if (*p == '"')
			return true;
	}
	return false;
}

enum gw_field_state gw_field_next(const char **at, const char *end, const struct gw_table_format *format,
				  struct gw_text_span *field)
{
	const char *p = *at;
	if (format->delimiter == ' ') {
		while (p < end && gw_is_blank(*p))
			p++;
		if (p == end)
			return GW_FIELD_NONE;
		const char *start = p;
		while (p < end && !gw_is_blank(*p))
			p++;
		*field = (struct gw_text_span){.at = start, .bytes = (uint64_t)(p - start)};
		*at = p;
		return GW_FIELD_MORE; /* the next call finds out whether a field follows */
	}
	while (p < end && *p != format->delimiter && gw_is_blank(*p))
		p++;
	if (format->quotes != GW_QUOTES_NONE && p < end && *p == '"') {
		*at = p;
		enum gw_field_state state = quoted_field(at, end, format, field);
		if (state != GW_FIELD_BAD || format->quotes == GW_QUOTES_STRICT ||
		    !quote_closes(p, end, format->delimiter))
			return state;
	}
	const char *stop = memchr(p, format->delimiter, (size_t)(end - p)), *trimmed;
	trimmed = stop ? stop : end;
	if (format->quotes == GW_QUOTES_STRICT && memchr(p, '"', (size_t)(trimmed - p)))
		return GW_FIELD_BAD;
	while (trimmed > p && gw_is_blank(trimmed[-1]))
		trimmed--;
	*field = (struct gw_text_span){.at = p, .bytes = (uint64_t)(trimmed - p)};
	*at = stop ? stop + 1 : end;
	return stop ? GW_FIELD_MORE : GW_FIELD_LAST;
}

static const char *kind_text(enum gw_column_kind kind)
{
	switch (kind) {
	case GW_COLUMN_ID:
		return "a whole number from 0 (for names: --ids text)";
	case GW_COLUMN_INT:
	case GW_COLUMN_WHOLE:
		return "a whole number of 64 bits";
	case GW_COLUMN_FIXED:
		return "a plain decimal number";
	case GW_COLUMN_FLOAT:
		return "a number";
	case GW_COLUMN_TEXT:
		break;
	}
	return "text of at most 65535 bytes";
}

static const char *printable(struct gw_text_span field, char text[41])
{
	uint64_t bytes = field.bytes < 40 ? field.bytes : 40;
	for (uint64_t i = 0; i < bytes; i++)
		text[i] = (unsigned char)field.at[i] < ' ' || field.at[i] == 127 ? '?' : field.at[i];
	text[bytes] = '\0';
	return text;
}

static bool is_digits(struct gw_text_span field)
{
	uint64_t digits = 0;
	while (digits < field.bytes && field.at[digits] >= '0' && field.at[digits] <= '9')
		digits++;
	return digits == field.bytes;
}

/* Written with zeros in front, as no number is: "007". */
static bool has_zeros(struct gw_text_span field)
{
	return field.bytes > 1 && field.at[0] == '0';
}

static const char *float_text(enum gw_float_fault fault)
{
	switch (fault) {
	case GW_FLOAT_MISSING:
		return "missing: fill it in, or leave out the row";
	case GW_FLOAT_LARGE:
		return "too large: it would become inf in float32";
	case GW_FLOAT_SMALL:
		return "too small: it would become 0 in float32";
	case GW_FLOAT_COARSE:
		return "not exact in float32, which holds all whole numbers up to 2^24 only: "
		       "pass the column as an array of another dtype";
	case GW_FLOAT_FITS:
		break;
	}
	return NULL;
}

static const char *range_text(const struct gw_table_column *column, struct gw_text_span field)
{
	enum gw_float_fault fault = GW_FLOAT_FITS;
	const char *end = field.at + field.bytes;
	double real;
	float value;
	int64_t whole;
	if (column->kind == GW_COLUMN_ID)
		return is_digits(field) ? "too large: ids are below 2^63 - 1" : NULL;
	if (column->kind == GW_COLUMN_FLOAT && gw_scan_real(field.at, end, &real) == end &&
	    !gw_scan_float(field.at, end, &value, &fault))
		return float_text(fault);
	if (column->kind == GW_COLUMN_FIXED && !column->cut &&
	    gw_scan_fixed(field.at, end, column->digits, true, &whole) == end)
		return "a number with further digits: --time-digits says how many to keep";
	return NULL;
}

static gw_status fail_field(const char *name, uint64_t line, const struct gw_table_column *column,
			    struct gw_text_span field)
{
	char text[41];
	if (field.bytes == 0)
		return gw_fail(GW_FORMAT, "%s, line %llu, column %u: the %s is empty", name, (unsigned long long)line,
			       column->index + 1, column->what);
	if (column->is_id && !field.quoted && gw_text_span_is_missing(field, true))
		return gw_fail(GW_FORMAT,
			       "%s, line %llu, column %u: the %s is missing, \"%s\": leave out the row; "
			       "if it is a name, put it in quotes, or use --ids text",
			       name, (unsigned long long)line, column->index + 1, column->what, printable(field, text));
	if ((column->is_id || column->is_name) && gw_text_span_is_marked(field))
		return gw_fail(
			GW_FORMAT,
			"%s, line %llu, column %u: the %s begins with a byte order mark, as in files that were joined: "
			"delete the mark",
			name, (unsigned long long)line, column->index + 1, column->what);
	if (column->is_id && column->kind == GW_COLUMN_ID && has_zeros(field))
		return gw_fail(
			GW_FORMAT,
			"%s, line %llu, column %u: \"%s\" as %s has zeros in front, and the rows above have numbers: "
			"use --ids text, or dense or compact to drop the zeros",
			name, (unsigned long long)line, column->index + 1, printable(field, text), column->what);
	const char *range = range_text(column, field);
	if (range)
		return gw_fail(GW_RANGE, "%s, line %llu, column %u: \"%s\" as %s is %s", name, (unsigned long long)line,
			       column->index + 1, printable(field, text), column->what, range);
	return gw_fail(GW_FORMAT, "%s, line %llu, column %u: \"%s\" as %s is not %s", name, (unsigned long long)line,
		       column->index + 1, printable(field, text), column->what, kind_text(column->kind));
}

gw_status gw_table_fail_quote(const char *name, uint64_t line, uint32_t index)
{
	return gw_fail(
		GW_FORMAT,
		"%s, line %llu, column %u: a quote inside a field, or a quoted field that does not end on its line: "
		"such fields are not supported (a quote in quotes is \"\"; Spark: option(\"escape\", \"\\\"\"))",
		name, (unsigned long long)line, index + 1);
}

/* Whether a whole number is written as one is printed: no plus, no zeros in front, no -0. */
static bool is_printed(struct gw_text_span field)
{
	bool negative = field.bytes > 1 && field.at[0] == '-';
	struct gw_text_span digits = {.at = field.at + negative, .bytes = field.bytes - negative};
	return is_digits(digits) && !has_zeros(digits) && !(negative && digits.at[0] == '0');
}

static bool store(const struct gw_text *text, const struct gw_table_column *column, uint64_t row,
		  struct gw_text_span field)
{
	const char *end = field.at + field.bytes, *stop = NULL;
	uint64_t *place = (uint64_t *)column->values + row * (column->stride ? column->stride : 1);
	int64_t whole;
	double real;
	float single;
	enum gw_float_fault fault;
	switch (column->kind) {
	case GW_COLUMN_ID:
		stop = column->is_id && has_zeros(field) ? NULL : gw_scan_id(field.at, end, place);
		break;
	case GW_COLUMN_INT:
	case GW_COLUMN_WHOLE:
	case GW_COLUMN_FIXED:
		stop = column->kind == GW_COLUMN_INT ? gw_scan_int(field.at, end, &whole)
		       : column->kind == GW_COLUMN_WHOLE
			       ? gw_scan_whole(field.at, end, &whole)
			       : gw_scan_fixed(field.at, end, column->digits, column->cut, &whole);
		stop = column->is_id && !is_printed(field) ? NULL : stop;
		if (stop)
			*place = (uint64_t)whole;
		break;
	case GW_COLUMN_FLOAT:
		stop = gw_scan_float(field.at, end, &single, &fault);
		if (stop)
			real = (double)single;
		else if (fault == GW_FLOAT_MISSING && column->nan)
			stop = gw_scan_real(field.at, end, &real);
		if (stop)
			memcpy(place, &real, sizeof(real));
		break;
	case GW_COLUMN_TEXT:
		if (field.bytes > GW_TABLE_FIELD_MAX ||
		    ((column->is_id || column->is_name) && gw_text_span_is_marked(field)) ||
		    (column->is_id && !field.quoted && gw_text_span_is_missing(field, false)))
			return false;
		*place = gw_text_ref((uint64_t)(field.at - text->data), field.bytes, field.escaped);
		stop = end;
		break;
	}
	return (field.bytes > 0 || column->may_be_empty) && stop == end;
}

gw_status gw_table_field_read(const struct gw_text *text, const struct gw_table_column *column,
			      struct gw_text_span field, uint64_t line)
{
	return store(text, column, 0, field) ? GW_OK : fail_field(text->name, line, column, field);
}

static bool has_more(const char *at, const char *end)
{
	while (at < end && gw_is_blank(*at))
		at++;
	return at < end;
}

static gw_status read_row(const struct reading *reading, const char *at, const char *end, uint64_t row, uint64_t line)
{
	const struct gw_table_format *format = &reading->table->format;
	enum gw_field_state state = GW_FIELD_MORE;
	for (uint32_t i = 0; i < reading->fields; i++) {
		const struct gw_table_column *column = reading->plan[i];
		struct gw_text_span field = {0};
		uint64_t *place;
		/* Plain fields: digits here, then the delimiter or the end of the line. */
		if (state == GW_FIELD_MORE && column && column->kind == GW_COLUMN_ID) {
			place = (uint64_t *)column->values + row * (column->stride ? column->stride : 1);
			const char *stop = at < end && *at == '0' ? NULL : gw_scan_id(at, end, place);
			if (stop && stop < end && *stop == format->delimiter) {
				at = stop + 1;
				continue;
			}
			if (stop && stop == end) {
				state = format->delimiter == ' ' ? GW_FIELD_MORE : GW_FIELD_LAST;
				at = stop;
				continue;
			}
		}
		state = state == GW_FIELD_MORE ? gw_field_next(&at, end, format, &field) : GW_FIELD_NONE;
		if (state == GW_FIELD_BAD)
			return gw_table_fail_quote(reading->table->text->name, line, i);
		if (state == GW_FIELD_NONE) {
			const struct gw_table_column *missing = reading->plan[reading->fields - 1];
			return gw_fail(GW_FORMAT, "%s, line %llu: %u column%s; the %s must be in column %u",
				       reading->table->text->name, (unsigned long long)line, i, i == 1 ? "" : "s",
				       missing->what, missing->index + 1);
		}
		if (column && !store(reading->table->text, column, row, field))
			return fail_field(reading->table->text->name, line, column, field);
	}
	if (format->exact && state == GW_FIELD_MORE && has_more(at, end))
		return gw_fail(GW_FORMAT, "%s, line %llu: more than %u column%s, as the first row has",
			       reading->table->text->name, (unsigned long long)line, reading->fields,
			       reading->fields == 1 ? "" : "s");
	/* A quoted field that does not end here would turn the lines that it goes on in into rows. */
	if (format->quotes == GW_QUOTES_NONE || state != GW_FIELD_MORE || !memchr(at, '"', (size_t)(end - at)))
		return GW_OK;
	for (uint32_t i = reading->fields; state == GW_FIELD_MORE; i++) {
		struct gw_text_span field;
		state = gw_field_next(&at, end, format, &field);
		if (state == GW_FIELD_BAD)
			return gw_table_fail_quote(reading->table->text->name, line, i);
	}
	return GW_OK;
}

/* The fast path: a line whose needed fields are all short ids. Returns the start of the next line, or NULL if the
 * line needs the full parser. */
static const char *read_plain(const struct reading *reading, const char *at, const char *stop, uint64_t row)
{
	char delimiter = reading->table->format.delimiter;
	for (uint32_t i = 0; i < reading->fields; i++) {
		if (stop - at < ROOM)
			return NULL;
		unsigned digits, more = 0;
		uint64_t value = gw_scan_eight(at, &digits);
		if (digits == 0 || (*at == '0' && digits > 1))
			return NULL;
		if (digits == 8) {
			uint64_t low = gw_scan_eight(at + 8, &more);
			static const uint32_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
			if (more == 8)
				return NULL;
			value = value * powers[more] + low;
		}
		at += digits + more;
		const struct gw_table_column *column = reading->plan[i];
		((uint64_t *)column->values)[row * (column->stride ? column->stride : 1)] = value;
		if (i + 1 < reading->fields && *at++ != delimiter)
			return NULL;
	}
	if (*at == '\n' || *at == '\r')
		return gw_line_after(at, stop);
	if (*at != delimiter)
		return NULL;
	const char *end = gw_line_end(at, stop);
	if (reading->table->format.quotes != GW_QUOTES_NONE && memchr(at, '"', (size_t)(end - at)))
		return NULL;
	return gw_line_after(end, stop);
}

static gw_status read_chunks(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct reading *reading = context;
	const struct gw_table *table = reading->table;
	for (uint64_t i = begin; i < end; i++) {
		const struct gw_table_chunk *chunk = &table->chunks[i];
		const char *at = table->text->data + chunk->begin, *stop = table->text->data + chunk->end, *line_end;
		uint64_t row = chunk->row, line = chunk->line;
		while (at < stop) {
			const char *next = reading->plain ? read_plain(reading, at, stop, row) : NULL;
			if (next) {
				line++;
				row++;
				at = next;
				continue;
			}
			next = gw_line_next(at, stop, &line_end);
			line++;
			if (gw_line_is_row(at, line_end, &table->format)) {
				gw_status status = read_row(reading, at, line_end, row++, line);
				if (status != GW_OK)
					return status;
			}
			at = next;
		}
	}
	return GW_OK;
}

static bool is_plain(const struct reading *reading)
{
	for (const char *comment = reading->table->format.comments; *comment; comment++) {
		if (*comment >= '0' && *comment <= '9')
			return false;
	}
	for (uint32_t i = 0; i < reading->fields; i++) {
		if (!reading->plan[i] || reading->plan[i]->kind != GW_COLUMN_ID)
			return false;
	}
	return reading->fields > 0;
}

gw_status gw_table_read(const struct gw_table *table, const struct gw_table_column *columns, uint32_t count,
			unsigned threads)
{
	struct reading reading = {.table = table};
	for (uint32_t i = 0; i < count; i++) {
		if (columns[i].index >= GW_TABLE_COLUMNS_MAX)
			return gw_fail(GW_RANGE, "column %u: at most %u columns are supported", columns[i].index + 1,
				       GW_TABLE_COLUMNS_MAX);
		if (columns[i].index >= reading.fields)
			reading.fields = columns[i].index + 1;
	}
	reading.plan = gw_calloc(reading.fields, sizeof(struct gw_table_column *));
	if (!reading.plan)
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < count && status == GW_OK; i++) {
		if (reading.plan[columns[i].index])
			status = gw_fail(GW_INVALID, "column %u is used twice, as %s and as %s", columns[i].index + 1,
					 reading.plan[columns[i].index]->what, columns[i].what);
		reading.plan[columns[i].index] = &columns[i];
	}
	reading.plain = is_plain(&reading);
	if (status == GW_OK)
		status = gw_parallel_for(threads, table->count, 1, read_chunks, &reading);
	gw_free(reading.plan);
	return status;
}
