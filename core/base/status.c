/* Error text per thread. Never allocates, so that a memory shortage can be reported too. */
#include "core/base/status.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
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

/* A name out of a file or from a peer may hold line ends or terminal codes: an error stays one plain line. */
static void keep_plain(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
	}
}

gw_status(gw_fail)(gw_status status, const char *format, ...)
{
	assert(status != GW_OK);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(error_text, sizeof(error_text), format, arguments);
	va_end(arguments);
	keep_plain(error_text);
	return status;
}

gw_status(gw_fail_errno)(gw_status status, int error, const char *format, ...)
{
	assert(status != GW_OK);
	va_list arguments;
	va_start(arguments, format);
	int used = vsnprintf(error_text, sizeof(error_text), format, arguments);
	va_end(arguments);
	keep_plain(error_text);
	if (used >= 0 && (size_t)used < sizeof(error_text)) {
		char buffer[128];
		snprintf(error_text + used, sizeof(error_text) - (size_t)used, ": %s",
			 strerror_r(error, buffer, sizeof(buffer)));
	}
	if (status == GW_IO && (error == ENOSPC || error == EDQUOT))
		return GW_NO_SPACE;
	if (status == GW_IO && error == ENOMEM)
		return GW_NO_MEMORY;
	return status;
}

gw_status gw_context(gw_status status, const char *format, ...)
{
	char old[GW_ERROR_TEXT_MAX];
	memcpy(old, error_text, sizeof(old));
	va_list arguments;
	va_start(arguments, format);
	int used = vsnprintf(error_text, sizeof(error_text), format, arguments);
	va_end(arguments);
	keep_plain(error_text);
	if (used >= 0 && (size_t)used < sizeof(error_text))
		snprintf(error_text + used, sizeof(error_text) - (size_t)used, ": %s", old);
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
	snprintf(error_text, sizeof(error_text), "%s", text);
	keep_plain(error_text);
	return status;
}
