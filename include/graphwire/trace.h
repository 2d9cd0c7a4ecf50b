/* The trace: a file that shows when each step of a mini-batch ran, and which server it waited for.
 *
 *   GRAPHWIRE_TRACE=trace.json program
 *
 * The file has the JSON array form of the Trace Event format, which Perfetto (ui.perfetto.dev) and chrome://tracing
 * open. Times are those of CLOCK_MONOTONIC. In the name, %p stands for the process id, %h for the host's name and %%
 * for %. If another process writes the file at this time, as the parent of this process may, ".PID" is added to the
 * name. An older file of the name is replaced. A process that is killed leaves a file without the closing bracket,
 * which the viewers accept. If the file cannot be written, the library logs one line and the program goes on without a
 * trace. docs/PERFORMANCE.md describes the events.
 *
 * A program adds its own steps with gw_trace_begin and gw_trace_end. Without GRAPHWIRE_TRACE both return at once.
 * Any thread may call these functions at any time. graphwire.h includes this header; its rules hold here too.
 */
#ifndef GRAPHWIRE_TRACE_H
#define GRAPHWIRE_TRACE_H

#include <stdint.h>

#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GW_TRACE_NAME_MAX 80 /* bytes of a span's name; the rest of a longer one is cut */

/* Begins a span in the calling thread. Returns the time in nanoseconds, for gw_trace_end; 0: no trace is written. */
GW_API uint64_t gw_trace_begin(void);

/* Ends the span that began then, and adds it to the trace; `began` 0: does nothing. Call it in the thread of
 * gw_trace_begin. The spans of a thread must nest, as calls do. name: usually UTF-8; the library copies it. */
GW_API void gw_trace_end(uint64_t began, const char *name);

/* Writes to the file what was added until now, and waits for that, at most one second. The library does so ten times a
 * second, and when the process ends by exit() or by return from main(). Call this function before _exit(). */
GW_API void gw_trace_flush(void);

#ifdef __cplusplus
}
#endif
#endif
