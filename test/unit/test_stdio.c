/* Closed descriptors 0 to 2 get /dev/null, so that no socket or file gets their numbers. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <graphwire/graphwire.h>

#include "core/system/stdio.h"

static void open_a_client(void)
{
	struct gw_client *client;
	const struct gw_client_options options = {.part_config = "/nonexistent"};
	gw_client_open(&options, &client);
}

static bool fails_as_closed(int fd)
{
	char byte = 0;
	errno = 0;
	return (fd == STDIN_FILENO ? read(fd, &byte, 1) : write(fd, &byte, 1)) < 0 && errno == EBADF;
}

/* In a child: closes the descriptors of the mask, and lets `hold` open them. */
static int hold_these(unsigned mask, void (*hold)(void))
{
	struct stat before[3], after, null;
	if (stat("/dev/null", &null))
		return 1;
	for (int fd = 0; fd < 3; fd++) {
		if (mask >> fd & 1)
			close(fd);
		else if (fstat(fd, &before[fd]))
			return 2;
	}
	hold();
	for (int fd = 0; fd < 3; fd++) {
		if (fstat(fd, &after))
			return 3;
		if (!(mask >> fd & 1) ? after.st_ino != before[fd].st_ino || after.st_dev != before[fd].st_dev
				      : after.st_rdev != null.st_rdev || !fails_as_closed(fd))
			return 4;
	}
	int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return next > STDERR_FILENO ? 0 : 5;
}

static void check_all(void (*hold)(void))
{
	for (unsigned mask = 0; mask < 8; mask++) {
		int status;
		pid_t child = fork();
		if (child == 0)
			_exit(hold_these(mask, hold));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

static void by_a_program(void **state)
{
	(void)state;
	check_all(gw_stdio_hold);
}

static void by_the_library(void **state)
{
	(void)state;
	check_all(open_a_client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(by_a_program), cmocka_unit_test(by_the_library)};
	return cmocka_run_group_tests_name("standard descriptors", tests, NULL, NULL);
}
