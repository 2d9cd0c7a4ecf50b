/* What the files share that read mygraph.json. */
#ifndef GW_GRAPH_META_JSON_PRIVATE_H
#define GW_GRAPH_META_JSON_PRIVATE_H

#include <jansson.h>

#include "core/graph/meta.h"

/* The shared checks report invalid arguments; in a file these are malformed data. */
static inline gw_status meta_json_as_format(gw_status status)
{
	return status == GW_INVALID || status == GW_EXISTS || status == GW_LIMIT || status == GW_RANGE ||
			       status == GW_NOT_FOUND
		       ? GW_FORMAT
		       : status;
}

/* "units", "originals" and "replicas" of the graph, whose types are read. */
gw_status meta_json_units(const json_t *root, struct gw_graph_meta *meta);
gw_status meta_json_originals(const json_t *root, struct gw_graph_meta *meta);
gw_status meta_json_replicas(const json_t *root, struct gw_graph_meta *meta);

#endif
