/* Reads and parses small text files of /proc and /sys. Allocates nothing, so that it also works when memory is
 * short. */
#ifndef GW_SYSTEM_SYSFILE_H
#define GW_SYSTEM_SYSFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the file of the given name (printf style) into the buffer, zero-terminated, cut to the buffer's size. Returns
 * false if the file cannot be read. */
bool gw_sysfile_read(char *buffer, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The number after `field` at the start of a line ("MemAvailable:"). Returns false if no such line exists. */
bool gw_sysfile_field(const char *text, const char *field, uint64_t *out);

/* A file that holds one number. "max" gives UINT64_MAX. */
bool gw_sysfile_number(uint64_t *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Numbers below `limit` of a list like "0-3,7" as flags; ignores numbers from `limit` on. Returns false if
 * malformed. */
bool gw_sysfile_list(const char *text, bool *flags, uint32_t limit);

/* The word in brackets of "always [madvise] never"; "" if no word is in brackets. */
void gw_sysfile_choice(const char *text, char *word, size_t bytes);

#endif
