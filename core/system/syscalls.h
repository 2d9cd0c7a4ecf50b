/* System calls that not every kernel offers. */
#ifndef GW_SYSTEM_SYSCALLS_H
#define GW_SYSTEM_SYSCALLS_H

#include <errno.h>
#include <stdbool.h>

/* Whether the error of a system call means that this system does not offer the call: the kernel does not have it
 * (ENOSYS), or a seccomp filter refuses it (EPERM: what container runtimes answer for calls that they do not know). The
 * caller then takes the older calls. If the caller itself lacked the permission, those report it. */
static inline bool gw_syscall_missing(int error)
{
	return error == ENOSYS || error == EPERM;
}

#endif
