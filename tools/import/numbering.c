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
#include <string.h>

#include "core/errors/status.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/builder/run_reader.h"
#include "tools/builder/run_writer.h"
#include "tools/import/numbering_private.h"
#include "tools/phase.h"

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
#define AT_ONCE      64u /* values whose numbers come into the caches together */

static uint64_t width(const struct gw_numbering_column *column)
{
	return column->second ? 2 : 1;
}

static uint64_t *value_at(const struct gw_numbering_column *column, uint64_t index)
{
	uint64_t *values = column->second && (index & 1) ? column->second : column->first;
	return &values[column->second ? index >> 1 : index];
}

/* ---- the division ---- */

static gw_status cut_pieces(struct gw_numbering_work *work)
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

static uint32_t run_of_hash(const struct gw_numbering_work *work, uint64_t hash)
{
	return (uint32_t)((hash >> 32) * work->count >> 32);
}

static uint64_t copy_bytes(const struct gw_numbering_column *column, uint64_t value)
{
	return column->text ? sizeof(uint16_t) + gw_text_span(column->text, value).bytes : sizeof(value);
}

/* About how many bytes the copies take, by some values of each column. */
static uint64_t guess_copies(const struct gw_numbering_work *work)
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
static void count_runs(struct gw_numbering_work *work, unsigned threads, const struct gw_numbering_memory *memory)
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
	struct gw_numbering_work *work = context;
	for (uint64_t p = begin; p < end; p++) {
		const struct numbering_piece *piece = &work->pieces[p];
		const struct gw_numbering_column *column = &work->columns[piece->column];
		uint64_t w = width(column), at = piece->position;
		for (uint64_t i = piece->begin * w; i < piece->end * w; i++) {
			uint64_t value = *value_at(column, i);
			uint32_t run = run_of_hash(work, gw_numbering_hash(column, value));
			work->values[p * work->count + run]++;
			work->bytes[p * work->count + run] += copy_bytes(column, value);
			work->run_of[at++] = (uint16_t)run;
		}
	}
	return GW_OK;
}

/* Turns counts into places: by run, then by piece. */
static void place_pieces(const struct gw_numbering_work *work, uint64_t *counts, uint64_t *starts)
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
	struct gw_numbering_work *work = context;
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
static gw_status copy_in_order(struct gw_numbering_work *work, uint64_t memory)
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

static gw_status place_values(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	gw_status status = GW_OK;
	for (uint64_t run = begin; run < end && status == GW_OK; run++)
		status = gw_numbering_place_run(context, (uint32_t)run);
	return status;
}

/* ---- the numbers ---- */

static uint64_t number_place(struct gw_numbering_work *work, uint64_t number, uint32_t column, uint64_t value)
{
	work->out->values[number] = value;
	work->out->columns[number] = column;
	return number;
}

/* Numbers the first values of a piece, or replaces all of its values. */
static gw_status number_piece(struct gw_numbering_work *work, uint64_t p, bool replace)
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
		uint64_t *known = &work->numbers[work->number_starts[run] + (place & ~GW_NUMBERING_FIRST)];
		uint64_t *value = value_at(column, i);
		if (replace)
			*value = *known;
		else if (place & GW_NUMBERING_FIRST)
			*known = number_place(work, next++, piece->column, *value);
	}
	gw_free(cursors);
	return GW_OK;
}

/* Numbers and replaces values of a column from `begin` on, at most AT_ONCE. *next: the next number. */
static void number_some(struct gw_numbering_work *work, struct gw_run_reader *reader, const uint16_t *run_of,
			uint32_t column, uint64_t begin, uint64_t count, uint64_t *next)
{
	uint64_t *known[AT_ONCE];
	bool first[AT_ONCE];
	for (uint64_t i = 0; i < count; i++) {
		const uint32_t place = *(const uint32_t *)gw_run_reader_next(reader, run_of[i]);
		known[i] = &work->numbers[work->number_starts[run_of[i]] + (place & ~GW_NUMBERING_FIRST)];
		first[i] = place & GW_NUMBERING_FIRST;
		__builtin_prefetch(known[i], 1);
	}
	for (uint64_t i = 0; i < count; i++) {
		uint64_t *value = value_at(&work->columns[column], begin + i);
		if (first[i])
			*known[i] = number_place(work, (*next)++, column, *value);
		*value = *known[i];
	}
}

