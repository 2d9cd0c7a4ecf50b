/* Numbers ids by first appearance, in runs of equal hashes, so that any number of ids needs little memory.
 *
 *   hash all values -> the run of each, by hash ─┬─► the values, to the places of their runs
 *                                                └─► the run of each position
 *   each run: a table of its different values -> for each value its place among them, and whether it is the first
 *   the positions in order, each from the next place in its run: a first value takes the next number; the others take
 *   the number of their place
 *
 * A run has the values in the order of positions, so the places are in the order of first appearance, and a number is
 * that of the first appearance. What is as long as the input is in blocks of the spill, and every pass goes through
 * them in order, in as many places at once as there are runs. In memory are the tables of the runs in work, one for
 * each thread, and 8 bytes for each number. Equal hashes are no equal values: the table compares the values.
 *
 * Errors: GW_NO_MEMORY; GW_IO and GW_NO_SPACE with the spill's folder; GW_LIMIT for 2^31 different values in a run.
 */
#include <stdatomic.h>
#include <string.h>

#include "core/errors/status.h"
#include "core/memory/alloc.h"
#include "core/numbers/digest.h"
#include "core/numbers/rng.h"
#include "core/system/parallel.h"
#include "tools/builder/run_reader.h"
#include "tools/builder/run_writer.h"
#include "tools/import/numbering.h"
#include "tools/import/span.h"

#define PIECE_ROWS   (32u << 10)
#define PIECES       256u /* more than one for each column, as many rows as a piece then has */
#define RUNS_MAX     4096u
#define FEW_RUNS     256u
#define RUN_VALUES   (64u << 10)
#define SAMPLES      4096u
#define PLACE_BYTES  (sizeof(uint16_t) + sizeof(uint32_t)) /* of a position: its run, and its place there */
#define TABLE_BYTES  64u /* of a different value in a run's table, while the table grows */
#define CURSOR_SHARE 8u  /* of the memory is for cursors, at most */
#define READ_SHARE   2u  /* of the memory is for what is read from runs */
#define SLOTS_FIRST  1024u
#define BLOCK        32u /* values whose slots are prefetched together */
#define EMPTY        UINT32_MAX
#define FIRST        (1u << 31) /* of a place: the value that it belongs to is the first */

/* A range of one column. */
struct numbering_piece {
	uint32_t column;
	uint64_t begin, end; /* rows */
	uint64_t position;   /* of its first value, over all columns */
};

static uint64_t width(const struct gw_numbering_column *column)
{
	return column->second ? 2 : 1;
}

static uint64_t *value_at(const struct gw_numbering_column *column, uint64_t index)
{
	uint64_t *values = column->second && (index & 1) ? column->second : column->first;
	return &values[column->second ? index >> 1 : index];
}

/* The hash of whole numbers is bijective: equal hashes mean equal values. */
static uint64_t hash_value(const struct gw_numbering_column *column, uint64_t value)
{
	if (!column->text)
		return gw_mix64(value + 0x9e3779b97f4a7c15ull);
	struct gw_text_span span = gw_text_span(column->text, value);
	return gw_digest(span.at, span.bytes);
}

struct work {
	struct gw_numbering_column *columns;
	struct numbering_piece *pieces;
	struct gw_numbering *out;
	uint32_t num_columns, count; /* count: of runs */
	bool text, spills; /* spills: to files. The disk is the limit, so a pass less is faster than two in parallel */
	uint64_t num_pieces, positions;
	uint64_t *values, *bytes; /* [pieces][count] of a piece in a run: how many; then the first one's place */
	uint64_t *value_starts, *byte_starts, *number_starts; /* [count + 1]; number: of different values */
	_Atomic uint64_t *firsts; /* [pieces] values that first appear there; then the first number */
	uint16_t *run_of;         /* [positions] */
	uint8_t *copies;          /* the values: 8 bytes, or the text's length, 2 bytes, and the text */
	uint32_t *places;         /* [positions] by run */
	uint64_t *numbers;        /* [different values] of each place, by run */
};

/* ---- the division ---- */

