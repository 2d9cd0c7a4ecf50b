/* Temporary folders beside a final one, "<final>.tmp-<pid>-<host>-<random>": who holds one, and removing those whose
 * writer was killed. */
#ifndef GW_FILES_LEFTOVERS_H
#define GW_FILES_LEFTOVERS_H

/* A name for a new temporary folder of `final`. NULL when out of memory, the error text is set. */
char *gw_leftover_name(const char *final);

/* Opens the folder and locks it as its writer. The descriptor and its duplicates hold the lock until all are closed,
 * which the kernel does for a process that dies. -1 with errno; ENOENT also if another process is sweeping it away. */
int gw_leftover_lock(const char *path);

/* Removes temporary folders of `final` that this user left on this host and nobody holds. What cannot be removed is
 * logged. */
void gw_leftovers_sweep(const char *final);

#endif
