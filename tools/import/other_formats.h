/* Text formats of graphs that are not tables of edges. */
#ifndef GW_TOOLS_IMPORT_OTHER_FORMATS_H
#define GW_TOOLS_IMPORT_OTHER_FORMATS_H

#include "tools/import/table.h"

/* Refuses a text that is one of these, by its first lines: GraphML, GEXF and other XML, GML, DOT, JSON, Turtle,
 * N-Triples, Pajek, DIMACS, SQL. GW_UNSUPPORTED names the format. */
gw_status gw_other_formats_check(const struct gw_text *text);

/* The same for formats that consist of numbers: METIS's, whose first line has the number of lines below; and lists of
 * neighbours, whose lines have different lengths. For a table without a header, read for its first two columns. */
gw_status gw_other_formats_check_numbers(const struct gw_text *text, const struct gw_table_format *format);

#endif
