/* A library for LD_PRELOAD. A program that opens a file whose path ends with HELD_LOAD creates HELD_LOAD_AT/held, and
 * then waits until HELD_LOAD_AT/go exists. This simulates a file system that does not answer. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int held_open(const char *path, int flags, mode_t mode)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void held_wait(const char *folder)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/held", folder);
	close(held_open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	snprintf(path, sizeof(path), "%s/go", folder);
	while (access(path, F_OK) != 0)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's begin with "__" */
int open(const char *path, int flags, ...)
{
	const char *end = getenv("HELD_LOAD"), *folder = getenv("HELD_LOAD_AT");
	size_t length = strlen(path);
	va_list more;
	va_start(more, flags);
	mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
	va_end(more);
	if (end && folder && length >= strlen(end) && strcmp(path + length - strlen(end), end) == 0)
		held_wait(folder);
	return held_open(path, flags, mode);
}
