/* Completions on their way to the caller. Nothing here fails: notes are made when work is accepted, groups are the
 * caller's memory, and a text that finds no memory gives way to the status's own. */
#include "transport/outbox.h"

#include <string.h>

#include "core/base/alloc.h"

void gw_outbox_begin(struct gw_outbox *outbox)
{
	*outbox = (struct gw_outbox){.groups_end = &outbox->groups, .notes_end = &outbox->notes};
}

static void notes_free(struct gw_note **notes)
{
	while (*notes) {
		struct gw_note *note = *notes;
		*notes = note->next;
		gw_note_destroy(note);
	}
}

static void delivered_free(struct gw_outbox *outbox)
{
	notes_free(&outbox->delivered);
	while (outbox->text_count)
		gw_free(outbox->texts[--outbox->text_count]);
}

void gw_outbox_end(struct gw_outbox *outbox)
{
	delivered_free(outbox);
	notes_free(&outbox->notes);
	for (struct gw_group *group = outbox->groups; group; group = group->next)
		gw_free(gw_group_private(group)->text);
	gw_free(outbox->texts);
	gw_outbox_begin(outbox);
}

/* Keeps a group's text until the next take; without memory for that, the text gives way. */
static const char *text_keep(struct gw_outbox *outbox, char *text, gw_status status)
{
	if (!text)
		return status ? gw_status_text(status) : "";
	if (outbox->text_count == outbox->text_capacity) {
		size_t capacity = outbox->text_capacity ? 2 * outbox->text_capacity : 16;
		char **texts = gw_realloc(outbox->texts, capacity, sizeof(*texts));
		if (!texts) {
			gw_free(text);
			return gw_status_text(status);
		}
		outbox->texts = texts;
		outbox->text_capacity = capacity;
	}
	outbox->texts[outbox->text_count++] = text;
	return text;
}

static void group_deliver(struct gw_outbox *outbox, struct gw_completion *completion)
{
	struct gw_group *group = outbox->groups;
	outbox->groups = group->next;
	if (!outbox->groups)
		outbox->groups_end = &outbox->groups;
	struct gw_group_private *private = gw_group_private(group);
	*completion = (struct gw_completion){
		.cookie = group->cookie,
		.status = group->status,
		.text = text_keep(outbox, private->text, group->status),
	};
	private->text = NULL;
}

static void note_deliver(struct gw_outbox *outbox, struct gw_completion *completion)
{
	struct gw_note *note = outbox->notes;
	outbox->notes = note->next;
	outbox->note_count--;
	if (!outbox->notes)
		outbox->notes_end = &outbox->notes;
	*completion = (struct gw_completion){
		.cookie = note->cookie,
		.status = note->status,
		.text = note->has_text ? (const char *)note->memory
			: note->status ? gw_status_text(note->status)
				       : "",
		.reply = note->reply,
		.reply_bytes = note->reply_bytes,
	};
	note->next = outbox->delivered;
	outbox->delivered = note;
}

size_t gw_outbox_take(struct gw_outbox *outbox, struct gw_completion *completions, size_t max)
{
	if (outbox->delivered || outbox->text_count)
		delivered_free(outbox);
	size_t n = 0;
	while (n < max && !gw_outbox_empty(outbox)) {
		outbox->notes_next = outbox->notes && (outbox->notes_next || !outbox->groups);
		if (outbox->notes_next)
			note_deliver(outbox, &completions[n++]);
		else
			group_deliver(outbox, &completions[n++]);
		outbox->notes_next = !outbox->notes_next;
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

void gw_outbox_post(struct gw_outbox *outbox, struct gw_note *note, gw_status status)
{
	note->status = status;
	if (status) {
		gw_free(note->memory);
		note->memory = (uint8_t *)gw_strdup(gw_last_error());
		note->has_text = note->memory != NULL;
		note->reply = NULL;
		note->reply_bytes = 0;
	}
	note->next = NULL;
	*outbox->notes_end = note;
	outbox->notes_end = &note->next;
	outbox->note_count++;
}

void gw_group_fail(struct gw_group *group, gw_status status)
{
	if (group->status)
		return;
	group->status = status;
	gw_group_private(group)->text = gw_strdup(gw_last_error());
}

gw_status gw_check_region(const struct gw_endpoint *endpoint, const struct gw_region *region)
{
	if (region->id >= endpoint->peer.region_count)
		return gw_fail(GW_RANGE, "region %u; the server has %u", region->id, endpoint->peer.region_count);
	if (region->generation != endpoint->peer.regions[region->id].generation)
		return gw_fail(GW_STALE, "region %u was loaded anew by the server; connect again", region->id);
	return GW_OK;
}

static gw_status range_fail(const char *what, uint64_t bytes, uint64_t at, uint64_t end)
{
	return gw_fail(GW_RANGE, "read of %llu bytes at %llu of a %s of %llu bytes", (unsigned long long)bytes,
		       (unsigned long long)at, what, (unsigned long long)end);
}

gw_status gw_check_gather(const struct gw_region *region, const struct gw_buffer *buffer,
			  const struct gw_gather *gather, size_t n)
{
	if (n == 0)
		return GW_OK;
	if (gather->stride < gather->row_bytes)
		return gw_fail(GW_INVALID, "rows of %u bytes that lie %u apart", gather->row_bytes, gather->stride);
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
	return GW_OK;
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
	return GW_OK;
}
