/* The log: one line for each event, to the sink of graphwire/log.h or to stderr. Too slow for hot paths. */
#ifndef GW_ERRORS_LOG_H
#define GW_ERRORS_LOG_H

#include <graphwire/log.h>

/* Logs one line if its level is enabled. Keeps errno. Each line is written to stderr in one piece, so that lines of
 * several threads do not mix. A line is cut at 2 KiB. A stderr that takes no lines delays the caller once by 10 ms, and
 * not again until it has taken all of them (core/errors/lines.h). */
void gw_log(enum gw_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The form of the lines on stderr (core/errors/log_line.h). */
enum gw_log_format { GW_LOG_FORMAT_TEXT, GW_LOG_FORMAT_JSON };

/* Set it before the process has threads. */
void gw_log_set_format(enum gw_log_format format);

/* Reports the error that ends a command: "COMMAND: gw_last_error()" on stderr, in the log's form if that is JSON. */
void gw_log_failure(const char *command);

#endif
