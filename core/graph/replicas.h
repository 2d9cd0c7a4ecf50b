/* Replicas: copies of rows that other parts own, which the trainers of a part want most. They lie in the part.
 *
 *   node/TYPE/replica.index     which nodes of the type have their rows here: a set of ids that gives each id in it its
 *                               rank, [blocks, 8] of uint64. A block has 384 ids: the number of ids in the blocks
 *                               before it; for each of its six words of bits, the number of ids in the words before
 *                               it, 9 bits each; and the six words, a bit for each id
 *   node/TYPE/FEATURE.replica   the rows of these nodes, by ascending id
 *
 * A block is one cache line, so that a look-up costs one. The graph's JSON records the digests of the arrays that the
 * rows were copied from; a part whose replicas are of other arrays is refused. graph_id does not depend on replicas:
 * the data is the same with them.
 */
#ifndef GW_GRAPH_REPLICAS_H
#define GW_GRAPH_REPLICAS_H

#include "core/graph/part.h"

#define GW_REPLICA_WORDS     6ull
#define GW_REPLICA_BLOCK_IDS (64 * GW_REPLICA_WORDS)
#define GW_REPLICA_COLUMNS   (GW_REPLICA_WORDS + 2)

struct gw_replica_block {
	uint64_t before;
	uint64_t counts;
	uint64_t bits[GW_REPLICA_WORDS];
};

static inline uint64_t gw_replica_blocks(uint64_t ids)
{
	return ids / GW_REPLICA_BLOCK_IDS + (ids % GW_REPLICA_BLOCK_IDS != 0);
}

static inline uint64_t gw_replica_ones(uint64_t word)
{
	return (uint64_t)__builtin_popcountll(word);
}

/* Whether the set has an id, and its rank: the row of its replicas. The id is one of the type. */
static inline bool gw_replica_find(const struct gw_replica_block *blocks, uint64_t id, uint64_t *row)
{
	const struct gw_replica_block *block = &blocks[id / GW_REPLICA_BLOCK_IDS];
	const uint64_t at = id % GW_REPLICA_BLOCK_IDS, word = block->bits[at / 64];
	*row = block->before + (block->counts >> 9 * (at / 64) & 511) + gw_replica_ones(word & ((1ull << at % 64) - 1));
	return word >> at % 64 & 1;
}

/* Fills the counts of blocks whose bits are set, and returns the number of ids. */
uint64_t gw_replica_count(struct gw_replica_block *blocks, uint64_t ids);

static inline void gw_replica_add(struct gw_replica_block *blocks, uint64_t id)
{
	blocks[id / GW_REPLICA_BLOCK_IDS].bits[id % GW_REPLICA_BLOCK_IDS / 64] |= 1ull << id % 64;
}

/* Whether a key names an array of replicas, of a graph whose minor version has them. */
bool gw_replica_key(const struct gw_graph_meta *meta, const char *key);

/* Checks what digests do not prove: that the counts are those of the bits, that no node is of this part, and that there
 * are as many rows. The array is replica.index. */
gw_status gw_replicas_check(const struct gw_part *part, const struct gw_array *index, unsigned threads);

/* The digest over a feature's arrays in all parts, which the record of its replicas keeps. */
uint64_t gw_replicas_digest(const struct gw_graph_meta *meta, const char *key);

/* Checks that replicas have the form of their features, an index and a record. */
gw_status gw_replicas_check_schema(const struct gw_graph_meta *meta);

/* Refuses a part whose replicas are of other arrays than those of the graph: a feature was written anew since.
 * GW_DIGEST names the feature. */
gw_status gw_replicas_check_origin(const struct gw_graph_meta *meta);

#endif