static gw_status cut_pieces(struct work *work)
{
	uint64_t rows = 0, piece_rows = PIECE_ROWS, position = 0;
	for (uint32_t c = 0; c < work->num_columns; c++)
		rows += work->columns[c].rows;
	piece_rows = rows / PIECES < piece_rows ? piece_rows : rows / PIECES + 1;
	for (uint32_t c = 0; c < work->num_columns; c++)
		work->num_pieces += (work->columns[c].rows + piece_rows - 1) / piece_rows;
	work->pieces = gw_calloc(work->num_pieces, sizeof(*work->pieces));
	if (!work->pieces)
		return GW_NO_MEMORY;
	struct numbering_piece *piece = work->pieces;
	for (uint32_t c = 0; c < work->num_columns; c++) {
		for (uint64_t at = 0; at < work->columns[c].rows; at += piece_rows) {
			uint64_t left = work->columns[c].rows - at, taken = left < piece_rows ? left : piece_rows;
			*piece++ = (struct numbering_piece){
				.column = c, .begin = at, .end = at + taken, .position = position};
			position += taken * width(&work->columns[c]);
		}
	}
	work->positions = position;
	return GW_OK;
}

static uint32_t run_of_hash(const struct work *work, uint64_t hash)
{
	return (uint32_t)((hash >> 32) * work->count >> 32);
}

static uint64_t copy_bytes(const struct gw_numbering_column *column, uint64_t value)
{
	return column->text ? sizeof(uint16_t) + gw_text_span(column->text, value).bytes : sizeof(value);
}

/* About how many bytes the copies take, by some values of each column. */
static uint64_t guess_copies(const struct work *work)
{
	uint64_t bytes = 0;
	for (uint32_t c = 0; c < work->num_columns; c++) {
		const struct gw_numbering_column *column = &work->columns[c];
		uint64_t values = column->rows * width(column), step = values / SAMPLES + 1, sum = 0, taken = 0;
		for (uint64_t i = 0; i < values; i += step, taken++)
			sum += copy_bytes(column, *value_at(column, i));
		bytes += taken ? (uint64_t)((double)sum / (double)taken * (double)values) : 0;
	}
	return bytes;
}

/* So many that the tables and copies of a run for each thread fit into the memory; and if all values do, that a table
 * stays in a processor's cache. */
static void count_runs(struct work *work, unsigned threads, const struct gw_numbering_memory *memory)
{
	uint64_t wanted = work->positions / RUN_VALUES + 1, most = RUNS_MAX, copies = guess_copies(work);
	wanted = wanted < FEW_RUNS ? wanted : FEW_RUNS;
	if (memory->bytes) {
		uint64_t needed = (copies + work->positions * TABLE_BYTES) / (memory->bytes / threads + 1) + 1;
		uint64_t fit = memory->bytes / CURSOR_SHARE / ((work->num_pieces + 1) * 2 * sizeof(uint64_t)) + 2;
		most = fit < most ? fit : most;
		work->spills = copies + work->positions * PLACE_BYTES > memory->spill->budget;
		wanted = needed > wanted || work->spills ? needed : wanted;
		work->out->runs = needed > 1;
	}
	work->count = (uint32_t)(wanted < most ? wanted : most);
	work->out->runs = work->out->runs ? work->count : 0;
}

static gw_status count_values(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct work *work = context;
	for (uint64_t p = begin; p < end; p++) {
		const struct numbering_piece *piece = &work->pieces[p];
		const struct gw_numbering_column *column = &work->columns[piece->column];
		uint64_t w = width(column), at = piece->position;
		for (uint64_t i = piece->begin * w; i < piece->end * w; i++) {
			uint64_t value = *value_at(column, i);
			uint32_t run = run_of_hash(work, hash_value(column, value));
			work->values[p * work->count + run]++;
			work->bytes[p * work->count + run] += copy_bytes(column, value);
			work->run_of[at++] = (uint16_t)run;
		}
	}
	return GW_OK;
}

/* Turns counts into places: by run, then by piece. */
static void place_pieces(const struct work *work, uint64_t *counts, uint64_t *starts)
{
	uint64_t at = 0;
	for (uint32_t run = 0; run < work->count; run++) {
		starts[run] = at;
		for (uint64_t p = 0; p < work->num_pieces; p++) {
			uint64_t count = counts[p * work->count + run];
			counts[p * work->count + run] = at;
			at += count;
		}
	}
	starts[work->count] = at;
}

