/* The two forms of a line of the log. */
#ifndef GW_ERRORS_LOG_LINE_H
#define GW_ERRORS_LOG_LINE_H

#include <stddef.h>
#include <time.h>

/* Bytes of the longest line for a message of `bytes` bytes: JSON writes up to six characters for one byte. */
#define GW_LOG_LINE_BYTES(bytes) (6 * (bytes) + 128)

/* Writes "2026-11-25T14:03:22.123Z LEVEL MESSAGE\n". Control characters become '?', so that a name from a file or a
 * peer cannot forge a line. out: GW_LOG_LINE_BYTES of the message's length. */
void gw_log_line_text(char *out, const struct timespec *when, const char *level, const char *message);

/* Writes {"time":"2026-11-25T14:03:22.123Z","level":"LEVEL","message":"MESSAGE"} and a line end. The message's control
 * characters are escaped, and each byte that is not part of valid UTF-8 becomes U+FFFD. */
void gw_log_line_json(char *out, const struct timespec *when, const char *level, const char *message);

/* Writes a text as the inside of a JSON string, with the escapes of a JSON line. Returns the end of the text; writes no
 * NUL there. out: six bytes for each byte of the text. */
char *gw_log_line_escape(char *out, const char *text);

#endif
