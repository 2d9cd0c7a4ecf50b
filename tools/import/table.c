/* Examines a table and cuts it: lines, fields, header, chunks.
 *
 * A chunk owns the lines that begin in its range of CHUNK_BYTES, so that chunks are independent. A first pass counts
 * rows and lines. It gives each chunk the place of its values and the numbers of its lines.
 */
#include "tools/import/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/import/table_line.h"

#define CHUNK_BYTES    (1ull << 20)
#define NAMES_TEXT_MAX 400
#define BLOCK_BYTES    240u /* bytes counted at a time, in byte counters that overflow at 256 */
#define HEADER_ROWS    20u  /* rows examined below a possible header */

uint64_t gw_table_text_start(const struct gw_text *text)
{
	return text->bytes >= GW_TEXT_MARK_BYTES && memcmp(text->data, GW_TEXT_MARK, GW_TEXT_MARK_BYTES) == 0
		       ? GW_TEXT_MARK_BYTES
		       : 0;
}

/* Finds the n-th line that is a row; *end is its end, *next the offset after its newline. */
static bool nth_row(const struct gw_text *text, const struct gw_table_format *format, uint32_t n, const char **line,
		    const char **end, const char **next)
{
	const char *at = text->data + gw_table_text_start(text), *stop = text->data + text->bytes;
	while (at < stop) {
		*line = at;
		*next = gw_line_next(at, stop, end);
		if (gw_line_is_row(at, *end, format) && n-- == 0)
			return true;
		at = *next;
	}
	return false;
}

uint32_t gw_table_peek(const struct gw_text *text, const struct gw_table_format *format, uint32_t row,
		       struct gw_text_span *fields, uint32_t max)
{
	const char *line, *end, *next;
	if (text->bytes == 0 || !nth_row(text, format, row, &line, &end, &next))
		return 0;
	uint32_t count = 0;
	struct gw_text_span field;
	enum gw_field_state state = GW_FIELD_MORE;
	while (state == GW_FIELD_MORE && count <= GW_TABLE_COLUMNS_MAX) {
		state = gw_field_next(&line, end, format, &field);
		if (state == GW_FIELD_NONE || state == GW_FIELD_BAD)
			break;
		if (count < max)
			fields[count] = field;
		count++;
	}
	return count;
}

/* The columns with a number in this row: bit i for numbers[i], the first 64 of them. */
static uint64_t number_bits(const struct gw_text *text, const struct gw_table_format *format, uint32_t row,
			    const uint32_t *numbers, uint32_t count, bool *there)
{
	struct gw_text_span fields[64];
	uint32_t have = gw_table_peek(text, format, row, fields, 64);
	uint64_t bits = 0;
	for (uint32_t i = 0; i < count && i < 64; i++) {
		if (numbers[i] < have && numbers[i] < 64 && gw_text_span_is_number(fields[numbers[i]]))
			bits |= 1ull << i;
	}
	*there = have > 0;
	return bits;
}

/* A header has no number in a column whose rows below have numbers. Either all columns have a number in the next row,
 * or one column has a number in all of the next rows (a table may have numbers of users and names of places). */
static bool first_row_is_header(const struct gw_text *text, const struct gw_table_format *format,
				const uint32_t *numbers, uint32_t count)
{
	uint64_t all = count < 64 ? (1ull << count) - 1 : UINT64_MAX, always = all;
	bool there;
	if (count == 0 || number_bits(text, format, 0, numbers, count, &there) != 0)
		return false;
	uint32_t row = 1;
	for (; row <= HEADER_ROWS && always; row++) {
		uint64_t bits = number_bits(text, format, row, numbers, count, &there);
		if (!there)
			break;
		if (row == 1 && bits == all)
			return true;
		always &= bits;
	}
	return row > 2 && always;
}

enum gw_table_quotes gw_table_quotes_of(char delimiter)
{
	if (delimiter == ',' || delimiter == ';')
		return GW_QUOTES_STRICT;
	return delimiter == '\t' || delimiter == '|' || delimiter == '\n' ? GW_QUOTES_LOOSE : GW_QUOTES_NONE;
}

