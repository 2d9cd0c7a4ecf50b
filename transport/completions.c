/* The queue of completions: see completions.h. Nothing here fails: notes are created when work is accepted, and read
 * sets are the caller's memory. If memory for an error text runs out, the completion has the status's general text. */
#include "transport/completions.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "transport/dynamic_regions.h"
#include "transport/row_ranges.h"

void gw_completions_begin(struct gw_completions *completions)
{
	*completions = (struct gw_completions){.sets_end = &completions->sets, .notes_end = &completions->notes};
}

static void notes_free(struct gw_note **notes)
{
	while (*notes) {
		struct gw_note *note = *notes;
		*notes = note->next;
		gw_note_destroy(note);
	}
}

static void delivered_free(struct gw_completions *completions)
{
	notes_free(&completions->delivered);
	while (completions->kept_count)
		gw_free(completions->kept[--completions->kept_count]);
}

void gw_completions_end(struct gw_completions *completions)
{
	delivered_free(completions);
	notes_free(&completions->notes);
	for (struct gw_read_set *set = completions->sets; set; set = set->next) {
		gw_free(gw_read_set_private(set)->text);
		gw_free(gw_read_set_private(set)->torn);
	}
	gw_free(completions->kept);
	gw_completions_begin(completions);
}

/* Keeps a block until the next call of gw_completions_take. If memory for that runs out, frees the block and returns
 * false. */
static bool block_keep(struct gw_completions *completions, void *block)
{
	if (completions->kept_count == completions->kept_capacity) {
		size_t capacity = completions->kept_capacity ? 2 * completions->kept_capacity : 16;
		void **kept = gw_realloc(completions->kept, capacity, sizeof(*kept));
		if (!kept) {
			gw_free(block);
			return false;
		}
		completions->kept = kept;
		completions->kept_capacity = capacity;
	}
	completions->kept[completions->kept_count++] = block;
	return true;
}

/* A read set's text, or the status's general text if memory runs out. */
static const char *text_keep(struct gw_completions *completions, char *text, gw_status status)
{
	if (!text)
		return status != GW_OK ? gw_status_text(status) : "";
	return block_keep(completions, text) ? text : gw_status_text(status);
}

/* A set that failed has no list. */
static void torn_deliver(struct gw_completions *completions, struct gw_torn_rows *torn,
			 struct gw_completion *completion)
{
	if (completion->status) {
		gw_free(torn);
		return;
	}
	uint32_t count = torn->count;
	if (!block_keep(completions, torn)) {
		completion->status = GW_NO_MEMORY;
		completion->text = gw_status_text(GW_NO_MEMORY);
		return;
	}
	completion->status = GW_AGAIN;
	completion->text = "the server was writing these rows at every try; fetch them by a request";
	completion->torn = torn->rows;
	completion->torn_count = count;
}

static void group_deliver(struct gw_completions *completions, struct gw_completion *completion)
{
	struct gw_read_set *set = completions->sets;
	completions->sets = set->next;
	if (!completions->sets)
		completions->sets_end = &completions->sets;
	struct gw_read_set_private *private = gw_read_set_private(set);
	*completion = (struct gw_completion){
		.cookie = set->cookie,
		.status = set->status,
		.text = text_keep(completions, private->text, set->status),
	};
	private->text = NULL;
	if (__builtin_expect(private->torn != NULL, 0))
		torn_deliver(completions, private->torn, completion);
	private->torn = NULL;
}

static void note_deliver(struct gw_completions *completions, struct gw_completion *completion)
{
	struct gw_note *note = completions->notes;
	completions->notes = note->next;
	completions->note_count--;
	if (!completions->notes)
		completions->notes_end = &completions->notes;
	*completion = (struct gw_completion){
		.cookie = note->cookie,
		.status = note->status,
		.text = note->has_text ? (const char *)note->memory
			: note->status ? gw_status_text(note->status)
				       : "",
		.reply = note->reply,
		.reply_bytes = note->reply_bytes,
		.reply_memory = note->reply ? &note->memory : NULL,
	};
	note->next = completions->delivered;
	completions->delivered = note;
}

