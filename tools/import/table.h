/* Tables of text: parses rows of fields in parallel into arrays of 8-byte values.
 *
 *   gw_table_sniff -> gw_table_scan (rows counted, chunk by chunk) -> gw_table_read (values in place)
 *
 * Rows keep the order of the lines, with any number of threads. Blank lines and lines that start with a comment
 * character are skipped. Lines end in \n, \r\n or \r. A quoted field must end on its line; else its row is refused,
 * also if no column behind it is read. Errors name the input and the line.
 */
#ifndef GW_TOOLS_IMPORT_TABLE_H
#define GW_TOOLS_IMPORT_TABLE_H

#include "tools/import/span.h"
#include "tools/import/text.h"

#define GW_TABLE_COLUMNS_MAX  4096u
#define GW_TABLE_COMMENTS_MAX 7u
#define GW_TABLE_FIELD_MAX    65535u /* bytes of a stored text field */

struct gw_table_format {
	char delimiter; /* ' ' for any run of spaces and tabs; 0 lets gw_table_sniff decide */
	bool exact;     /* a row with more fields than are read is an error */
	enum gw_table_quotes {
		GW_QUOTES_NONE,
		GW_QUOTES_STRICT, /* fields may be in double quotes, with "" for a quote; a quote elsewhere is an error
				   */
		GW_QUOTES_LOOSE   /* the same, but a quote elsewhere is a character */
	} quotes;                 /* default: gw_table_quotes_of */
	char comments[GW_TABLE_COMMENTS_MAX + 1]; /* characters that start a comment line */
	enum gw_table_header { GW_HEADER_AUTO, GW_HEADER_NONE, GW_HEADER_YES } header;
};

enum gw_column_kind {
	GW_COLUMN_ID,    /* uint64_t below 2^63 - 1 */
	GW_COLUMN_INT,   /* int64_t, of a sign and digits */
	GW_COLUMN_WHOLE, /* int64_t, of any form: 10.0, 1e1 */
	GW_COLUMN_FIXED, /* int64_t: the number times 10^digits */
	GW_COLUMN_FLOAT, /* float32 as a double, by gw_scan_float */
	GW_COLUMN_TEXT,  /* gw_text_ref */
};

struct gw_table_column {
	uint32_t index; /* from 0 */
	enum gw_column_kind kind;
	bool is_id;        /* words for missing values are errors, and so are numbers with zeros in front */
	bool is_name;      /* any word is an id; as with is_id, a byte order mark in front of it is an error */
	uint32_t digits;   /* GW_COLUMN_FIXED: 0 to 9; */
	bool cut;          /* ... further digits are dropped (towards zero); else they must be zeros */
	bool may_be_empty; /* GW_COLUMN_TEXT */
	bool nan;          /* GW_COLUMN_FLOAT: nan is a number, and not a missing one */
	const char *what;  /* for error texts: "source id" */
	void *values;      /* value of row r at values[r * stride], 8 bytes each */
	uint64_t stride;   /* 0 means 1 */
};

struct gw_table_chunk {
	uint64_t begin, end; /* bytes of whole lines */
	uint64_t row, line;  /* rows and lines before the chunk */
	uint64_t doubtful;   /* as in the table, counted from the chunk's begin */
};

struct gw_table {
	const struct gw_text *text;
	struct gw_table_format format;
	uint64_t rows;
	uint64_t doubtful; /* the first line, from 1, that is skipped as a comment and may be a row; 0: none */
	uint64_t count;
	struct gw_table_chunk *chunks;
};

/* What quotes mean in fields between these delimiters: strict for ',' and ';', loose for tab and '|', none for white
 * space. */
enum gw_table_quotes gw_table_quotes_of(char delimiter);

/* Decides what the format leaves open, from the first lines. The delimiter is tab, comma, semicolon, '|' in a line
 * without white space, or else white space; of two that occur, the one whose first two fields do not hold the other.
 * numbers[] are columns that should have numbers; it may be empty. The first row is a header if none of these columns
 * has a number in it, and one of two conditions holds:
 *   - all of these columns have a number in the second row
 *   - one of these columns has a number in every examined row after the first, and at least two such rows exist */
void gw_table_sniff(const struct gw_text *text, const uint32_t *numbers, uint32_t count,
		    struct gw_table_format *format);

/* Whether the first two fields of the first row hold no other delimiter, so that sniffing was no guess. White space and
 * tabs always are. */
bool gw_table_delimiter_is_clear(const struct gw_text *text, const struct gw_table_format *format);

/* Whether a line below the first row has the same bytes, as a header in the middle of files that were joined. *line:
 * its number from 1. Searches the whole text. */
bool gw_table_repeats(const struct gw_text *text, const struct gw_table_format *format, uint64_t *line);

/* The error for such a line, in a file that has a header. */
gw_status gw_table_fail_repeat(const char *name, uint64_t line);

/* Where the text starts, behind a byte order mark. */
uint64_t gw_table_text_start(const struct gw_text *text);

/* The line, from 1, of the n-th row. A header counts as row 0. For the first few rows. */
uint64_t gw_table_line_of(const struct gw_text *text, const struct gw_table_format *format, uint32_t row);

/* Whether the quotes of the first row close on its line. */
bool gw_table_first_row_ends(const struct gw_text *text, const struct gw_table_format *format);

/* Whether a row below the first has the word in one of these columns. Searches the whole text. */
bool gw_table_recurs(const struct gw_text *text, const struct gw_table_format *format, struct gw_text_span word,
		     const uint32_t *columns, uint32_t count);

/* The fields of the n-th row, at most max of them. A header counts as row 0. Returns the number of fields,
 * GW_TABLE_COLUMNS_MAX + 1 if there are more, 0 after the last row. For examining the first few rows. */
uint32_t gw_table_peek(const struct gw_text *text, const struct gw_table_format *format, uint32_t row,
		       struct gw_text_span *fields, uint32_t max);

/* The column with this name in the header, or with this number from 1 ("2"). GW_NOT_FOUND lists the names; GW_FORMAT if
 * two columns have the name. */
gw_status gw_table_find(const struct gw_text *text, const struct gw_table_format *format, const char *name,
			uint32_t *index);

/* The error for a line that may be a comment or a row. */
gw_status gw_table_fail_doubtful(const char *name, uint64_t line);

/* Cuts the text into chunks and counts its rows. The text must outlive the table. */
gw_status gw_table_scan(const struct gw_text *text, const struct gw_table_format *format, unsigned threads,
			struct gw_table *out);
void gw_table_close(struct gw_table *table);

/* Reads columns of all rows; each index occurs at most once. Errors name the input, line, column and the text there:
 * GW_FORMAT for what is no number of the kind, GW_RANGE for an id or a float that its type does not hold. */
gw_status gw_table_read(const struct gw_table *table, const struct gw_table_column *columns, uint32_t count,
			unsigned threads);

/* The line (from 1) of a row, for error texts. */
uint64_t gw_table_line(const struct gw_table *table, uint64_t row);

#endif
