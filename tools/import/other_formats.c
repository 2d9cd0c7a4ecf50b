/* Recognizes text formats of graphs whose lines would pass for edges, and refuses them by name.
 *
 *   first row -> the words that a format begins with           (comments of the formats are skipped)
 *   numbers   -> METIS: "nodes edges [format]", then a line for each node; all counts and ids must agree
 *             -> a list of neighbours: rows of whole numbers, of three lengths or more
 *
 * Every test needs more than one sign of its format: names of nodes may be any words.
 */
#include "tools/import/other_formats.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/import/table_line.h"

#define LOOK_ROWS  100u
#define LOOK_BYTES 4096u
#define FIELDS_MAX 64u
#define CONVERT    ": write its edges as CSV, .npy or Matrix Market"

/* A row without the blanks around it. */
struct format_row {
	const char *at, *end;
};

/* The next row at or after *at that is neither blank nor begins with this word (a comment; NULL: none). */
static bool other_row_next(const char **at, const char *stop, const char *comment, struct format_row *out)
{
	while (*at < stop) {
		const char *start = *at, *end;
		*at = gw_line_next(start, stop, &end);
		while (start < end && gw_is_blank(*start))
			start++;
		while (end > start && gw_is_blank(end[-1]))
			end--;
		size_t bytes = comment ? strlen(comment) : 0;
		if (start == end || (bytes && (size_t)(end - start) >= bytes && memcmp(start, comment, bytes) == 0))
			continue;
		*out = (struct format_row){start, end};
		return true;
	}
	return false;
}

static bool begins(struct format_row row, const char *word)
{
	size_t bytes = strlen(word);
	return (size_t)(row.end - row.at) >= bytes && strncasecmp(row.at, word, bytes) == 0;
}

/* Whether the row begins with the word, and the word ends there. */
static bool begins_with_word(struct format_row row, const char *word)
{
	size_t bytes = strlen(word);
	return begins(row, word) && ((size_t)(row.end - row.at) == bytes || gw_is_blank(row.at[bytes]));
}

static bool contains(const struct gw_text *text, const char *word)
{
	uint64_t bytes = text->bytes < LOOK_BYTES ? text->bytes : LOOK_BYTES;
	return memmem(text->data, bytes, word, strlen(word)) != NULL;
}

static const char *xml_kind(const struct gw_text *text, struct format_row row)
{
	static const char *const starts[] = {"<?xml", "<graphml", "<gexf", "<!doctype", "<html", "<!--", "<rdf:"};
	bool xml = false;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		xml |= begins(row, starts[i]);
	if (!xml)
		return NULL;
	return contains(text, "<graphml") ? "GraphML"
	       : contains(text, "<gexf")  ? "GEXF"
	       : contains(text, "<html")  ? "an HTML page"
	       : contains(text, "<rdf:")  ? "RDF/XML"
					  : "XML";
}

/* "{"name": …" or "[{", "[[", "[1,": an object or a list, and not a name in brackets. */
static bool is_json(struct format_row row)
{
	const char *p = row.at + 1;
	while (p < row.end && gw_is_blank(*p))
		p++;
	if (*row.at == '{')
		return p == row.end || *p == '"' || *p == '}';
	if (*row.at != '[')
		return false;
	return p == row.end || *p == '{' || *p == '[' || *p == '"' ||
	       (*p >= '0' && *p <= '9' && memchr(p, ',', (size_t)(row.end - p)));
}

/* "graph" or "digraph", a name or none, "{". */
static bool is_dot(struct format_row row)
{
	return (begins_with_word(row, "graph") || begins_with_word(row, "digraph") || begins_with_word(row, "strict") ||
		begins(row, "graph{") || begins(row, "digraph{")) &&
	       row.end[-1] == '{';
}

/* GML: "graph [", or "graph" and "[" on two rows, after rows such as "Creator "…"" and "Version 1". */
static bool is_gml(const char *at, const char *stop)
{
	struct format_row row;
	for (uint32_t n = 0; n < LOOK_ROWS && other_row_next(&at, stop, "#", &row); n++) {
		if (begins_with_word(row, "graph"))
			return row.end[-1] == '[' || (other_row_next(&at, stop, "#", &row) && *row.at == '[');
		if (!begins_with_word(row, "creator") && !begins_with_word(row, "version") &&
		    !begins_with_word(row, "comment") && !begins_with_word(row, "label"))
			return false;
	}
	return false;
}

