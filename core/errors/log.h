/* The log: one line per event on stderr, or to a function that the program sets. Too slow for hot paths. */
#ifndef GW_ERRORS_LOG_H
#define GW_ERRORS_LOG_H

enum gw_log_level { GW_LOG_ERROR, GW_LOG_WARN, GW_LOG_INFO, GW_LOG_DEBUG };

/* Prints one line if its level is enabled (GRAPHWIRE_LOG=error|warn|info|debug; the default is warn). The line is
 * written in one piece, so that lines of several threads do not mix. It has no control characters and is cut at 2 KiB.
 * Keeps errno. */
void gw_log(enum gw_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

void gw_log_level_set(enum gw_log_level level);

/* Sends every line to the sink instead of stderr; NULL restores stderr. Any thread may call the sink. Set it while no
 * other thread logs. */
void gw_log_sink_set(void (*sink)(void *context, enum gw_log_level level, const char *line), void *context);

#endif
