/* The trace of this process: events of its threads, which a thread of the trace writes to a file (graphwire/trace.h).
 *
 *   gw_trace_put -> the ring of the calling thread -> [every 100 ms, or half full] the writer -> gw_trace_file
 *
 * No caller waits: an event that finds no room is dropped, and the file has the number. Off: an event costs one load
 * and one branch, which predicts well.
 */
#ifndef GW_SYSTEM_TRACE_H
#define GW_SYSTEM_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/system/trace_event.h"

extern atomic_bool gw_trace_on;

static inline bool gw_trace_is_on(void)
{
	return __builtin_expect(atomic_load_explicit(&gw_trace_on, memory_order_relaxed), 0);
}

/* Begins the trace that GRAPHWIRE_TRACE asks for, unless it has begun. Logs why it cannot. */
void gw_trace_open(void);

/* The clock of all events; call these only while the trace is on. */
uint64_t gw_trace_clock(void) __attribute__((cold));
/* A number that no other event of the process has as its id. */
uint64_t gw_trace_id(void) __attribute__((cold));
/* Adds an event to the ring of this thread, or drops it. False: dropped. */
bool gw_trace_put(const struct gw_trace_event *event) __attribute__((cold));
/* Gives the calling thread a name: "engine 0". */
void gw_trace_name_thread(const char *name, uint32_t number) __attribute__((cold));

void gw_trace_span_put(const struct gw_trace_form *form, uint64_t began_ns, uint64_t first, uint64_t second)
	__attribute__((cold));

/* A span of the library: 0 while the trace is off. */
static inline uint64_t gw_trace_span_begin(void)
{
	return gw_trace_is_on() ? gw_trace_clock() : 0;
}

static inline void gw_trace_span_end(const struct gw_trace_form *form, uint64_t began_ns, uint64_t first,
				     uint64_t second)
{
	if (__builtin_expect(began_ns != 0, 0))
		gw_trace_span_put(form, began_ns, first, second);
}

#endif
