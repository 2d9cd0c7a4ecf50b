/* The worker's loop: one thread, one poll.
 *
 *   standard input -> lines -> request.c          processes' output -> process.c
 *   signals, children                             events -> a queue -> standard output
 *
 * Launcher and agent each send something at least five times in the time of silence, after which the other side gives
 * up. The agent ends all processes in the same way for every reason: SIGTERM to every process group; SIGKILL to all
 * descendants when the groups have ended or the grace is over; then the worker ends.
 */
#include "tools/agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/parallel.h"

#define INPUT_MAX     (1u << 20)             /* bytes of a line */
#define FAREWELL_NS   (GW_NS_PER_SECOND / 2) /* time for the launcher to read the last events */
#define PROCESSES_MAX 512
#define FIXED         5
#define BEATS         5 /* beats in the time of silence */

/* --- Ending. --- */

static bool loop_has_ended(const struct gw_agent *agent)
{
	for (const struct gw_agent_process *p = agent->processes; p; p = p->next) {
		if (!p->ended)
			return false;
	}
	return true;
}

/* Runs when no process of this agent remains, or the grace is over. */
static void loop_finish(struct gw_agent *agent)
{
	gw_agent_process_reap(agent);
	for (struct gw_agent_process *p = agent->processes; p; p = p->next)
		gw_agent_process_signal(p, SIGKILL);
	json_t *left = gw_agent_descendants_kill(agent);
	for (struct gw_agent_process *p = agent->processes; p; p = p->next) {
		if (!p->ended)
			p->status = SIGKILL; /* the event reports it among the remaining processes */
		p->ended = true;
	}
	for (struct gw_agent_process *p = agent->processes; p; p = p->next) {
		if (!p->told)
			gw_agent_process_report_end(agent, p);
	}
	if (agent->folder[0])
		gw_agent_folder_remove(getpid());
	gw_agent_report(agent, json_pack("{ss so?}", "event", "bye", "left", left));
	uint64_t end = gw_now_ns() + FAREWELL_NS;
	while (agent->output_bytes && !agent->hung_up && gw_now_ns() < end) {
		poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, 50);
		gw_agent_send(agent);
	}
	agent->finished = true;
}

/* --- Input. --- */

static void loop_take_line(struct gw_agent *agent, const char *line, size_t bytes)
{
	json_error_t error;
	json_t *request = json_loadb(line, bytes, 0, &error);
	gw_agent_request(agent, request);
	json_decref(request);
}

static void loop_hear(struct gw_agent *agent)
{
	ssize_t n = read(STDIN_FILENO, agent->input + agent->input_bytes, INPUT_MAX - agent->input_bytes);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		agent->deaf = true;
		gw_agent_end(agent, NULL);
		return;
	}
	agent->heard_ns = gw_now_ns();
	agent->input_bytes += (size_t)n;
	char *from = agent->input, *end = agent->input + agent->input_bytes;
	for (char *at; (at = memchr(from, '\n', (size_t)(end - from))); from = at + 1)
		loop_take_line(agent, from, (size_t)(at - from));
	agent->input_bytes = (size_t)(end - from);
	memmove(agent->input, from, agent->input_bytes);
	if (agent->input_bytes == INPUT_MAX)
		gw_agent_end(agent, "a line from the launcher is too long");
}

static void loop_take_signals(struct gw_agent *agent)
{
	struct signalfd_siginfo info;
	while (read(agent->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo != SIGCHLD)
			gw_agent_end(agent, "a signal ended the agent");
	}
	gw_agent_process_reap(agent);
}

/* The guardian exits; from now on the worker is alone with its servers. */
static void loop_detach(struct gw_agent *agent)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (write(agent->release, "k", 1) != 1 || null < 0) {
		gw_agent_end(agent, "the agent cannot detach from its guardian");
		return;
	}
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close(null);
	close(agent->guardian);
	agent->guardian = -1;
	agent->silence_ns = GW_NO_DEADLINE;
}

static uint64_t loop_next_ns(const struct gw_agent *agent, uint64_t now)
{
	if (agent->ending)
		return agent->kill_ns;
	uint64_t next = gw_later_ns(agent->heard_ns, agent->silence_ns);
	uint64_t beat = gw_later_ns(agent->reported_ns, agent->silence_ns / BEATS);
	next = beat < next ? beat : next;
	next = agent->watch.look_ns < next ? agent->watch.look_ns : next;
	return next > now ? next : now;
}

