/* Writes events of the Trace Event format. Its times are microseconds. Digits are written here, because printf would
 * take most of the time of the writer. */
#include "core/system/trace_event.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "core/errors/log_line.h"
#include "core/system/clock.h"

#define NAME_BYTES 256 /* of a host or program, escaped */

_Static_assert(6 * GW_TRACE_NAME_MAX + 400 < GW_TRACE_TEXT_BYTES, "the longest name fits");

static const char *const trace_phases[] = {
	[GW_TRACE_SPAN] = "X",  [GW_TRACE_BEGIN] = "b",    [GW_TRACE_END] = "e",     [GW_TRACE_PHASE] = "b",
	[GW_TRACE_POINT] = "i", [GW_TRACE_FLOW_OUT] = "s", [GW_TRACE_FLOW_IN] = "f", [GW_TRACE_THREAD] = "M",
};

static inline char *trace_put(char *out, const char *text, size_t bytes)
{
	memcpy(out, text, bytes);
	return out + bytes;
}

static inline __attribute__((always_inline)) char *trace_put_text(char *out, const char *text)
{
	return trace_put(out, text, strlen(text)); /* a constant length, where the text is a literal */
}

/* Two digits for each division. */
static char *trace_put_number(char *out, uint64_t number)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
				    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";
	char digits[24], *at = digits + sizeof(digits);
	for (; number >= 100; number /= 100) {
		at -= 2;
		memcpy(at, pairs + 2 * (number % 100), 2);
	}
	at -= 2;
	memcpy(at, pairs + 2 * number, 2);
	at += number < 10;
	return trace_put(out, at, (size_t)(digits + sizeof(digits) - at));
}

static inline __attribute__((always_inline)) char *trace_put_member(char *out, const char *before, uint64_t number)
{
	return trace_put_number(trace_put_text(out, before), number);
}

static inline char *trace_put_time(char *out, const char *before, uint64_t ns)
{
	out = trace_put_member(out, before, ns / 1000);
	*out++ = '.';
	for (unsigned i = 0, part = (unsigned)(ns % 1000), scale = 100; i < 3; i++, scale /= 10)
		*out++ = (char)('0' + part / scale % 10);
	return out;
}

/* The ids of all processes differ, so that their files can be joined. */
static inline char *trace_put_id(char *out, uint32_t pid, uint64_t id)
{
	static const char hex[] = "0123456789abcdef";
	uint64_t whole = (uint64_t)pid << 40 | (id & ((1ull << 40) - 1));
	out = trace_put_text(out, ",\"id\":\"0x");
	for (int shift = 60; shift >= 0; shift -= 4)
		*out++ = hex[whole >> shift & 15];
	*out++ = '"';
	return out;
}

static inline char *trace_put_name(char *out, const struct gw_trace_event *event)
{
	if (!event->form)
		return gw_log_line_escape(out, event->name);
	const uint64_t *next = event->numbers;
	for (const char *at = event->form->name; *at; at++) {
		if (*at == '#')
			out = trace_put_number(out, *next++);
		else
			*out++ = *at;
	}
	return out;
}

static inline char *trace_put_arguments(char *out, const struct gw_trace_event *event)
{
	const char *before = "";
	out = trace_put_text(out, ",\"args\":{");
	for (unsigned i = 0; i < GW_TRACE_NUMBERS; i++) {
		if (!event->form->numbers[i])
			continue;
		out = trace_put_text(trace_put_text(trace_put_text(out, before), "\""), event->form->numbers[i]);
		out = trace_put_member(out, "\":", event->numbers[i]);
		before = ",";
	}
	if (event->form->text && event->text) {
		out = trace_put_text(trace_put_text(trace_put_text(out, before), "\""), event->form->text);
		out = trace_put_text(trace_put_text(trace_put_text(out, "\":\""), event->text), "\"");
	}
	return trace_put_text(out, "}");
}

