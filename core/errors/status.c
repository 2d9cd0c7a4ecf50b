/* Error text per thread. Never allocates, so that it can report a shortage of memory too. */
#include "core/errors/status.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char error_text[GW_ERROR_TEXT_MAX];

const char *gw_status_text(gw_status status)
{
	static const char *const texts[] = {
#define TEXT(name, text) [name] = text,
		GW_STATUS_LIST(TEXT)
#undef TEXT
	};
	return (unsigned)status < GW_STATUS_COUNT ? texts[status] : "unknown status";
}

const char *gw_last_error(void)
{
	return error_text;
}

/* A name from a file or a peer may contain line ends or terminal codes, but a text for people must stay one plain line.
 * In UTF-8 the second set of control characters is c2 80 to c2 9f. */
void gw_text_keep_plain(char *text)
{
	for (unsigned char *at = (unsigned char *)text; *at; at++) {
		bool control = at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f;
		if (control)
			*at++ = '?';
		if (control || *at < ' ' || *at == 0x7f)
			*at = '?';
	}
}

/* Formats into a second buffer, because the old text may be among the arguments. */
static void set_text(char text[GW_ERROR_TEXT_MAX])
{
	gw_text_keep_plain(text);
	memcpy(error_text, text, strlen(text) + 1);
}

static void status_append(char text[GW_ERROR_TEXT_MAX], const char *more)
{
	size_t used = strlen(text);
	snprintf(text + used, GW_ERROR_TEXT_MAX - used, ": %s", more);
}

gw_status(gw_fail)(gw_status status, const char *format, ...)
{
	assert(status != GW_OK);
	char text[GW_ERROR_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	set_text(text);
	return status;
}

gw_status(gw_fail_errno)(gw_status status, int error, const char *format, ...)
{
	assert(status != GW_OK);
	char text[GW_ERROR_TEXT_MAX], buffer[128];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	status_append(text, strerror_r(error, buffer, sizeof(buffer)));
	if (error == EMFILE || error == EFBIG) /* limits of this process: one remedy for every file */
		status_append(text, error == EMFILE
					    ? "raise the limit on open files (" GW_FILES_HINT ")"
					    : "raise the limit on the size of files (ulimit -f; a unit: LimitFSIZE=, "
					      "a container: docker run --ulimit fsize=)");
	if (error == ENFILE)
		status_append(text,
			      "all processes of this machine have too many files open: sudo sysctl -w fs.file-max=N");
	set_text(text);
	if (status == GW_IO && (error == ENOSPC || error == EDQUOT))
		return GW_NO_SPACE;
	if (status == GW_IO && error == ENOMEM)
		return GW_NO_MEMORY;
	if (status == GW_IO && (error == EMFILE || error == ENFILE))
		return GW_LIMIT;
	return status;
}

gw_status gw_context(gw_status status, const char *format, ...)
{
	char text[GW_ERROR_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	status_append(text, error_text);
	set_text(text);
	return status;
}

gw_status gw_advise(gw_status status, const char *advice)
{
	size_t used = strlen(error_text);
	snprintf(error_text + used, sizeof(error_text) - used, "; %s", advice);
	return status;
}

gw_status gw_fail_text(gw_status status, const char *text)
{
	char copy[GW_ERROR_TEXT_MAX];
	snprintf(copy, sizeof(copy), "%s", text);
	set_text(copy);
	return status;
}

void gw_error_keep(struct gw_error_kept *kept)
{
	memcpy(kept->text, error_text, strlen(error_text) + 1);
}

void gw_error_restore(const struct gw_error_kept *kept)
{
	memcpy(error_text, kept->text, strlen(kept->text) + 1);
}
