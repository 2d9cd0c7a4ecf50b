/* Numbers nodes in the order of first use. Callers of the sampler create and destroy the maps; the sampler does the
 * rest.
 *
 * All node types share one map: a key is the type's first key plus the id. Every id is checked against the type's count
 * before it becomes an index, because it may come from a peer.
 */
#ifndef GW_SAMPLER_BLOCKS_RELABEL_H
#define GW_SAMPLER_BLOCKS_RELABEL_H

#include "core/graph/meta.h"
#include "core/memory/idmap.h"
#include "core/memory/vec.h"

/* The nodes of a type that a batch has met so far. */
struct gw_node_list {
	struct gw_vec ids;    /* uint64_t, with room for one more than count */
	struct gw_vec groups; /* uint32_t: of a batch in groups, with room for one more than count */
	uint64_t count;
	uint64_t id_count; /* number of nodes of the type: all ids are below it */
	uint64_t key;      /* of the type's id 0 in the map */
};

struct gw_relabel {
	const struct gw_graph_meta *meta;
	bool dense;
	uint64_t id_count; /* over all node types */
	/* each is made for the first batch that needs it */
	struct gw_dense_map dense_map;
	uint64_t numbers_max;        /* the batch's numbers in the dense map are below it */
	struct gw_hash_map hash_map; /* if not dense, and for batches in groups */
};

/* The maps belong to one thread. They serve one gw_blocks at a time, from begin to end. They are dense (4 bytes for
 * each node of the graph) if that takes at most dense_bytes_max; else they are hash maps sized to the batch. */
gw_status gw_relabel_create(const struct gw_graph_meta *meta, uint64_t dense_bytes_max, struct gw_relabel **out);
void gw_relabel_destroy(struct gw_relabel *relabel);

/* Begins a batch without nodes. GW_NO_MEMORY. */
gw_status gw_relabel_begin(struct gw_relabel *relabel);

/* The same for a batch in groups; last: the greatest group. Also GW_LIMIT: (last + 1) * nodes of the graph exceeds 64
 * bits. */
gw_status gw_relabel_begin_groups(struct gw_relabel *relabel, uint32_t last);

/* The source of the nodes to number. */
struct gw_relabel_source {
	const uint64_t *ids;      /* the ids themselves; or NULL: they are elements of `memory` */
	const uint64_t *elements; /* numbers of these elements */
	uintptr_t memory;
	uint32_t element_bytes; /* 4 or 8 */
	/* In a batch in groups: of each id. A node in two groups has two numbers. NULL: no groups. */
	const uint32_t *groups;
};

/* Writes the numbers of n nodes, as int64 or int32, and appends new nodes to the list. GW_RANGE names an id that the
 * type does not have; GW_LIMIT: a number does not fit; GW_NO_MEMORY. After an error a batch must begin. */
gw_status gw_relabel_run(struct gw_relabel *relabel, struct gw_node_list *nodes, struct gw_relabel_source source,
			 uint64_t n, void *numbers, bool wide);

#endif
