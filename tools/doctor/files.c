/* Files and folders of /proc, /sys and /dev, under a root: "" for this machine, a fake tree in tests.
 *
 * Kernels, containers and tests may lack any of these files, or have unexpected content in them. So every read has a
 * limit, and a number is accepted only if nothing follows it. If a file is missing, a function returns false, without
 * an error.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/system/sysfile.h"
#include "tools/doctor/doctor.h"

#define TEXT_BYTES 16384
#define SPACES     " \t\r\n"

static bool path_of(const struct gw_doctor *doctor, char path[PATH_MAX], const char *format, va_list arguments)
	__attribute__((format(printf, 3, 0)));

static bool path_of(const struct gw_doctor *doctor, char path[PATH_MAX], const char *format, va_list arguments)
{
	int root = snprintf(path, PATH_MAX, "%s", doctor->root);
	if (root < 0 || root >= PATH_MAX)
		return false;
	int n = vsnprintf(path + root, PATH_MAX - (size_t)root, format, arguments);
	return n >= 0 && n < PATH_MAX - root;
}

static void copy_word(char out[GW_DOCTOR_WORD_MAX], const char *text, const char *ends)
{
	text += strspn(text, " \t");
	size_t n = strcspn(text, ends);
	while (n > 0 && strchr(SPACES, text[n - 1]))
		n--;
	if (n >= GW_DOCTOR_WORD_MAX)
		n = GW_DOCTOR_WORD_MAX - 1;
	memcpy(out, text, n);
	out[n] = 0;
}

static bool take_number(const char *text, int64_t *out)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno || end == text || strchr(SPACES, *text) || end[strspn(end, SPACES)])
		return false;
	*out = value;
	return true;
}

bool gw_doctor_word(const struct gw_doctor *doctor, char out[GW_DOCTOR_WORD_MAX], const char *format, ...)
{
	char path[PATH_MAX], text[GW_DOCTOR_WORD_MAX];
	va_list arguments;
	va_start(arguments, format);
	bool good = path_of(doctor, path, format, arguments);
	va_end(arguments);
	if (!good || !gw_sysfile_read(text, sizeof(text), "%s", path) || !text[strspn(text, SPACES)])
		return false;
	copy_word(out, text, "\n");
	return true;
}

bool gw_doctor_number(const struct gw_doctor *doctor, int64_t *out, const char *format, ...)
{
	char path[PATH_MAX], text[GW_DOCTOR_WORD_MAX];
	va_list arguments;
	va_start(arguments, format);
	bool good = path_of(doctor, path, format, arguments);
	va_end(arguments);
	return good && gw_sysfile_read(text, sizeof(text), "%s", path) && take_number(text, out);
}

bool gw_doctor_self(const struct gw_doctor *doctor, const char *field, char out[GW_DOCTOR_WORD_MAX])
{
	char text[TEXT_BYTES];
	size_t length = strlen(field);
	if (!gw_sysfile_read(text, sizeof(text), "%s/proc/self/status", doctor->root))
		return false;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, field, length) != 0 || line[length] != ':')
			continue;
		copy_word(out, line + length + 1, "\n");
		return out[0] != 0;
	}
	return false;
}

static bool take_limit(const char **text, uint64_t *out)
{
	char word[GW_DOCTOR_WORD_MAX];
	int64_t number;
	*text += strspn(*text, " \t");
	copy_word(word, *text, SPACES);
	*text += strlen(word);
	if (strcmp(word, "unlimited") == 0) {
		*out = UINT64_MAX;
		return true;
	}
	/* No machine has more than INT64_MAX of anything. */
	if (!take_number(word, &number) || number < 0)
		return false;
	*out = (uint64_t)number;
	return true;
}

bool gw_doctor_limit(const struct gw_doctor *doctor, const char *row, uint64_t *soft, uint64_t *hard)
{
	char text[TEXT_BYTES];
	uint64_t now, most;
	if (!gw_sysfile_read(text, sizeof(text), "%s/proc/self/limits", doctor->root))
		return false;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, row, strlen(row)) != 0)
			continue;
		line += strlen(row);
		if (!take_limit(&line, &now) || !take_limit(&line, &most))
			return false;
		*soft = now;
		*hard = most;
		return true;
	}
	return false;
}

bool gw_doctor_exists(const struct gw_doctor *doctor, const char *format, ...)
{
	char path[PATH_MAX];
	va_list arguments;
	va_start(arguments, format);
	bool good = path_of(doctor, path, format, arguments);
	va_end(arguments);
	return good && access(path, F_OK) == 0;
}

static int compare_names(const void *a, const void *b)
{
	return strverscmp(a, b);
}

bool gw_doctor_folder(const struct gw_doctor *doctor, const char *prefix, struct gw_doctor_names *out,
		      const char *format, ...)
{
	char path[PATH_MAX];
	va_list arguments;
	out->count = 0;
	va_start(arguments, format);
	bool good = path_of(doctor, path, format, arguments);
	va_end(arguments);
	DIR *folder = good ? opendir(path) : NULL;
	if (!folder)
		return false;
	for (struct dirent *entry; out->count < GW_DOCTOR_FOLDER_MAX && (entry = readdir(folder));) {
		const char *name = entry->d_name;
		if (name[0] == '.' || strncmp(name, prefix, strlen(prefix)) != 0 ||
		    strlen(name) >= sizeof(out->names[0]))
			continue;
		snprintf(out->names[out->count++], sizeof(out->names[0]), "%s", name);
	}
	closedir(folder);
	qsort(out->names, out->count, sizeof(out->names[0]), compare_names);
	return true;
}

bool gw_doctor_link(const struct gw_doctor *doctor, char out[GW_DOCTOR_WORD_MAX], const char *format, ...)
{
	char path[PATH_MAX], target[PATH_MAX];
	va_list arguments;
	va_start(arguments, format);
	bool good = path_of(doctor, path, format, arguments);
	va_end(arguments);
	ssize_t n = good ? readlink(path, target, sizeof(target) - 1) : -1;
	if (n <= 0)
		return false;
	target[n] = 0;
	const char *slash = strrchr(target, '/');
	copy_word(out, slash ? slash + 1 : target, "\n");
	return out[0] != 0;
}
