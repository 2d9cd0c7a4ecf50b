/* Folders for the files of a test, which go when the test program ends, in whatever way: a failed test skips its own
 * clean-up, Ctrl-C and a time limit skip everything, and what is left in /dev/shm is memory. */
#ifndef GW_TEST_SCRATCH_H
#define GW_TEST_SCRATCH_H

/* Makes a folder by a pattern of mkdtemp's ("/tmp/gw-test-key-XXXXXX"), which becomes its path; fails the test if it
 * cannot. Removing it is the test's; a process that waits for this program's end removes what is left. */
void gw_scratch_make(char *pattern);

/* The same in memory where that can be (/dev/shm, else /tmp), for tests that write many files: syncing them costs
 * nothing there. name tells whose it is: "partition". */
void gw_scratch_make_in_memory(const char *name, char path[64]);

#endif
