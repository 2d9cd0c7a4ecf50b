/* See entries.h. */
#include "client/batch/entries.h"

#include <assert.h>
#include <string.h>

#include "client/engine/engine.h"

#define SPAN_BYTES_MAX (1u << 20)

/* --- Spans. --- */

/* The spans of a read, while entries are added in any order. */
struct span_builder {
	struct gw_span *spans;
	uint64_t count, local, last_end; /* last_end: where the last span ends at the part */
	uint64_t gap_max;
};

/* Adds the entries in [remote, remote + bytes), and returns where they will be in the receive buffer. Entries that are
 * close to the last span extend it, including the gap. */
static inline __attribute__((always_inline)) uint64_t add_entries(struct span_builder *b, uint64_t remote,
								  uint64_t bytes)
{
	struct gw_span *last = &b->spans[b->count - 1];
	if (b->count && remote + bytes == b->last_end && bytes <= last->bytes)
		return b->local - bytes; /* drawn again, with replacement */
	if (b->count && remote >= b->last_end && remote - b->last_end <= b->gap_max &&
	    remote + bytes - last->remote <= SPAN_BYTES_MAX) {
		uint32_t more = (uint32_t)(remote + bytes - b->last_end);
		last->bytes += more;
		b->local += more;
	} else {
		for (uint64_t done = 0; done < bytes; done += SPAN_BYTES_MAX) {
			uint64_t piece = bytes - done < SPAN_BYTES_MAX ? bytes - done : SPAN_BYTES_MAX;
			b->spans[b->count++] = (struct gw_span){
				.remote = remote + done, .local = b->local + done, .bytes = (uint32_t)piece};
		}
		b->local += bytes;
	}
	b->last_end = remote + bytes;
	return b->local - bytes;
}

/* Converts single entries, each of `width` bytes, `step` apart: constants for the compiler. */
static inline __attribute__((always_inline)) void add_singles(struct span_builder *builder, uint64_t offset,
							      const uint64_t *firsts, uint64_t n, uint32_t width,
							      uint32_t step, uint64_t *at)
{
	struct span_builder b = *builder;
	for (uint64_t i = 0; i < n; i++)
		at[i] = add_entries(&b, offset + firsts[i] * step, width);
	*builder = b;
}

/* Notes where each entry will be in the receive buffer. Returns the bytes to receive. */
static uint64_t entries_build_spans(struct gw_entries *read, const struct gw_place *place,
				    const struct gw_entry_list *list, uint64_t gap_max)
{
	uint64_t *at = read->received_at.data;
	struct span_builder b = {.spans = read->spans.data, .gap_max = gap_max};
	uint32_t width = list->width, step = list->step ? list->step : width;
	if (list->firsts && width == 4 && step == 4) {
		add_singles(&b, place->offset, list->firsts, list->n, 4, 4, at);
	} else if (list->firsts) {
		add_singles(&b, place->offset, list->firsts, list->n, width, step, at);
	} else {
		for (uint64_t i = 0; i < list->n; i++) {
			const struct gw_column_read *entries = &list->entries[i];
			if (entries->column == list->column)
				at[i] = add_entries(&b, place->offset + entries->first * width, entries->count * width);
		}
	}
	read->link_op.count = b.count;
	return b.local;
}

/* The largest gap that is cheaper to read than to skip; 0 for a link that is down. */
static uint64_t gap_of(const struct gw_link *link)
{
	return link->endpoint ? link->endpoint->transport->range_cost_bytes : 0;
}

static gw_status entries_read_spans(struct gw_entries *read, struct gw_engine *engine, uint32_t part,
				    const struct gw_place *place, const struct gw_entry_list *list)
{
	uint64_t span_count = list->n;
	for (uint64_t i = 0; !list->firsts && i < list->n; i++)
		span_count += list->entries[i].count * list->width / SPAN_BYTES_MAX;
	if (gw_vec_reserve(&read->spans, span_count * sizeof(struct gw_span)) != GW_OK)
		return GW_NO_MEMORY;
	uint64_t bytes = entries_build_spans(read, place, list, gap_of(gw_engine_link(engine, part)));
	gw_status status = gw_recv_buffer_reserve(&read->received, &engine->slab, bytes);
	if (status != GW_OK)
		return status;
	struct gw_span *spans = read->spans.data;
	for (uint64_t i = 0, start = gw_recv_buffer_start(&read->received); i < read->link_op.count; i++)
		spans[i].local += start;
	read->link_op.form = GW_LINK_SPANS;
	read->link_op.buffer = read->received.buffer;
	read->link_op.region = place->region;
	read->link_op.spans = spans;
	gw_engine_post(engine, part, &read->link_op);
	return GW_OK;
}

/* --- Requests. --- */

