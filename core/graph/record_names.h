/* The names of a graph's records (records.h): NAME.tables.json and NAME.build.json; and of the assignment that
 * `partition` keeps, NAME.assignment.npy. */
#ifndef GW_GRAPH_RECORD_NAMES_H
#define GW_GRAPH_RECORD_NAMES_H

#include "core/files/owned.h"

extern const char *const gw_record_names[]; /* ends with NULL */

#define GW_ASSIGNMENT_FILE ".assignment.npy"

/* Adds the names that the records and the assignment of a graph have to the files that Graphwire wrote. json: the name
 * of its JSON. */
gw_status gw_records_own(struct gw_owned *owned, const char *json);

#endif
