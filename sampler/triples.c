/* Batches of triples: see include/graphwire/triples.h.
 *
 *   step -> side and its epoch (step / 2 / steps) -> positions by the keyed permutation -> entities and relations
 *   numbered in the order of first use: heads and tails, then the negatives of each chunk
 *
 * No state is kept between batches. Fails for invalid options, and if memory runs out.
 */
#include <graphwire/triples.h>

#include "core/errors/status.h"
#include "core/memory/alloc.h"
#include "core/memory/idmap.h"
#include "core/numbers/rng.h"
#include "sampler/negatives.h"

#define BATCH_MAX     (1u << 24)
#define NEGATIVES_MAX (1u << 24)

struct gw_triples {
	struct gw_triples_options options;
	uint64_t chunk_size; /* the least of the options' chunk_size, batch_size and count */
	uint64_t batch_size; /* the lesser of the options' batch_size and count, cut to complete chunks */
	uint64_t steps;      /* steps of an epoch of one side */
};

/* A batch and its arrays, in one allocation. */
struct triples_block {
	struct gw_triple_batch batch;
	int64_t words[];
};

/* Ids numbered in the order of first use. */
struct triples_numbers {
	struct gw_hash_map map;
	int64_t *ids;
	uint32_t count;
};

static gw_status triples_check(const struct gw_triples_options *options)
{
	if (options->count == 0 || options->count > 1ull << 62 || !options->head || !options->relation ||
	    !options->tail)
		return gw_fail(GW_INVALID, "batches of triples need 1 to 2^62 triples: head, relation, tail");
	if (options->batch_size == 0 || options->batch_size > BATCH_MAX || options->chunk_size == 0)
		return gw_fail(GW_INVALID, "a batch has 1 to %u triples and chunks of 1 or more, not %u and %u",
			       BATCH_MAX, options->batch_size, options->chunk_size);
	if (options->batch_size > options->chunk_size && options->batch_size % options->chunk_size)
		return gw_fail(GW_INVALID, "a batch of %u triples is not a multiple of its chunks of %u",
			       options->batch_size, options->chunk_size);
	uint64_t chunks = options->batch_size > options->chunk_size ? options->batch_size / options->chunk_size : 1;
	if (options->negatives == 0 || chunks * options->negatives > NEGATIVES_MAX)
		return gw_fail(GW_INVALID, "%u negatives for each of %llu chunks: 1 to %u in a batch",
			       options->negatives, (unsigned long long)chunks, NEGATIVES_MAX);
	if (options->negative_begin < 0 || options->negative_begin >= options->negative_end)
		return gw_fail(GW_INVALID, "no entity to draw negatives from: ids from %lld up to below %lld",
			       (long long)options->negative_begin, (long long)options->negative_end);
	if (options->other_count > 1ull << 62 || (options->other_count && !options->others))
		return gw_fail(GW_INVALID, "%llu others to draw negatives from are too many, or have no ids",
			       (unsigned long long)options->other_count);
	return GW_OK;
}

gw_status gw_triples_open(const struct gw_triples_options *options, struct gw_triples **out)
{
	*out = NULL;
	gw_status status = triples_check(options);
	if (status != GW_OK)
		return status;
	struct gw_triples *triples = gw_calloc(1, sizeof(*triples));
	if (!triples)
		return GW_NO_MEMORY;
	triples->options = *options;
	uint64_t most = options->count < options->batch_size ? options->count : options->batch_size;
	triples->chunk_size = most < options->chunk_size ? most : options->chunk_size;
	triples->batch_size = most - most % triples->chunk_size;
	uint64_t rest = options->count % triples->batch_size;
	triples->steps = options->count / triples->batch_size + (rest >= triples->chunk_size);
	*out = triples;
	return GW_OK;
}

void gw_triples_close(struct gw_triples *triples)
{
	gw_free(triples);
}

uint64_t gw_triples_steps(const struct gw_triples *triples)
{
	return triples->steps;
}

/* --- A batch. --- */

static gw_status numbers_begin(struct triples_numbers *numbers, int64_t *ids, uint64_t most)
{
	numbers->ids = ids;
	return gw_hash_map_create(most, &numbers->map);
}

static uint32_t number_of(struct triples_numbers *numbers, int64_t id)
{
	bool is_new;
	uint32_t number = gw_hash_map_put(&numbers->map, (uint64_t)id, numbers->count, &is_new);
	if (is_new)
		numbers->ids[numbers->count++] = id;
	return number;
}

static struct triples_block *block_make(uint64_t count, uint64_t negatives)
{
	uint64_t wide = 4 * count + negatives, narrow = 3 * count + negatives;
	return gw_calloc(1, sizeof(struct triples_block) + wide * sizeof(int64_t) + narrow * sizeof(uint32_t));
}

