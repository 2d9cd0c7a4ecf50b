/* The log's level, sink and line format. */
#include "core/errors/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/errors/status.h"

#define LINE_MAX_BYTES 2048

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static atomic_int level_now = -1; /* -1: not yet read from the environment */
static void (*sink_now)(void *, enum gw_log_level, const char *);
static void *sink_context;

static int level_from_environment(void)
{
	const char *text = getenv("GRAPHWIRE_LOG");
	for (int i = 0; text && i < 4; i++) {
		if (strcmp(text, level_names[i]) == 0)
			return i;
	}
	return GW_LOG_WARN;
}

void gw_log_level_set(enum gw_log_level level)
{
	atomic_store(&level_now, (int)level);
}

void gw_log_sink_set(void (*sink)(void *context, enum gw_log_level level, const char *line), void *context)
{
	sink_now = sink;
	sink_context = context;
}

static void log_print(enum gw_log_level level, const char *line)
{
	struct timespec now;
	struct tm parts;
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &parts);
	fprintf(stderr, "%02d:%02d:%02d.%03ld %s: %s\n", parts.tm_hour, parts.tm_min, parts.tm_sec,
		now.tv_nsec / 1000000, level_names[level], line);
}

void gw_log(enum gw_log_level level, const char *format, ...)
{
	int limit = atomic_load(&level_now);
	if (limit < 0) {
		limit = level_from_environment();
		atomic_store(&level_now, limit);
	}
	if ((int)level > limit)
		return;

	int error = errno; /* a caller may log a failure before it reads errno */
	char line[LINE_MAX_BYTES];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	gw_text_keep_plain(line);
	if (sink_now)
		sink_now(sink_context, level, line);
	else
		log_print(level, line);
	errno = error;
}