static gw_status copy_values(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct work *work = context;
	for (uint64_t p = begin; p < end; p++) {
		const struct numbering_piece *piece = &work->pieces[p];
		const struct gw_numbering_column *column = &work->columns[piece->column];
		uint64_t w = width(column), at = piece->position, *cursors = work->bytes + p * work->count;
		for (uint64_t i = piece->begin * w; i < piece->end * w; i++) {
			uint64_t value = *value_at(column, i), *cursor = &cursors[work->run_of[at++]];
			uint8_t *to = work->copies + *cursor;
			*cursor += copy_bytes(column, value);
			if (!column->text) {
				memcpy(to, &value, sizeof(value));
				continue;
			}
			struct gw_text_span span = gw_text_span(column->text, value);
			uint16_t length = (uint16_t)span.bytes;
			memcpy(to, &length, sizeof(length));
			memcpy(to + sizeof(length), span.at, length);
		}
	}
	return GW_OK;
}

/* Does it for all values in order, through buffers. */
static gw_status copy_in_order(struct work *work, uint64_t memory)
{
	struct gw_run_writer writer;
	uint64_t at = 0;
	gw_status status = gw_run_writer_open(work->copies, 1, work->byte_starts, work->count, memory, &writer);
	for (uint32_t c = 0; c < work->num_columns && status == GW_OK; c++) {
		const struct gw_numbering_column *column = &work->columns[c];
		for (uint64_t i = 0; i < column->rows * width(column); i++) {
			uint64_t value = *value_at(column, i), run = work->run_of[at++];
			if (!column->text) {
				gw_run_writer_add(&writer, run, &value, sizeof(value));
				continue;
			}
			struct gw_text_span span = gw_text_span(column->text, value);
			uint16_t length = (uint16_t)span.bytes;
			gw_run_writer_add(&writer, run, &length, sizeof(length));
			gw_run_writer_add(&writer, run, span.at, length);
		}
	}
	gw_status closed = gw_run_writer_close(&writer);
	return status != GW_OK ? status : closed;
}

/* ---- the table of a run ---- */

struct run_table {
	const struct work *work;
	uint32_t *slots; /* [mask + 1] places, or EMPTY */
	uint8_t *tags;   /* [mask + 1] bits of the hash, which spare most comparisons */
	uint64_t mask;
	uint64_t *first; /* [room] where the copy of each place's first value is */
	uint64_t count, room;
};

struct run_value {
	uint64_t at; /* of its copy */
	uint64_t hash;
};

static uint64_t bytes_at(const struct work *work, uint64_t at)
{
	uint16_t length = sizeof(uint64_t);
	if (work->text)
		memcpy(&length, work->copies + at, sizeof(length));
	return work->text ? sizeof(length) + (uint64_t)length : length;
}

static uint64_t hash_at(const struct work *work, uint64_t at)
{
	uint64_t value;
	if (work->text) {
		const uint8_t *text = work->copies + at + sizeof(uint16_t);
		return gw_digest(text, bytes_at(work, at) - sizeof(uint16_t));
	}
	memcpy(&value, work->copies + at, sizeof(value));
	return hash_value(&work->columns[0], value);
}

/* A text's length is in front of it, so texts of other lengths differ in the first bytes. */
static bool same_copies(const struct work *work, uint64_t a, uint64_t b)
{
	uint64_t bytes = bytes_at(work, a);
	return bytes == bytes_at(work, b) && memcmp(work->copies + a, work->copies + b, bytes) == 0;
}

static uint8_t tag_of(uint64_t hash)
{
	return (uint8_t)(hash >> 40); /* the bits below choose the slot, those above the run */
}

/* The slot of a value, or the empty one for it. known: the table does not have it. */
static uint64_t table_slot(const struct run_table *table, const struct run_value *value, bool known)
{
	uint64_t slot = value->hash & table->mask;
	while (table->slots[slot] != EMPTY && (known || table->tags[slot] != tag_of(value->hash) ||
					       !same_copies(table->work, table->first[table->slots[slot]], value->at)))
		slot = (slot + 1) & table->mask;
	return slot;
}

