/* open(2) takes the lowest free number, so the descriptors are held in ascending order. Another thread may take a
 * number in between; the descriptor that was opened then has another number and is closed. */
#include "core/system/stdio.h"

#include <fcntl.h>
#include <unistd.h>

void gw_stdio_hold(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* children that the process starts inherit it, so it is not closed on exec */
		int opened = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
		if (opened > STDERR_FILENO)
			close(opened);
	}
}