size_t gw_completions_take(struct gw_completions *completions, struct gw_completion *taken, size_t max)
{
	if (completions->delivered || completions->kept_count)
		delivered_free(completions);
	size_t n = 0;
	while (n < max && !gw_completions_empty(completions)) {
		completions->notes_next = completions->notes && (completions->notes_next || !completions->sets);
		if (completions->notes_next)
			note_deliver(completions, &taken[n++]);
		else
			group_deliver(completions, &taken[n++]);
		completions->notes_next = !completions->notes_next;
	}
	return n;
}

gw_status gw_note_create(void *cookie, struct gw_note **out)
{
	*out = gw_calloc(1, sizeof(**out));
	if (!*out)
		return GW_NO_MEMORY;
	(*out)->cookie = cookie;
	return GW_OK;
}

void gw_note_destroy(struct gw_note *note)
{
	if (note)
		gw_free(note->memory);
	gw_free(note);
}

void gw_completions_post(struct gw_completions *completions, struct gw_note *note, gw_status status)
{
	note->status = status;
	if (status != GW_OK) {
		gw_free(note->memory);
		note->memory = (uint8_t *)gw_strdup(gw_last_error());
		note->has_text = note->memory != NULL;
		note->reply = NULL;
		note->reply_bytes = 0;
	}
	note->next = NULL;
	*completions->notes_end = note;
	completions->notes_end = &note->next;
	completions->note_count++;
}

void gw_read_set_fail(struct gw_read_set *set, gw_status status)
{
	if (set->status)
		return;
	set->status = status;
	gw_read_set_private(set)->text = gw_strdup(gw_last_error());
}

#define TORN_FIRST 8u

gw_status gw_completions_answer(struct gw_completions *completions, void *cookie, gw_status status)
{
	struct gw_note *note;
	gw_status made = gw_note_create(cookie, &note);
	if (made == GW_OK)
		gw_completions_post(completions, note, status);
	return made;
}

size_t gw_read_set_end(struct gw_completions *completions, struct gw_read_set *set, size_t n, size_t taken, bool last)
{
	struct gw_read_set_private *private = gw_read_set_private(set);
	if (set->status)
		taken = n;
	private->accepted |= taken || n == 0;
	if (!private->accepted) {
		gw_read_set_forget(set);
		return 0;
	}
	if (last && taken == n)
		set->last_accepted = true;
	gw_read_set_settle(completions, set);
	return taken;
}

void gw_read_set_torn(struct gw_read_set *set, uint64_t remote, uint64_t local)
{
	struct gw_read_set_private *private = gw_read_set_private(set);
	struct gw_torn_rows *torn = private->torn;
	if (set->status)
		return;
	if (!torn || torn->count == torn->capacity) {
		uint32_t count = torn ? torn->count : 0, capacity = torn ? 2 * torn->capacity : TORN_FIRST;
		torn = gw_realloc(torn, 1, sizeof(*torn) + (size_t)capacity * sizeof(torn->rows[0]));
		if (!torn) {
			gw_read_set_fail(set, GW_NO_MEMORY);
			return;
		}
		torn->count = count;
		torn->capacity = capacity;
		private->torn = torn;
	}
	torn->rows[torn->count++] = (struct gw_torn_row){remote, local};
}

static gw_status check_dynamic(const struct gw_endpoint *endpoint, const struct gw_region *region,
			       struct gw_dynamic_region_entry **entry)
{
	*entry = gw_dynamic_region_find(endpoint, region->id, region->generation);
	if (*entry && (*entry)->open)
		return GW_OK;
	return gw_fail(GW_NOT_FOUND, "region %u of generation %u is not open at this endpoint, or was deleted",
		       region->id, region->generation);
}

gw_status gw_check_region(const struct gw_endpoint *endpoint, const struct gw_region *region)
{
	struct gw_dynamic_region_entry *entry;
	if (region->id >= GW_REGIONS_MAX)
		return check_dynamic(endpoint, region, &entry);
	if (region->id >= endpoint->peer.region_count)
		return gw_fail(GW_RANGE, "region %u does not exist; the server has %u regions", region->id,
			       endpoint->peer.region_count);
	if (region->generation != endpoint->peer.regions[region->id].generation)
		return gw_fail(GW_STALE, "the server has reloaded region %u; connect again", region->id);
	return GW_OK;
}