/* Whether the first two fields of the first row, cut at this delimiter, hold no other delimiter outside of quotes. */
static bool cuts_cleanly(const struct gw_text *text, const struct gw_table_format *like, char delimiter)
{
	struct gw_table_format format = *like;
	struct gw_text_span fields[2];
	format.delimiter = delimiter;
	format.quotes = gw_table_quotes_of(delimiter);
	uint32_t have = gw_table_peek(text, &format, 0, fields, 2);
	for (uint32_t i = 0; i < have && i < 2; i++) {
		for (uint64_t at = 0; at < fields[i].bytes && !fields[i].quoted; at++) {
			if (strchr("\t,;", fields[i].at[at]))
				return false;
		}
	}
	return have >= 2;
}

/* Whether the first rows have the same number of fields, at least two, between these delimiters. */
static bool cuts_evenly(const struct gw_text *text, const struct gw_table_format *like, char delimiter)
{
	struct gw_table_format format = *like;
	format.delimiter = delimiter;
	format.quotes = gw_table_quotes_of(delimiter);
	uint32_t first = gw_table_peek(text, &format, 0, NULL, 0), have = first;
	for (uint32_t row = 1; row <= HEADER_ROWS && have == first; row++) {
		have = gw_table_peek(text, &format, row, NULL, 0);
		if (have == 0)
			return first > 1;
	}
	return first > 1 && have == first;
}

/* Whether '|' separates columns in a line without tabs, commas and semicolons. It may belong to words that blanks
 * separate, as in "sp|P1|A sp|P2|B". */
static bool bars_separate(const struct gw_text *text, const struct gw_table_format *format, const char *line,
			  const char *end)
{
	while (line < end && *line == ' ')
		line++;
	while (end > line && end[-1] == ' ')
		end--;
	const char *bar = memchr(line, '|', (size_t)(end - line));
	if (!bar || !memchr(line, ' ', (size_t)(end - line)))
		return bar != NULL;
	for (; bar; bar = memchr(bar + 1, '|', (size_t)(end - bar - 1))) {
		if (bar == line || bar + 1 == end || bar[-1] == ' ' || bar[1] == ' ')
			return true;
	}
	return !cuts_evenly(text, format, ' ');
}

/* The delimiter whose fields hold no other one: "1;2;0,5" has semicolons, "1,2,a;b" commas. If each cut leaves another
 * delimiter in a field, the first that occurs in this order: tab, comma, semicolon; then '|' or blanks. */
static char sniff_delimiter(const struct gw_text *text, const struct gw_table_format *format)
{
	static const char delimiters[] = {'\t', ',', ';'};
	const char *line, *end, *next;
	if (text->bytes == 0 || !nth_row(text, format, 0, &line, &end, &next))
		return ' ';
	for (size_t i = 0; i < sizeof(delimiters); i++) {
		if (cuts_cleanly(text, format, delimiters[i]))
			return delimiters[i];
	}
	for (size_t i = 0; i < sizeof(delimiters); i++) {
		if (memchr(line, delimiters[i], (size_t)(end - line)))
			return delimiters[i];
	}
	return bars_separate(text, format, line, end) ? '|' : ' ';
}

bool gw_table_delimiter_is_clear(const struct gw_text *text, const struct gw_table_format *format)
{
	char delimiter = format->delimiter;
	return delimiter == ' ' || delimiter == '\t' || delimiter == '|' || cuts_cleanly(text, format, delimiter);
}

bool gw_table_first_row_ends(const struct gw_text *text, const struct gw_table_format *format)
{
	const char *line, *end, *next;
	struct gw_text_span field;
	enum gw_field_state state = GW_FIELD_MORE;
	if (text->bytes == 0 || !nth_row(text, format, 0, &line, &end, &next))
		return true;
	while (state == GW_FIELD_MORE)
		state = gw_field_next(&line, end, format, &field);
	return state != GW_FIELD_BAD;
}

/* Whether one of these columns of the line has the word. */
static bool line_has(const char *at, const char *end, const struct gw_table_format *format, const uint32_t *columns,
		     uint32_t count, struct gw_text_span word)
{
	struct gw_text_span field;
	enum gw_field_state state = GW_FIELD_MORE;
	for (uint32_t i = 0; state == GW_FIELD_MORE; i++) {
		state = gw_field_next(&at, end, format, &field);
		if (state == GW_FIELD_NONE || state == GW_FIELD_BAD)
			return false;
		for (uint32_t c = 0; c < count; c++) {
			if (columns[c] == i && field.bytes == word.bytes && memcmp(field.at, word.at, word.bytes) == 0)
				return true;
		}
	}
	return false;
}