static gw_status reserve_slots(struct run_table *table)
{
	if (table->slots && (table->count + BLOCK) * 2 <= table->mask + 1)
		return GW_OK;
	uint64_t room = table->slots ? (table->mask + 1) * 2 : SLOTS_FIRST;
	gw_free(table->slots);
	table->slots = gw_malloc(room * (sizeof(*table->slots) + sizeof(*table->tags)));
	if (!table->slots)
		return GW_NO_MEMORY;
	memset(table->slots, 0xff, room * sizeof(*table->slots));
	table->tags = (uint8_t *)(table->slots + room);
	table->mask = room - 1;
	for (uint64_t place = 0; place < table->count; place++) {
		struct run_value value = {table->first[place], hash_at(table->work, table->first[place])};
		uint64_t slot = table_slot(table, &value, true);
		table->slots[slot] = (uint32_t)place;
		table->tags[slot] = tag_of(value.hash);
	}
	return GW_OK;
}

static gw_status reserve_firsts(struct run_table *table)
{
	if (table->count + BLOCK <= table->room)
		return GW_OK;
	uint64_t room = table->room + table->room / 2 + SLOTS_FIRST;
	uint64_t *grown = gw_realloc(table->first, room, sizeof(*grown));
	if (!grown)
		return GW_NO_MEMORY;
	table->first = grown;
	table->room = room;
	return table->count + BLOCK < FIRST
		       ? GW_OK
		       : gw_fail(GW_LIMIT, "more than 2^31 ids in one of %u runs", table->work->count);
}

static uint32_t place_of(struct run_table *table, const struct run_value *value)
{
	uint64_t slot = table_slot(table, value, false);
	if (table->slots[slot] != EMPTY)
		return table->slots[slot];
	uint32_t place = (uint32_t)table->count;
	table->slots[slot] = place;
	table->tags[slot] = tag_of(value->hash);
	table->first[table->count++] = value->at;
	return place | FIRST;
}

/* Three passes over a block: hashes and slots, the values that the slots lead to, and the places. */
static void place_block(struct run_table *table, uint64_t *at, uint32_t count, uint32_t *places)
{
	const struct work *work = table->work;
	struct run_value values[BLOCK];
	for (uint32_t i = 0; i < count; i++) {
		values[i] = (struct run_value){*at, hash_at(work, *at)};
		*at += bytes_at(work, *at);
		__builtin_prefetch(&table->slots[values[i].hash & table->mask]);
		__builtin_prefetch(&table->tags[values[i].hash & table->mask]);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = table->slots[values[i].hash & table->mask];
		if (place != EMPTY)
			__builtin_prefetch(&table->first[place]);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = table->slots[values[i].hash & table->mask];
		if (place != EMPTY)
			__builtin_prefetch(work->copies + table->first[place]);
	}
	for (uint32_t i = 0; i < count; i++)
		places[i] = place_of(table, &values[i]);
}

/* Counts the first values in each piece. *p: the piece of value i of the run. */
static void count_firsts_of(struct work *work, uint32_t run, uint64_t i, uint32_t count, uint64_t *p)
{
	for (uint64_t last = i + count; i < last; i++) {
		while (*p + 1 < work->num_pieces && work->values[(*p + 1) * work->count + run] <= i)
			++*p;
		if (work->places[i] & FIRST)
			atomic_fetch_add_explicit(&work->firsts[*p], 1, memory_order_relaxed);
	}
}

static gw_status place_run(struct work *work, uint32_t run)
{
	struct run_table table = {.work = work};
	uint64_t at = work->byte_starts[run], last = work->value_starts[run + 1], p = 0;
	gw_status status = GW_OK;
	for (uint64_t i = work->value_starts[run]; i < last && status == GW_OK; i += BLOCK) {
		uint32_t count = last - i < BLOCK ? (uint32_t)(last - i) : BLOCK;
		status = reserve_firsts(&table);
		if (status == GW_OK)
			status = reserve_slots(&table);
		if (status != GW_OK)
			break;
		place_block(&table, &at, count, work->places + i);
		count_firsts_of(work, run, i, count, &p);
	}
	work->number_starts[run] = table.count;
	gw_spill_drop(work->copies, work->byte_starts[run], work->byte_starts[run + 1] - work->byte_starts[run]);
	gw_free(table.slots);
	gw_free(table.first);
	return status;
}

