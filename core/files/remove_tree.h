/* Removal that a signal handler may do; gw_remove_tree (core/files/staging.h) is for all others. */
#ifndef GW_FILES_REMOVE_TREE_H
#define GW_FILES_REMOVE_TREE_H

struct gw_removal {
	int error;        /* errno of what could not be done */
	const char *verb; /* what that was */
	char name[256];   /* to which entry */
};

/* Removes a file, or a folder and all below it. 0, or -1 with *failure filled. A path that is not there is no failure.
 */
int gw_remove_path(const char *path, struct gw_removal *failure);

#endif
