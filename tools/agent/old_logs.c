/* WORKSPACE/logs has a folder for each job; the folders of the newest jobs stay. The folder of a running job stays as
 * well: each of its agents has a lock on the folder's file .running, which also works between hosts of a shared file
 * system. If locks are not available, nothing is removed. Folders whose names do not look like launch.py's are never
 * touched.
 */
#include "tools/agent/agent.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/files/staging.h"

#define RUNNING ".running"

/* As in 20261122-162116-. Sorted names are in the order of their times. */
static int old_logs_is_job(const struct dirent *entry)
{
	static const char form[] = "dddddddd-dddddd-";
	for (size_t i = 0; form[i]; i++) {
		char c = entry->d_name[i];
		if (form[i] == 'd' ? !isdigit((unsigned char)c) : c != form[i])
			return 0;
	}
	return 1;
}

static int old_logs_order(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static bool old_logs_is_over(const char *folder)
{
	char path[GW_AGENT_PATH_MAX + 320];
	snprintf(path, sizeof(path), "%s/" RUNNING, folder);
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT;
	bool over = flock(fd, LOCK_EX | LOCK_NB) == 0;
	close(fd);
	return over;
}

gw_status gw_agent_logs_lock(struct gw_agent *agent)
{
	char path[GW_AGENT_PATH_MAX + 16];
	snprintf(path, sizeof(path), "%s/" RUNNING, agent->logs);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644); /* stays open until this process ends */
	if (fd < 0)
		return gw_fail_errno(GW_IO, errno, "%s: cannot be made", path);
	flock(fd, LOCK_SH | LOCK_NB);
	return GW_OK;
}

void gw_agent_logs_remove_old(const struct gw_agent *agent, size_t keep)
{
	char parent[GW_AGENT_PATH_MAX + 8], path[GW_AGENT_PATH_MAX + 300];
	struct dirent **jobs = NULL;
	struct gw_error_kept kept;
	gw_error_keep(&kept);
	snprintf(parent, sizeof(parent), "%s/logs", agent->workspace);
	int count = scandir(parent, &jobs, old_logs_is_job, old_logs_order);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", parent, jobs[i]->d_name);
		if ((size_t)i + keep < (size_t)count && strcmp(jobs[i]->d_name, agent->job) != 0 &&
		    old_logs_is_over(path))
			gw_remove_tree(path);
		free(jobs[i]);
	}
	free(jobs);
	gw_error_restore(&kept);
}
