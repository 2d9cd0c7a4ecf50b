/* Errors: a status that programs act on and, for people, one line of text per thread.
 *
 * The function that finds a fault calls gw_fail() with what failed and where. Each caller that knows more prepends its
 * context ("load part 2: indptr.npy: ..."). The caller that decides what happens next prints the text once.
 */
#ifndef GW_ERRORS_STATUS_H
#define GW_ERRORS_STATUS_H

#include <graphwire/types.h>

#define GW_ERROR_TEXT_MAX 1024 /* bytes; a longer text is cut */

/* How to raise the limit on open files, for texts that name no number. */
#define GW_FILES_HINT "ulimit -n; a unit: LimitNOFILE=, a container: docker run --ulimit nofile="

/* Sets this thread's error text and returns the status, which is not GW_OK. The old text may be among the arguments. */
gw_status gw_fail(gw_status status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Like gw_fail, and appends ": " and the text of the errno value; for EMFILE and EFBIG it also names the limit to
 * raise. A shortage overrides GW_IO: ENOSPC and EDQUOT give GW_NO_SPACE, ENOMEM gives GW_NO_MEMORY, EMFILE and ENFILE
 * give GW_LIMIT. */
gw_status gw_fail_errno(gw_status status, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4), cold));

/* Without it, compilers and analyzers would follow paths on which gw_fail or gw_fail_errno returns GW_OK; neither ever
 * does. */
static inline gw_status gw_failed(gw_status status)
{
	if (status == GW_OK)
		__builtin_unreachable();
	return status;
}
#define gw_fail(...)       gw_failed(gw_fail(__VA_ARGS__))
#define gw_fail_errno(...) gw_failed(gw_fail_errno(__VA_ARGS__))

/* Prepends "context: " to this thread's error text; returns the status unchanged. */
gw_status gw_context(gw_status status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Appends "; advice" to this thread's error text, for a caller that knows the remedy better than the function that
 * found the fault. Returns the status unchanged. */
gw_status gw_advise(gw_status status, const char *advice);

/* Keeps this thread's error text over code whose failures are not reported. Functions that close, cancel or free do so:
 * their caller may already have an error to report. Restoring puts the same bytes at the same address, so pointers to
 * the text stay valid. Pairs of keep and restore may be nested.
 *
 *   struct gw_error_kept kept;
 *   gw_error_keep(&kept);
 *   ...
 *   gw_error_restore(&kept); */
struct gw_error_kept {
	char text[GW_ERROR_TEXT_MAX];
};
void gw_error_keep(struct gw_error_kept *kept);
void gw_error_restore(const struct gw_error_kept *kept);

/* Takes an error over from another thread: sets this thread's error text to a copy of its text. Returns the status. */
gw_status gw_fail_text(gw_status status, const char *text);

/* Replaces control characters by '?', in place. Error texts and lines of the log are already plain. */
void gw_text_keep_plain(char *text);

#endif