/* Notes where each item will be, and the numbers of its entries. */
static gw_status list_numbers(struct gw_entries *read, const struct gw_entry_list *list, uint64_t *count)
{
	uint64_t *at = read->received_at.data, n = list->n;
	for (uint64_t i = 0; !list->firsts && i < list->n; i++)
		n += list->entries[i].column == list->column ? list->entries[i].count : 0;
	if (gw_vec_reserve(&read->spans, n * sizeof(uint64_t)) != GW_OK)
		return GW_NO_MEMORY;
	uint64_t *numbers = read->spans.data;
	n = 0;
	for (uint64_t i = 0; list->firsts && i < list->n; i++, n++) {
		at[i] = n * list->width;
		numbers[n] = list->firsts[i];
	}
	for (uint64_t i = 0; !list->firsts && i < list->n; i++) {
		const struct gw_column_read *entries = &list->entries[i];
		at[i] = n * list->width;
		for (uint64_t j = 0; entries->column == list->column && j < entries->count; j++)
			numbers[n++] = entries->first + j;
	}
	*count = n;
	return GW_OK;
}

static gw_status entries_pull(struct gw_entries *read, struct gw_fan_in *answers, uint32_t part,
			      const struct gw_place *place, const struct gw_entry_list *list)
{
	struct gw_engine *engine = answers->job->engine;
	struct gw_pull *pull = &read->pull;
	gw_status status = list_numbers(read, list, &pull->count);
	if (status == GW_OK)
		status = gw_recv_buffer_reserve(&read->received, &engine->slab, pull->count * list->width);
	if (status != GW_OK)
		return status;
	pull->place = place;
	pull->rows = read->spans.data;
	pull->step = 1;
	pull->out = read->received.data;
	pull->row_bytes = list->width;
	pull->reads = answers;
	gw_pull_start(pull, gw_engine_link(engine, part), &read->link_op);
	return GW_OK;
}

/* --- Both. --- */

gw_status gw_entries_read(struct gw_entries *read, struct gw_fan_in *answers, uint32_t part,
			  const struct gw_place *place, const struct gw_entry_list *list,
			  void (*done)(struct gw_link_op *op, gw_status status, const struct gw_completion *completion),
			  void *owner)
{
	assert(list->firsts || list->entries || !list->n);
	if (gw_vec_reserve(&read->received_at, list->n * 8) != GW_OK)
		return GW_NO_MEMORY;
	read->link_op.job = answers->job;
	read->link_op.done = done;
	read->link_op.owner = owner;
	gw_status status = place->on_disk ? entries_pull(read, answers, part, place, list)
					  : entries_read_spans(read, answers->job->engine, part, place, list);
	if (status != GW_OK)
		read->link_op.owner = NULL;
	return status;
}

void gw_entries_cancel(struct gw_entries *read)
{
	if (read->link_op.owner)
		gw_link_cancel(&read->link_op);
}

void gw_entries_free(struct gw_entries *read)
{
	gw_vec_free(&read->spans);
	gw_vec_free(&read->received_at);
	gw_recv_buffer_free(&read->received);
	gw_vec_free(&read->pull.request);
}

/* --- Rounds. --- */

/* A round may end at once: a loop, so that the stack does not grow with their number. */
static void rounds_go_on(struct gw_entry_rounds *rounds)
{
	gw_status status = rounds->status;
	rounds->steps = true;
	while (status == GW_OK) {
		rounds->arrived = false;
		status = rounds->calls->ask(rounds->owner);
		if (status == GW_OK && !rounds->arrived) {
			rounds->steps = false;
			return;
		}
		if (status == GW_OK)
			status = rounds->status;
	}
	rounds->steps = false;
	if (status == GW_END)
		status = GW_OK;
	rounds->calls->done(rounds->owner, status == GW_OK ? GW_OK : gw_context(status, "part %u", rounds->part));
}

static void round_read(struct gw_link_op *op, gw_status status, const struct gw_completion *completion)
{
	struct gw_entry_rounds *rounds = op->owner;
	const struct gw_fan_in *answers = rounds->answers;
	(void)completion;
	op->owner = NULL;
	if (status == GW_OK && answers->status != GW_OK)
		status = gw_fail_text(answers->status, answers->text);
	rounds->status = status == GW_OK ? rounds->calls->take(rounds->owner) : status;
	rounds->arrived = true;
	if (!rounds->steps)
		rounds_go_on(rounds);
}

void gw_entry_rounds_start(struct gw_entry_rounds *rounds, struct gw_fan_in *answers, uint32_t part,
			   const struct gw_entry_calls *calls, void *owner, gw_status status)
{
	rounds->answers = answers;
	rounds->part = part;
	rounds->calls = calls;
	rounds->owner = owner;
	rounds->status = status;
	rounds_go_on(rounds);
}

gw_status gw_entry_rounds_post(struct gw_entry_rounds *rounds, const struct gw_place *place,
			       const struct gw_entry_list *list)
{
	return gw_entries_read(&rounds->read, rounds->answers, rounds->part, place, list, round_read, rounds);
}
