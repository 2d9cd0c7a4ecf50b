/* Events of a trace, and their JSON. */
#ifndef GW_SYSTEM_TRACE_EVENT_H
#define GW_SYSTEM_TRACE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <graphwire/trace.h>

#define GW_TRACE_NUMBERS 6

/* What an event of the library looks like; static. */
struct gw_trace_form {
	const char *name; /* each '#' stands for the next number */
	const char *category;
	const char *numbers[GW_TRACE_NUMBERS]; /* their names; NULL: shown in the name only, or absent */
	const char *text;                      /* the text's name, or NULL */
};

/* SPAN lies in a thread. BEGIN and END, PHASE (both at once) lie on a line of their own, which the id names, and nest
 * there. FLOW_OUT and FLOW_IN are the ends of an arrow between the spans around them. */
enum gw_trace_kind {
	GW_TRACE_SPAN,
	GW_TRACE_BEGIN,
	GW_TRACE_END,
	GW_TRACE_PHASE,
	GW_TRACE_POINT,
	GW_TRACE_FLOW_OUT,
	GW_TRACE_FLOW_IN,
	GW_TRACE_THREAD, /* names the thread */
};

struct gw_trace_event {
	enum gw_trace_kind kind;
	const struct gw_trace_form *form; /* NULL: a span of the program, or a thread, of this name: */
	uint64_t at_ns, for_ns;           /* for_ns: of SPAN and PHASE */
	uint64_t id;
	union {
		struct {
			uint64_t numbers[GW_TRACE_NUMBERS];
			const char *text; /* static, or NULL */
		};
		char name[GW_TRACE_NAME_MAX + 1];
	};
};

#define GW_TRACE_TEXT_BYTES 1024 /* of any event */

/* Writes an event of this process's thread tid. second: the other end of a PHASE. Returns its bytes. */
size_t gw_trace_event_text(char out[GW_TRACE_TEXT_BYTES], const struct gw_trace_event *event, uint32_t pid,
			   uint32_t tid, bool second);

/* The events that describe the process, and the number of events that a thread has lost. */
size_t gw_trace_event_process(char out[GW_TRACE_TEXT_BYTES], uint32_t pid);
size_t gw_trace_event_clock(char out[GW_TRACE_TEXT_BYTES], uint32_t pid);
size_t gw_trace_event_lost(char out[GW_TRACE_TEXT_BYTES], uint32_t pid, uint32_t tid, uint64_t at_ns, uint64_t lost);

#endif
