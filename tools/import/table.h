/* Tables of text: rows of fields, read in parallel into arrays of 8-byte values.
 *
 *   gw_table_sniff -> gw_table_scan (rows counted, chunk by chunk) -> gw_table_read (values in place)
 *
 * Rows keep the order of the lines, whatever the number of threads. Blank lines and lines that start with a comment
 * character are skipped; lines end in \n, \r\n or \r. A quoted field ends on its line. Errors name the input and the
 * line.
 */
#ifndef GW_TOOLS_IMPORT_TABLE_H
#define GW_TOOLS_IMPORT_TABLE_H

#include "tools/import/text.h"

#define GW_TABLE_COLUMNS_MAX  4096u
#define GW_TABLE_COMMENTS_MAX 7u
#define GW_TABLE_FIELD_MAX    65535u /* bytes of a text field that is kept */

struct gw_table_format {
	char delimiter; /* ' ' for any run of spaces and tabs; 0 lets gw_table_sniff decide */
	bool quotes;    /* fields may stand in double quotes, "" inside for one; true for ',' and ';' unless told */
	char comments[GW_TABLE_COMMENTS_MAX + 1]; /* characters that begin a comment line */
	enum gw_table_header { GW_HEADER_AUTO, GW_HEADER_NONE, GW_HEADER_YES } header;
};

struct gw_text_span {
	const char *at;
	uint64_t bytes;
	bool escaped; /* holds "" for each quote */
};

/* Reference to a text field: where in the text, how long, whether quotes are doubled. */
static inline uint64_t gw_text_ref(uint64_t offset, uint64_t bytes, bool escaped)
{
	return offset << 17 | (uint64_t)escaped << 16 | bytes;
}

static inline struct gw_text_span gw_text_span(const char *data, uint64_t ref)
{
	return (struct gw_text_span){.at = data + (ref >> 17), .bytes = ref & 0xffff, .escaped = ref >> 16 & 1};
}

enum gw_column_kind {
	GW_COLUMN_ID,    /* uint64_t below 2^63 - 1 */
	GW_COLUMN_INT,   /* int64_t */
	GW_COLUMN_FIXED, /* int64_t: the number times 10^digits, further digits dropped (towards zero) */
	GW_COLUMN_REAL,  /* double */
	GW_COLUMN_TEXT,  /* gw_text_ref */
};

struct gw_table_column {
	uint32_t index; /* from 0 */
	enum gw_column_kind kind;
	uint32_t digits;  /* GW_COLUMN_FIXED: 0 to 9 */
	const char *what; /* for error text: "source id" */
	void *values;     /* value of row r at values[r * stride], 8 bytes each */
	uint64_t stride;  /* 0 is taken as 1 */
};

struct gw_table_chunk {
	uint64_t begin, end; /* bytes of whole lines */
	uint64_t row, line;  /* rows and lines before it */
};

struct gw_table {
	const struct gw_text *text;
	struct gw_table_format format;
	uint64_t rows;
	uint64_t count;
	struct gw_table_chunk *chunks;
};

/* Decides what the format leaves open, from the first lines: delimiter (tab, comma, semicolon, else white space) and
 * whether there is a header: there is when numbers[] (columns that should hold numbers; may be empty) hold none in the
 * first row, but all of them do in the second, or one of them in all of the next rows, at least two. */
void gw_table_sniff(const struct gw_text *text, const uint32_t *numbers, uint32_t count,
		    struct gw_table_format *format);

/* Fields of the n-th row, the header counted as row 0 if there is one: at most max of them; how many there are,
 * GW_TABLE_COLUMNS_MAX + 1 if more. 0 past the last row. For looking at the first few rows. */
uint32_t gw_table_peek(const struct gw_text *text, const struct gw_table_format *format, uint32_t row,
		       struct gw_text_span *fields, uint32_t max);

/* The column of a name in the header, or of a number from 1 ("2"). GW_NOT_FOUND lists the names. */
gw_status gw_table_find(const struct gw_text *text, const struct gw_table_format *format, const char *name,
			uint32_t *index);

/* Cuts the text into chunks and counts its rows. The text must outlive the table. */
gw_status gw_table_scan(const struct gw_text *text, const struct gw_table_format *format, unsigned threads,
			struct gw_table *out);
void gw_table_close(struct gw_table *table);

/* Reads columns (each index at most once) of all rows. GW_FORMAT or GW_RANGE: input, line, column and what is there. */
gw_status gw_table_read(const struct gw_table *table, const struct gw_table_column *columns, uint32_t count,
			unsigned threads);

/* The line (from 1) of a row, for error text. */
uint64_t gw_table_line(const struct gw_table *table, uint64_t row);

/* Is the span a whole number that fits an id? */
bool gw_text_span_is_id(struct gw_text_span span, uint64_t *value);

#endif
