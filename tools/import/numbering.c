/* Numbers ids by first appearance, in parallel. The only failure is GW_NO_MEMORY. */
#include "tools/import/numbering.h"

#include <stdbool.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/numbers/digest.h"
#include "core/numbers/rng.h"
#include "core/system/parallel.h"
#include "tools/import/table.h"

#define SHARD_BITS  8u
#define SHARDS      (1u << SHARD_BITS)
#define PIECE_ROWS  (32u << 10)
#define SLOTS_FIRST 1024u
#define AHEAD       8ull /* positions that a shard prefetches, at each step of the pipeline */

/* A range of one column. */
struct numbering_piece {
	uint32_t column;
	uint64_t begin, end; /* rows */
	uint64_t position;   /* of its first value, over all columns */
	uint64_t firsts;     /* values that first appear in this piece; later: the count before this piece */
};

struct work {
	struct gw_numbering_column *columns;
	struct numbering_piece *pieces;
	uint64_t *starts; /* [num_columns] the first position of each column */
	uint32_t num_columns;
	uint64_t num_pieces, positions;
	uint64_t *hashes;  /* [positions]; then, for a first position, its number */
	uint64_t *order;   /* [positions] sorted by shard */
	uint64_t *first;   /* [positions] where the value appeared first */
	uint64_t *cursors; /* [pieces][SHARDS] */
	uint64_t shard_start[SHARDS + 1];
	struct gw_numbering *out;
};

static uint64_t width(const struct gw_numbering_column *column)
{
	return column->second ? 2 : 1;
}

static uint64_t *value_at(const struct gw_numbering_column *column, uint64_t index)
{
	if (!column->second)
		return &column->first[index];
	return index & 1 ? &column->second[index >> 1] : &column->first[index >> 1];
}

static gw_status cut_pieces(struct work *work, uint32_t count)
{
	for (uint32_t c = 0; c < count; c++)
		work->num_pieces += (work->columns[c].rows + PIECE_ROWS - 1) / PIECE_ROWS;
	work->num_columns = count;
	work->starts = gw_malloc(count * sizeof(*work->starts));
	work->pieces = gw_calloc(work->num_pieces, sizeof(*work->pieces));
	if (!work->pieces || !work->starts)
		return GW_NO_MEMORY;
	struct numbering_piece *piece = work->pieces;
	for (uint32_t c = 0; c < count; c++) {
		work->starts[c] = work->positions;
		for (uint64_t at = 0; at < work->columns[c].rows; at += PIECE_ROWS) {
			uint64_t rows =
				work->columns[c].rows - at < PIECE_ROWS ? work->columns[c].rows - at : PIECE_ROWS;
			*piece++ = (struct numbering_piece){
				.column = c, .begin = at, .end = at + rows, .position = work->positions};
			work->positions += rows * width(&work->columns[c]);
		}
	}
	return GW_OK;
}

static uint64_t hash_value(const struct gw_numbering_column *column, uint64_t value)
{
	if (!column->text)
		return gw_mix64(value + 0x9e3779b97f4a7c15ull);
	struct gw_text_span span = gw_text_span(column->text, value);
	return gw_digest(span.at, span.bytes);
}

static gw_status hash_pieces(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct work *work = context;
	for (uint64_t p = begin; p < end; p++) {
		const struct numbering_piece *piece = &work->pieces[p];
		const struct gw_numbering_column *column = &work->columns[piece->column];
		uint64_t *counts = work->cursors + p * SHARDS, w = width(column), at = piece->position;
		for (uint64_t i = piece->begin * w; i < piece->end * w; i++) {
			uint64_t hash = hash_value(column, *value_at(column, i));
			work->hashes[at++] = hash;
			counts[hash >> (64 - SHARD_BITS)]++;
		}
	}
	return GW_OK;
}

/* Turns counts into the places for each piece's positions in each shard: by shard, then by piece. */
static void place_shards(struct work *work)
{
	uint64_t at = 0;
	for (uint32_t shard = 0; shard < SHARDS; shard++) {
		work->shard_start[shard] = at;
		for (uint64_t p = 0; p < work->num_pieces; p++) {
			uint64_t count = work->cursors[p * SHARDS + shard];
			work->cursors[p * SHARDS + shard] = at;
			at += count;
		}
	}
	work->shard_start[SHARDS] = at;
}

static gw_status sort_pieces(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct work *work = context;
	for (uint64_t p = begin; p < end; p++) {
		const struct numbering_piece *piece = &work->pieces[p];
		uint64_t *cursors = work->cursors + p * SHARDS;
		uint64_t values = (piece->end - piece->begin) * width(&work->columns[piece->column]);
		for (uint64_t i = piece->position; i < piece->position + values; i++)
			work->order[cursors[work->hashes[i] >> (64 - SHARD_BITS)]++] = i;
	}
	return GW_OK;
}

/* Columns are few, and within a column the place is plain arithmetic. */
static const uint64_t *value_place(const struct work *work, uint64_t position, const char **text)
{
	uint32_t c = 0;
	while (c + 1 < work->num_columns && work->starts[c + 1] <= position)
		c++;
	*text = work->columns[c].text;
	return value_at(&work->columns[c], position - work->starts[c]);
}

