/* The file of a trace: JSON events, one a line, in an array.
 *
 *   open -> add ... -> flush -> add ... -> end
 *
 * A comma stands before each event, not behind it, so a file that ends early lacks the closing bracket alone. No event
 * crosses a page of the file: spaces fill the page before an event that does not fit. The kernel copies a page whole
 * even if the process is killed within write(2), so a killed process leaves no half event.
 */
#ifndef GW_SYSTEM_TRACE_FILE_H
#define GW_SYSTEM_TRACE_FILE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "core/errors/status.h"

#define GW_TRACE_PAGE 4096 /* of the smallest page cache; a larger page is copied whole too */

struct gw_trace_file {
	int fd;
	char path[PATH_MAX];
	uint64_t written; /* bytes; they end with a whole event */
	size_t used;      /* of the buffer */
	char buffer[16 * GW_TRACE_PAGE];
};

/* Opens the file by a pattern with %p (process), %h (host) and %% (a percent sign). If another process has the file
 * open as a trace, ".PID" is added to its name. GW_INVALID, GW_IO. */
gw_status gw_trace_file_open(struct gw_trace_file *file, const char *pattern);

/* Adds an event of less than GW_TRACE_PAGE bytes. GW_IO: the file cannot be written; it ends with a whole event. */
gw_status gw_trace_file_add(struct gw_trace_file *file, const char *event, size_t bytes);
gw_status gw_trace_file_flush(struct gw_trace_file *file);

/* Adds the closing bracket and closes the file. */
gw_status gw_trace_file_end(struct gw_trace_file *file);

/* Closes the file as it is, without a write. */
void gw_trace_file_close(struct gw_trace_file *file);

#endif
