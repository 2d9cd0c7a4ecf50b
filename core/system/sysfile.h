/* Small text files of /proc and /sys: read whole, picked apart. No allocation, so that a memory shortage can be looked
 * into as well. */
#ifndef GW_SYSTEM_SYSFILE_H
#define GW_SYSTEM_SYSFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the file of the given name (printf style) into the buffer, zero-terminated, cut to its size. false if it cannot
 * be read. */
bool gw_sysfile_read(char *buffer, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The number after `field` at the start of a line ("MemAvailable:"). false if there is no such line. */
bool gw_sysfile_field(const char *text, const char *field, uint64_t *out);

/* A file that holds one number. "max" gives UINT64_MAX. */
bool gw_sysfile_number(uint64_t *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Numbers below `limit` of a list like "0-3,7" as flags; numbers not below it are left out. false if malformed. */
bool gw_sysfile_list(const char *text, bool *flags, uint32_t limit);

/* The word in brackets of "always [madvise] never"; "" if there is none. */
void gw_sysfile_choice(const char *text, char *word, size_t bytes);

#endif
