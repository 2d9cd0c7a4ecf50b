/* See trace_events.h. */
#include "test/support/trace_events.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define DEPTH_MAX 32
#define ROUNDED   0.0015 /* us: the file has nanoseconds, a double of a long uptime a little less */

char *trace_events_text(const char *name, size_t *bytes)
{
	FILE *file = fopen(name, "r");
	if (!file)
		fail_msg("%s: %s", name, strerror(errno));
	struct stat about;
	assert_int_equal(fstat(fileno(file), &about), 0);
	char *text = malloc((size_t)about.st_size + 2);
	assert_non_null(text);
	*bytes = fread(text, 1, (size_t)about.st_size, file);
	text[*bytes] = 0;
	fclose(file);
	return text;
}

/* The events of a file; whole: the closing bracket is there. */
json_t *trace_events_read(const char *name, bool whole)
{
	size_t bytes;
	char *text = trace_events_text(name, &bytes);
	json_error_t error;
	if (!whole)
		text[bytes++] = ']';
	json_t *events = json_loadb(text, bytes, 0, &error);
	if (!json_is_array(events))
		fail_msg("%s: %s at %d", name, error.text, error.position);
	free(text);
	return events;
}

const char *trace_event_text(const json_t *event, const char *member)
{
	const char *text = json_string_value(json_object_get(event, member));
	return text ? text : "";
}

double trace_event_number(const json_t *event, const char *member)
{
	return json_number_value(json_object_get(event, member));
}

size_t trace_events_count(const json_t *events, const char *phase, const char *name)
{
	size_t i, count = 0;
	json_t *event;
	json_array_foreach(events, i, event)
	{
		count += strcmp(trace_event_text(event, "ph"), phase) == 0 &&
			 strcmp(trace_event_text(event, "name"), name) == 0;
	}
	return count;
}

/* By thread, then by begin; of spans that begin together, the longest first. */
static int by_thread_and_begin(const void *a, const void *b)
{
	const json_t *one = *(const json_t *const *)a, *other = *(const json_t *const *)b;
	const double differ[] = {trace_event_number(one, "tid") - trace_event_number(other, "tid"),
				 trace_event_number(one, "ts") - trace_event_number(other, "ts"),
				 trace_event_number(other, "dur") - trace_event_number(one, "dur")};
	for (size_t i = 0; i < 3; i++) {
		if (differ[i] != 0)
			return differ[i] < 0 ? -1 : 1;
	}
	return 0;
}

size_t trace_events_check_nests(const json_t *events)
{
	size_t i, count = 0, depth = 0, threads = 0;
	json_t *event, **spans = calloc(json_array_size(events), sizeof(*spans));
	double ends[DEPTH_MAX], tid = -1;
	json_array_foreach(events, i, event)
	{
		if (strcmp(trace_event_text(event, "ph"), "X") == 0)
			spans[count++] = event;
	}
	qsort(spans, count, sizeof(*spans), by_thread_and_begin);
	for (i = 0; i < count; i++) {
		double begin = trace_event_number(spans[i], "ts"), end = begin + trace_event_number(spans[i], "dur");
		bool same = trace_event_number(spans[i], "tid") == tid;
		threads += !same;
		tid = trace_event_number(spans[i], "tid");
		depth = same ? depth : 0;
		while (depth && ends[depth - 1] <= begin + ROUNDED)
			depth--;
		assert_true(end >= begin);
		assert_true(depth == 0 || end <= ends[depth - 1] + ROUNDED);
		assert_true(depth < DEPTH_MAX);
		ends[depth++] = end;
	}
	free(spans);
	return threads;
}