/* "<subject> <predicate> object .", where blank nodes are "_:name". Turtle's statements may also end in ";" or ",". */
static bool is_statement(struct format_row row)
{
	bool subject = (*row.at == '<' && memchr(row.at, '>', (size_t)(row.end - row.at))) ||
		       (row.end - row.at > 2 && row.at[0] == '_' && row.at[1] == ':');
	char last = row.end[-1];
	return subject && row.end - row.at > 3 && (last == '.' || last == ';' || last == ',') &&
	       (gw_is_blank(row.end[-2]) || row.end[-2] == '>' || row.end[-2] == '"');
}

/* "p sp 6 9" after comments that begin with "c". */
static bool is_dimacs(const char *at, const char *stop)
{
	static const char *const kinds[] = {"p sp ",  "p edge ", "p col ", "p max ",
					    "p asn ", "p min ",  "p td ",  "p tw "};
	struct format_row row;
	do {
		if (!other_row_next(&at, stop, NULL, &row))
			return false;
	} while (begins_with_word(row, "c"));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (begins(row, kinds[i]))
			return true;
	}
	return false;
}

/* Formats whose first row begins with a word and has a sign further on; "" for none. */
static const char *kind_by_word(struct format_row row)
{
	static const struct {
		const char *word, *sign, *what;
	} kinds[] = {{"*vertices", "", "Pajek"}, {"*network", "", "Pajek"},   {"LEDA.GRAPH", "", "LEDA"},
		     {"dl", "=", "UCINET DL"},   {"insert into", "(", "SQL"}, {"create table", "(", "SQL"},
		     {"@prefix", "<", "Turtle"}, {"@base", "<", "Turtle"},    {"prefix", "<", "Turtle"},
		     {"base", "<", "Turtle"}};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (begins_with_word(row, kinds[i].word) &&
		    memmem(row.at, (size_t)(row.end - row.at), kinds[i].sign, strlen(kinds[i].sign)))
			return kinds[i].what;
	}
	return NULL;
}

static const char *format_of(const struct gw_text *text, const char *start, struct format_row row)
{
	const char *stop = text->data + text->bytes, *what = *row.at == '<' ? xml_kind(text, row) : kind_by_word(row);
	if (what)
		return what;
	if (is_json(row))
		return "JSON";
	if (is_gml(start, stop))
		return "GML";
	if (is_dot(row))
		return "DOT (Graphviz)";
	if (is_dimacs(start, stop))
		return "DIMACS";
	if (is_statement(row))
		return row.end[-1] == '.' ? "N-Triples or Turtle" : "Turtle";
	return NULL;
}

gw_status gw_other_formats_check(const struct gw_text *text)
{
	bool mark = text->bytes >= 3 && memcmp(text->data, "\xef\xbb\xbf", 3) == 0;
	const char *start = text->data + (mark ? 3 : 0), *at = start;
	struct format_row row;
	if (!other_row_next(&at, text->data + text->bytes, "#", &row))
		return GW_OK;
	const char *what = format_of(text, start, row);
	return what ? gw_fail(GW_UNSUPPORTED, "%s: this is %s, which is not read" CONVERT, text->name, what) : GW_OK;
}

/* ---- numbers ---- */

/* More than FIELDS_MAX need several calls. *at moves behind them. */
static bool next_number(const char **at, const char *end, uint64_t *out)
{
	const char *p = *at;
	uint64_t value = 0;
	while (p < end && gw_is_blank(*p))
		p++;
	if (p == end || *p < '0' || *p > '9')
		return false;
	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (unsigned)(*p - '0'), &value))
			return false;
	}
	if (p < end && !gw_is_blank(*p))
		return false;
	*at = p;
	*out = value;
	return true;
}

/* The first line of METIS's format: nodes, edges, and which weights the lines below have. */
struct metis {
	uint64_t nodes, edges;
	uint32_t before; /* numbers before the neighbours: a size, weights of the node */
	bool edge_weights;
};

