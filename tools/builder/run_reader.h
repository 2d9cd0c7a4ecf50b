/* Reads the runs of a block, each in its order, while the reader changes between them at every item.
 *
 * A block of a spill may be a mapped file. If memory is short, the kernel takes back what it has read ahead of several
 * places before it is used. So each run has a buffer, which is filled at once; what has been read leaves the memory and
 * the disk (gw_spill_drop). One thread uses a reader.
 */
#ifndef GW_TOOLS_BUILDER_RUN_READER_H
#define GW_TOOLS_BUILDER_RUN_READER_H

#include "tools/builder/spill.h"

struct gw_run_reader {
	uint8_t *block;
	uint64_t item_bytes, room; /* room: of a buffer, in items */
	uint64_t *next, *ends;     /* [runs] the next item to be read from the block, and the run's end */
	uint64_t *used, *filled;   /* [runs] items of a buffer */
	uint8_t *buffers;          /* [runs][room] */
	gw_status status;          /* of reads */
};

/* starts: [runs + 1] items of the block. memory: of all buffers; each has at least one item. GW_NO_MEMORY. Close it in
 * any case. */
gw_status gw_run_reader_open(void *block, uint64_t item_bytes, const uint64_t *starts, uint64_t runs, uint64_t memory,
			     struct gw_run_reader *out);
/* GW_IO if a read failed; its items are undefined. */
gw_status gw_run_reader_close(struct gw_run_reader *reader);

/* Fills the buffer of a run, which must have items left. */
void gw_run_reader_fill(struct gw_run_reader *reader, uint64_t run);

/* The next item of a run, valid until the next call for it. */
static inline const void *gw_run_reader_next(struct gw_run_reader *reader, uint64_t run)
{
	if (reader->used[run] == reader->filled[run])
		gw_run_reader_fill(reader, run);
	return reader->buffers + (run * reader->room + reader->used[run]++) * reader->item_bytes;
}

#endif
