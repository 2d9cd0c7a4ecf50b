/* Lines and fields: the inner loops that table.c and table_read.c share. */
#ifndef GW_TOOLS_IMPORT_TABLE_LINE_H
#define GW_TOOLS_IMPORT_TABLE_LINE_H

#include <string.h>

#include "tools/import/table.h"

/* The first \n or \r from `at` on; or stop if neither comes before it. Reads eight bytes at a time. Two memchr calls
 * would each search the whole text if only the other character ends lines. */
static inline const char *gw_line_end(const char *at, const char *stop)
{
	for (; stop - at >= 8; at += 8) {
		uint64_t word, newline, back;
		memcpy(&word, at, sizeof(word));
		newline = word ^ 0x0a0a0a0a0a0a0a0aull;
		back = word ^ 0x0d0d0d0d0d0d0d0dull;
		/* A zero byte gets its top bit set; a borrow spoils only bytes after the first zero byte. */
		uint64_t zeros =
			((newline - 0x0101010101010101ull) & ~newline) | ((back - 0x0101010101010101ull) & ~back);
		zeros &= 0x8080808080808080ull;
		if (zeros)
			return at + __builtin_ctzll(zeros) / 8;
	}
	while (at < stop && *at != '\n' && *at != '\r')
		at++;
	return at;
}

/* The start of the next line, after \n, \r\n or \r. */
static inline const char *gw_line_after(const char *end, const char *stop)
{
	if (end == stop)
		return stop;
	return end + 1 + (*end == '\r' && end + 1 < stop && end[1] == '\n');
}

/* Finds the end of the line at `at` (*end, without \n, \r\n or \r) and returns the start of the next line. at < stop.
 * */
static inline const char *gw_line_next(const char *at, const char *stop, const char **end)
{
	*end = gw_line_end(at, stop);
	return gw_line_after(*end, stop);
}

static inline bool gw_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Whether the line is neither blank nor a comment. */
static inline bool gw_line_is_row(const char *at, const char *end, const struct gw_table_format *format)
{
	while (at < end && gw_is_blank(*at))
		at++;
	if (at == end)
		return false;
	for (const char *comment = format->comments; *comment; comment++) {
		if (*at == *comment)
			return false;
	}
	return true;
}

/* Whether a line that is no row may be one: a comment character, a word at once behind it, as in #tag,user, and the
 * columns of a row. */
bool gw_line_is_doubtful(const char *at, const char *end, const struct gw_table_format *format, uint32_t columns);

enum gw_field_state {
	GW_FIELD_MORE, /* a field, and another field follows */
	GW_FIELD_LAST, /* the line's last field */
	GW_FIELD_NONE, /* the line has ended (white space only) */
	GW_FIELD_BAD,  /* quotes that do not close, or that are not at the ends of the field */
};

/* Cuts the field at *at; *at moves to the next field. */
enum gw_field_state gw_field_next(const char **at, const char *end, const struct gw_table_format *format,
				  struct gw_text_span *field);

/* Reads one field to values[0], or fails as gw_table_read does. */
gw_status gw_table_field_read(const struct gw_text *text, const struct gw_table_column *column,
			      struct gw_text_span field, uint64_t line);

/* The error for GW_FIELD_BAD in field `index` of a line. */
gw_status gw_table_fail_quote(const char *name, uint64_t line, uint32_t index);

#endif
