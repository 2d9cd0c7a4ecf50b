/* Batches of triples for knowledge graph embeddings: positives, negatives shared by chunks, unique ids and where they
 * are used. Part of graphwire.h.
 *
 *   gw_triples_open (head, relation, tail of this trainer) -> gw_triples_batch(step) -> pull rows, train, push
 *                   -> gw_triple_batch_free ... -> gw_triples_close
 *
 * A batch is a pure function of the options and its step: a job that was killed goes on at any step, and steps may be
 * drawn by any thread in any order. Even steps draw tails again and odd ones heads; each side walks its own shuffled
 * epochs over all triples.
 */
#ifndef GRAPHWIRE_TRIPLES_H
#define GRAPHWIRE_TRIPLES_H

#include <stdbool.h>

#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gw_triples;

/* Zero-initialize, then set what differs from the default. */
struct gw_triples_options {
	uint64_t count;                        /* of triples: 1 to 2^62 */
	const int64_t *head, *relation, *tail; /* [count]; the caller's until gw_triples_close */
	uint32_t batch_size;                   /* triples of a step, at most 2^24; above chunk_size a multiple of it */
	uint32_t chunk_size;                   /* neighbouring triples of a batch that share negatives */
	uint32_t negatives;                    /* of each chunk; at most 2^24 in a batch */
	/* Whom negatives are drawn from, each as likely: ids from negative_begin to negative_end - 1, and `others`. */
	int64_t negative_begin, negative_end;
	uint64_t seed, stream; /* trainers of a job share the seed, and have a stream each */
	const int64_t *others; /* [other_count], further ids; the caller's until gw_triples_close */
	uint64_t other_count;  /* at most 2^62 */
};

/* GW_INVALID says what is wrong with the options. */
GW_API gw_status gw_triples_open(const struct gw_triples_options *options, struct gw_triples **out);
GW_API void gw_triples_close(struct gw_triples *triples); /* NULL is allowed */

/* Steps of an epoch of one side. The last batch is cut to whole chunks, and left out where that is nothing; fewer
 * triples than one chunk are one chunk of their own. */
GW_API uint64_t gw_triples_steps(const struct gw_triples *triples);

/* Row numbers count in `entities` and `relations`: what has to be pulled. */
struct gw_triple_batch {
	uint64_t count, chunk_size, negative_count; /* negative_count: of all chunks, those of a chunk side by side */
	bool corrupt_head;                          /* else tails were drawn again */
	uint64_t entity_count, relation_count;
	uint64_t positive_count; /* the first of the entities: heads and tails; the others are negatives alone */
	const int64_t *entities, *relations;                   /* unique, in the order of first use */
	const uint32_t *head_rows, *relation_rows, *tail_rows; /* [count] */
	const uint32_t *negative_rows;                         /* [negative_count] */
	const int64_t *positions;                              /* [count]: where a triple is in the options */
};

/* The batch of a step, any of them; the caller's. May be called by several threads at once. GW_RANGE: a triple, or one
 * of the others, has an id below 0. */
GW_API gw_status gw_triples_batch(const struct gw_triples *triples, uint64_t step, struct gw_triple_batch **out);
GW_API void gw_triple_batch_free(struct gw_triple_batch *batch); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
