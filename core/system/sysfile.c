/* Reads /proc and /sys. A missing file is normal: containers hide some, and kernels lack some. */
#include "core/system/sysfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool sysfile_read_file(char *buffer, size_t bytes, const char *format, va_list arguments)
	__attribute__((format(printf, 3, 0)));

static bool sysfile_read_file(char *buffer, size_t bytes, const char *format, va_list arguments)
{
	char path[PATH_MAX];
	int length = vsnprintf(path, sizeof(path), format, arguments);
	buffer[0] = 0;
	if (length < 0 || (size_t)length >= sizeof(path))
		return false;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	size_t used = 0;
	ssize_t got = 1;
	while (used + 1 < bytes && got > 0) {
		got = read(file, buffer + used, bytes - 1 - used);
		used += got > 0 ? (size_t)got : 0;
	}
	buffer[used] = 0;
	close(file);
	return got >= 0;
}

bool gw_sysfile_read(char *buffer, size_t bytes, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	bool found = sysfile_read_file(buffer, bytes, format, arguments);
	va_end(arguments);
	return found;
}

bool gw_sysfile_field(const char *text, const char *field, uint64_t *out)
{
	size_t length = strlen(field);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, field, length) != 0)
			continue;
		char *end;
		const char *value = line + length;
		*out = strtoull(value, &end, 10);
		return end != value;
	}
	return false;
}

bool gw_sysfile_number(uint64_t *out, const char *format, ...)
{
	char text[64], *end;
	va_list arguments;
	va_start(arguments, format);
	bool found = sysfile_read_file(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (!found)
		return false;
	if (strncmp(text, "max", 3) == 0) {
		*out = UINT64_MAX;
		return true;
	}
	*out = strtoull(text, &end, 10);
	return end != text;
}

bool gw_sysfile_list(const char *text, bool *flags, uint32_t limit)
{
	memset(flags, 0, limit * sizeof(*flags));
	while (*text && *text != '\n') {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;
		if (end == text)
			return false;
		if (*end == '-') {
			text = end + 1;
			last = strtoul(text, &end, 10);
			if (end == text || last < first)
				return false;
		}
		for (unsigned long i = first; i <= last && i < limit; i++)
			flags[i] = true;
		text = *end == ',' ? end + 1 : end;
		if (*end && *end != ',' && *end != '\n')
			return false;
	}
	return true;
}

void gw_sysfile_choice(const char *text, char *word, size_t bytes)
{
	const char *begin = strchr(text, '[');
	const char *end = begin ? strchr(begin, ']') : NULL;
	word[0] = 0;
	if (!end || (size_t)(end - begin) > bytes)
		return;
	memcpy(word, begin + 1, (size_t)(end - begin - 1));
	word[end - begin - 1] = 0;
}
