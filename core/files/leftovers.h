/* Temporary folders next to a final folder, "<final>.tmp-<pid>-<host>-<random>": locks them, and removes those whose
 * writer was killed. */
#ifndef GW_FILES_LEFTOVERS_H
#define GW_FILES_LEFTOVERS_H

/* A name for a new temporary folder of `final`. NULL if memory runs out; the error text is set. */
char *gw_leftover_name(const char *final);

/* Opens the folder and locks it as its writer. The descriptor and its duplicates hold the lock until all are closed;
 * the kernel closes them if the process dies. Returns -1 with errno; ENOENT also if another process is removing the
 * folder. */
int gw_leftover_lock(const char *path);

/* Removes unlocked temporary folders of `final` that this user left on this host. A folder that cannot be removed is
 * logged. */
void gw_leftovers_sweep(const char *final);

#endif
