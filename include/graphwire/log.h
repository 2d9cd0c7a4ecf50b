/* The library's log: rare events that no call returns, such as a server that went away. Each event is one line with a
 * level. Without a sink the library writes the lines to stderr:
 *
 *   2026-11-25T14:03:22.123Z warn part 1: 10.0.0.2:30050 is lost; waiting for it, up to 5 min
 *
 * A thread of the library writes to stderr, so a stderr that takes nothing (a full pipe without a reader) stops no
 * other thread. Lines then wait in a queue of 256 KiB. Lines that find no room are dropped, and a line reports their
 * number as soon as stderr takes lines again. At the exit of the process, the lines get one second. A descriptor 2 that
 * is closed on exec (FD_CLOEXEC) is not stderr: the program has closed stderr, and a file or socket has got its number.
 */
#ifndef GRAPHWIRE_LOG_H
#define GRAPHWIRE_LOG_H

#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gw_log_level { GW_LOG_ERROR, GW_LOG_WARN, GW_LOG_INFO, GW_LOG_DEBUG };

/* Receives one line: without a line end, without control characters, at most 2,047 bytes, usually UTF-8 (names in it
 * may have any bytes). The line is valid until the sink returns.
 *
 * Threads: any thread may call the sink, several at once, and so may threads of the library that answer requests. The
 *   sink must therefore return soon, and must not wait for another thread that uses the library.
 * Re-entrancy: the sink may call the library. Lines that its own thread logs meanwhile go to stderr. gw_log_set_sink
 *   within a sink returns GW_INVALID.
 * Fork: the child keeps the sink and a copy of its context. A lock of the context needs the program's own care. */
typedef void (*gw_log_sink)(void *context, enum gw_log_level level, const char *line);

/* Sends the lines of this process to `sink`; NULL: to stderr, as at the start. Any thread may call it at any time. When
 * it returns, no thread runs the former sink, and none will: its context may be freed. It waits for calls of the former
 * sink, so the caller must hold no lock that the sink takes. */
GW_API gw_status gw_log_set_sink(gw_log_sink sink, void *context);

/* Drops lines below this level; the default is GW_LOG_WARN, or the level that the environment variable GRAPHWIRE_LOG
 * (error, warn, info, debug) names. Any thread may call it at any time. */
GW_API void gw_log_set_level(enum gw_log_level level);

#ifdef __cplusplus
}
#endif

#endif
