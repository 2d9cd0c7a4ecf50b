/* See run_reader.h. Fails if memory runs out, or a file cannot be read. */
#include "tools/builder/run_reader.h"

#include <string.h>

#include "core/memory/alloc.h"

#define BUFFER_MAX (1u << 20) /* bytes; a longer read is not faster */

gw_status gw_run_reader_open(void *block, uint64_t item_bytes, const uint64_t *starts, uint64_t runs, uint64_t memory,
			     struct gw_run_reader *out)
{
	uint64_t bytes = memory / runs < BUFFER_MAX ? memory / runs : BUFFER_MAX;
	*out = (struct gw_run_reader){.block = block, .item_bytes = item_bytes, .room = bytes / item_bytes};
	out->room = out->room ? out->room : 1;
	out->next = gw_malloc(runs * sizeof(*out->next));
	out->ends = gw_malloc(runs * sizeof(*out->ends));
	out->used = gw_calloc(runs, sizeof(*out->used));
	out->filled = gw_calloc(runs, sizeof(*out->filled));
	out->buffers = gw_malloc(runs * out->room * item_bytes);
	if (!out->next || !out->ends || !out->used || !out->filled || !out->buffers)
		return GW_NO_MEMORY;
	memcpy(out->next, starts, runs * sizeof(*starts));
	memcpy(out->ends, starts + 1, runs * sizeof(*starts));
	return GW_OK;
}

gw_status gw_run_reader_close(struct gw_run_reader *reader)
{
	gw_status status = reader->status;
	gw_free(reader->next);
	gw_free(reader->ends);
	gw_free(reader->used);
	gw_free(reader->filled);
	gw_free(reader->buffers);
	*reader = (struct gw_run_reader){0};
	return status;
}

void gw_run_reader_fill(struct gw_run_reader *reader, uint64_t run)
{
	uint64_t first = reader->next[run], left = reader->ends[run] - first, bytes = reader->item_bytes;
	uint64_t items = left < reader->room ? left : reader->room;
	gw_status status = gw_spill_read(reader->block, first * bytes, reader->buffers + run * reader->room * bytes,
					 items * bytes);
	reader->status = reader->status != GW_OK ? reader->status : status;
	gw_spill_drop(reader->block, first * bytes, items * bytes);
	reader->next[run] += items;
	reader->filled[run] = items;
	reader->used[run] = 0;
}
