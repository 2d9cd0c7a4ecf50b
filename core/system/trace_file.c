/* Names, locks and writes the file of a trace: see trace_file.h. A lock (flock) shows other processes that the file is
 * in use; the kernel removes it when the process ends, in whatever way.
 *
 * Errors: a path that cannot be opened, or that is no regular file; a failed write, after which the file is cut behind
 * its last whole event. */
#include "core/system/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

static gw_status trace_file_name(const char *pattern, char path[PATH_MAX])
{
	struct utsname host = {0};
	char number[16];
	size_t used = 0;
	snprintf(number, sizeof(number), "%d", (int)getpid());
	uname(&host);
	for (const char *at = pattern; *at; at++) {
		char one[2] = {*at, 0};
		const char *piece = one;
		if (at[0] == '%' && at[1] && strchr("ph%", at[1]))
			piece = *++at == 'p' ? number : *at == 'h' ? host.nodename : "%";
		size_t bytes = strlen(piece);
		if (used + bytes >= PATH_MAX - sizeof(number) - 1) /* room for ".PID" */
			return gw_fail(GW_INVALID, "the name of the trace is too long");
		memcpy(path + used, piece, bytes + 1);
		used += bytes;
	}
	return GW_OK;
}

/* Does not wait for the reader of a named pipe. */
static gw_status trace_file_try(struct gw_trace_file *file, bool *locked)
{
	struct stat about;
	file->fd = open(file->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
	if (file->fd < 0)
		return gw_fail_errno(GW_IO, errno, "%s", file->path);
	*locked = flock(file->fd, LOCK_EX | LOCK_NB) == 0;
	if (fstat(file->fd, &about) != 0 || !S_ISREG(about.st_mode)) {
		gw_trace_file_close(file);
		return gw_fail(GW_IO, "%s: it is not a regular file", file->path);
	}
	return GW_OK;
}

gw_status gw_trace_file_open(struct gw_trace_file *file, const char *pattern)
{
	bool locked = false;
	file->fd = -1;
	file->written = 0;
	gw_status status = trace_file_name(pattern, file->path);
	if (status == GW_OK)
		status = trace_file_try(file, &locked);
	if (status == GW_OK && !locked) {
		size_t used = strlen(file->path);
		gw_trace_file_close(file);
		snprintf(file->path + used, PATH_MAX - used, ".%d", (int)getpid());
		status = trace_file_try(file, &locked);
	}
	if (status == GW_OK && ftruncate(file->fd, 0) != 0) {
		status = gw_fail_errno(GW_IO, errno, "%s", file->path);
		gw_trace_file_close(file);
	}
	memcpy(file->buffer, "[\n", 2);
	file->used = 2;
	return status;
}

/* Each page that is written whole ends with a whole event. Fails with errno. */
static gw_status trace_file_cut(struct gw_trace_file *file, size_t written)
{
	gw_status status = gw_fail_errno(GW_IO, errno, "%s", file->path);
	uint64_t end = (file->written + written) / GW_TRACE_PAGE * GW_TRACE_PAGE;
	if (ftruncate(file->fd, (off_t)(end > file->written ? end : file->written)) != 0)
		return gw_context(status, "its last event is cut");
	return status;
}

gw_status gw_trace_file_flush(struct gw_trace_file *file)
{
	for (size_t at = 0; at < file->used;) {
		ssize_t n = write(file->fd, file->buffer + at, file->used - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return trace_file_cut(file, at);
		at += (size_t)n;
	}
	file->written += file->used;
	file->used = 0;
	return GW_OK;
}

gw_status gw_trace_file_add(struct gw_trace_file *file, const char *event, size_t bytes)
{
	uint64_t position = file->written + file->used;
	size_t room = GW_TRACE_PAGE - (size_t)(position % GW_TRACE_PAGE), fill = bytes + 2 > room ? room : 0;
	if (sizeof(file->buffer) - file->used < fill + bytes + 2) {
		gw_status status = gw_trace_file_flush(file);
		if (status != GW_OK)
			return status;
	}
	memset(file->buffer + file->used, ' ', fill);
	file->used += fill;
	if (position > 2) {
		memcpy(file->buffer + file->used, ",\n", 2);
		file->used += 2;
	}
	memcpy(file->buffer + file->used, event, bytes);
	file->used += bytes;
	return GW_OK;
}

gw_status gw_trace_file_end(struct gw_trace_file *file)
{
	gw_status status = gw_trace_file_flush(file);
	if (status == GW_OK) {
		memcpy(file->buffer, "\n]\n", 3);
		file->used = 3;
		status = gw_trace_file_flush(file);
	}
	gw_trace_file_close(file);
	return status;
}

void gw_trace_file_close(struct gw_trace_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}
