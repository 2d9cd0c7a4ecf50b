/* Finds the folders under /sys/fs/cgroup of the groups in /proc/self/cgroup.
 *
 *   each line "number:controllers:path" -> the mount of that hierarchy -> path, its parent, … the mount itself
 */
#include "core/system/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/system/sysfile.h"

#define TEXT_BYTES 16384

struct cgroup_walk {
	void (*look)(void *context, const char *folder, bool version2);
	void *context;
};

static void walk_up(const struct cgroup_walk *walk, const char *mount, const char *path, bool version2)
{
	char folder[PATH_MAX];
	int length = snprintf(folder, sizeof(folder), "%s%s", mount, path);
	if (length <= 0 || (size_t)length >= sizeof(folder))
		return;
	if (folder[length - 1] == '/') /* the path of a container's own root is "/" */
		folder[length - 1] = 0;
	size_t root_length = strlen(mount);
	for (;;) {
		walk->look(walk->context, folder, version2);
		char *slash = strrchr(folder, '/');
		if (strlen(folder) <= root_length || !slash)
			return;
		*slash = 0;
	}
}

/* list: "cpu,cpuacct". */
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, word, length) == 0 && (at[length] == 0 || at[length] == ','))
			return true;
	}
	return false;
}

void gw_cgroup_walk(const char *root, const char *controller,
		    void (*look)(void *context, const char *folder, bool version2), void *context)
{
	const struct cgroup_walk walk = {look, context};
	char text[TEXT_BYTES], mount[PATH_MAX];
	if (!gw_sysfile_read(text, sizeof(text), "%s/proc/self/cgroup", root))
		return;
	char *rest;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		names++;
		if (strncmp(line, "0:", 2) == 0 && *names == 0) {
			snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup", root);
			walk_up(&walk, mount, path, true);
			snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/unified", root);
			walk_up(&walk, mount, path, true);
		} else if (has_word(names, controller)) {
			snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%s", root, names);
			walk_up(&walk, mount, path, false);
			if (strcmp(names, controller) == 0)
				continue;
			snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%s", root, controller);
			walk_up(&walk, mount, path, false);
		}
	}
}
