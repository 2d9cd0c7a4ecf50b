/* Kills all descendants of this process.
 *
 * This process is a subreaper: a descendant that loses its parent becomes our child. So when this process has no child,
 * it has no descendants, and the kernel reports this without a race. Until then, it searches /proc for its descendants
 * and kills them. The next search finds processes that were forked or became children meanwhile.
 *
 * Zombies belong to the tree. While a process of several threads is being killed, its first thread may have ended
 * before the others. The process is then a zombie until they have ended, and still the parent of its children.
 */
#include "tools/agent/agent.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/system/clock.h"
#include "core/system/sysfile.h"

#define KILL_NS       (2 * GW_NS_PER_SECOND)
#define PROCESSES_MAX 65536
#define TOLD_MAX      16 /* remaining processes that are reported */
#define COMMAND_MAX   200

struct kin {
	pid_t pid, parent;
	bool ours;
};

/* Static, so that the kill needs no memory. */
static struct kin kin_all[PROCESSES_MAX];

/* The parent is the second field after the closing parenthesis of the name. */
static bool kin_read(const char *name, struct kin *out)
{
	char text[512];
	if (!gw_sysfile_read(text, sizeof(text), "/proc/%s/stat", name))
		return false;
	const char *behind = strrchr(text, ')');
	int parent;
	if (!behind || sscanf(behind + 1, " %*c %d", &parent) != 1)
		return false;
	*out = (struct kin){.pid = (pid_t)strtol(name, NULL, 10), .parent = parent};
	return true;
}

static size_t kin_list(struct kin *all)
{
	size_t count = 0;
	DIR *proc = opendir("/proc");
	if (!proc)
		return 0;
	for (struct dirent *entry; (entry = readdir(proc)) && count < PROCESSES_MAX;) {
		if (isdigit((unsigned char)*entry->d_name) && kin_read(entry->d_name, &all[count]))
			count++;
	}
	closedir(proc);
	return count;
}

/* Marks every process whose parent is marked, and repeats this until no more are found. */
static void kin_mark(struct kin *all, size_t count)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < count; i++) {
			bool below = all[i].parent == getpid();
			for (size_t j = 0; !all[i].ours && !below && j < count; j++)
				below = all[j].ours && all[j].pid == all[i].parent;
			if (all[i].ours || !below)
				continue;
			all[i].ours = true;
			more = true;
		}
	}
}

/* True: no child is left. */
static bool descendants_reap(struct gw_agent *agent)
{
	siginfo_t info;
	if (agent)
		gw_agent_process_reap(agent);
	else
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

json_t *gw_agent_process_json(pid_t pid)
{
	char text[COMMAND_MAX + 1] = "", path[64];
	snprintf(path, sizeof(path), "/proc/%ld/cmdline", (long)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, COMMAND_MAX) : 0;
	if (fd >= 0)
		close(fd);
	if (n <= 0 && gw_sysfile_read(text, sizeof(text), "/proc/%ld/comm", (long)pid))
		n = (ssize_t)strcspn(text, "\n");
	for (ssize_t i = 0; i < n; i++)
		text[i] = text[i] >= ' ' && text[i] < 127 ? text[i] : text[i] ? '?' : ' ';
	while (n > 0 && text[n - 1] == ' ')
		n--;
	text[n > 0 ? n : 0] = '\0';
	return json_pack("{si ss}", "pid", (int)pid, "command", text);
}

static json_t *kin_left(const struct kin *all, size_t count)
{
	json_t *left = json_array();
	for (size_t i = 0; i < count && json_array_size(left) < TOLD_MAX; i++) {
		if (all[i].ours)
			json_array_append_new(left, gw_agent_process_json(all[i].pid));
	}
	if (json_array_size(left) == 0) /* a child that /proc does not show */
		json_array_append_new(left, json_pack("{si ss}", "pid", 0, "command", "not in /proc"));
	return left;
}

json_t *gw_agent_descendants_kill(struct gw_agent *agent)
{
	uint64_t end = gw_now_ns() + KILL_NS;
	while (!descendants_reap(agent)) {
		size_t count = kin_list(kin_all);
		kin_mark(kin_all, count);
		if (gw_now_ns() > end)
			return kin_left(kin_all, count);
		for (size_t i = 0; i < count; i++) {
			if (kin_all[i].ours)
				kill(kin_all[i].pid, SIGKILL);
		}
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* give the kernel time to end them */
	}
	return json_array();
}