static bool same_value(const struct work *work, uint64_t a, uint64_t b)
{
	const char *text_a, *text_b;
	uint64_t value_a = *value_place(work, a, &text_a), value_b = *value_place(work, b, &text_b);
	if (!text_a)
		return value_a == value_b;
	struct gw_text_span sa = gw_text_span(text_a, value_a), sb = gw_text_span(text_b, value_b);
	return sa.bytes == sb.bytes && memcmp(sa.at, sb.at, sa.bytes) == 0;
}

/* A shard's table of first positions, plus 1; 0 is an empty slot. */
struct slots {
	uint64_t *places;
	uint64_t mask, used;
};

static gw_status grow_slots(const struct work *work, struct slots *slots)
{
	uint64_t room = slots->places ? (slots->mask + 1) * 2 : SLOTS_FIRST;
	struct slots grown = {.mask = room - 1, .used = slots->used};
	grown.places = gw_calloc(room, sizeof(*grown.places));
	if (!grown.places)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; slots->places && i <= slots->mask; i++) {
		if (!slots->places[i])
			continue;
		uint64_t at = work->hashes[slots->places[i] - 1] & grown.mask;
		while (grown.places[at])
			at = (at + 1) & grown.mask;
		grown.places[at] = slots->places[i];
	}
	gw_free(slots->places);
	*slots = grown;
	return GW_OK;
}

static uint64_t find_first(struct work *work, struct slots *slots, uint64_t position)
{
	uint64_t hash = work->hashes[position], at = hash & slots->mask;
	for (;; at = (at + 1) & slots->mask) {
		uint64_t place = slots->places[at];
		if (place == 0) {
			slots->places[at] = position + 1;
			slots->used++;
			return position;
		}
		/* The hash of whole numbers is bijective: equal hashes mean equal values. */
		if (work->hashes[place - 1] == hash &&
		    (!work->columns[0].text || same_value(work, place - 1, position)))
			return place - 1;
	}
}

/* Prefetches the data of later positions. A shard's positions are far apart, and so are their hashes, values and texts.
 * First positions need no prefetch: a shard has few of them, so their data stays in the cache. */
static void look_ahead(const struct work *work, const struct slots *slots, uint64_t i, uint64_t last)
{
	const char *text;
	if (i + 3 * AHEAD < last)
		__builtin_prefetch(&work->hashes[work->order[i + 3 * AHEAD]]);
	if (i + 2 * AHEAD < last)
		__builtin_prefetch(value_place(work, work->order[i + 2 * AHEAD], &text));
	if (i + AHEAD < last) {
		uint64_t position = work->order[i + AHEAD];
		__builtin_prefetch(&slots->places[work->hashes[position] & slots->mask]);
		__builtin_prefetch(&work->first[position], 1);
		uint64_t value = *value_place(work, position, &text);
		if (text)
			__builtin_prefetch(gw_text_span(text, value).at);
	}
}

static gw_status find_in_shards(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct work *work = context;
	for (uint64_t shard = begin; shard < end; shard++) {
		struct slots slots = {0};
		uint64_t last = work->shard_start[shard + 1];
		for (uint64_t i = work->shard_start[shard]; i < last; i++) {
			if (!slots.places || slots.used * 2 > slots.mask) {
				gw_status status = grow_slots(work, &slots);
				if (status != GW_OK) {
					gw_free(slots.places);
					return status;
				}
			}
			look_ahead(work, &slots, i, last);
			uint64_t position = work->order[i];
			work->first[position] = find_first(work, &slots, position);
		}
		gw_free(slots.places);
	}
	return GW_OK;
}

static uint64_t numbering_piece_end(const struct work *work, const struct numbering_piece *piece)
{
	return piece->position + (piece->end - piece->begin) * width(&work->columns[piece->column]);
}

static gw_status count_firsts(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct work *work = context;
	for (uint64_t p = begin; p < end; p++) {
		struct numbering_piece *piece = &work->pieces[p];
		for (uint64_t i = piece->position; i < numbering_piece_end(work, piece); i++)
			piece->firsts += work->first[i] == i;
	}
	return GW_OK;
}

static gw_status number_firsts(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct work *work = context;
	for (uint64_t p = begin; p < end; p++) {
		const struct numbering_piece *piece = &work->pieces[p];
		const struct gw_numbering_column *column = &work->columns[piece->column];
		uint64_t number = piece->firsts, index = piece->begin * width(column);
		for (uint64_t i = piece->position; i < numbering_piece_end(work, piece); i++, index++) {
			if (work->first[i] != i)
				continue;
			work->out->values[number] = *value_at(column, index);
			work->out->columns[number] = piece->column;
			work->hashes[i] = number++;
		}
	}
	return GW_OK;
}

