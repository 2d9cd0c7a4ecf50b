/* Files about how a graph was made, in the folder of its JSON: NAME.tables.json and NAME.build.json (docs/FORMAT.md).
 * Readers of the graph do not need them. */
#ifndef GW_GRAPH_RECORDS_H
#define GW_GRAPH_RECORDS_H

#include "core/graph/writer.h"

/* GW_INVALID unless the word is "tables=FILE" or "build=FILE". */
gw_status gw_record_check(const char *word);

/* Adds the files of these words to a graph that is written. GW_NOT_FOUND, GW_IO, GW_LIMIT, GW_NO_MEMORY. */
gw_status gw_records_add(struct gw_writer *writer, const char *const *words, uint32_t count);

#endif
