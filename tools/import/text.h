/* A whole text input in memory: a mapped file, an inflated gzip file, or what a pipe gave. */
#ifndef GW_TOOLS_IMPORT_TEXT_H
#define GW_TOOLS_IMPORT_TEXT_H

#include <stdbool.h>

#include "core/errors/status.h"

#define GW_TEXT_BYTES_MAX (1ull << 46) /* of one input; text references hold 46 bits of offset */

struct gw_text {
	char *name;       /* the path, for error text */
	const char *data; /* not terminated */
	uint64_t bytes;
	uint64_t file_bytes; /* as stored; differs from bytes when inflated */
	uint64_t open_ns;    /* time to read and inflate; 0 for a mapped file */
	bool inflated;
	void *mapping;
	size_t mapping_bytes;
};

/* Opens a path ("-" is standard input). Errors name the path: GW_NOT_FOUND, GW_IO, GW_FORMAT (a gzip stream that ends
 * early or is damaged, a binary file), GW_UNSUPPORTED (another compression, Parquet, UTF-16), GW_NO_MEMORY (more text
 * than memory that can be taken now), GW_LIMIT. *out is zeroed on failure. */
gw_status gw_text_open(const char *path, struct gw_text *out);

/* The same of a file that another one names: a pipe or a device by that name is no file, and not waited for: GW_FORMAT.
 */
gw_status gw_text_open_file(const char *path, struct gw_text *out);

/* The same from an open file or pipe, which stays the caller's. */
gw_status gw_text_open_fd(const char *name, int fd, struct gw_text *out);

/* A text that lies in the caller's memory, which must outlive it. GW_NO_MEMORY. */
gw_status gw_text_borrow(const char *name, const void *data, uint64_t bytes, struct gw_text *out);

/* The first byte of what is no UTF-8; bytes, if all of it is. */
uint64_t gw_text_utf8(const char *text, uint64_t bytes);

void gw_text_close(struct gw_text *text); /* zeroes it; a zeroed one is allowed */

#endif