/* By the permutation of this side's epoch. */
static void fill_positives(const struct gw_triples *triples, uint64_t step, int64_t *positions, uint64_t count)
{
	const struct gw_triples_options *options = &triples->options;
	uint64_t turn = step / 2, epoch = turn / triples->steps, first = turn % triples->steps * triples->batch_size;
	uint64_t key = gw_draw_key(options->seed, options->stream, GW_DRAW_SHUFFLE, 3, (uint32_t)(step % 2));
	struct gw_permutation order = gw_permutation_begin(gw_mix64(key + epoch), options->count);
	for (uint64_t i = 0; i < count; i++)
		positions[i] = (int64_t)gw_permutation_at(&order, first + i);
}

static uint64_t count_of(const struct gw_triples *triples, uint64_t step)
{
	uint64_t first = step / 2 % triples->steps * triples->batch_size, left = triples->options.count - first;
	return left < triples->batch_size ? left - left % triples->chunk_size : triples->batch_size;
}

static gw_status fill_negatives(const struct gw_triples *triples, uint64_t step, struct gw_triple_batch *batch,
				struct triples_numbers *entities, uint32_t *rows)
{
	const struct gw_triples_options *options = &triples->options;
	uint64_t key = gw_draw_key(options->seed, options->stream, GW_DRAW_NEGATIVE, 3, 0);
	uint64_t own = (uint64_t)options->negative_end - (uint64_t)options->negative_begin;
	key = gw_mix64(key + step);
	for (uint64_t i = 0; i < batch->negative_count; i++) {
		uint64_t drawn = gw_negative_draw(key, i / options->negatives, i % options->negatives, 0,
						  own + options->other_count);
		int64_t id = drawn < own ? options->negative_begin + (int64_t)drawn : options->others[drawn - own];
		if (id < 0)
			return gw_fail(GW_RANGE, "other %llu has an id below 0", (unsigned long long)(drawn - own));
		rows[i] = number_of(entities, id);
	}
	return GW_OK;
}

static gw_status fill_rows(const struct gw_triples *triples, uint64_t step, struct gw_triple_batch *batch,
			   struct triples_numbers *entities, struct triples_numbers *relations, uint32_t *rows)
{
	const struct gw_triples_options *options = &triples->options;
	uint64_t count = batch->count;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t at = (uint64_t)batch->positions[i];
		if (options->head[at] < 0 || options->relation[at] < 0 || options->tail[at] < 0)
			return gw_fail(GW_RANGE, "triple %llu has an id below 0", (unsigned long long)at);
		rows[i] = number_of(entities, options->head[at]);
		rows[count + i] = number_of(relations, options->relation[at]);
		rows[2 * count + i] = number_of(entities, options->tail[at]);
	}
	batch->positive_count = entities->count;
	gw_status status = fill_negatives(triples, step, batch, entities, rows + 3 * count);
	batch->entity_count = entities->count;
	batch->relation_count = relations->count;
	return status;
}

gw_status gw_triples_batch(const struct gw_triples *triples, uint64_t step, struct gw_triple_batch **out)
{
	*out = NULL;
	uint64_t count = count_of(triples, step);
	uint64_t negatives = count / triples->chunk_size * triples->options.negatives;
	struct triples_block *block = block_make(count, negatives);
	if (!block)
		return GW_NO_MEMORY;
	int64_t *ids = block->words, *relation_ids = ids + 2 * count + negatives, *positions = relation_ids + count;
	uint32_t *rows = (uint32_t *)(positions + count);
	struct triples_numbers entities = {0}, relations = {0};
	gw_status status = numbers_begin(&entities, ids, 2 * count + negatives);
	if (status == GW_OK)
		status = numbers_begin(&relations, relation_ids, count);
	if (status == GW_OK) {
		block->batch = (struct gw_triple_batch){.count = count,
							.chunk_size = triples->chunk_size,
							.negative_count = negatives,
							.corrupt_head = step % 2 == 1,
							.entities = ids,
							.relations = relation_ids,
							.head_rows = rows,
							.relation_rows = rows + count,
							.tail_rows = rows + 2 * count,
							.negative_rows = rows + 3 * count,
							.positions = positions};
		fill_positives(triples, step, positions, count);
		status = fill_rows(triples, step, &block->batch, &entities, &relations, rows);
	}
	if (status == GW_OK)
		*out = &block->batch;
	else
		gw_free(block);
	gw_hash_map_destroy(&entities.map);
	gw_hash_map_destroy(&relations.map);
	return status;
}

void gw_triple_batch_free(struct gw_triple_batch *batch)
{
	gw_free(batch);
}
