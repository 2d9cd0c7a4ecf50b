/* Files of others, mapped for reading: inputs and graphs that may be larger than memory.
 *
 * A file may become shorter while it is mapped, and a disk may fail; touching what is not there is then a SIGBUS, not
 * an error code. A program asks for the guard, which turns that signal into a line that names the file and an exit
 * status of 1. A library must not take signals from the program that loaded it: libgraphwire maps no file, it reads
 * (core/files/load.h); nothing there may call gw_filemap_open. */
#ifndef GW_FILES_FILEMAP_H
#define GW_FILES_FILEMAP_H

#include <stddef.h>

#include "core/errors/status.h"

/* Maps the first `bytes` bytes (at least 1) of an open file, which the caller may close then. path is for error text
 * and is copied. GW_IO, GW_NO_MEMORY. */
gw_status gw_filemap_open(int fd, const char *path, size_t bytes, void **out);

/* Unmaps it. Other memory from mmap is unmapped as well, so that an array may lie in either. */
void gw_filemap_close(void *mapping, size_t bytes);

/* GW_IO if a file that is mapped now has another length or was written to since it was mapped: what was read of it may
 * be of neither state (the rest of a page behind a file's new end reads as zeros). For those who are about to keep what
 * they made of it. */
gw_status gw_filemap_check(void);

/* From now on a fault in one of the maps writes "<program>: <file>: …" to stderr, calls clean_up (system calls only;
 * may be NULL) and ends the process with status 1. Other faults end it as before. program must outlive it. */
void gw_filemap_guard(const char *program, void (*clean_up)(void));

#endif