bool gw_table_recurs(const struct gw_text *text, const struct gw_table_format *format, struct gw_text_span word,
		     const uint32_t *columns, uint32_t count)
{
	const char *line, *end, *at, *stop = text->data + text->bytes;
	if (word.bytes == 0 || text->bytes == 0 || !nth_row(text, format, 0, &line, &end, &at))
		return false;
	const char *below = at, *hit;
	while (at < stop && (hit = memmem(at, (size_t)(stop - at), word.at, word.bytes))) {
		const char *start = hit;
		while (start > below && start[-1] != '\n' && start[-1] != '\r')
			start--;
		at = gw_line_next(start, stop, &end);
		if (gw_line_is_row(start, end, format) && line_has(start, end, format, columns, count, word))
			return true;
	}
	return false;
}

/* From 1. */
static uint64_t line_at(const struct gw_text *text, const char *at)
{
	uint64_t line = 1;
	for (const char *p = text->data, *end; p < at; line++)
		p = gw_line_next(p, at, &end);
	return line;
}

bool gw_table_repeats(const struct gw_text *text, const struct gw_table_format *format, uint64_t *line)
{
	const char *first, *end, *at, *stop = text->data + text->bytes, *hit;
	if (text->bytes == 0 || !nth_row(text, format, 0, &first, &end, &at))
		return false;
	size_t bytes = (size_t)(end - first);
	for (; at < stop && (hit = memmem(at, (size_t)(stop - at), first, bytes)); at = hit + 1) {
		const char *after = hit + bytes, *start = hit;
		if (hit - text->data > GW_TEXT_MARK_BYTES &&
		    memcmp(hit - GW_TEXT_MARK_BYTES, GW_TEXT_MARK, GW_TEXT_MARK_BYTES) == 0)
			start -= GW_TEXT_MARK_BYTES;
		if ((start[-1] != '\n' && start[-1] != '\r') || (after < stop && *after != '\n' && *after != '\r'))
			continue;
		*line = line_at(text, start);
		return true;
	}
	return false;
}

gw_status gw_table_fail_repeat(const char *name, uint64_t line)
{
	return gw_fail(GW_FORMAT, "%s, line %llu: the header again, as in files that were joined: delete this line",
		       name, (unsigned long long)line);
}

uint64_t gw_table_line_of(const struct gw_text *text, const struct gw_table_format *format, uint32_t row)
{
	const char *line, *end, *next;
	return text->bytes && nth_row(text, format, row, &line, &end, &next) ? line_at(text, line) : 1;
}

void gw_table_sniff(const struct gw_text *text, const uint32_t *numbers, uint32_t count, struct gw_table_format *format)
{
	if (format->delimiter == 0) {
		format->delimiter = sniff_delimiter(text, format);
		format->quotes = gw_table_quotes_of(format->delimiter);
	}
	if (format->header == GW_HEADER_AUTO) {
		bool header = text->bytes && first_row_is_header(text, format, numbers, count);
		format->header = header ? GW_HEADER_YES : GW_HEADER_NONE;
	}
}

