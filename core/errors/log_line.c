/* Forms of a line: the date and time in UTC, as RFC 3339 writes them; the level; the message, plain or as a JSON
 * string. */
#include "core/errors/log_line.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/errors/status.h"

#define DATE_BYTES 40

static void write_date(char out[DATE_BYTES], const struct timespec *when)
{
	struct tm parts;
	gmtime_r(&when->tv_sec, &parts);
	size_t used = strftime(out, DATE_BYTES, "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(out + used, DATE_BYTES - used, ".%03ldZ", when->tv_nsec / 1000000);
}

void gw_log_line_text(char *out, const struct timespec *when, const char *level, const char *message)
{
	char date[DATE_BYTES];
	write_date(date, when);
	size_t used = (size_t)sprintf(out, "%s %s ", date, level);
	size_t bytes = strlen(message);
	memcpy(out + used, message, bytes + 1);
	gw_text_keep_plain(out + used);
	memcpy(out + used + bytes, "\n", 2);
}

/* The bytes of the UTF-8 sequence at `at`, and its code point; 0: no valid sequence. Overlong forms, surrogates and
 * code points above U+10FFFF are not valid. The text's last NUL ends a sequence that was cut. */
static unsigned take_utf8(const unsigned char *at, uint32_t *point)
{
	unsigned more = at[0] < 0x80 ? 0 : at[0] >= 0xf0 ? 3 : at[0] >= 0xe0 ? 2 : 1;
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
	if (at[0] > 0xf4 || (at[0] >= 0x80 && at[0] < 0xc2))
		return 0;
	uint32_t bits = more == 0 ? at[0] : at[0] & (0x3fu >> more);
	for (unsigned i = 1; i <= more; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		bits = bits << 6 | (at[i] & 0x3f);
	}
	*point = bits;
	return bits < least[more] || bits > 0x10ffff || (bits >= 0xd800 && bits <= 0xdfff) ? 0 : more + 1;
}

/* Returns the end of what it wrote. */
static char *write_escaped(char *out, const unsigned char *at, unsigned bytes, uint32_t point)
{
	bool is_control = point < ' ' || (point >= 0x7f && point < 0xa0);
	if (is_control || bytes == 0)
		return out + sprintf(out, "\\u%04x", bytes ? (unsigned)point : 0xfffd);
	if (point == '"' || point == '\\')
		*out++ = '\\';
	memcpy(out, at, bytes);
	return out + bytes;
}

char *gw_log_line_escape(char *out, const char *text)
{
	for (const unsigned char *at = (const unsigned char *)text; *at;) {
		uint32_t point = 0;
		unsigned bytes = take_utf8(at, &point);
		out = write_escaped(out, at, bytes, point);
		at += bytes ? bytes : 1;
	}
	return out;
}

void gw_log_line_json(char *out, const struct timespec *when, const char *level, const char *message)
{
	char date[DATE_BYTES];
	write_date(date, when);
	out += sprintf(out, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":\"", date, level);
	memcpy(gw_log_line_escape(out, message), "\"}\n", 4);
}
