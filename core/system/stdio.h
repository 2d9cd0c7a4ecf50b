/* Descriptors 0 to 2 of a process whose parent has closed some of them (COMMAND 2>&-). */
#ifndef GW_SYSTEM_STDIO_H
#define GW_SYSTEM_STDIO_H

/* Opens /dev/null as each of the descriptors 0 to 2 that is closed. Otherwise the next socket or file gets the number,
 * and what some code prints ends in it. Reads of a closed standard input, and writes to a closed output, fail as
 * before, with EBADF: they are opened for the other direction. Descriptors that cannot be opened stay closed. */
void gw_stdio_hold(void);

#endif