static inline char *trace_put_head(char *out, const char *phase, uint32_t pid, uint32_t tid)
{
	out = trace_put_text(trace_put_text(trace_put_text(out, "{\"ph\":\""), phase), "\"");
	return trace_put_member(trace_put_member(out, ",\"pid\":", pid), ",\"tid\":", tid);
}

static size_t trace_event_thread(char *out, const struct gw_trace_event *event, uint32_t pid, uint32_t tid)
{
	char *end = trace_put_head(out, "M", pid, tid);
	end = trace_put_text(end, ",\"name\":\"thread_name\",\"args\":{\"name\":\"");
	end = trace_put_text(gw_log_line_escape(end, event->name), "\"}}");
	return (size_t)(end - out);
}

size_t gw_trace_event_text(char out[GW_TRACE_TEXT_BYTES], const struct gw_trace_event *event, uint32_t pid,
			   uint32_t tid, bool second)
{
	if (event->kind == GW_TRACE_THREAD)
		return trace_event_thread(out, event, pid, tid);
	char *end = trace_put_head(out, second ? "e" : trace_phases[event->kind], pid, tid);
	end = trace_put_text(trace_put_name(trace_put_text(end, ",\"name\":\""), event), "\",\"cat\":\"");
	end = trace_put_text(trace_put_text(end, event->form ? event->form->category : "program"), "\"");
	end = trace_put_time(end, ",\"ts\":", event->at_ns + (second ? event->for_ns : 0));
	if (event->kind == GW_TRACE_SPAN)
		end = trace_put_time(end, ",\"dur\":", event->for_ns);
	else if (event->kind == GW_TRACE_POINT)
		end = trace_put_text(end, ",\"s\":\"t\"");
	else
		end = trace_put_id(end, pid, event->id);
	if (event->kind == GW_TRACE_FLOW_IN)
		end = trace_put_text(end, ",\"bp\":\"e\"");
	if (event->form && !second)
		end = trace_put_arguments(end, event);
	return (size_t)(trace_put_text(end, "}") - out);
}

static inline char *trace_put_short(char *out, const char *name)
{
	char cut[NAME_BYTES / 6];
	snprintf(cut, sizeof(cut), "%s", name);
	return gw_log_line_escape(out, cut);
}

size_t gw_trace_event_process(char out[GW_TRACE_TEXT_BYTES], uint32_t pid)
{
	struct utsname host = {0};
	uname(&host);
	char *end = trace_put_head(out, "M", pid, 0);
	end = trace_put_text(end, ",\"name\":\"process_name\",\"args\":{\"name\":\"");
	end = trace_put_text(trace_put_short(end, program_invocation_short_name), " on ");
	end = trace_put_text(trace_put_short(end, host.nodename), "\"}}");
	return (size_t)(end - out);
}

size_t gw_trace_event_clock(char out[GW_TRACE_TEXT_BYTES], uint32_t pid)
{
	char *end = trace_put_head(out, "M", pid, 0);
	end = trace_put_text(end, ",\"name\":\"clock\",\"args\":{\"version\":\"" GRAPHWIRE_VERSION "\"");
	end = trace_put_member(end, ",\"monotonic_ns\":", gw_monotonic_ns());
	end = trace_put_text(trace_put_member(end, ",\"unix_ns\":", gw_clock_of(CLOCK_REALTIME)), "}}");
	return (size_t)(end - out);
}

size_t gw_trace_event_lost(char out[GW_TRACE_TEXT_BYTES], uint32_t pid, uint32_t tid, uint64_t at_ns, uint64_t lost)
{
	static const struct gw_trace_form form = {"# events are lost", "trace", {"lost"}, NULL};
	const struct gw_trace_event event = {.kind = GW_TRACE_POINT, .form = &form, .at_ns = at_ns, .numbers = {lost}};
	return gw_trace_event_text(out, &event, pid, tid, false);
}
