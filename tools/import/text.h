/* A complete text input in memory: a mapped file, an inflated gzip file, or the data of a pipe. */
#ifndef GW_TOOLS_IMPORT_TEXT_H
#define GW_TOOLS_IMPORT_TEXT_H

#include <stdbool.h>

#include "core/errors/status.h"

#define GW_TEXT_BYTES_MAX (1ull << 46) /* of one input; text references have 46 bits of offset */

struct gw_spill;

struct gw_text {
	char *name;       /* the path, for error texts */
	const char *data; /* without a final NUL */
	uint64_t bytes;
	uint64_t file_bytes; /* as stored; differs from bytes if the file was inflated */
	bool inflated;
	void *mapping;
	size_t mapping_bytes;
	struct gw_spill *spill; /* whose memory the mapping takes; NULL: none */
};

/* Opens a path ("-" is standard input). *out is zeroed on failure. What is inflated or read from a pipe is in memory;
 * if spill is not NULL and it exceeds the spill's memory, in a file of the spill. Errors name the path: GW_NOT_FOUND,
 * GW_IO, GW_FORMAT (a damaged or truncated gzip stream, a binary file), GW_UNSUPPORTED (another compression, Parquet,
 * UTF-16), GW_NO_MEMORY (the text needs more memory than is available), GW_LIMIT. */
gw_status gw_text_open(const char *path, struct gw_spill *spill, struct gw_text *out);

/* The same for a file that another file names. GW_FORMAT if the name is a pipe or a device; the call does not wait
 * for it. */
gw_status gw_text_open_file(const char *path, struct gw_spill *spill, struct gw_text *out);

/* The same from an open file or pipe; the caller keeps the descriptor. */
gw_status gw_text_open_fd(const char *name, int fd, struct gw_spill *spill, struct gw_text *out);

/* A text in the caller's memory, which must outlive it. GW_NO_MEMORY. */
gw_status gw_text_borrow(const char *name, const void *data, uint64_t bytes, struct gw_text *out);

/* The offset of the first byte that is not UTF-8, or bytes if all of it is UTF-8. */
uint64_t gw_text_utf8(const char *text, uint64_t bytes);

void gw_text_close(struct gw_text *text); /* zeroes it; a zeroed one is allowed */

#endif
