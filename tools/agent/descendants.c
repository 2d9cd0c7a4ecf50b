/* All that descends from this process, killed. Each look at /proc finds the tree below us; what is forked meanwhile, or
 * loses its parent, is ours at the next look, since we are a subreaper: until a look finds nobody. */
#include "tools/agent/agent.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/sysfile.h"

#define KILL_NS       (2 * GW_NS_PER_SECOND)
#define PROCESSES_MAX 65536

struct kin {
	pid_t pid, parent;
	bool ours;
};

/* The parent is the second field behind the name's closing parenthesis; zombies have nothing left to kill. */
static bool kin_read(const char *name, struct kin *out)
{
	char text[512];
	if (!gw_sysfile_read(text, sizeof(text), "/proc/%s/stat", name))
		return false;
	const char *behind = strrchr(text, ')');
	char state;
	int parent;
	if (!behind || sscanf(behind + 1, " %c %d", &state, &parent) != 2)
		return false;
	*out = (struct kin){.pid = (pid_t)strtol(name, NULL, 10), .parent = parent};
	return state != 'Z';
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

/* Marks processes with a marked parent, until nothing changes; returns how many there are. */
static int kin_mark(struct kin *all, size_t count)
{
	int found = 0;
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < count; i++) {
			bool below = all[i].parent == getpid();
			for (size_t j = 0; !all[i].ours && !below && j < count; j++)
				below = all[j].ours && all[j].pid == all[i].parent;
			if (all[i].ours || !below)
				continue;
			all[i].ours = true;
			found++;
			more = true;
		}
	}
	return found;
}

int gw_agent_descendants_kill(void)
{
	uint64_t end = gw_now_ns() + KILL_NS;
	struct kin *all = gw_calloc(PROCESSES_MAX, sizeof(*all));
	int found = all ? 1 : 0;
	while (all) {
		size_t count = kin_list(all);
		found = kin_mark(all, count);
		for (size_t i = 0; i < count; i++) {
			if (all[i].ours)
				kill(all[i].pid, SIGKILL);
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (found == 0 || gw_now_ns() > end)
			break;
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* for the kernel to end them */
	}
	gw_free(all);
	return found;
}
