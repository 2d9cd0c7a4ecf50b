/* Command lines: long options with '-' or '_' alike, sizes and counts in the units people type, one style of error. */
#ifndef GW_BASE_OPTIONS_H
#define GW_BASE_OPTIONS_H

#include <argp.h>

#include "core/base/status.h"

/* Rewrites '_' to '-' in the names of long options ("--num_parts=4"), in place, up to "--". Values are untouched. */
void gw_options_normalize(int argc, char **argv);

/* Parses a command line as argp_parse does: names normalized, status 2 for wrong usage, and one line on stderr for it
 * (argp would add a second one). Call once in a process, before its threads. */
error_t gw_options_parse(const struct argp *argp, int argc, char **argv, void *input);

/* Whole numbers with optional k, M, G, T (powers of 1000) or Ki, Mi, Gi, Ti: "64", "10k", "2Gi". GW_INVALID names the
 * text; GW_RANGE the bounds. */
gw_status gw_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out);
gw_status gw_parse_double(const char *text, double min, double max, double *out);

/* Index of text in a NULL-terminated list; GW_INVALID names the choices. */
gw_status gw_parse_choice(const char *text, const char *const *choices, int *out);

#define GW_UNIT_TEXT_MAX 32
/* "1.50 GiB", "2.3 M"; written to the buffer, which is returned. */
char *gw_text_bytes(char buffer[GW_UNIT_TEXT_MAX], double bytes);
char *gw_text_count(char buffer[GW_UNIT_TEXT_MAX], double count);
char *gw_text_duration(char buffer[GW_UNIT_TEXT_MAX], double seconds);

#endif
