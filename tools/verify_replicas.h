/* The check of replicas that needs all parts, for graphwire verify. */
#ifndef GW_TOOLS_VERIFY_REPLICAS_H
#define GW_TOOLS_VERIFY_REPLICAS_H

#include "core/graph/meta.h"

/* Checks that the replicas are copies of their owners' rows. All parts are on this host, and sound. GW_FORMAT names the
 * file and the first row; GW_DIGEST: the record names other arrays. */
gw_status gw_verify_replicas(const struct gw_graph_meta *meta, unsigned threads);

#endif