static gw_status place_values(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	gw_status status = GW_OK;
	for (uint64_t run = begin; run < end && status == GW_OK; run++)
		status = place_run(context, (uint32_t)run);
	return status;
}

/* ---- the numbers ---- */

static uint64_t number_place(struct work *work, uint64_t number, uint32_t column, uint64_t value)
{
	work->out->values[number] = value;
	work->out->columns[number] = column;
	return number;
}

/* Numbers the first values of a piece, or replaces all of its values. */
static gw_status number_piece(struct work *work, uint64_t p, bool replace)
{
	const struct numbering_piece *piece = &work->pieces[p];
	const struct gw_numbering_column *column = &work->columns[piece->column];
	uint64_t w = width(column), next = work->firsts[p], at = piece->position;
	uint64_t *cursors = gw_malloc(work->count * sizeof(*cursors));
	if (!cursors)
		return GW_NO_MEMORY;
	memcpy(cursors, work->values + p * work->count, work->count * sizeof(*cursors));
	for (uint64_t i = piece->begin * w; i < piece->end * w; i++) {
		uint32_t run = work->run_of[at++], place = work->places[cursors[run]++];
		uint64_t *known = &work->numbers[work->number_starts[run] + (place & ~FIRST)];
		uint64_t *value = value_at(column, i);
		if (replace)
			*value = *known;
		else if (place & FIRST)
			*known = number_place(work, next++, piece->column, *value);
	}
	gw_free(cursors);
	return GW_OK;
}

/* Does both for all pieces, in order. */
static gw_status number_in_order(struct work *work, uint64_t memory)
{
	struct gw_run_reader reader;
	uint64_t at = 0, next = 0;
	gw_status status = gw_run_reader_open(work->places, sizeof(*work->places), work->value_starts, work->count,
					      memory / READ_SHARE, &reader);
	for (uint32_t c = 0; c < work->num_columns && status == GW_OK; c++) {
		const struct gw_numbering_column *column = &work->columns[c];
		for (uint64_t i = 0; i < column->rows * width(column); i++) {
			uint32_t run = work->run_of[at++];
			uint32_t place = *(const uint32_t *)gw_run_reader_next(&reader, run);
			uint64_t *known = &work->numbers[work->number_starts[run] + (place & ~FIRST)];
			uint64_t *value = value_at(column, i);
			if (place & FIRST)
				*known = number_place(work, next++, c, *value);
			*value = *known;
		}
	}
	gw_status closed = gw_run_reader_close(&reader);
	return status != GW_OK ? status : closed;
}

static gw_status number_firsts(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	gw_status status = GW_OK;
	for (uint64_t p = begin; p < end && status == GW_OK; p++)
		status = number_piece(context, p, false);
	return status;
}

static gw_status replace_values(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	gw_status status = GW_OK;
	for (uint64_t p = begin; p < end && status == GW_OK; p++)
		status = number_piece(context, p, true);
	return status;
}

static gw_status number_pieces(struct work *work, unsigned threads)
{
	gw_status status = gw_parallel_for(threads, work->num_pieces, 1, number_firsts, work);
	return status != GW_OK ? status : gw_parallel_for(threads, work->num_pieces, 1, replace_values, work);
}

/* ---- the whole ---- */

static gw_status take_counts(struct work *work, const struct gw_numbering_memory *memory)
{
	uint64_t cells = work->num_pieces * work->count, starts = work->count + 1ull;
	gw_status status = GW_OK;
	work->values = gw_calloc(cells, sizeof(*work->values));
	work->bytes = gw_calloc(cells, sizeof(*work->bytes));
	work->value_starts = gw_calloc(starts, sizeof(*work->value_starts));
	work->byte_starts = gw_calloc(starts, sizeof(*work->byte_starts));
	work->number_starts = gw_calloc(starts, sizeof(*work->number_starts));
	work->firsts = gw_calloc(work->num_pieces, sizeof(*work->firsts));
	if (!work->values || !work->bytes || !work->value_starts || !work->byte_starts || !work->number_starts ||
	    !work->firsts)
		return GW_NO_MEMORY;
	work->run_of = gw_spill_take(memory->spill, work->positions * sizeof(*work->run_of), &status);
	return status;
}