/* Does both for all pieces, in order. */
static gw_status number_in_order(struct gw_numbering_work *work, uint64_t memory)
{
	struct gw_run_reader reader;
	uint64_t at = 0, next = 0;
	gw_status status = gw_run_reader_open(work->places, sizeof(*work->places), work->value_starts, work->count,
					      memory / READ_SHARE, &reader);
	for (uint32_t c = 0; c < work->num_columns && status == GW_OK; c++) {
		const uint64_t values = work->columns[c].rows * width(&work->columns[c]);
		for (uint64_t i = 0, count; i < values; i += count, at += count) {
			count = values - i < AT_ONCE ? values - i : AT_ONCE;
			number_some(work, &reader, work->run_of + at, c, i, count, &next);
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

static gw_status number_pieces(struct gw_numbering_work *work, unsigned threads)
{
	gw_status status = gw_parallel_for(threads, work->num_pieces, 1, number_firsts, work);
	return status != GW_OK ? status : gw_parallel_for(threads, work->num_pieces, 1, replace_values, work);
}

/* ---- the whole ---- */

static gw_status take_counts(struct gw_numbering_work *work, const struct gw_numbering_memory *memory)
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

static gw_status take_places(struct gw_numbering_work *work, const struct gw_numbering_memory *memory)
{
	uint64_t copies = work->byte_starts[work->count];
	gw_status status = GW_OK;
	if (work->spills)
		status = gw_spill_announce(memory->spill, copies + work->positions * PLACE_BYTES, "numbering");
	work->copies = gw_spill_take(memory->spill, copies, &status);
	work->places = gw_spill_take(memory->spill, work->positions * sizeof(*work->places), &status);
	return status;
}

static void give_all(struct gw_numbering_work *work)
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
static gw_status begin_numbers(struct gw_numbering_work *work, struct gw_spill *spill)
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

static gw_status number_all(struct gw_numbering_work *work, unsigned threads, const struct gw_numbering_memory *memory)
{
	gw_status status = cut_pieces(work);
	if (status != GW_OK)
		return status;
	count_runs(work, threads, memory);
	status = take_counts(work, memory);
	if (status != GW_OK)
		return status;
	const bool quiet = !work->spills || !memory->spill->reports;
	const uint64_t values = work->positions * sizeof(uint64_t), runs_of = work->positions * sizeof(*work->run_of),
		       places = work->positions * sizeof(*work->places);
	struct gw_phase pass = gw_phase_begin(threads, quiet);
	gw_parallel_for(threads, work->num_pieces, 1, count_values, work);
	place_pieces(work, work->values, work->value_starts);
	place_pieces(work, work->bytes, work->byte_starts);
	const uint64_t copies = work->byte_starts[work->count], texts = work->text ? copies : 0;
	gw_phase_end_pass(&pass, "runs of ids", values + texts, runs_of);
	status = take_places(work, memory);
	if (status != GW_OK)
		return status;
	pass = gw_phase_begin(work->spills ? 1 : threads, quiet);
	status = work->spills ? copy_in_order(work, memory->bytes / READ_SHARE)
			      : gw_parallel_for(threads, work->num_pieces, 1, copy_values, work);
	if (status == GW_OK)
		gw_phase_end_pass(&pass, "ids to runs", values + texts + runs_of, copies);
	pass = gw_phase_begin(threads, quiet);
	if (status == GW_OK)
		status = gw_parallel_for(threads, work->count, 1, place_values, work);
	if (status == GW_OK)
		status = begin_numbers(work, memory->spill);
	if (status != GW_OK)
		return status;
	gw_phase_end_pass(&pass, "places of ids", copies, places);
	pass = gw_phase_begin(work->spills ? 1 : threads, quiet);
	status = work->spills ? number_in_order(work, memory->bytes) : number_pieces(work, threads);
	if (status == GW_OK)
		gw_phase_end_pass(&pass, "numbers of ids", places + runs_of + values, values);
	return status;
}

gw_status gw_numbering_create(struct gw_numbering_column *columns, uint32_t count, unsigned threads,
			      const struct gw_numbering_memory *memory, struct gw_numbering *out)
{
	*out = (struct gw_numbering){0};
	struct gw_numbering_work work = {
		.columns = columns, .num_columns = count, .text = columns[0].text != NULL, .out = out};
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
