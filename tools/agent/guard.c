/* The guardian: the process that ssh started. It forks the worker and waits for the worker's end, a signal, or the
 * launcher's hang-up. It does not touch the launcher's lines before the worker has ended.
 *
 *   the worker ends by itself   kill what the worker could not end, send one line to the launcher, exit with its status
 *   the worker is killed        kill everything below us, send one line to the launcher, exit with status 1
 *   a signal                    send the worker SIGTERM
 *   the launcher hangs up       kill the worker if it still exists after HUNG_UP_NS (it may be stopped)
 *
 * If the guardian dies, the worker sees the end of its pipe.
 */
#include "tools/agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/system/clock.h"

#define HUNG_UP_NS (4 * GW_NS_PER_SECOND) /* a worker's grace and a little more */

static void guard_report(json_t *event)
{
	char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
	json_decref(event);
	signal(SIGPIPE, SIG_IGN);
	fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
	if (text)
		dprintf(STDOUT_FILENO, "%s\n", text); /* if a launcher still reads */
	free(text);
}

/* The guardian reports the remaining processes at the very end, because some that the worker could not end may have
 * ended since. */
_Noreturn static void guard_finish(pid_t worker, int status)
{
	json_t *left = gw_agent_descendants_kill(NULL);
	gw_agent_folder_remove(worker);
	if (WIFEXITED(status)) {
		guard_report(json_pack("{ss so?}", "event", "end", "left", left));
		exit(WEXITSTATUS(status));
	}
	char text[192];
	snprintf(text, sizeof(text), "the agent's worker was killed by signal %d%s", WTERMSIG(status),
		 left && json_array_size(left) == 0 ? "; all of its processes were killed" : "");
	guard_report(json_pack("{ss ss so?}", "event", "lost", "text", text, "left", left));
	exit(1);
}

static void guard_take_signal(int signals, pid_t worker)
{
	struct signalfd_siginfo info;
	if (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info) && info.ssi_signo != SIGCHLD)
		kill(worker, SIGTERM);
}

_Noreturn static void guard_wait(pid_t worker, int signals, int released)
{
	uint64_t kill_ns = GW_NO_DEADLINE;
	struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
			       {.fd = STDIN_FILENO, .events = POLLRDHUP},
			       {.fd = released, .events = POLLIN}};
	for (;;) {
		uint64_t now = gw_now_ns();
		int wait_ms = kill_ns == GW_NO_DEADLINE ? -1
			      : kill_ns > now           ? (int)((kill_ns - now) / GW_NS_PER_MS) + 1
							: 0;
		poll(fds, sizeof(fds) / sizeof(fds[0]), wait_ms);
		int status;
		char word = 0;
		if (waitpid(worker, &status, WNOHANG) == worker)
			guard_finish(worker, status);
		if (fds[0].revents & POLLIN)
			guard_take_signal(signals, worker);
		if ((fds[2].revents & POLLIN) && read(released, &word, 1) == 1)
			_exit(0); /* the worker continues without a guardian, for its kept servers */
		if (fds[2].revents & POLLHUP)
			fds[2].fd = -1; /* the worker is ending: waitpid returns its status */
		if (fds[1].revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) {
			fds[1].fd = -1;
			kill_ns = gw_now_ns() + HUNG_UP_NS;
		}
		if (gw_now_ns() >= kill_ns) {
			kill(worker, SIGKILL);
			kill_ns = GW_NO_DEADLINE;
		}
	}
}

gw_status gw_agent_guard(struct gw_agent *agent)
{
	int life[2], release[2]; /* pipes: the worker notices the guardian's end by the end of `life`, and releases the
				  * guardian by a write to `release` */
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe2(life, O_CLOEXEC) != 0 || pipe2(release, O_CLOEXEC) != 0)
		return gw_fail_errno(GW_IO, errno, "cannot make pipes");
	pid_t worker = fork();
	if (worker < 0)
		return gw_fail_errno(GW_IO, errno, "cannot start a process");
	if (worker == 0) {
		close(life[1]);
		close(release[0]);
		prctl(PR_SET_CHILD_SUBREAPER, 1); /* fork does not inherit this */
		setsid();                         /* a hang-up of the guardian's session must not signal the worker */
		agent->guardian = life[0];
		agent->release = release[1];
		agent->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
		return GW_OK;
	}
	close(life[0]);
	close(release[1]);
	guard_wait(worker, signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK), release[0]);
}