static gw_status replace_values(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct work *work = context;
	for (uint64_t p = begin; p < end; p++) {
		const struct numbering_piece *piece = &work->pieces[p];
		const struct gw_numbering_column *column = &work->columns[piece->column];
		uint64_t index = piece->begin * width(column);
		for (uint64_t i = piece->position; i < numbering_piece_end(work, piece); i++)
			*value_at(column, index++) = work->hashes[work->first[i]];
	}
	return GW_OK;
}

static gw_status number_all(struct work *work, unsigned threads)
{
	gw_parallel_for(threads, work->num_pieces, 1, count_firsts, work);
	uint64_t total = 0;
	for (uint64_t p = 0; p < work->num_pieces; p++) {
		uint64_t firsts = work->pieces[p].firsts;
		work->pieces[p].firsts = total;
		total += firsts;
	}
	work->out->count = total;
	work->out->values = gw_malloc(total * sizeof(*work->out->values));
	work->out->columns = gw_malloc(total * sizeof(*work->out->columns));
	if (!work->out->values || !work->out->columns)
		return GW_NO_MEMORY;
	gw_parallel_for(threads, work->num_pieces, 1, number_firsts, work);
	gw_parallel_for(threads, work->num_pieces, 1, replace_values, work);
	return GW_OK;
}

gw_status gw_numbering_create(struct gw_numbering_column *columns, uint32_t count, unsigned threads,
			      struct gw_numbering *out)
{
	*out = (struct gw_numbering){0};
	struct work work = {.columns = columns, .out = out};
	gw_status status = cut_pieces(&work, count);
	if (status != GW_OK)
		goto free_work;
	work.hashes = gw_malloc(work.positions * sizeof(uint64_t));
	work.order = gw_malloc(work.positions * sizeof(uint64_t));
	work.first = gw_malloc(work.positions * sizeof(uint64_t));
	work.cursors = gw_calloc(work.num_pieces * SHARDS, sizeof(uint64_t));
	if (!work.hashes || !work.order || !work.first || !work.cursors) {
		status = GW_NO_MEMORY;
		goto free_work;
	}
	gw_parallel_for(threads, work.num_pieces, 1, hash_pieces, &work);
	place_shards(&work);
	gw_parallel_for(threads, work.num_pieces, 1, sort_pieces, &work);
	status = gw_parallel_for(threads, SHARDS, 1, find_in_shards, &work);
	if (status == GW_OK)
		status = number_all(&work, threads);
free_work:
	gw_free(work.starts);
	gw_free(work.pieces);
	gw_free(work.hashes);
	gw_free(work.order);
	gw_free(work.first);
	gw_free(work.cursors);
	if (status != GW_OK)
		gw_numbering_free(out);
	return status;
}

void gw_numbering_free(struct gw_numbering *numbering)
{
	gw_free(numbering->values);
	gw_free(numbering->columns);
	*numbering = (struct gw_numbering){0};
}

struct copying {
	const struct gw_numbering *numbering;
	const struct gw_numbering_column *columns;
	const uint64_t *offsets;
	char *bytes;
};

static struct gw_text_span numbered_span(const struct copying *copying, uint64_t number)
{
	const struct gw_numbering *numbering = copying->numbering;
	return gw_text_span(copying->columns[numbering->columns[number]].text, numbering->values[number]);
}

/* The number of bytes of a field after "" becomes one quote. */
static uint64_t plain_bytes(struct gw_text_span span)
{
	uint64_t quotes = 0;
	for (uint64_t i = 0; span.escaped && i < span.bytes; i++)
		quotes += span.at[i] == '"';
	return span.bytes - quotes / 2;
}

static gw_status copy_strings(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct copying *copying = context;
	for (uint64_t i = begin; i < end; i++) {
		struct gw_text_span span = numbered_span(copying, i);
		char *to = copying->bytes + copying->offsets[i];
		if (!span.escaped) {
			memcpy(to, span.at, span.bytes);
			continue;
		}
		for (uint64_t at = 0; at < span.bytes; at++) {
			*to++ = span.at[at];
			at += span.at[at] == '"'; /* skip the second quote of the pair */
		}
	}
	return GW_OK;
}

gw_status gw_numbering_strings(const struct gw_numbering *numbering, const struct gw_numbering_column *columns,
			       unsigned threads, uint64_t **offsets, char **bytes)
{
	struct copying copying = {.numbering = numbering, .columns = columns};
	*bytes = NULL;
	*offsets = gw_malloc((numbering->count + 1) * sizeof(**offsets));
	if (!*offsets)
		return GW_NO_MEMORY;
	uint64_t total = 0;
	for (uint64_t i = 0; i < numbering->count; i++) {
		(*offsets)[i] = total;
		total += plain_bytes(numbered_span(&copying, i));
	}
	(*offsets)[numbering->count] = total;
	*bytes = gw_malloc(total);
	if (!*bytes) {
		gw_free(*offsets);
		*offsets = NULL;
		return GW_NO_MEMORY;
	}
	copying.offsets = *offsets;
	copying.bytes = *bytes;
	gw_parallel_for(threads, numbering->count, 4096, copy_strings, &copying);
	return GW_OK;
}