static gw_status take_places(struct work *work, const struct gw_numbering_memory *memory)
{
	uint64_t copies = work->byte_starts[work->count];
	gw_status status = GW_OK;
	if (work->spills)
		status = gw_spill_announce(memory->spill, copies + work->positions * PLACE_BYTES, "numbering",
					   memory->quiet);
	work->copies = gw_spill_take(memory->spill, copies, &status);
	work->places = gw_spill_take(memory->spill, work->positions * sizeof(*work->places), &status);
	return status;
}

static void give_all(struct work *work)
{
	gw_free(work->pieces);
	gw_free(work->values);
	gw_free(work->bytes);
	gw_free(work->value_starts);
	gw_free(work->byte_starts);
	gw_free(work->number_starts);
	gw_free((void *)work->firsts);
	gw_spill_give(work->run_of);
	gw_spill_give(work->copies);
	gw_spill_give(work->places);
	gw_free(work->numbers);
}

/* Counts become the first number of each run and of each piece. */
static gw_status begin_numbers(struct work *work, struct gw_spill *spill)
{
	uint64_t of_runs = 0, of_pieces = 0;
	for (uint32_t run = 0; run < work->count; run++) {
		uint64_t different = work->number_starts[run];
		work->number_starts[run] = of_runs;
		of_runs += different;
	}
	for (uint64_t p = 0; p < work->num_pieces; p++) {
		uint64_t firsts = atomic_exchange(&work->firsts[p], of_pieces);
		of_pieces += firsts;
	}
	gw_status status = GW_OK;
	work->out->count = of_pieces;
	work->out->values = gw_spill_take(spill, of_pieces * sizeof(*work->out->values), &status);
	work->out->columns = gw_spill_take(spill, of_pieces * sizeof(*work->out->columns), &status);
	work->numbers = gw_malloc(of_pieces * sizeof(*work->numbers));
	return status == GW_OK && !work->numbers ? GW_NO_MEMORY : status;
}

static gw_status number_all(struct work *work, unsigned threads, const struct gw_numbering_memory *memory)
{
	gw_status status = cut_pieces(work);
	if (status != GW_OK)
		return status;
	count_runs(work, threads, memory);
	status = take_counts(work, memory);
	if (status != GW_OK)
		return status;
	gw_parallel_for(threads, work->num_pieces, 1, count_values, work);
	place_pieces(work, work->values, work->value_starts);
	place_pieces(work, work->bytes, work->byte_starts);
	status = take_places(work, memory);
	if (status != GW_OK)
		return status;
	status = work->spills ? copy_in_order(work, memory->bytes / READ_SHARE)
			      : gw_parallel_for(threads, work->num_pieces, 1, copy_values, work);
	if (status == GW_OK)
		status = gw_parallel_for(threads, work->count, 1, place_values, work);
	if (status == GW_OK)
		status = begin_numbers(work, memory->spill);
	if (status != GW_OK)
		return status;
	return work->spills ? number_in_order(work, memory->bytes) : number_pieces(work, threads);
}

gw_status gw_numbering_create(struct gw_numbering_column *columns, uint32_t count, unsigned threads,
			      const struct gw_numbering_memory *memory, struct gw_numbering *out)
{
	*out = (struct gw_numbering){0};
	struct work work = {.columns = columns, .num_columns = count, .text = columns[0].text != NULL, .out = out};
	gw_status status = number_all(&work, threads, memory);
	give_all(&work);
	if (status != GW_OK)
		gw_numbering_free(out);
	return status;
}

void gw_numbering_free(struct gw_numbering *numbering)
{
	gw_spill_give(numbering->values);
	gw_spill_give(numbering->columns);
	*numbering = (struct gw_numbering){0};
}
