/* Loads files into an arena, with O_DIRECT, registered buffers and a deep queue, and verifies their digests meanwhile.
 *
 *   items -> pieces of about 1 MiB -> io_uring (fixed buffers = arena slices) -> a chunk of 4 MiB is complete
 *         -> verifiers
 *
 * Fallbacks apply to a file or to the load, and the log names each:
 *   the file system refuses O_DIRECT (tmpfs, NFS, 9p, overlay)     -> buffered reads
 *   io_uring cannot register the buffers (locked memory)           -> plain io_uring reads
 *   the kernel refuses io_uring                                    -> pread by several threads
 * A short read at the end of a file is normal. Elsewhere it means that the file is truncated, which is an error.
 */
#ifndef GW_FILES_LOAD_H
#define GW_FILES_LOAD_H

#include <stdbool.h>

#include "core/memory/arena.h"

enum gw_load_driver { GW_LOAD_AUTO, GW_LOAD_URING, GW_LOAD_PREAD };

/* An array to load: bytes of payload from file_offset of path to arena_offset. */
struct gw_load_item {
	const char *path;        /* to open, and for error texts */
	const char *key;         /* the payload's name in error texts: "node/paper/indptr" */
	uint64_t file_offset;    /* O_DIRECT needs a multiple of 4096; otherwise the file is read buffered */
	uint64_t bytes;          /* of the payload */
	uint64_t arena_offset;   /* multiple of 4096, with room for bytes rounded up to 4096 */
	const uint64_t *digests; /* [gw_digest_count(bytes)], or NULL: not verified */
};

struct gw_load_options {
	enum gw_load_driver driver;
	unsigned queue_depth;    /* reads in flight; 0: 64 */
	unsigned piece_bytes;    /* bytes per read, a multiple of 4096 that divides 4 MiB; 0: 1 MiB */
	unsigned verify_threads; /* 0: processors - 1, at least 1 */
	bool buffered;           /* never use O_DIRECT */
	void (*progress)(void *context, uint64_t bytes_done,
			 uint64_t bytes_total); /* called by the calling thread; or NULL */
	void *progress_context;
};

struct gw_load_stats {
	uint64_t bytes;     /* payload bytes read */
	uint64_t ns;        /* wall time */
	const char *driver; /* "io_uring, registered buffers", "io_uring", "pread" */
	uint32_t files_direct, files_buffered;
};

/* Reads all items, in parallel and in any order. Blocks. Errors name the path, the key and the position: GW_NOT_FOUND,
 * GW_IO, GW_FORMAT (the file is too short), GW_DIGEST (names the chunk's number and byte range). stats may be NULL.
 * After an error the items' memory is undefined, and no thread writes to it any more. */
gw_status gw_load(struct gw_arena *arena, const struct gw_load_item *items, size_t count,
		  const struct gw_load_options *options, struct gw_load_stats *stats);

#endif