static bool metis_header(struct format_row row, struct metis *out)
{
	uint64_t flags = 0, weights = 1, rest;
	const char *at = row.at;
	*out = (struct metis){0};
	if (!next_number(&at, row.end, &out->nodes) || !next_number(&at, row.end, &out->edges))
		return false;
	if (next_number(&at, row.end, &flags) && flags > 111)
		return false;
	next_number(&at, row.end, &weights);
	if (next_number(&at, row.end, &rest) || weights > FIELDS_MAX)
		return false;
	while (at < row.end && gw_is_blank(*at))
		at++;
	out->edge_weights = flags % 10;
	out->before = (flags / 100 % 10 ? 1 : 0) + (flags / 10 % 10 ? (uint32_t)weights : 0);
	return at == row.end && out->nodes > 0 && flags % 10 <= 1 && flags / 10 % 10 <= 1;
}

/* False if they are no neighbours. */
static bool count_neighbours(const char *at, const char *end, const struct metis *m, uint64_t *neighbours)
{
	uint64_t number, weight;
	for (uint32_t i = 0; i < m->before; i++) {
		if (!next_number(&at, end, &number))
			return false;
	}
	while (next_number(&at, end, &number)) {
		if (number < 1 || number > m->nodes || (m->edge_weights && !next_number(&at, end, &weight)))
			return false;
		++*neighbours;
	}
	while (at < end && gw_is_blank(*at))
		at++;
	return at == end;
}

/* Whether each node has a line, all neighbours are nodes, and each edge is in two lists. The first pass only counts
 * lines, up to the number of nodes. */
static bool is_metis(const struct gw_text *text)
{
	const char *at = text->data, *stop = text->data + text->bytes, *end;
	struct format_row row;
	struct metis m;
	if (!other_row_next(&at, stop, "%", &row) || !metis_header(row, &m) || m.nodes > text->bytes)
		return false;
	for (int pass = 0; pass < 2; pass++) {
		uint64_t lines = 0, neighbours = 0;
		for (const char *p = at; p < stop;) {
			const char *start = p;
			p = gw_line_next(p, stop, &end);
			if (start < end && *start == '%')
				continue;
			bool blank = start == end;
			lines++;
			if (lines > m.nodes && blank) /* empty lines at the end */
				continue;
			if (lines > m.nodes || (pass == 1 && !count_neighbours(start, end, &m, &neighbours)))
				return false;
		}
		if (lines < m.nodes || (pass == 1 && neighbours != 2 * m.edges))
			return false;
	}
	return true;
}

/* Whether the first rows have whole numbers only, and three different lengths. */
static bool is_neighbour_list(const struct gw_text *text, const struct gw_table_format *format)
{
	const char *at = text->data, *stop = text->data + text->bytes;
	uint64_t lengths = 0, number;
	struct format_row row;
	for (uint32_t n = 0; n < LOOK_ROWS && other_row_next(&at, stop, NULL, &row); n++) {
		uint32_t length = 0;
		if (!gw_line_is_row(row.at, row.end, format))
			continue;
		const char *p = row.at;
		while (next_number(&p, row.end, &number))
			length++;
		if (p != row.end || length == 0)
			return false;
		lengths |= 1ull << (length < FIELDS_MAX ? length : FIELDS_MAX - 1);
	}
	return __builtin_popcountll(lengths) >= 3;
}

gw_status gw_other_formats_check_numbers(const struct gw_text *text, const struct gw_table_format *format)
{
	if (format->delimiter != ' ' && format->delimiter != '\t')
		return GW_OK;
	if (is_metis(text))
		return gw_fail(GW_UNSUPPORTED,
			       "%s: this is METIS's format, which is not read" CONVERT
			       "; if each line is an edge, use --no-header",
			       text->name);
	if (is_neighbour_list(text, format))
		return gw_fail(GW_UNSUPPORTED,
			       "%s: its rows have different numbers of columns, as lists of neighbours have" CONVERT
			       "; if the first two columns are edges, use --no-header",
			       text->name);
	return GW_OK;
}
