/* A process's log. The agent appends to it, and rotates it at its size limit (FILE.1 is the newest of the old logs). If
 * a write fails (a full disk), all later output is dropped and the error is kept. The process continues, and the agent
 * reports the error.
 */
#include "tools/agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OLD_LOGS 3

static int log_file_open(struct gw_agent_log *log)
{
	struct stat st;
	log->fd = open(log->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (log->fd < 0)
		return errno;
	log->bytes = fstat(log->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
	return 0;
}

gw_status gw_agent_log_open(struct gw_agent_log *log, const char *path, uint64_t bytes_max)
{
	*log = (struct gw_agent_log){.fd = -1, .bytes_max = bytes_max};
	snprintf(log->path, sizeof(log->path), "%s", path);
	int error = log_file_open(log);
	return error ? gw_fail_errno(GW_IO, error, "%s: the log cannot be made", path) : GW_OK;
}

static void log_file_rotate(struct gw_agent_log *log)
{
	char from[GW_AGENT_PATH_MAX + 8], to[GW_AGENT_PATH_MAX + 8];
	for (int i = OLD_LOGS; i > 0; i--) {
		snprintf(to, sizeof(to), "%s.%d", log->path, i);
		if (i > 1)
			snprintf(from, sizeof(from), "%s.%d", log->path, i - 1);
		else
			snprintf(from, sizeof(from), "%s", log->path);
		rename(from, to);
	}
	close(log->fd);
	log->error = log_file_open(log);
}

void gw_agent_log_write(struct gw_agent_log *log, const char *text, size_t bytes)
{
	if (log->fd >= 0 && log->bytes + bytes > log->bytes_max && log->bytes > 0)
		log_file_rotate(log);
	while (log->fd >= 0 && bytes > 0) {
		ssize_t n = write(log->fd, text, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			log->error = errno;
			return;
		}
		log->bytes += (uint64_t)n;
		text += n;
		bytes -= (size_t)n;
	}
}

void gw_agent_log_close(struct gw_agent_log *log)
{
	if (log->fd >= 0)
		close(log->fd);
	log->fd = -1;
}
