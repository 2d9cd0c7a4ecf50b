/* Lines and fields: the inner loops that looking at a table and reading it share. */
#ifndef GW_TOOLS_IMPORT_TABLE_LINE_H
#define GW_TOOLS_IMPORT_TABLE_LINE_H

#include <string.h>

#include "tools/import/table.h"

/* The first \n or \r from `at` on; stop, if there is none. Eight bytes at a time: a memchr for each of the two would
 * look through the whole text where only the other one ends lines. */
static inline const char *gw_line_end(const char *at, const char *stop)
{
	for (; stop - at >= 8; at += 8) {
		uint64_t word, newline, back;
		memcpy(&word, at, sizeof(word));
		newline = word ^ 0x0a0a0a0a0a0a0a0aull;
		back = word ^ 0x0d0d0d0d0d0d0d0dull;
		/* A byte that is 0 gets its top bit set; a borrow spoils only bytes after the first of these. */
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

/* Where the line after a line's end begins: \n, \r\n or \r alone ended it. */
static inline const char *gw_line_after(const char *end, const char *stop)
{
	if (end == stop)
		return stop;
	return end + 1 + (*end == '\r' && end + 1 < stop && end[1] == '\n');
}

/* The line at `at` ends, without its \n, \r\n or \r, at *end; returns where the next one begins. at < stop. */
static inline const char *gw_line_next(const char *at, const char *stop, const char **end)
{
	*end = gw_line_end(at, stop);
	return gw_line_after(*end, stop);
}

static inline bool gw_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Neither blank nor a comment. */
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

enum gw_field_state {
	GW_FIELD_MORE, /* a field, and a further one after it */
	GW_FIELD_LAST, /* the line's last field */
	GW_FIELD_NONE, /* the line has ended (white space only) */
	GW_FIELD_BAD,  /* quotes that do not close, or stand where they may not */
};

/* Cuts the field at *at; *at moves to the next one. */
enum gw_field_state gw_field_next(const char **at, const char *end, const struct gw_table_format *format,
				  struct gw_text_span *field);

#endif
