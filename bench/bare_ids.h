/* The bare loop of look-ups: the same keys over plain sockets to a thread for each part, which looks them up in the
 * same index. It is the ceiling of `graphwire bench ids`. */
#ifndef GW_BENCH_BARE_IDS_H
#define GW_BENCH_BARE_IDS_H

#include <graphwire/graphwire.h>

#include "core/graph/id_index.h"

#define GW_BARE_IDS_PARTS_MAX 16

struct gw_bare_ids {
	uint32_t parts;
	enum gw_id_form form;
	uint64_t node_count;
	const struct gw_id_index *indexes; /* [parts] */
};

/* Looks up `rounds` batches of as many ids, one batch after the other, in turn from `batches` [batch_count]. nodes: the
 * results of the last batch. Returns 0, or an errno. */
int gw_bare_ids_run(const struct gw_bare_ids *bare, const struct gw_orig_ids *batches, uint32_t batch_count,
		    uint32_t rounds, int64_t *nodes);

#endif
