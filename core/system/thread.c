/* Starts threads, and finds the limit that refused one: see thread.h. */
#include "core/system/thread.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/errors/signals.h"
#include "core/system/limits.h"
#include "core/system/sysfile.h"

#define THREADS_SPARE 64 /* the advised limit leaves room for this many threads in addition to the refused one */

int gw_thread_start(pthread_t *thread, void *(*run)(void *context), void *context)
{
	sigset_t before;
	gw_signals_leave_to_program(&before);
	int error = pthread_create(thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

/* The address space has no room for one more stack. */
static bool lacks_space(void)
{
	uint64_t pages, space = gw_process_limit(GW_PROCESS_SPACE);
	struct rlimit stack;
	if (space == UINT64_MAX || getrlimit(RLIMIT_STACK, &stack) != 0 ||
	    !gw_sysfile_number(&pages, "/proc/self/statm"))
		return false;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE) + stack.rlim_cur > space;
}

/* The kernel has one error number for all of them. */
static void name_limit(char *text, size_t bytes)
{
	char fix[GW_LIMIT_FIX_MAX];
	struct gw_group_use group;
	gw_group_limit_read("", GW_GROUP_THREADS, &group);
	if (gw_group_left(&group) == 0)
		snprintf(text, bytes, "the control group's limit of %llu processes and threads is used up (%s): %s",
			 (unsigned long long)group.limit, group.file,
			 gw_group_fix(GW_GROUP_THREADS, &group, group.limit + THREADS_SPARE, fix));
	else if (lacks_space())
		snprintf(text, bytes, "the address space of %llu bytes has no room for its stack: %s",
			 (unsigned long long)gw_process_limit(GW_PROCESS_SPACE),
			 gw_process_fix_own(GW_PROCESS_SPACE, UINT64_MAX, fix));
	else if (gw_process_limit(GW_PROCESS_THREADS) != UINT64_MAX)
		snprintf(text, bytes, "this user may have %llu processes and threads: %s",
			 (unsigned long long)gw_process_limit(GW_PROCESS_THREADS),
			 gw_process_fix_own(GW_PROCESS_THREADS, UINT64_MAX, fix));
	else
		snprintf(text, bytes, "the kernel has no more threads, or no memory for one");
}

gw_status gw_thread_failed(int error, const char *format, ...)
{
	char what[GW_ERROR_TEXT_MAX / 4], limit[GW_ERROR_TEXT_MAX / 2];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	if (error != EAGAIN)
		return gw_fail_errno(GW_LIMIT, error, "%s", what);
	name_limit(limit, sizeof(limit));
	return gw_fail(GW_LIMIT, "%s: %s", what, limit);
}
