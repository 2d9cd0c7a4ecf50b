/* Batches of triples for knowledge graph embeddings: positives, negatives that the triples of a chunk share, unique
 * ids, and each triple's row numbers in these ids. Part of graphwire.h.
 *
 *   gw_triples_open (head, relation, tail of this trainer) -> gw_triples_batch(step) -> pull rows, train, push
 *                   -> gw_triple_batch_free ... -> gw_triples_close
 *
 * A batch depends only on the options and its step. A job that was killed can therefore continue at any step, and any
 * thread may draw steps in any order. Even steps corrupt tails, odd steps corrupt heads. Each side (tails, heads) has
 * its own shuffled epochs over all triples.
 */
#ifndef GRAPHWIRE_TRIPLES_H
#define GRAPHWIRE_TRIPLES_H

#include <stdbool.h>

#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gw_triples;

/* Zero-initialize, then set the fields that differ from the default. */
struct gw_triples_options {
	uint64_t count;                        /* number of triples: 1 to 2^62 */
	const int64_t *head, *relation, *tail; /* [count]; the caller keeps them until gw_triples_close */
	uint32_t batch_size; /* triples of a step, at most 2^24; if above chunk_size, a multiple of it */
	uint32_t chunk_size; /* number of consecutive triples of a batch that share negatives */
	uint32_t negatives;  /* number of negatives of each chunk; at most 2^24 in a batch */
	/* Negatives are drawn uniformly from these entities: ids negative_begin to negative_end - 1, and `others`. */
	int64_t negative_begin, negative_end;
	uint64_t seed, stream; /* all trainers of a job share the seed; each has its own stream */
	const int64_t *others; /* [other_count]: further ids; the caller keeps them until gw_triples_close */
	uint64_t other_count;  /* at most 2^62 */
};

/* Opens a source of batches over the triples of the options. GW_INVALID names the fault in the options. */
GW_API gw_status gw_triples_open(const struct gw_triples_options *options, struct gw_triples **out);
GW_API void gw_triples_close(struct gw_triples *triples); /* NULL is allowed */

/* Steps of an epoch of one side. The last batch is cut to complete chunks, and omitted if no chunk is complete. If the
 * options have fewer triples than one chunk, all of them form one chunk. */
GW_API uint64_t gw_triples_steps(const struct gw_triples *triples);

/* Row numbers index `entities` and `relations`, the ids of the rows to pull. */
struct gw_triple_batch {
	uint64_t count, chunk_size, negative_count; /* negative_count: of all chunks, chunk after chunk */
	bool corrupt_head;                          /* heads were drawn again; false: tails were */
	uint64_t entity_count, relation_count;
	uint64_t positive_count; /* the first positive_count entities are heads or tails; the remaining entities occur
				    only as negatives */
	const int64_t *entities, *relations;                   /* unique, in the order of first use */
	const uint32_t *head_rows, *relation_rows, *tail_rows; /* [count] */
	const uint32_t *negative_rows;                         /* [negative_count] */
	const int64_t *positions;                              /* [count]: each triple's position in the options */
};

/* Draws the batch of any step; the caller owns *out. Several threads may call it at once. GW_RANGE: an id of a triple,
 * or of `others`, is below 0. */
GW_API gw_status gw_triples_batch(const struct gw_triples *triples, uint64_t step, struct gw_triple_batch **out);
GW_API void gw_triple_batch_free(struct gw_triple_batch *batch); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
