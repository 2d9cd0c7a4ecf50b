/* Requests for what lists hold, when the lists stay on disk. */
#ifndef GW_SERVER_DISK_LISTS_H
#define GW_SERVER_DISK_LISTS_H

#include "core/graph/part.h"

/* GW_UNSUPPORTED: the lists, or their offsets, stay on disk. Clients that know such lists request their entries
 * (protocol/disk_call.h), and draw and search themselves, so this meets only others. */
static inline gw_status gw_disk_lists_refuse(const struct gw_graph_meta *meta, uint32_t etype,
					     const struct gw_adjacency *lists)
{
	char text[GW_EDGE_FOLDER_MAX + 1];
	if (!lists->on_disk)
		return GW_OK;
	return gw_fail(GW_UNSUPPORTED,
		       "edge type %s: its lists or their offsets stay on disk (serve --on-disk): upgrade the client",
		       gw_meta_etype_text(meta, etype, text));
}

#endif
