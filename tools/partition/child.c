/* See child.h. */
#include "tools/partition/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/progress.h"

#define LOOK_MS 200 /* interval of the parent's progress updates */

static void child_main(int (*work)(void *context), void *context, int output, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	_exit(work(context));
}

static void last_line(int output, char *line, size_t room)
{
	char text[2048];
	off_t end = lseek(output, 0, SEEK_END);
	off_t from = end > (off_t)sizeof(text) - 1 ? end - (off_t)sizeof(text) + 1 : 0;
	ssize_t got = pread(output, text, sizeof(text) - 1, from);
	text[got > 0 ? got : 0] = '\0';
	size_t length = strlen(text);
	while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
		text[--length] = '\0';
	const char *newline = strrchr(text, '\n');
	snprintf(line, room, "%s", newline ? newline + 1 : text);
}

/* The child's end closes `alive`, unless processes that it started live on. Returns the child's wait status. */
static int wait_child(const char *what, pid_t child, int alive)
{
	struct gw_progress progress;
	struct pollfd closed = {.fd = alive, .events = POLLIN};
	gw_progress_begin(&progress, what, NULL, 0);
	int status = 0;
	pid_t ended = 0;
	while (ended == 0 && poll(&closed, 1, LOOK_MS) <= 0) {
		gw_progress_update(&progress, 0);
		ended = waitpid(child, &status, WNOHANG);
	}
	while (ended != child && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	gw_progress_end(&progress, 0);
	return status;
}

gw_status gw_child_run(const char *what, int (*work)(void *context), void *context, struct gw_child *out)
{
	gw_status status = GW_OK;
	int alive[2], output = memfd_create("output of a partitioner", MFD_CLOEXEC);
	if (output < 0)
		return gw_fail_errno(GW_IO, errno, "%s: cannot make a memfd", what);
	if (pipe(alive) < 0) {
		status = gw_fail_errno(GW_IO, errno, "%s: cannot make a pipe", what);
		close(output);
		return status;
	}
	gw_memory_trim(); /* what is free would be the child's too */
	pid_t parent = getpid(), child = fork();
	if (child == 0) {
		close(alive[0]);
		child_main(work, context, output, parent);
	}
	if (child < 0)
		status = gw_fail_errno(GW_NO_MEMORY, errno, "%s: cannot start its process", what);
	close(alive[1]);
	if (child > 0) {
		out->status = wait_child(what, child, alive[0]);
		last_line(output, out->said, sizeof(out->said));
		if (!out->said[0])
			snprintf(out->said, sizeof(out->said), "no output");
	}
	close(alive[0]);
	close(output);
	return status;
}

gw_status gw_child_judge(const char *what, const struct gw_child *child)
{
	if (WIFSIGNALED(child->status) && WTERMSIG(child->status) == SIGKILL)
		return gw_fail(GW_NO_MEMORY,
			       "%s was killed, probably because the machine ran out of memory; "
			       "partition on a machine with more memory, or use --method random",
			       what);
	if (WIFSIGNALED(child->status))
		return gw_fail(GW_IO, "%s died of signal %d (%s); try another --seed, or --method random", what,
			       WTERMSIG(child->status), child->said);
	return GW_OK;
}
