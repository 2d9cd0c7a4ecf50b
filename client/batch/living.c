/* See living.h. A node lives at a span of the questions' times, from the first at which it exists up to the first at
 * which it has ended. So each node of a block changes the number of living nodes at two places, and a sum over the
 * places gives the numbers of all times. Fails as time_counts.h does, if memory runs out, and after the deadline. */
#include "client/batch/living.h"

#include <stddef.h>
#include <string.h>

#include "client/engine/engine.h"
#include "core/numbers/sort.h"
#include "core/system/clock.h"

#define PIECE_ENTRIES 65536u /* of a gather */
#define BLOCK_ENTRIES 1024u  /* at least; a question looks for its node in one block */

void gw_living_free(struct gw_living *op)
{
	struct gw_vec *vecs[] = {&op->questions, &op->times,   &op->totals, &op->keys,
				 &op->rows,      &op->sorting, &op->changes};
	for (size_t i = 0; i < sizeof(vecs) / sizeof(vecs[0]); i++)
		gw_vec_free(vecs[i]);
}

static void living_end(struct gw_living *op, gw_status status)
{
	op->open = false;
	op->done(op, status);
}

void gw_living_cancel(struct gw_living *op)
{
	if (!op->open)
		return;
	op->cancelled = true;
	gw_time_counts_cancel(op->counts);
}

/* --- Blocks. --- */

/* How many nodes of the part exist at the time of a place. */
static inline uint64_t existing_in_part(const struct gw_living *op, uint32_t place)
{
	const uint64_t *before = gw_time_counts_before(op->counts, ((const uint32_t *)op->times.data)[place]);
	return before[op->part + 1] - before[op->part];
}

/* The first place from `first` on at which a node with this end does not live. */
static uint32_t place_of_end(const struct gw_living *op, uint32_t first, int64_t end)
{
	const uint32_t *times = op->times.data;
	uint32_t n = op->time_count - first;
	while (n > 0) {
		uint32_t half = n / 2;
		bool lives = gw_time_counts_lives(op->counts, times[first + half], end);
		first += lives ? half + 1 : 0;
		n = lives ? n - half - 1 : half;
	}
	return first;
}

/* Sets changes to the numbers of living nodes, by place, among n entries of the part from `entry` on. */
static void count_block(struct gw_living *op, uint64_t entry, const int64_t *ends, uint64_t n)
{
	int64_t *changes = op->changes.data, living = 0;
	uint32_t first = 0;
	memset(changes, 0, (op->time_count + 1ull) * sizeof(*changes));
	for (uint64_t i = 0; i < n; i++) {
		while (first < op->time_count && existing_in_part(op, first) <= entry + i)
			first++;
		changes[first]++;
		changes[place_of_end(op, first, ends[i])]--;
	}
	for (uint32_t place = 0; place < op->time_count; place++)
		changes[place] = living += changes[place];
}

/* The question's node is one of these. */
static void find_in_block(struct gw_living *op, struct gw_living_question *question, uint64_t entry,
			  const int64_t *ends, const int64_t *nodes, uint64_t n)
{
	uint64_t exist = existing_in_part(op, question->place);
	for (uint64_t i = 0; i < n && entry + i < exist && question->node < 0; i++) {
		if (gw_time_counts_lives(op->counts, question->time, ends[i]) && question->number-- == 0)
			question->node = nodes[i];
	}
	op->left--;
}

static void take_block(struct gw_living *op, uint64_t entry, const int64_t *ends, const int64_t *nodes, uint64_t n)
{
	const int64_t *living = op->changes.data;
	struct gw_living_question *questions = op->questions.data;
	uint64_t *totals = op->totals.data;
	count_block(op, entry, ends, n);
	for (uint32_t place = 0; place < op->time_count && !op->finds; place++)
		totals[place] += (uint64_t)living[place];
	for (uint64_t i = 0; i < op->n && op->finds; i++) {
		if (questions[i].node >= 0)
			continue;
		if (questions[i].number < (uint64_t)living[questions[i].place])
			find_in_block(op, &questions[i], entry, ends, nodes, n);
		else
			questions[i].number -= (uint64_t)living[questions[i].place];
	}
}

/* --- Pieces. --- */

static void read_entries_piece(struct gw_living *op);

static void entries_piece_read(struct gw_time_counts *counts, gw_status status)
{
	struct gw_living *op = counts->owner;
	if (status != GW_OK) {
		living_end(op, status);
		return;
	}
	const int64_t *ends = counts->ends.data, *nodes = counts->nodes.data;
	uint64_t block = op->time_count > BLOCK_ENTRIES ? op->time_count : BLOCK_ENTRIES;
	for (uint64_t at = 0; at < counts->n; at += block)
		take_block(op, op->at + at, ends + at, nodes + at, counts->n - at < block ? counts->n - at : block);
	op->at += counts->n;
	gw_engine_continue(counts->engine, &op->slice);
}

