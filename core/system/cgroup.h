/* The control groups of this process, version 1 and 2. */
#ifndef GW_SYSTEM_CGROUP_H
#define GW_SYSTEM_CGROUP_H

#include <stdbool.h>

/* Calls look for the folder of each group whose limits bind this process under the controller: its own group, and all
 * groups above it. Versions 1 and 2 may be in use together. A folder may be missing, because containers hide some. The
 * path from the kernel then names a group that is not visible, but the root of the visible tree is the container's
 * group. root is "" for this machine, or a fake tree in tests. */
void gw_cgroup_walk(const char *root, const char *controller,
		    void (*look)(void *context, const char *folder, bool version2), void *context);

#endif
