/* See existing.h. Fails as time_counts.h and living.h do. GW_NOT_FOUND: no node exists at a slot's time. */
#include "client/batch/existing.h"

#include <string.h>

#include "sampler/negatives.h"

#define FIRST_TRIES 4u         /* with one draw and three; all others come at once */
#define CANDIDATES  (1u << 20) /* of a round, unless more negatives wait */

gw_status gw_existing_init(struct gw_existing *op, struct gw_engine *engine)
{
	memset(op, 0, sizeof(*op));
	return gw_time_counts_init(&op->counts, engine);
}

void gw_existing_free(struct gw_existing *op)
{
	gw_time_counts_free(&op->counts);
	gw_living_free(&op->living);
	gw_vec_free(&op->waiting);
}

void gw_existing_cancel(struct gw_existing *op)
{
	if (op->living.open)
		gw_living_cancel(&op->living);
	else
		gw_time_counts_cancel(&op->counts);
}

static void slots_counted(struct gw_time_counts *counts, gw_status status)
{
	struct gw_existing *op = counts->owner;
	op->done(op, status);
}

void gw_existing_count(struct gw_existing *op, struct gw_job *job, const struct gw_node_times *times, bool real,
		       const void *at, uint64_t n)
{
	op->counts.done = slots_counted;
	op->counts.owner = op;
	gw_time_counts_start(&op->counts, job, times, real, at, n);
}

/* --- Draws. --- */

static gw_status fail_nothing(struct gw_existing *op, uint32_t number)
{
	const struct gw_node_times *times = op->counts.times;
	op->slot = number / op->each;
	return gw_fail(GW_NOT_FOUND, "no node of %s exists at this time by its \"%s\"%s%s%s",
		       op->counts.engine->client->ntypes[times->ntype].name, times->name, times->end ? " and \"" : "",
		       times->end ? times->end : "", times->end ? "\"" : "");
}

/* Draw `try` of this attempt. Nodes without ends take one draw each attempt. */
static uint64_t draw_number(const struct gw_existing *op, uint32_t number, uint32_t try, uint64_t bound)
{
	uint32_t draws = op->counts.times->end ? GW_EXISTING_TRIES + 1 : 1;
	return gw_negative_draw(op->key, number / op->each, number % op->each, op->attempt * draws + try, bound);
}

/* --- The exact pass. --- */

static void living_found(struct gw_living *living, gw_status status)
{
	struct gw_existing *op = living->owner;
	const struct gw_living_question *questions = living->questions.data;
	const uint32_t *waiting = op->waiting.data;
	for (uint64_t i = 0; i < op->waiting_count && status == GW_OK; i++)
		op->negatives[waiting[i]] = questions[i].node;
	op->done(op, status);
}

static void living_counted(struct gw_living *living, gw_status status)
{
	struct gw_existing *op = living->owner;
	struct gw_living_question *questions = living->questions.data;
	const uint32_t *waiting = op->waiting.data;
	for (uint64_t i = 0; i < op->waiting_count && status == GW_OK; i++) {
		uint64_t total = gw_living_total(living, i);
		if (total == 0)
			status = fail_nothing(op, waiting[i]);
		else
			questions[i].number = draw_number(op, waiting[i], GW_EXISTING_TRIES, total);
	}
	if (status != GW_OK) {
		op->done(op, status);
		return;
	}
	living->done = living_found;
	gw_living_find(living);
}

static void draw_living(struct gw_existing *op)
{
	struct gw_living *living = &op->living;
	const uint32_t *waiting = op->waiting.data;
	gw_status status = gw_vec_reserve(&living->questions, op->waiting_count * sizeof(struct gw_living_question));
	if (status != GW_OK) {
		op->done(op, status);
		return;
	}
	struct gw_living_question *questions = living->questions.data;
	for (uint64_t i = 0; i < op->waiting_count; i++)
		questions[i].time = gw_time_counts_time(&op->counts, waiting[i] / op->each);
	living->n = op->waiting_count;
	living->done = living_counted;
	living->owner = op;
	gw_living_count(living, &op->counts);
}

/* --- Tries. --- */

static void draw_round(struct gw_existing *op);

/* Takes the first of a negative's draws that lives. False: none does. */
static bool take_living(struct gw_existing *op, uint64_t i, uint32_t number)
{
	const int64_t *nodes = op->counts.nodes.data, *ends = op->counts.ends.data;
	uint32_t time = gw_time_counts_time(&op->counts, number / op->each);
	for (uint64_t k = i * op->width; k < (i + 1) * op->width; k++) {
		if (op->counts.times->end && !gw_time_counts_lives(&op->counts, time, ends[k]))
			continue;
		op->negatives[number] = nodes[k];
		return true;
	}
	return false;
}

static void tries_found(struct gw_time_counts *counts, gw_status status)
{
	struct gw_existing *op = counts->owner;
	uint32_t *waiting = op->waiting.data;
	uint64_t left = 0;
	for (uint64_t i = 0; i < op->waiting_count && status == GW_OK; i++) {
		if (!take_living(op, i, waiting[i]))
			waiting[left++] = waiting[i];
	}
	op->waiting_count = left;
	op->tries += op->width;
	if (status != GW_OK || left == 0)
		op->done(op, status);
	else if (op->tries < GW_EXISTING_TRIES)
		draw_round(op);
	else
		draw_living(op);
}

static gw_status ask_round(struct gw_existing *op)
{
	const uint32_t *waiting = op->waiting.data, parts = op->counts.engine->client->meta->num_parts;
	int64_t *entries = gw_time_counts_ask(&op->counts, op->waiting_count * op->width);
	if (!entries)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < op->waiting_count; i++) {
		uint32_t time = gw_time_counts_time(&op->counts, waiting[i] / op->each);
		uint64_t total = time == GW_TIME_NEVER ? 0 : gw_time_counts_before(&op->counts, time)[parts];
		if (total == 0)
			return fail_nothing(op, waiting[i]);
		for (uint32_t k = 0; k < op->width; k++)
			*entries++ = gw_time_counts_entry(&op->counts, time,
							  draw_number(op, waiting[i], op->tries + k, total));
	}
	return GW_OK;
}

static void draw_round(struct gw_existing *op)
{
	uint32_t end = op->tries == 0 ? 1 : op->tries < FIRST_TRIES ? FIRST_TRIES : GW_EXISTING_TRIES;
	uint64_t most = CANDIDATES / op->waiting_count;
	op->width = end - op->tries;
	if (op->width > most)
		op->width = most > 0 ? (uint32_t)most : 1;
	gw_status status = ask_round(op);
	if (status != GW_OK) {
		op->done(op, status);
		return;
	}
	op->counts.done = tries_found;
	op->counts.owner = op;
	gw_time_counts_find(&op->counts);
}

void gw_existing_draw(struct gw_existing *op)
{
	if (gw_vec_reserve(&op->waiting, op->count * sizeof(uint32_t)) != GW_OK) {
		op->done(op, GW_NO_MEMORY);
		return;
	}
	memcpy(op->waiting.data, op->numbers, op->count * sizeof(uint32_t));
	op->waiting_count = op->count;
	op->slot = UINT64_MAX;
	op->tries = 0;
	draw_round(op);
}