static void loop_wait(struct gw_agent *agent, struct pollfd *fds, struct gw_agent_process **of)
{
	nfds_t count = FIXED;
	fds[0] = (struct pollfd){.fd = agent->deaf || agent->guardian < 0 ? -1 : STDIN_FILENO, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = agent->signals, .events = POLLIN};
	fds[2] = (struct pollfd){.fd = agent->guardian, .events = POLLIN};
	fds[3] = (struct pollfd){.fd = agent->watch.fd, .events = POLLIN};
	fds[4] = (struct pollfd){.fd = agent->control, .events = POLLIN};
	for (struct gw_agent_process *p = agent->processes; p && count < FIXED + PROCESSES_MAX; p = p->next) {
		if (p->output < 0)
			continue;
		of[count] = p;
		fds[count++] = (struct pollfd){.fd = p->output, .events = POLLIN};
	}
	fds[count] =
		(struct pollfd){.fd = agent->output_bytes && !agent->hung_up ? STDOUT_FILENO : -1, .events = POLLOUT};
	uint64_t now = gw_now_ns(), next = loop_next_ns(agent, now);
	int wait_ms = next == GW_NO_DEADLINE ? -1 : next > now ? (int)((next - now) / GW_NS_PER_MS) + 1 : 0;
	if (poll(fds, count + 1, wait_ms) < 0)
		return;
	if (fds[0].revents)
		loop_hear(agent);
	if (fds[1].revents)
		loop_take_signals(agent);
	if (fds[2].revents & POLLHUP) {
		agent->guardian = -1;
		gw_agent_end(agent, "the agent's guardian was killed");
	}
	gw_agent_watch_look(agent, fds[3].revents != 0);
	if (fds[4].revents)
		gw_agent_control_hear(agent);
	for (nfds_t i = FIXED; i < count; i++) {
		if (fds[i].revents)
			gw_agent_process_read(agent, of[i]);
	}
	if (fds[count].revents)
		gw_agent_send(agent);
}

/* Input that arrived while this process or the machine was stopped, and was not read, does not count as silence. */
static bool loop_is_silent(const struct gw_agent *agent, uint64_t now)
{
	struct pollfd heard = {.fd = agent->deaf ? -1 : STDIN_FILENO, .events = POLLIN};
	return agent->silence_ns != GW_NO_DEADLINE && now >= gw_later_ns(agent->heard_ns, agent->silence_ns) &&
	       poll(&heard, 1, 0) == 0;
}

static void loop_look(struct gw_agent *agent, uint64_t now)
{
	if (loop_is_silent(agent, now))
		gw_agent_end(agent, "the launcher was silent for too long");
	else if (agent->silence_ns != GW_NO_DEADLINE &&
		 now >= gw_later_ns(agent->reported_ns, agent->silence_ns / BEATS))
		gw_agent_report(agent, json_pack("{ss}", "event", "ping"));
	if (agent->released && agent->guardian >= 0 && agent->output_bytes == 0)
		loop_detach(agent);
	if (agent->released && loop_has_ended(agent))
		gw_agent_end(agent, NULL); /* the last kept server has ended */
}

static void loop_step(struct gw_agent *agent)
{
	uint64_t now = gw_now_ns();
	gw_agent_replace_look(agent);
	for (struct gw_agent_process *p = agent->processes; p; p = p->next) {
		if (p->ended && !p->told && !gw_agent_replace_holds(agent, p))
			gw_agent_process_report_end(agent, p);
	}
	gw_agent_replace_look(agent);
	if (!agent->ending)
		loop_look(agent, now);
	if (agent->ending && (loop_has_ended(agent) || now >= agent->kill_ns))
		loop_finish(
			agent); /* no process runs: end at once, because no event would wake the loop before kill_ns */
}

int gw_agent_loop(struct gw_agent *agent)
{
	struct pollfd *fds = gw_calloc(FIXED + PROCESSES_MAX + 1, sizeof(*fds));
	struct gw_agent_process **of = gw_calloc(FIXED + PROCESSES_MAX, sizeof(*of));
	agent->input = gw_malloc(INPUT_MAX);
	agent->output = gw_malloc(GW_AGENT_OUTPUT_MAX);
	/* A job may be suspended and resumed: only the time while this process runs counts as silence. */
	bool attends = gw_clock_attend() == GW_OK;
	if (fds && of && agent->input && agent->output) {
		fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
		fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
		char host[65] = "";
		gethostname(host, sizeof(host) - 1);
		agent->heard_ns = gw_now_ns();
		gw_agent_report(agent, json_pack("{ss ss ss si si si}", "event", "hello", "version", GRAPHWIRE_VERSION,
						 "host", host, "pid", (int)getpid(), "guardian", (int)getppid(),
						 "processors", (int)gw_processors()));
		while (!agent->finished) {
			loop_step(agent);
			if (!agent->finished)
				loop_wait(agent, fds, of);
		}
	}
	if (attends)
		gw_clock_leave();
	gw_free(fds);
	gw_free(of);
	gw_free(agent->input);
	gw_free(agent->output);
	return agent->exit_status;
}
