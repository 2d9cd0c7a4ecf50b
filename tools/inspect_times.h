/* The times of a graph for `graphwire inspect`: what lists are sorted by, which node times have an index, the first and
 * the last time of each, and the bytes that parts hold for them. */
#ifndef GW_TOOLS_INSPECT_TIMES_H
#define GW_TOOLS_INSPECT_TIMES_H

#include <jansson.h>

#include "core/graph/part.h"

struct gw_times_seen;

/* Finds the times by the graph's JSON. GW_NO_MEMORY. */
gw_status gw_times_seen_make(const struct gw_graph_meta *meta, struct gw_times_seen **out);
void gw_times_seen_free(struct gw_times_seen *seen); /* NULL is allowed */

/* Takes the first and last times of a part. */
void gw_times_seen_add(struct gw_times_seen *seen, const struct gw_part *part);

/* Prints a table; nothing for a graph without times. */
void gw_times_seen_print(const struct gw_times_seen *seen);

/* A list with an object for each time. */
json_t *gw_times_seen_json(const struct gw_times_seen *seen);

#endif
