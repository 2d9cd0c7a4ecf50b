/* Rows that stay in their files: a thread reads them by request, many at a time, through a cache of blocks.
 *
 *   rows, sorted by address -> blocks of 4 KiB -> in the cache: copied
 *                                              -> else read, with O_DIRECT: adjacent blocks in one read, many reads in
 *                                                 flight -> into the cache -> copied
 *
 * The disk's thread visits the blocks of all open reads in the order of their addresses, round after round. The cache
 * is the only large memory: reads land in it. Fallbacks are those of core/files/load.h, and the log names each:
 * buffered reads where the file system refuses O_DIRECT, threads with pread where the kernel refuses io_uring.
 *
 * A block that cannot be read fails the reads that need it, and no others. The error names the file, the byte and the
 * row. A short read continues. A file that was replaced while it is open keeps its bytes; one that was cut short is an
 * error.
 */
#ifndef GW_FILES_DISK_H
#define GW_FILES_DISK_H

#include "core/files/load.h"

#define GW_DISK_CACHE_MIN     (1ull << 20)
#define GW_DISK_CACHE_DEFAULT (256ull << 20)

struct gw_disk;       /* a cache, its thread and its files */
struct gw_disk_array; /* rows in one file; belongs to its disk */
struct gw_disk_read;  /* a request for rows, in progress */

struct gw_disk_options {
	uint64_t cache_bytes; /* of blocks and their table, at least GW_DISK_CACHE_MIN; 0: GW_DISK_CACHE_DEFAULT */
	enum gw_load_driver driver;
	uint32_t queue_depth; /* reads in flight; 0: 128 */
	bool buffered;        /* never use O_DIRECT */
	enum gw_huge_policy huge;
	int numa; /* as for gw_arena_create */
};

/* options may be NULL. GW_NO_MEMORY, GW_LIMIT (a thread), GW_INVALID (the cache is too small), GW_UNSUPPORTED (the
 * driver that the options name). */
gw_status gw_disk_create(const struct gw_disk_options *options, struct gw_disk **out);
void gw_disk_destroy(struct gw_disk *disk); /* NULL is allowed. No read may be open, abandoned ones excepted */

/* Rows in a file: row r begins `step` bytes after row r - 1. They overlap where row_bytes > step. */
struct gw_disk_layout {
	uint64_t row_bytes, step;
};

/* Adds the rows of a file: item->bytes are complete rows. The texts are copied; arena_offset and digests do not count.
 * Call it before the first read. GW_NOT_FOUND, GW_IO, GW_FORMAT (not regular, too short). */
gw_status gw_disk_add(struct gw_disk *disk, const struct gw_load_item *item, struct gw_disk_layout layout,
		      struct gw_disk_array **out);

/* What to read. */
struct gw_disk_rows {
	struct gw_disk_array *array;
	const void *rows; /* [count] numbers of rows, uint64_t at any alignment, in any order, copied */
	uint32_t count;
	uint8_t *out; /* row rows[i] lands at out + i * row_bytes */
	/* Called in the disk's thread when the read is over, unless it was freed before. It must not wait. */
	void (*over)(void *context);
	void *context;
};

/* Begins a read. Any thread may call this, and it does not wait for the disk. GW_RANGE: a row that does not exist. */
gw_status gw_disk_read_start(struct gw_disk *disk, const struct gw_disk_rows *what, struct gw_disk_read **out);
/* GW_AGAIN: the read is in progress. Otherwise its result, with the error's text. */
gw_status gw_disk_read_status(const struct gw_disk_read *read);
/* Ends the caller's use of the read, over or not. Afterwards nothing writes to `out`. NULL is allowed. */
void gw_disk_read_free(struct gw_disk_read *read);

/* Totals since the creation. */
struct gw_disk_counts {
	uint64_t rows, row_bytes; /* asked for */
	uint64_t reads, bytes;    /* from the files */
	uint64_t hits, misses;    /* blocks that were in the cache when they were needed, and that were not */
	uint64_t errors;          /* blocks that could not be read */
};
void gw_disk_counts(const struct gw_disk *disk, struct gw_disk_counts *out);

const char *gw_disk_driver(const struct gw_disk *disk); /* "io_uring", "pread" */
uint64_t gw_disk_cache_bytes(const struct gw_disk *disk);

#endif
