/* The control groups of this process, version 1 and 2. */
#ifndef GW_SYSTEM_CGROUP_H
#define GW_SYSTEM_CGROUP_H

#include <stdbool.h>

/* Calls look with each folder that may be of a group of this process under the controller: its own, and all above it,
 * as limits of theirs bind as well. Version 1 and 2 may be in use side by side. Folders need not be there: containers
 * hide some, and the path that the kernel tells is then another's, but the root of what they show is the container's
 * group. root is "" for this machine, or a made-up tree. */
void gw_cgroup_walk(const char *root, const char *controller,
		    void (*look)(void *context, const char *folder, bool version2), void *context);

#endif