static gw_status range_fail(const char *what, uint64_t bytes, uint64_t at, uint64_t end)
{
	return gw_fail(GW_RANGE, "read of %llu bytes at %llu of a %s of %llu bytes", (unsigned long long)bytes,
		       (unsigned long long)at, what, (unsigned long long)end);
}

static gw_status row_fail(const struct gw_region *region, uint64_t bytes, uint64_t at)
{
	const struct gw_row_format *format = &region->rows.format;
	return gw_fail(
		GW_INVALID, "read of %llu bytes at %llu of region %u: not a row; rows have %u bytes and a stride of %u",
		(unsigned long long)bytes, (unsigned long long)at, region->id, format->payload_bytes, format->stride);
}

static gw_status gather_rows_check(const struct gw_region *region, const struct gw_gather *gather, size_t n)
{
	const struct gw_row_format *format = &region->rows.format;
	struct gw_row_divider divider = gw_row_divider(format->stride);
	uint64_t number;
	if (gather->row_bytes == 0)
		return GW_OK;
	if (gather->row_bytes != format->payload_bytes)
		return row_fail(region, gather->row_bytes, gather->remote[0]);
	for (size_t i = 0; i < n; i++)
		if (!gw_row_at(&divider, gather->remote[i], &number))
			return row_fail(region, gather->row_bytes, gather->remote[i]);
	return GW_OK;
}

static gw_status spans_rows_check(const struct gw_region *region, const struct gw_span *spans, size_t n)
{
	const struct gw_row_format *format = &region->rows.format;
	struct gw_row_divider divider = gw_row_divider(format->stride);
	uint64_t number;
	for (size_t i = 0; i < n; i++)
		if (spans[i].bytes &&
		    (spans[i].bytes != format->payload_bytes || !gw_row_at(&divider, spans[i].remote, &number)))
			return row_fail(region, spans[i].bytes, spans[i].remote);
	return GW_OK;
}

gw_status gw_check_gather(const struct gw_region *region, const struct gw_buffer *buffer,
			  const struct gw_gather *gather, size_t n)
{
	if (n == 0)
		return GW_OK;
	if (gather->stride < gather->row_bytes)
		return gw_fail(GW_INVALID, "rows of %u bytes do not fit a stride of %u bytes", gather->row_bytes,
			       gather->stride);
	uint64_t highest = 0, last_row = n - 1;
	for (size_t i = 0; i < n; i++)
		highest = gather->remote[i] > highest ? gather->remote[i] : highest;
	if (gather->rows) {
		uint32_t row = 0;
		for (size_t i = 0; i < n; i++)
			row = gather->rows[i] > row ? gather->rows[i] : row;
		last_row = row;
	}
	if (gather->row_bytes > region->bytes || highest > region->bytes - gather->row_bytes)
		return range_fail("region", gather->row_bytes, highest, region->bytes);
	uint64_t end;
	if (__builtin_mul_overflow(last_row, (uint64_t)gather->stride, &end) ||
	    __builtin_add_overflow(end, gather->local, &end) || end > buffer->bytes ||
	    gather->row_bytes > buffer->bytes - end)
		return range_fail("destination", gather->row_bytes, gather->local + last_row * gather->stride,
				  buffer->bytes);
	return region->kind == GW_REGION_VERSIONED ? gather_rows_check(region, gather, n) : GW_OK;
}

gw_status gw_check_spans(const struct gw_region *region, const struct gw_buffer *buffer, const struct gw_span *spans,
			 size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct gw_span *span = &spans[i];
		if (span->bytes > region->bytes || span->remote > region->bytes - span->bytes)
			return range_fail("region", span->bytes, span->remote, region->bytes);
		if (span->bytes > buffer->bytes || span->local > buffer->bytes - span->bytes)
			return range_fail("destination", span->bytes, span->local, buffer->bytes);
	}
	return region->kind == GW_REGION_VERSIONED ? spans_rows_check(region, spans, n) : GW_OK;
}
