/* The mark of a worker as text, and whether the worker still runs. The kernel reuses pids, but a pid with its time of
 * start is unique. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/system/sysfile.h"
#include "tools/agent/agent.h"

#define START_FIELD 20 /* spaces in /proc/PID/stat from the end of the name to starttime, field 22 */

uint64_t gw_agent_start_of(pid_t pid)
{
	char text[1024];
	if (!gw_sysfile_read(text, sizeof(text), "/proc/%ld/stat", (long)pid))
		return 0;
	char *at = strrchr(text, ')');
	if (at && strncmp(at, ") Z", 3) == 0)
		return 0;
	for (int i = 0; at && i < START_FIELD; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

void gw_agent_mark_text(const struct gw_agent_mark *mark, char out[GW_AGENT_MARK_MAX])
{
	snprintf(out, GW_AGENT_MARK_MAX, "%ld:%llu:%s", (long)mark->worker, (unsigned long long)mark->start, mark->job);
}

bool gw_agent_mark_parse(const char *text, struct gw_agent_mark *mark)
{
	char *end;
	*mark = (struct gw_agent_mark){.worker = (pid_t)strtol(text, &end, 10)};
	if (*end != ':' || mark->worker <= 0)
		return false;
	mark->start = strtoull(end + 1, &end, 10);
	if (*end != ':' || strlen(end + 1) >= sizeof(mark->job))
		return false;
	memcpy(mark->job, end + 1, strlen(end + 1) + 1);
	return true;
}

bool gw_agent_worker_lives(const struct gw_agent_mark *mark)
{
	return mark->start > 0 && gw_agent_start_of(mark->worker) == mark->start;
}