gw_status gw_table_find(const struct gw_text *text, const struct gw_table_format *format, const char *name,
			uint32_t *index)
{
	struct gw_text_span number = {.at = name, .bytes = strlen(name)};
	uint64_t value;
	if (gw_text_span_is_id(number, &value)) {
		if (value < 1 || value > GW_TABLE_COLUMNS_MAX)
			return gw_fail(GW_RANGE, "column %s: columns are numbered from 1 to %u", name,
				       GW_TABLE_COLUMNS_MAX);
		*index = (uint32_t)value - 1;
		return GW_OK;
	}
	if (format->header != GW_HEADER_YES)
		return gw_fail(GW_NOT_FOUND, "%s: no header names a column \"%.64s\": give its number from 1",
			       text->name, name);
	struct gw_text_span *fields = gw_calloc(GW_TABLE_COLUMNS_MAX, sizeof(*fields));
	if (!fields)
		return GW_NO_MEMORY;
	uint32_t count = gw_table_peek(text, format, 0, fields, GW_TABLE_COLUMNS_MAX);
	count = count < GW_TABLE_COLUMNS_MAX ? count : GW_TABLE_COLUMNS_MAX;
	char names[NAMES_TEXT_MAX] = "";
	size_t used = 0;
	uint32_t found = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (fields[i].bytes == number.bytes && memcmp(fields[i].at, name, number.bytes) == 0) {
			*index = i;
			found++;
		}
		int added = snprintf(names + used, sizeof(names) - used, "%s%.*s", i ? ", " : "",
				     (int)(fields[i].bytes < 64 ? fields[i].bytes : 64), fields[i].at);
		if (added > 0 && used + (size_t)added < sizeof(names))
			used += (size_t)added;
		else
			names[used] = '\0';
	}
	gw_free(fields);
	if (found == 1)
		return GW_OK;
	if (found)
		return gw_fail(GW_FORMAT, "%s: %u columns have the name \"%.64s\": give the number of one, from 1",
			       text->name, found, name);
	return gw_fail(GW_NOT_FOUND, "%s: no column \"%.64s\"; it has: %s", text->name, name, names);
}

static uint64_t line_from(const struct gw_text *text, uint64_t start, uint64_t offset)
{
	if (offset <= start)
		return start;
	if (offset >= text->bytes)
		return text->bytes;
	/* Starts at the byte before. If a line ends there, the next line begins at the offset, unless the byte at the
	 * offset is the \n of \r\n. */
	const char *stop = text->data + text->bytes, *end = gw_line_end(text->data + offset - 1, stop);
	return (uint64_t)(gw_line_after(end, stop) - text->data);
}

struct scan {
	const struct gw_table *table;
	uint64_t start;
	uint64_t first;   /* where the first row starts; comments before it are no rows */
	uint32_t columns; /* of the first row */
};

/* At most max. */
static uint32_t field_count(const char *at, const char *end, const struct gw_table_format *format, uint32_t max)
{
	uint32_t count = 0;
	struct gw_text_span field;
	enum gw_field_state state = GW_FIELD_MORE;
	while (state == GW_FIELD_MORE && count < max) {
		state = gw_field_next(&at, end, format, &field);
		if (state == GW_FIELD_NONE || state == GW_FIELD_BAD)
			break;
		count++;
	}
	return count;
}

bool gw_line_is_doubtful(const char *at, const char *end, const struct gw_table_format *format, uint32_t columns)
{
	while (at < end && gw_is_blank(*at))
		at++;
	return (columns > 1 || format->delimiter == '\n') && end - at > 1 && !gw_is_blank(at[1]) && at[1] != at[0] &&
	       at[1] != format->delimiter && field_count(at, end, format, columns + 1) == columns;
}

gw_status gw_table_fail_doubtful(const char *name, uint64_t line)
{
	return gw_fail(
		GW_FORMAT,
		"%s, line %llu: it begins as a comment and has the columns of a row: delete it if it is a comment; "
		"if it is a row, use --comment \"\"",
		name, (unsigned long long)line);
}

/* Counts the lines of a range, if every line is plainly a row: no line begins with a blank, a line end or one of two
 * comment characters. A \r ends a line unless a \n follows, which then ends it. The loops have no branches, so that
 * the compiler vectorizes them. */
static bool count_plain(const uint8_t *text, uint64_t bytes, uint8_t comment_a, uint8_t comment_b, uint64_t *lines)
{
	uint64_t count = bytes != 0; /* the last byte ends a line, or the last line has no end */
	for (uint64_t at = 0; at + 1 < bytes;) {
		uint64_t block = bytes - 1 - at < BLOCK_BYTES ? bytes - 1 - at : BLOCK_BYTES;
		uint8_t ends = 0, odd = 0; /* counts of at most 255 */
		for (uint64_t i = 0; i < block; i++) {
			uint8_t byte = text[at + i], next = text[at + i + 1];
			uint8_t end = (uint8_t)((byte == '\n') | ((byte == '\r') & (next != '\n')));
			ends = (uint8_t)(ends + end);
			odd |= (uint8_t)(end & ((next <= ' ') | (next == comment_a) | (next == comment_b)));
		}
		if (odd)
			return false;
		count += ends;
		at += block;
	}
	*lines = count;
	return bytes == 0 || !(text[0] <= ' ' || text[0] == comment_a || text[0] == comment_b);
}

