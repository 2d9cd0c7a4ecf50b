/* Errors: a status that programs act on and, for people, one line of text per thread.
 *
 * The function that finds the fault calls gw_fail() with what and where; each caller that knows more puts its context
 * in front ("load part 2: indptr.npy: ..."). The text is printed once, by the caller that decides what happens next.
 */
#ifndef GW_ERRORS_STATUS_H
#define GW_ERRORS_STATUS_H

#include <graphwire/types.h>

#define GW_ERROR_TEXT_MAX 1024 /* bytes; a longer text is cut */

/* How the limit on open files is raised, for texts that name no number. */
#define GW_FILES_HINT "ulimit -n; a unit: LimitNOFILE=, a container: docker run --ulimit nofile="

/* Sets this thread's error text and returns the status, which is not GW_OK. The old text may be an argument. */
gw_status gw_fail(gw_status status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* The same, ending in ": " and the text of the errno value, for EMFILE and EFBIG with the limit to raise. A shortage
 * overrides a GW_IO status: ENOSPC and EDQUOT with GW_NO_SPACE, ENOMEM with GW_NO_MEMORY, EMFILE and ENFILE with
 * GW_LIMIT. */
gw_status gw_fail_errno(gw_status status, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4), cold));

/* What both promise, told to compilers and analyzers, which otherwise follow paths where a failure returns GW_OK. */
static inline gw_status gw_failed(gw_status status)
{
	if (status == GW_OK)
		__builtin_unreachable();
	return status;
}
#define gw_fail(...)       gw_failed(gw_fail(__VA_ARGS__))
#define gw_fail_errno(...) gw_failed(gw_fail_errno(__VA_ARGS__))

/* Puts "context: " in front of this thread's error text; returns the status unchanged. */
gw_status gw_context(gw_status status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Puts "; advice" behind this thread's error text: what to do, where the caller knows that better than the function
 * that found the fault. Returns the status unchanged. */
gw_status gw_advise(gw_status status, const char *advice);

/* Keeps this thread's error text over a stretch of code whose failures are nobody's news: whatever closes, cancels or
 * frees does so, since it is called on the way out, and its caller has an error to tell. The text is where it was
 * before, byte for byte, so that pointers to it stay right. Stretches nest.
 *
 *   struct gw_error_kept kept;
 *   gw_error_keep(&kept);
 *   ...
 *   gw_error_restore(&kept);
 */
struct gw_error_kept {
	char text[GW_ERROR_TEXT_MAX];
};
void gw_error_keep(struct gw_error_kept *kept);
void gw_error_restore(const struct gw_error_kept *kept);

/* Sets the text that another thread's failure left, for handing an error over between threads. */
gw_status gw_fail_text(gw_status status, const char *text);

/* Replaces control characters by '?', in place: error texts are that already, and lines of the log. */
void gw_text_keep_plain(char *text);

#endif
