/* The times of sources that parts store for their edges, compared with those of the nodes, which other parts may own.
 */
#ifndef GW_TOOLS_VERIFY_TIMES_H
#define GW_TOOLS_VERIFY_TIMES_H

#include "core/graph/meta.h"

/* Maps all parts, which were verified. threads: 0: all processors. GW_FORMAT with the file, the key and the position of
 * the first fault of the first array that has one; GW_NO_MEMORY; GW_IO. */
gw_status gw_verify_source_times(const struct gw_graph_meta *meta, unsigned threads);

#endif
