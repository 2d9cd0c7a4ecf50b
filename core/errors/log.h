/* The log: one line per event on stderr, or to a function that the program sets. Not for hot paths. */
#ifndef GW_ERRORS_LOG_H
#define GW_ERRORS_LOG_H

enum gw_log_level { GW_LOG_ERROR, GW_LOG_WARN, GW_LOG_INFO, GW_LOG_DEBUG };

/* Prints one line if the level is at or below the set one (GRAPHWIRE_LOG=error|warn|info|debug; warn unless told).
 * A line is written in one piece, so that lines of several threads do not mix, without control characters, and cut at
 * 2 KiB. errno stays as it is. */
void gw_log(enum gw_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

void gw_log_level_set(enum gw_log_level level);

/* Hands every line to the sink instead of stderr; NULL restores stderr. The sink may be called from any thread; set it
 * while no other thread logs. */
void gw_log_sink_set(void (*sink)(void *context, enum gw_log_level level, const char *line), void *context);

#endif
