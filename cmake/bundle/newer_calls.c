/* Linked into the bundle only: functions that older C libraries lack, as direct system calls.
 *
 * The C library exports stat and related functions since 2.33 (they were inline before), and epoll_pwait2 since 2.35.
 * On 64-bit machines the kernel's struct stat is the C library's. */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(long) == 8, "the kernel's struct stat differs on 32-bit machines");

#define KERNEL_SIGSET_BYTES 8

/* They have the C library's names. */
int newer_fstatat(int folder, const char *path, struct stat *out, int flags) __asm__("fstatat");
int newer_stat(const char *path, struct stat *out) __asm__("stat");
int newer_lstat(const char *path, struct stat *out) __asm__("lstat");
int newer_fstat(int fd, struct stat *out) __asm__("fstat");
int newer_epoll_pwait2(int fd, struct epoll_event *events, int max, const struct timespec *timeout,
		       const sigset_t *mask) __asm__("epoll_pwait2");

int newer_fstatat(int folder, const char *path, struct stat *out, int flags)
{
	return (int)syscall(SYS_newfstatat, folder, path, out, flags);
}

int newer_stat(const char *path, struct stat *out)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, 0);
}

int newer_lstat(const char *path, struct stat *out)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

int newer_fstat(int fd, struct stat *out)
{
	return (int)syscall(SYS_fstat, fd, out);
}

int newer_epoll_pwait2(int fd, struct epoll_event *events, int max, const struct timespec *timeout,
		       const sigset_t *mask)
{
	return (int)syscall(SYS_epoll_pwait2, fd, events, max, timeout, mask, (size_t)KERNEL_SIGSET_BYTES);
}

#ifdef __x86_64__
/* This reference makes the linker write the version name GLIBC_2.3.3 into the file. older_glibc.c needs the name, which
 * is longer than the names that become free, and it cannot enlarge the file. */
int newer_condattr_setclock(void *attributes, clockid_t clock);
__asm__(".symver newer_condattr_setclock, pthread_condattr_setclock@GLIBC_2.3.3");
__attribute__((used)) static int (*const newer_name)(void *, clockid_t) = newer_condattr_setclock;
#endif
