/* Processes that remain of jobs whose agent and guardian were killed at once: no process watches them, and they are no
 * longer descendants of an agent.
 *
 * Every process of a job carries its agent's mark in its environment, and so do its children:
 * GRAPHWIRE_AGENT=PID:START:JOB, with the worker's pid and time of start. If the worker of a mark is gone, no agent
 * guards the job any more. A process without a mark (its environment is new or overwritten) is found by its parent or
 * its session, while a marked process exists there. Servers on record are excluded: the user ends them by their names.
 *
 *   /proc ─▶ marks, parents, sessions ─▶ groups, one for each worker ─┬─▶ sent to cluster.py status
 *   ~/.graphwire/HOST/agent-PID ───────▶ (its key) ───────────────────┘   signalled for cluster.py stop
 */
#include "tools/agent/agent.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/sysfile.h"

#define GROUPS_MAX      256
#define PROCESSES_MAX   65536
#define ENVIRONMENT_MAX (4u << 20) /* bytes of a process's environment that are searched */
#define LISTED_MAX      64         /* the most processes of a group that are reported */

struct left_process {
	pid_t pid, parent, session;
	int group;   /* -1: in no group */
	bool spared; /* this process, or an ancestor of it */
	bool server; /* on record */
};

struct left {
	struct gw_agent_mark groups[GROUPS_MAX];
	bool has_folder[GROUPS_MAX];
	int group_count;
	struct left_process *all;
	size_t count;
	char *environment;
};

/* --- Finding. --- */

/* -1: the worker runs, or there are too many groups. */
static int left_group(struct left *left, const struct gw_agent_mark *mark)
{
	for (int g = 0; g < left->group_count; g++) {
		if (left->groups[g].worker == mark->worker && left->groups[g].start == mark->start)
			return g;
	}
	if (gw_agent_worker_lives(mark) || left->group_count == GROUPS_MAX)
		return -1;
	left->groups[left->group_count] = *mark;
	return left->group_count++;
}

/* NULL: no mark, or another user's process. */
static const char *left_mark_of(const struct left *left, const char *pid)
{
	static const char name[] = GW_AGENT_MARK "=";
	char path[64];
	snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t bytes = 0;
	for (ssize_t n = 1; fd >= 0 && n > 0 && bytes<ENVIRONMENT_MAX; bytes += n> 0 ? (size_t)n : 0)
		n = read(fd, left->environment + bytes, ENVIRONMENT_MAX - bytes);
	if (fd >= 0)
		close(fd);
	left->environment[bytes] = '\0';
	for (size_t at = 0; at < bytes; at += strlen(left->environment + at) + 1) {
		if (strncmp(left->environment + at, name, sizeof(name) - 1) == 0)
			return left->environment + at + sizeof(name) - 1;
	}
	return NULL;
}

/* Whether the process is in another pid namespace, such as a container's, where pids name other processes. An agent in
 * that namespace finds the process. */
static bool left_is_elsewhere(const char *pid)
{
	char path[64];
	struct stat own, its;
	snprintf(path, sizeof(path), "/proc/%.20s/ns/pid", pid);
	return stat("/proc/self/ns/pid", &own) == 0 && stat(path, &its) == 0 && own.st_ino != its.st_ino;
}

static void left_take(struct left *left, const char *pid)
{
	char text[512], state;
	int parent, group, session;
	if (left_is_elsewhere(pid) || !gw_sysfile_read(text, sizeof(text), "/proc/%.20s/stat", pid))
		return;
	const char *behind = strrchr(text, ')'), *value = left_mark_of(left, pid);
	if (!behind || sscanf(behind + 1, " %c %d %d %d", &state, &parent, &group, &session) != 4 || state == 'Z')
		return;
	struct gw_agent_mark mark;
	left->all[left->count++] = (struct left_process){
		.pid = (pid_t)strtol(pid, NULL, 10),
		.parent = parent,
		.session = session,
		.group = value && gw_agent_mark_parse(value, &mark) ? left_group(left, &mark) : -1};
}

/* So that they are not signalled. */
static void left_spare_own(struct left *left)
{
	for (pid_t pid = getpid(), parent; pid > 1; pid = parent) {
		parent = 0;
		for (size_t i = 0; i < left->count; i++) {
			if (left->all[i].pid != pid)
				continue;
			left->all[i].spared = true;
			parent = left->all[i].parent;
		}
	}
}

