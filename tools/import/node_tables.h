/* Tables of nodes, --node-table: text with a header and a node in each row, whose columns are ids, features, a label
 * and masks. */
#ifndef GW_TOOLS_IMPORT_NODE_TABLES_H
#define GW_TOOLS_IMPORT_NODE_TABLES_H

#include "tools/import/import.h"

/* Decides on the format of a table: the first line is a header, unless the format says no. GW_FORMAT if
 * the header occurs again below. */
gw_status gw_import_table_format(const char *path, const struct gw_text *text, struct gw_table_format *format);

/* Reads space->list of a table: its ids, in the order of the rows. The ids are text if im says so for the space, else
 * whole numbers. */
gw_status gw_import_table_ids(struct gw_import *im, struct gw_import_space *space);

/* Reads a column as text, one reference for each row: what names it in errors; may_be_empty: empty texts are no
 * error. The builder owns the memory. */
gw_status gw_import_table_texts(struct gw_import *im, const struct gw_import_space *space, uint32_t column,
				const char *what, bool may_be_empty, uint64_t **out);

/* Finds the space of a node type, which must have a table. type: NULL means the only type with a table. option: for
 * errors. GW_NOT_FOUND, GW_INVALID. */
gw_status gw_import_table_space(struct gw_import *im, const char *type, const char *option,
				struct gw_import_space **out);

#endif
