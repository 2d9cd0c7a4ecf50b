/* Removal that a signal handler may do. Other code uses gw_remove_tree (core/files/staging.h). */
#ifndef GW_FILES_REMOVE_TREE_H
#define GW_FILES_REMOVE_TREE_H

struct gw_removal {
	int error;        /* errno of the failed step */
	const char *verb; /* the failed step */
	char name[256];   /* the entry that it failed for */
};

/* Removes a file, or a folder and everything below it. Returns 0, or -1 with *failure filled. A path that does not
 * exist is no failure. */
int gw_remove_path(const char *path, struct gw_removal *failure);

#endif