static void living_go_on(struct gw_job_slice *slice)
{
	struct gw_living *op = (struct gw_living *)((char *)slice - offsetof(struct gw_living, slice));
	const struct gw_time_counts *counts = op->counts;
	uint64_t now = gw_now_ns();
	if (op->cancelled)
		living_end(op, gw_fail(GW_CANCELLED, "cancelled"));
	else if (now >= gw_job_deadline(counts->job, now))
		living_end(op, gw_fail(GW_DEADLINE, "not done within the operation's deadline of %lld ms",
				       (long long)counts->engine->client->timeout_ms));
	else
		read_entries_piece(op);
}

static void pass_end(struct gw_living *op)
{
	gw_status status = GW_OK;
	if (op->finds && op->left > 0)
		status = gw_fail(GW_PROTOCOL, "\"%s\" of %s has changed while it was read", op->counts->times->end,
				 op->counts->engine->client->ntypes[op->counts->times->ntype].name);
	living_end(op, status);
}

static void read_entries_piece(struct gw_living *op)
{
	struct gw_time_counts *counts = op->counts;
	const uint64_t *starts = counts->times->nodes.starts;
	uint32_t parts = counts->engine->client->meta->num_parts;
	while (op->part < parts && op->at == existing_in_part(op, op->time_count - 1)) {
		op->part++;
		op->at = 0;
	}
	if (op->part == parts || (op->finds && op->left == 0)) {
		pass_end(op);
		return;
	}
	uint64_t left = existing_in_part(op, op->time_count - 1) - op->at;
	uint64_t n = left < PIECE_ENTRIES ? left : PIECE_ENTRIES;
	int64_t *entries = gw_time_counts_ask(counts, n);
	if (!entries) {
		living_end(op, GW_NO_MEMORY);
		return;
	}
	for (uint64_t i = 0; i < n; i++)
		entries[i] = (int64_t)(starts[op->part] + op->at + i);
	counts->done = entries_piece_read;
	counts->owner = op;
	gw_time_counts_find(counts);
}

/* --- Start. --- */

static void pass_begin(struct gw_living *op, bool finds)
{
	op->finds = finds;
	op->left = op->n;
	op->part = 0;
	op->at = 0;
	op->open = true;
	op->cancelled = false;
	op->slice.run = living_go_on;
	read_entries_piece(op);
}

/* The times of the questions, ascending, each once; and the place of each question's. */
static gw_status sort_question_times(struct gw_living *op)
{
	struct gw_living_question *questions = op->questions.data;
	if (gw_vec_reserve(&op->keys, op->n * sizeof(uint64_t)) != GW_OK ||
	    gw_vec_reserve(&op->rows, op->n * sizeof(uint32_t)) != GW_OK ||
	    gw_vec_reserve(&op->times, op->n * sizeof(uint32_t)) != GW_OK ||
	    gw_vec_reserve(&op->totals, op->n * sizeof(uint64_t)) != GW_OK ||
	    gw_vec_reserve(&op->changes, (op->n + 1) * sizeof(int64_t)) != GW_OK)
		return GW_NO_MEMORY;
	uint64_t *keys = op->keys.data;
	uint32_t *rows = op->rows.data, *times = op->times.data;
	for (uint64_t i = 0; i < op->n; i++) {
		keys[i] = questions[i].time;
		rows[i] = (uint32_t)i;
	}
	gw_status status = gw_sort_rows(keys, rows, op->n, &op->sorting);
	op->time_count = 0;
	for (uint64_t i = 0; i < op->n && status == GW_OK; i++) {
		if (i == 0 || keys[i] != keys[i - 1])
			times[op->time_count++] = (uint32_t)keys[i];
		questions[rows[i]].place = op->time_count - 1;
		questions[rows[i]].node = -1;
	}
	if (status == GW_OK)
		memset(op->totals.data, 0, op->time_count * sizeof(uint64_t));
	return status;
}

void gw_living_count(struct gw_living *op, struct gw_time_counts *counts)
{
	op->counts = counts;
	gw_status status = sort_question_times(op);
	if (status == GW_OK)
		pass_begin(op, false);
	else
		living_end(op, status);
}

uint64_t gw_living_total(const struct gw_living *op, uint64_t i)
{
	const struct gw_living_question *questions = op->questions.data;
	return ((const uint64_t *)op->totals.data)[questions[i].place];
}

void gw_living_find(struct gw_living *op)
{
	pass_begin(op, true);
}
