/* See run_writer.h. Fails if memory runs out, or a file cannot be written. */
#include "tools/builder/run_writer.h"

#include "core/memory/alloc.h"

#define BUFFER_MAX (256u << 10) /* bytes; a longer write is not faster */
#define PAGE_BYTES 4096u

gw_status gw_run_writer_open(void *block, uint64_t item_bytes, const uint64_t *starts, uint64_t runs, uint64_t memory,
			     struct gw_run_writer *out)
{
	uint64_t room = memory / runs / PAGE_BYTES * PAGE_BYTES;
	room = room < PAGE_BYTES ? PAGE_BYTES : room;
	*out = (struct gw_run_writer){.block = block, .runs = runs, .room = room < BUFFER_MAX ? room : BUFFER_MAX};
	out->next = gw_malloc(runs * sizeof(*out->next));
	out->used = gw_calloc(runs, sizeof(*out->used));
	out->buffers = gw_malloc(runs * out->room);
	if (!out->next || !out->used || !out->buffers)
		return GW_NO_MEMORY;
	for (uint64_t run = 0; run < runs; run++)
		out->next[run] = starts[run] * item_bytes;
	return GW_OK;
}

static void write_buffered(struct gw_run_writer *writer, uint64_t run, const void *from, uint64_t bytes)
{
	gw_status status = gw_spill_write(writer->block, writer->next[run], from, bytes);
	writer->status = writer->status != GW_OK ? writer->status : status;
	writer->next[run] += bytes;
}

/* Whole pages are written, and the rest of the last one stays: a page that is written twice may be read in between. */
void gw_run_writer_flush(struct gw_run_writer *writer, uint64_t run, const void *item, uint64_t bytes)
{
	uint8_t *buffer = writer->buffers + run * writer->room;
	uint64_t end = writer->next[run] + writer->used[run], whole = end / PAGE_BYTES * PAGE_BYTES;
	bool fits = whole > writer->next[run] && end - whole + bytes <= writer->room;
	uint64_t left = fits ? end - whole : 0, written = writer->used[run] - left;
	write_buffered(writer, run, buffer, written);
	memmove(buffer, buffer + written, left);
	writer->used[run] = left;
	if (left + bytes > writer->room) {
		write_buffered(writer, run, item, bytes);
		return;
	}
	memcpy(buffer + left, item, bytes);
	writer->used[run] += bytes;
}

gw_status gw_run_writer_close(struct gw_run_writer *writer)
{
	for (uint64_t run = 0; run < writer->runs && writer->buffers && writer->next && writer->used; run++)
		write_buffered(writer, run, writer->buffers + run * writer->room, writer->used[run]);
	gw_status status = writer->status;
	gw_free(writer->next);
	gw_free(writer->used);
	gw_free(writer->buffers);
	*writer = (struct gw_run_writer){0};
	return status;
}
