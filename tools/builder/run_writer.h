/* Writes the runs of a block, each in its order, while the writer changes between them at every item.
 *
 * The counterpart of run_reader.h: a run has a buffer, whose whole pages are written at once (gw_spill_write). One
 * thread uses a writer.
 */
#ifndef GW_TOOLS_BUILDER_RUN_WRITER_H
#define GW_TOOLS_BUILDER_RUN_WRITER_H

#include <string.h>

#include "tools/builder/spill.h"

struct gw_run_writer {
	uint8_t *block;
	uint64_t runs, room; /* room: of a buffer, in bytes */
	uint64_t *next;      /* [runs] the byte of the block where the buffer belongs */
	uint64_t *used;      /* [runs] bytes of a buffer */
	uint8_t *buffers;    /* [runs][room] */
	gw_status status;    /* of writes */
};

/* starts: [runs] items of item_bytes each, where the runs begin. memory: of all buffers. GW_NO_MEMORY. Close it in any
 * case. */
gw_status gw_run_writer_open(void *block, uint64_t item_bytes, const uint64_t *starts, uint64_t runs, uint64_t memory,
			     struct gw_run_writer *out);
/* Writes what the buffers have. The first error of all writes: GW_IO. */
gw_status gw_run_writer_close(struct gw_run_writer *writer);

/* gw_run_writer_add for a buffer without room for the bytes. */
void gw_run_writer_flush(struct gw_run_writer *writer, uint64_t run, const void *item, uint64_t bytes);

/* Appends bytes to a run. */
static inline void gw_run_writer_add(struct gw_run_writer *writer, uint64_t run, const void *item, uint64_t bytes)
{
	if (writer->used[run] + bytes > writer->room) {
		gw_run_writer_flush(writer, run, item, bytes);
		return;
	}
	memcpy(writer->buffers + run * writer->room + writer->used[run], item, bytes);
	writer->used[run] += bytes;
}

#endif
