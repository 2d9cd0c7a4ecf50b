/* The log's level, sink and form.
 *
 *   gw_log -> level enabled? -> the line -> the sink, or else the queue of lines for stderr (core/errors/lines.h)
 *
 * No lock is held while a sink runs, and none is taken around a fork: the forking thread may hold a lock that the sink
 * of another thread waits for. There are two slots for a sink. `current` names the one in use, and `running` counts the
 * calls that use each. To replace the sink, the new one goes into the free slot, `current` changes, and the caller
 * waits until no call uses the old slot.
 *
 * Errors: gw_log_set_sink within a sink. */
#include "core/errors/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/errors/lines.h"
#include "core/errors/log_line.h"
#include "core/errors/status.h"

#define LINE_MAX_BYTES 2048
#define STDERR_SLOT    -1
#define WAIT_NS        100000       /* between two looks at a sink that is replaced */
#define QUEUE_BYTES    (256u << 10) /* some 1,500 lines of the usual length */

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static atomic_int level_now = -1; /* -1: not yet read from the environment */
static enum gw_log_format format_now;

static struct {
	gw_log_sink call;
	void *context;
} sinks[2];

static atomic_int current = STDERR_SLOT;
static atomic_uint running[2];
static _Thread_local int slot_here = STDERR_SLOT; /* the slot whose sink this thread runs */
static pthread_mutex_t setting = PTHREAD_MUTEX_INITIALIZER;

static int level_from_environment(void)
{
	const char *text = getenv("GRAPHWIRE_LOG");
	for (int i = 0; text && i < 4; i++) {
		if (strcmp(text, level_names[i]) == 0)
			return i;
	}
	return GW_LOG_WARN;
}

void gw_log_set_level(enum gw_log_level level)
{
	atomic_store(&level_now, (int)level);
}

void gw_log_set_format(enum gw_log_format format)
{
	format_now = format;
}

/* The child has one thread. Other threads' calls of a sink, and a gw_log_set_sink under way, have ended there. */
static void log_in_child(void)
{
	pthread_mutex_init(&setting, NULL);
	for (int i = 0; i < 2; i++)
		atomic_store(&running[i], slot_here == i);
}

static void log_watch_forks(void)
{
	pthread_atfork(NULL, NULL, log_in_child);
}

gw_status gw_log_set_sink(gw_log_sink sink, void *context)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct timespec pause = {.tv_nsec = WAIT_NS};
	if (slot_here != STDERR_SLOT)
		return gw_fail(GW_INVALID, "gw_log_set_sink: called by a sink: call it when the sink has returned");
	pthread_once(&once, log_watch_forks);
	pthread_mutex_lock(&setting);
	int old = atomic_load(&current), next = STDERR_SLOT;
	if (sink) {
		next = old == 0 ? 1 : 0;
		sinks[next].call = sink;
		sinks[next].context = context;
	}
	atomic_store(&current, next);
	while (old != STDERR_SLOT && atomic_load(&running[old]) > 0)
		nanosleep(&pause, NULL);
	pthread_mutex_unlock(&setting);
	return GW_OK;
}

_Static_assert(GW_LOG_LINE_BYTES(LINE_MAX_BYTES) <= GW_LINES_BYTES_MAX, "the queue cuts no line of the log");

static size_t log_form(char *line, enum gw_log_level level, const char *message)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (format_now == GW_LOG_FORMAT_JSON)
		gw_log_line_json(line, &now, level_names[level], message);
	else
		gw_log_line_text(line, &now, level_names[level], message);
	return strlen(line);
}

static size_t describe_lost_lines(char *line, uint64_t lost)
{
	char message[96];
	snprintf(message, sizeof(message), "%llu line%s of the log %s lost here: stderr did not take them",
		 (unsigned long long)lost, lost == 1 ? "" : "s", lost == 1 ? "is" : "are");
	return log_form(line, GW_LOG_WARN, message);
}

static char queue_bytes[QUEUE_BYTES];
static struct gw_lines stderr_lines = GW_LINES(STDERR_FILENO, queue_bytes, describe_lost_lines);

static void log_print(enum gw_log_level level, const char *message)
{
	char line[GW_LOG_LINE_BYTES(LINE_MAX_BYTES)];
	gw_lines_put(&stderr_lines, line, log_form(line, level, message));
}

/* False: the line belongs on stderr. */
static bool log_to_sink(enum gw_log_level level, char *message)
{
	if (slot_here != STDERR_SLOT)
		return false;
	for (int slot; (slot = atomic_load(&current)) != STDERR_SLOT;) {
		atomic_fetch_add(&running[slot], 1);
		bool is_set = atomic_load(&current) == slot; /* else the slot may be about to change */
		if (is_set) {
			slot_here = slot;
			gw_text_keep_plain(message);
			sinks[slot].call(sinks[slot].context, level, message);
			slot_here = STDERR_SLOT;
		}
		atomic_fetch_sub(&running[slot], 1);
		if (is_set)
			return true;
	}
	return false;
}

void gw_log(enum gw_log_level level, const char *format, ...)
{
	int limit = atomic_load(&level_now);
	if (limit < 0) {
		limit = level_from_environment();
		atomic_compare_exchange_strong(&level_now, &(int){-1}, limit);
	}
	if ((int)level > limit)
		return;

	int error = errno; /* a caller may log a failure before it reads errno */
	char message[LINE_MAX_BYTES];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	if (!log_to_sink(level, message))
		log_print(level, message);
	errno = error;
}

void gw_log_failure(const char *command)
{
	char message[LINE_MAX_BYTES];
	snprintf(message, sizeof(message) - 1, "%s: %s", command, gw_last_error());
	if (format_now == GW_LOG_FORMAT_JSON) {
		log_print(GW_LOG_ERROR, message);
		return;
	}
	size_t bytes = strlen(message);
	message[bytes] = '\n';
	gw_lines_put(&stderr_lines, message, bytes + 1);
}
