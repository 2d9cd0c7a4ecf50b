/* The events of a trace, as a reader of its file sees them. */
#ifndef GW_TEST_TRACE_EVENTS_H
#define GW_TEST_TRACE_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* The text of a file, with room for one byte and a NUL behind it. The caller frees it. */
char *trace_events_text(const char *name, size_t *bytes);

/* The events of a file, a new reference. whole: the closing bracket is there; else it is added. Fails the test unless
 * the file is JSON. */
json_t *trace_events_read(const char *name, bool whole);

/* A member of an event: "" and 0 if it is absent. */
const char *trace_event_text(const json_t *event, const char *member);
double trace_event_number(const json_t *event, const char *member);

/* How many events have this phase ("X", "b") and name. */
size_t trace_events_count(const json_t *events, const char *phase, const char *name);

/* Fails the test unless each span lies in the spans of its thread that are open when it begins. Returns the number of
 * threads. */
size_t trace_events_check_nests(const json_t *events);

#endif
