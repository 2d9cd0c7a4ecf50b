/* Lines and fields: the inner loops that looking at a table and reading it share. */
#ifndef GW_TOOLS_TABLE_LINE_H
#define GW_TOOLS_TABLE_LINE_H

#include <string.h>

#include "tools/table.h"

/* The line at `at` ends, without its \n or \r\n, at *end; returns where the next one begins. at < stop. */
static inline const char *gw_line_next(const char *at, const char *stop, const char **end)
{
	const char *newline = memchr(at, '\n', (size_t)(stop - at));
	const char *line_end = newline ? newline : stop;
	*end = line_end > at && line_end[-1] == '\r' ? line_end - 1 : line_end;
	return newline ? newline + 1 : stop;
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
				  struct gw_span *field);

#endif