static void left_note_servers(struct left *left)
{
	json_t *records = gw_agent_records(), *record;
	size_t number;
	json_array_foreach(records, number, record)
	{
		for (size_t i = 0; i < left->count; i++)
			left->all[i].server = left->all[i].server ||
					      left->all[i].pid == json_integer_value(json_object_get(record, "pid"));
	}
	json_decref(records);
}

static void left_spread(struct left *left)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < left->count; i++) {
			struct left_process *one = &left->all[i];
			for (size_t j = 0; one->group < 0 && !one->spared && j < left->count; j++) {
				const struct left_process *other = &left->all[j];
				bool leads = other->group >= 0 && !other->spared;
				if (!leads || (one->parent != other->pid && one->session != other->session))
					continue;
				one->group = other->group;
				more = true;
			}
		}
	}
}

static void left_take_folders(struct left *left)
{
	char home[GW_AGENT_PATH_MAX];
	DIR *folder = gw_agent_home(home) == GW_OK ? opendir(home) : NULL;
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		struct gw_agent_mark mark;
		if (!gw_agent_folder_mark(home, entry->d_name, &mark))
			continue;
		int group = left_group(left, &mark);
		if (group >= 0)
			left->has_folder[group] = true;
	}
	if (folder)
		closedir(folder);
}

static struct left *left_look(void)
{
	struct left *left = gw_calloc(1, sizeof(*left));
	DIR *proc = opendir("/proc");
	if (left) {
		left->all = gw_calloc(PROCESSES_MAX, sizeof(*left->all));
		left->environment = gw_malloc(ENVIRONMENT_MAX + 1);
	}
	if (left && left->all && left->environment) {
		for (struct dirent *entry; proc && left->count < PROCESSES_MAX && (entry = readdir(proc));) {
			if (isdigit((unsigned char)*entry->d_name))
				left_take(left, entry->d_name);
		}
		left_spare_own(left);
		left_note_servers(left);
		left_spread(left);
		left_take_folders(left);
	}
	if (proc)
		closedir(proc);
	return left;
}

static void left_free(struct left *left)
{
	if (!left)
		return;
	gw_free(left->all);
	gw_free(left->environment);
	gw_free(left);
}

static bool left_is_of(const struct left *left, size_t i, int group)
{
	return left->all[i].group == group && !left->all[i].spared;
}

/* --- Reporting and ending. --- */

static json_t *left_group_json(const struct left *left, int group)
{
	const struct gw_agent_mark *mark = &left->groups[group];
	json_t *processes = json_array();
	for (size_t i = 0; i < left->count; i++) {
		if (left_is_of(left, i, group) && !left->all[i].server && json_array_size(processes) < LISTED_MAX)
			json_array_append_new(processes, gw_agent_process_json(left->all[i].pid));
	}
	if (json_array_size(processes) == 0 && !left->has_folder[group]) {
		json_decref(processes);
		return NULL;
	}
	return json_pack("{ss si sI sb so}", "job", mark->job, "worker", (int)mark->worker, "start",
			 (json_int_t)mark->start, "key", left->has_folder[group], "processes", processes);
}

/* Whether a server on record belongs to the group: its folder has the key with which others reach the server. */
static bool left_serves(const struct left *left, int group)
{
	bool found = false;
	for (size_t i = 0; i < left->count; i++)
		found = found || (left_is_of(left, i, group) && left->all[i].server);
	return found;
}

json_t *gw_agent_left(void)
{
	json_t *found = json_array();
	struct left *left = left_look();
	for (int g = 0; left && g < left->group_count; g++) {
		left->has_folder[g] = left->has_folder[g] && !left_serves(left, g);
		json_t *group = left_group_json(left, g);
		if (group)
			json_array_append_new(found, group);
	}
	left_free(left);
	return found;
}

int gw_agent_left_signal(const char *job, int number)
{
	int signalled = 0;
	struct left *left = left_look();
	for (size_t i = 0; left && i < left->count; i++) {
		const struct left_process *one = &left->all[i];
		bool ours = one->group >= 0 && strcmp(left->groups[one->group].job, job) == 0;
		if (ours && !one->spared && !one->server && kill(one->pid, number) == 0)
			signalled++;
	}
	left_free(left);
	return signalled;
}

void gw_agent_left_sweep(void)
{
	struct left *left = left_look();
	for (int g = 0; left && g < left->group_count; g++) {
		bool runs = false;
		for (size_t i = 0; i < left->count; i++)
			runs = runs || left_is_of(left, i, g);
		if (left->has_folder[g] && !runs)
			gw_agent_folder_remove(left->groups[g].worker);
	}
	left_free(left);
}
