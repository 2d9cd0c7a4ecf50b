/* ~/.graphwire/HOST: files of this user's agents on this host while they run. HOST is in the path, since several hosts
 * may share a home folder. The runtime folder is not used, because it disappears when the user logs out, and kept
 * servers stay.
 *
 *   agent-PID/key, ip_config, mark   one job; the mark names the job (left.c)
 *   agent-PID/sitecustomize.py       for the Pythons of trainers, as the launcher sent it
 *   server-PORT.json                 one server (record.c)
 *
 * A job's worker or guardian removes its folder. If both were killed, the agent of the next job removes it when no
 * process of the job runs any more.
 */
#include "tools/agent/agent.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files/replace.h"
#include "core/files/staging.h"
#include "core/system/sysfile.h"

static const char *home_of_user(void)
{
	const char *home = getenv("HOME");
	if (home && *home == '/')
		return home;
	const struct passwd *user = getpwuid(geteuid());
	return user ? user->pw_dir : "/";
}

static gw_status home_make(const char *path)
{
	struct stat st;
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return gw_fail_errno(GW_IO, errno, "%s: cannot be made", path);
	if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return gw_fail(GW_REFUSED,
			       "%s: must be a folder of this user that no other user may write: chmod 700 it", path);
	return GW_OK;
}

gw_status gw_agent_home(char path[GW_AGENT_PATH_MAX])
{
	char host[65] = "";
	gethostname(host, sizeof(host) - 1);
	for (char *c = host; *c; c++)
		*c = isalnum((unsigned char)*c) || *c == '-' || *c == '.' ? *c : '_';
	if (snprintf(path, GW_AGENT_PATH_MAX, "%s/.graphwire", home_of_user()) >= GW_AGENT_PATH_MAX - 160)
		return gw_fail(GW_INVALID, "HOME is too long");
	gw_status status = home_make(path);
	if (status != GW_OK)
		return status;
	snprintf(path + strlen(path), 80, "/%s", *host ? host : "host");
	return home_make(path);
}

/* A folder without a mark is from an agent that was killed while it made the folder, or from an older version. Its
 * worker is the process of the pid in the folder's name, if that process is a Graphwire program. */
static void home_mark_unnamed(pid_t pid, struct gw_agent_mark *mark)
{
	char name[32] = "";
	bool ours =
		gw_sysfile_read(name, sizeof(name), "/proc/%ld/comm", (long)pid) && strncmp(name, "graphwire", 9) == 0;
	*mark = (struct gw_agent_mark){.worker = pid, .start = ours ? gw_agent_start_of(pid) : 0, .job = "?"};
}

bool gw_agent_folder_mark(const char *home, const char *entry, struct gw_agent_mark *mark)
{
	char text[GW_AGENT_MARK_MAX];
	char *end;
	if (strncmp(entry, "agent-", 6) != 0)
		return false;
	pid_t pid = (pid_t)strtol(entry + 6, &end, 10);
	if (*end || pid <= 0)
		return false;
	if (!gw_sysfile_read(text, sizeof(text), "%s/%s/mark", home, entry) || !gw_agent_mark_parse(text, mark) ||
	    mark->worker != pid)
		home_mark_unnamed(pid, mark);
	return true;
}

void gw_agent_folder_remove(pid_t worker)
{
	struct gw_error_kept kept;
	char path[GW_AGENT_PATH_MAX + 32];
	gw_error_keep(&kept);
	if (gw_agent_home(path) == GW_OK) {
		snprintf(path + strlen(path), 32, "/agent-%ld", (long)worker);
		gw_remove_tree(path);
	}
	gw_error_restore(&kept);
}

gw_status gw_agent_folder_make(struct gw_agent *agent)
{
	char mark[GW_AGENT_MARK_MAX];
	gw_agent_folder_remove(getpid());
	gw_status status = gw_agent_home(agent->folder);
	if (status == GW_OK)
		snprintf(agent->folder + strlen(agent->folder), 32, "/agent-%ld", (long)getpid());
	if (status == GW_OK && mkdir(agent->folder, 0700) != 0)
		status = gw_fail_errno(GW_IO, errno, "%s: cannot be made", agent->folder);
	gw_agent_mark_text(&agent->mark, mark);
	return status != GW_OK ? status : gw_file_replace(agent->folder, "mark", mark, strlen(mark));
}

gw_status gw_agent_expand(const char *path, char out[GW_AGENT_PATH_MAX])
{
	char name[GW_AGENT_NAME_MAX];
	const char *rest = path, *base = "";
	if (*path == '~') {
		rest = strchr(path, '/');
		size_t n = rest ? (size_t)(rest - path) - 1 : strlen(path) - 1;
		rest = rest ? rest : "";
		if (n >= sizeof(name))
			return gw_fail(GW_INVALID, "%.64s: the name is too long", path);
		memcpy(name, path + 1, n);
		name[n] = '\0';
		const struct passwd *user = n ? getpwnam(name) : NULL;
		if (n && !user)
			return gw_fail(GW_NOT_FOUND, "%s: there is no user \"%s\" here; did you mean ~/%s%s?", path,
				       name, name, rest);
		base = n ? user->pw_dir : home_of_user();
	} else if (*path != '/') {
		return gw_fail(GW_INVALID, "%s: must begin with / or ~", *path ? path : "an empty path");
	}
	size_t length = strlen(rest);
	while (length > 1 && rest[length - 1] == '/')
		length--;
	int n = snprintf(out, GW_AGENT_PATH_MAX, "%s%.*s", base, (int)length, rest);
	return n < GW_AGENT_PATH_MAX - 256 ? GW_OK : gw_fail(GW_INVALID, "%.64s...: too long", path);
}