static gw_status scan_chunks(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct scan *scan = context;
	const struct gw_text *text = scan->table->text;
	for (uint64_t i = begin; i < end; i++) {
		struct gw_table_chunk *chunk = &scan->table->chunks[i];
		chunk->begin = line_from(text, scan->start, scan->start + i * CHUNK_BYTES);
		chunk->end = line_from(text, scan->start, scan->start + (i + 1) * CHUNK_BYTES);
		const char *at = text->data + chunk->begin, *stop = text->data + chunk->end, *line_end;
		const char *comments = scan->table->format.comments;
		if (strlen(comments) <= 2 &&
		    count_plain((const uint8_t *)at, (uint64_t)(stop - at), (uint8_t)comments[0],
				(uint8_t)comments[comments[0] != 0], &chunk->line)) {
			chunk->row = chunk->line;
			continue;
		}
		for (chunk->line = 0; at < stop; chunk->line++) {
			const char *next = gw_line_next(at, stop, &line_end);
			bool is_row = gw_line_is_row(at, line_end, &scan->table->format);
			chunk->row += is_row;
			if (!is_row && !chunk->doubtful && (uint64_t)(at - text->data) > scan->first &&
			    gw_line_is_doubtful(at, line_end, &scan->table->format, scan->columns))
				chunk->doubtful = chunk->line + 1;
			at = next;
		}
	}
	return GW_OK;
}

gw_status gw_table_scan(const struct gw_text *text, const struct gw_table_format *format, unsigned threads,
			struct gw_table *out)
{
	*out = (struct gw_table){.text = text, .format = *format};
	uint64_t start = gw_table_text_start(text), line = 0;
	const char *at, *end, *next;
	if (format->header == GW_HEADER_YES && text->bytes && nth_row(text, format, 0, &at, &end, &next)) {
		for (const char *p = text->data; p < next; line++)
			p = gw_line_next(p, next, &end);
		start = (uint64_t)(next - text->data);
	}
	out->count = (text->bytes - start + CHUNK_BYTES - 1) / CHUNK_BYTES;
	out->chunks = gw_calloc(out->count, sizeof(*out->chunks));
	if (!out->chunks)
		return gw_context(GW_NO_MEMORY, "%s", text->name);
	struct scan scan = {.table = out, .start = start, .columns = gw_table_peek(text, format, 0, NULL, 0)};
	if (text->bytes && nth_row(text, format, 0, &at, &end, &next))
		scan.first = (uint64_t)(at - text->data);
	gw_status status = gw_parallel_for(threads, out->count, 1, scan_chunks, &scan);
	if (status != GW_OK) {
		gw_table_close(out);
		return status;
	}
	for (uint64_t i = 0; i < out->count; i++) { /* counts become the sums before each chunk */
		struct gw_table_chunk *chunk = &out->chunks[i];
		uint64_t rows = chunk->row, lines = chunk->line;
		if (chunk->doubtful && !out->doubtful)
			out->doubtful = line + chunk->doubtful;
		chunk->row = out->rows;
		chunk->line = line;
		out->rows += rows;
		line += lines;
	}
	return GW_OK;
}

void gw_table_close(struct gw_table *table)
{
	gw_free(table->chunks);
	*table = (struct gw_table){0};
}

uint64_t gw_table_line(const struct gw_table *table, uint64_t row)
{
	uint64_t i = table->count;
	while (i > 0 && (i == table->count || table->chunks[i].row > row))
		i--;
	if (table->count == 0)
		return 0;
	const struct gw_table_chunk *chunk = &table->chunks[i];
	uint64_t line = chunk->line, at_row = chunk->row;
	const char *at = table->text->data + chunk->begin, *stop = table->text->data + chunk->end, *end;
	while (at < stop) {
		const char *next = gw_line_next(at, stop, &end);
		line++;
		if (gw_line_is_row(at, end, &table->format) && at_row++ == row)
			return line;
		at = next;
	}
	return line;
}
