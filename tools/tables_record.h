/* The record of the tables that a graph was made of, NAME.tables.json in its folder: rows, keys, and foreign keys
 * that are null or refer to no row. The Python package writes it (python/graphwire/_files/database.py).
 *
 * It has the graph_id of its graph. A record of another id is of an older graph in the same folder, and counts as none.
 */
#ifndef GW_TOOLS_TABLES_RECORD_H
#define GW_TOOLS_TABLES_RECORD_H

#include <jansson.h>

#include "core/graph/meta.h"

/* The object "tables" of the graph's record, or NULL without one. The caller releases it. GW_FORMAT: the record is
 * damaged; GW_IO, GW_NO_MEMORY. */
gw_status gw_tables_record_read(const struct gw_graph_meta *meta, json_t **tables);

/* Writes the graph's record, if it has one, for a graph of the same name and another id in this folder. GW_IO,
 * GW_NO_SPACE, and the errors of gw_tables_record_read. */
gw_status gw_tables_record_copy(const struct gw_graph_meta *meta, const char *folder, uint64_t graph_id);

/* Prints the tables of gw_tables_record_read; nothing for NULL. */
void gw_tables_record_print(const json_t *tables);

#endif
