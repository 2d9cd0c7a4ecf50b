/* Files of other programs, mapped for reading: inputs and graphs that may be larger than memory.
 *
 * A mapped file may become shorter, and its disk may fail. Touching missing pages is then a SIGBUS, not an error code.
 * A program may install the guard. On such a signal it prints a line that names the file, and ends the process with
 * status 1. A library must not take signals from its program. libgraphwire therefore maps no file but reads it
 * (core/files/load.h), and its code must not call gw_filemap_open. */
#ifndef GW_FILES_FILEMAP_H
#define GW_FILES_FILEMAP_H

#include <stdbool.h>
#include <stddef.h>

#include "core/errors/status.h"

/* Maps the first `bytes` bytes (at least 1) of an open file. The caller may then close the file. path is for error
 * texts; the call copies it. GW_IO, GW_NO_MEMORY. */
gw_status gw_filemap_open(int fd, const char *path, size_t bytes, void **out);

/* Unmaps a file or any other memory from mmap. The caller need not know which of the two it unmaps. */
void gw_filemap_close(void *mapping, size_t bytes);

/* Takes the pages of a map that hold bytes of [begin, end) out of the process's memory. The kernel's cache keeps them,
 * and the next access maps them again. For code that has gone past these bytes of a large map. */
void gw_filemap_drop(const void *begin, const void *end);

/* GW_IO if a mapped file has changed its length or content since it was mapped. The data read may then mix both states
 * (the rest of a page behind a file's new end reads as zeros). Call it before you keep results made from the data. */
gw_status gw_filemap_check(void);

/* Whether a file is mapped now, under any name. */
struct stat;
bool gw_filemap_has(const struct stat *file);

/* Installs the guard: a fault in a map writes "<program>: <file>: …" to stderr, calls clean_up (only system calls; may
 * be NULL) and ends the process with status 1. Other faults end it as before. program must outlive the guard. */
void gw_filemap_guard(const char *program, void (*clean_up)(void));

#endif
