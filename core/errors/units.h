/* Numbers and names in the units and forms that people type and read. */
#ifndef GW_ERRORS_UNITS_H
#define GW_ERRORS_UNITS_H

#include "core/errors/status.h"

/* gw_parse_u64, for whole numbers, is public: graphwire/types.h. */

/* GW_INVALID names the text; GW_RANGE names the bounds. */
gw_status gw_parse_double(const char *text, double min, double max, double *out);

/* The index of text in a NULL-terminated list; GW_INVALID names the choices. */
gw_status gw_parse_choice(const char *text, const char *const *choices, int *out);

/* Parses integers separated by commas ("15,10,5", "-1"): at least one, at most room. GW_INVALID names the text and the
 * bounds, GW_LIMIT the room. */
gw_status gw_parse_list(const char *text, int32_t min, int32_t max, uint32_t room, int32_t *out, uint32_t *count);

/* Splits names at commas, in place: out points into text. GW_INVALID: a name is empty; GW_LIMIT: more than room
 * names. */
gw_status gw_split_list(char *text, uint32_t room, const char **out, uint32_t *count);

#define GW_UNIT_TEXT_MAX 32
/* "1.50 GiB", "2.3 M"; writes to the buffer and returns it. */
char *gw_text_bytes(char buffer[GW_UNIT_TEXT_MAX], double bytes);
char *gw_text_count(char buffer[GW_UNIT_TEXT_MAX], double count);
char *gw_text_duration(char buffer[GW_UNIT_TEXT_MAX], double seconds);

/* Copies a text of a peer, cut, with "?" for control characters; "-" for an empty text or NULL. Returns the buffer. */
char *gw_text_printable(char *buffer, size_t bytes, const char *text);

#endif
