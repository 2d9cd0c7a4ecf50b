/* To be preloaded (LD_PRELOAD): what befalls files while a program reads them, at the same place each time.
 *
 *   FILE_FAULTS_AT=NAME, FILE_FAULTS_SHRINK=PATH   when a file of that name is mapped, PATH is cut to one page
 *   FILE_FAULTS_LOSE=NAME   pages of its map, but for the first, cannot be had: a disk that fails
 *   FILE_FAULTS_FAIL=NAME   reading it by pread is EIO behind the first page
 *   FILE_FAULTS_DIE=NAME    the program is killed (SIGKILL) where it opens it
 *
 * NAME is the end of a path. System calls are made directly: dlsym may allocate, and the allocator maps memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE     4096
#define EXPORTED __attribute__((visibility("default")))

static bool ends_with(const char *path, const char *setting)
{
	const char *name = getenv(setting);
	size_t length = strlen(path), tail = name ? strlen(name) : 0;
	return name && length >= tail && strcmp(path + length - tail, name) == 0;
}

static bool is_open(int fd, const char *setting)
{
	char link[32], path[PATH_MAX];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = 0;
	return length > 0 && ends_with(path, setting);
}

static void lose_pages(char *map, size_t bytes)
{
	int none = (int)syscall(SYS_memfd_create, "none", 0u);
	if (bytes > PAGE && syscall(SYS_mmap, map + PAGE, bytes - PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, none, 0) < 0)
		abort();
	close(none);
}

EXPORTED void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	long result = syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
	if (fd < 0 || result == -1 || protection != PROT_READ)
		return (void *)result; /* NOLINT(performance-no-int-to-ptr): what the call returns */
	int saved = errno;
	const char *victim = getenv("FILE_FAULTS_SHRINK");
	if (victim && is_open(fd, "FILE_FAULTS_AT") && truncate(victim, PAGE))
		abort();
	if (is_open(fd, "FILE_FAULTS_LOSE"))
		lose_pages((char *)result, bytes); /* NOLINT(performance-no-int-to-ptr) */
	errno = saved;
	return (void *)result; /* NOLINT(performance-no-int-to-ptr) */
}

EXPORTED ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
	if (offset < PAGE || !is_open(fd, "FILE_FAULTS_FAIL"))
		return syscall(SYS_pread64, fd, to, bytes, offset);
	errno = EIO;
	return -1;
}

EXPORTED int open(const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, unsigned) : 0;
	va_end(arguments);
	if (ends_with(path, "FILE_FAULTS_DIE"))
		raise(SIGKILL);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
