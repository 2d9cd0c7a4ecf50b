/* A process of the job.
 *
 *   fork -> its own session -> exec; its standard output and error go line by line into its log and to the launcher
 *
 * If the launcher does not keep up, it gets fewer lines; the log has all. The process dies with the worker, except a
 * kept server. The agent reports the end of a process when its status is known and its output was read. A child of the
 * ended process may hold the pipe open, so the agent reads the pipe only for a moment more.
 */
#include "tools/agent/process_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"

#define ARGUMENTS_MAX  4096
#define LINES_A_SECOND 1000 /* lines of one process that are sent; further lines are only counted */
#define LINE_NS        (GW_NS_PER_SECOND / LINES_A_SECOND)
#define READ_BYTES     16384
#define AFTER_US       5000 /* between two looks whether another process has ended */

/* --- Output. --- */

static json_t *process_text(const char *text, size_t bytes)
{
	json_t *string = json_stringn(text, bytes);
	char plain[GW_AGENT_LINE_MAX];
	if (string)
		return string;
	if (bytes > sizeof(plain))
		bytes = sizeof(plain);
	for (size_t i = 0; i < bytes; i++)
		plain[i] = (unsigned char)text[i] < 128 && text[i] ? text[i] : '?';
	return json_stringn(plain, bytes);
}

static void process_report_line(struct gw_agent *agent, struct gw_agent_process *p, const char *what)
{
	json_t *dropped = p->dropped ? json_integer((json_int_t)p->dropped) : NULL;
	p->dropped = 0;
	gw_agent_report(agent, json_pack("{ss ss so so*}", "event", what, "name", p->name, "text",
					 process_text(p->line, p->line_bytes), "dropped", dropped));
}

/* Whether a line may be sent now: at most LINES_A_SECOND lines at once, and later as many a second. allowance_ns is the
 * time up to which sent lines have used the allowance. */
static bool process_may_report(const struct gw_agent *agent, struct gw_agent_process *p)
{
	uint64_t now = gw_now_ns();
	if (p->allowance_ns + GW_NS_PER_SECOND < now)
		p->allowance_ns = now - GW_NS_PER_SECOND;
	if (p->allowance_ns + LINE_NS > now || !gw_agent_may_report_output(agent))
		return false;
	p->allowance_ns += LINE_NS;
	return true;
}

static void process_end_line(struct gw_agent *agent, struct gw_agent_process *p)
{
	char *slot = p->tail[p->tail_next];
	snprintf(slot, GW_AGENT_TAIL_LINE, "%.*s", (int)p->line_bytes, p->line);
	p->tail_next = (p->tail_next + 1) % GW_AGENT_TAIL;
	p->tail_count += p->tail_count < GW_AGENT_TAIL;
	if (p->generation)
		gw_agent_replace_read(p, slot);
	if (p->ready && !p->is_ready && p->line_bytes >= strlen(p->ready) &&
	    memcmp(p->line, p->ready, strlen(p->ready)) == 0) {
		p->is_ready = true;
		if (!p->quiet)
			process_report_line(agent, p, "ready");
	} else if (process_may_report(agent, p)) {
		process_report_line(agent, p, "output");
	} else {
		p->dropped++;
	}
	p->line_bytes = 0;
}

/* Lines longer than the buffer are sent in pieces. */
static void process_take(struct gw_agent *agent, struct gw_agent_process *p, const char *text, size_t bytes)
{
	gw_agent_log_write(&p->log, text, bytes);
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] != '\n')
			p->line[p->line_bytes++] = text[i];
		if (text[i] == '\n' || p->line_bytes == GW_AGENT_LINE_MAX)
			process_end_line(agent, p);
	}
}

static void process_close_output(struct gw_agent *agent, struct gw_agent_process *p)
{
	if (p->line_bytes)
		process_end_line(agent, p);
	close(p->output);
	p->output = -1;
}

void gw_agent_process_read(struct gw_agent *agent, struct gw_agent_process *p)
{
	char buffer[READ_BYTES];
	ssize_t n = read(p->output, buffer, sizeof(buffer));
	if (n > 0)
		process_take(agent, p, buffer, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		process_close_output(agent, p);
}

/* --- End. --- */

void gw_agent_process_reap(struct gw_agent *agent)
{
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
		for (struct gw_agent_process *p = agent->processes; p; p = p->next) {
			if (p->pid != pid || p->ended)
				continue;
			p->ended = true;
			p->status = status;
			kill(-pid, SIGKILL); /* kill the rest of its process group; other processes that it left are
					      * found at the end of the job */
		}
	}
}

void gw_agent_process_report_end(struct gw_agent *agent, struct gw_agent_process *p)
{
	/* Reads what is in the pipe. The pipe's end may not come: a grandchild may hold it open. */
	for (int i = 0; i < 64 && p->output >= 0; i++) {
		char buffer[READ_BYTES];
		ssize_t n = read(p->output, buffer, sizeof(buffer));
		if (n <= 0)
			break;
		process_take(agent, p, buffer, (size_t)n);
	}
	if (p->output >= 0)
		process_close_output(agent, p);
	if (p->port)
		gw_agent_record_remove(p->port, p->pid);
	p->told = true;
	if (p->quiet) {
		gw_agent_log_close(&p->log);
		return;
	}
	bool killed = WIFSIGNALED(p->status);
	json_t *tail = json_array();
	for (uint32_t i = 0; i < p->tail_count; i++) {
		const char *line = p->tail[(p->tail_next + GW_AGENT_TAIL - p->tail_count + i) % GW_AGENT_TAIL];
		json_array_append_new(tail, process_text(line, strlen(line)));
	}
	json_t *event =
		json_pack("{ss ss si so sI so ss*}", "event", "ended", "name", p->name, killed ? "signal" : "status",
			  killed ? WTERMSIG(p->status) : WEXITSTATUS(p->status), "tail", tail, "dropped",
			  (json_int_t)p->dropped, "log", process_text(p->log.path, strlen(p->log.path)), "log_error",
			  p->log.error ? strerror(p->log.error) : NULL);
	gw_agent_log_close(&p->log);
	gw_agent_report(agent, event);
}

/* --- Start. --- */

_Noreturn static void process_exec(const struct gw_agent *agent, char **argv, const json_t *environment, int output,
				   pid_t worker, pid_t after)
{
	static char own[] = "graphwire";
	sigset_t none;
	sigemptyset(&none);
	setsid();
	if (!agent->keep) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != worker)
			_exit(127); /* the parent has died since the fork */
	}
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	int null = open("/dev/null", O_RDONLY);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	for (int number = 1; number < 32; number++)
		signal(number, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)environment, name, value)
	{
		if (json_is_string(value))
			setenv(name, json_string_value(value), 1);
	}
	while (after > 0 && kill(after, 0) == 0)
		usleep(AFTER_US);
	char mark[GW_AGENT_MARK_MAX];
	gw_agent_mark_text(&agent->mark, mark);
	setenv(GW_AGENT_MARK, mark, 1);
	bool is_own = strcmp(argv[0], "@") == 0; /* "@" stands for the agent's own program */
	if (is_own)
		argv[0] = own;
	if (chdir(agent->workspace) != 0)
		dprintf(STDERR_FILENO, "%s: %s\n", agent->workspace, strerror(errno));
	else if (is_own)
		execv("/proc/self/exe", argv);
	else
		execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "%s: cannot be run: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* NULL with the error text set. */
static char **process_words(const json_t *list)
{
	size_t count = json_array_size(list);
	if (count == 0 || count > ARGUMENTS_MAX) {
		gw_fail(GW_INVALID, "a process needs a command, and this one has none or one that is too long");
		return NULL;
	}
	char **argv = gw_calloc(count + 1, sizeof(*argv));
	for (size_t i = 0; argv && i < count; i++) {
		argv[i] = (char *)json_string_value(json_array_get(list, i));
		if (!argv[i]) {
			gw_fail(GW_INVALID, "word %zu of a command is not a string", i);
			gw_free(argv);
			return NULL;
		}
	}
	return argv;
}

static gw_status process_launch(struct gw_agent *agent, struct gw_agent_process *p, const json_t *words, pid_t after)
{
	int ends[2];
	char **argv = process_words(words);
	if (!argv)
		return GW_INVALID;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		gw_free(argv);
		return gw_fail_errno(GW_IO, errno, "cannot make a pipe for %s", p->name);
	}
	pid_t worker = getpid();
	p->pid = fork();
	if (p->pid == 0)
		process_exec(agent, argv, p->env, ends[1], worker, after);
	gw_free(argv);
	close(ends[1]);
	if (p->pid < 0) {
		close(ends[0]);
		return gw_fail_errno(GW_IO, errno, "%s: cannot start a process", p->name);
	}
	p->output = ends[0];
	fcntl(p->output, F_SETFL, O_NONBLOCK);
	return GW_OK;
}

static gw_status process_put_on_record(struct gw_agent *agent, struct gw_agent_process *p, const json_t *request)
{
	const json_t *server = json_object_get(request, "server");
	if (!server)
		return GW_OK;
	p->port = (uint16_t)json_integer_value(json_object_get(server, "port"));
	p->server = json_deep_copy(server);
	gw_status status = gw_agent_record_write(agent, server, p->pid, p->log.path, 0);
	return status == GW_OK ? gw_agent_control_open(agent) : status;
}

/* Starts the process, and puts it into the agent's list. */
static gw_status process_begin(struct gw_agent *agent, const struct gw_agent_process *like, const char *log,
			       const json_t *words, pid_t after, struct gw_agent_process **out)
{
	struct gw_agent_process *p = gw_malloc(sizeof(*p));
	if (!p)
		return GW_NO_MEMORY;
	*p = *like;
	p->ready = like->ready ? gw_strdup(like->ready) : NULL;
	gw_status status = gw_agent_log_open(&p->log, log, agent->log_bytes_max);
	if (status == GW_OK)
		status = process_launch(agent, p, words, after);
	if (status != GW_OK) {
		gw_agent_log_close(&p->log);
		gw_free(p->ready);
		gw_free(p);
		return status;
	}
	json_incref(p->env);
	p->next = agent->processes;
	agent->processes = p;
	*out = p;
	return GW_OK;
}

gw_status gw_agent_process_succeed(struct gw_agent *agent, struct gw_agent_process *server, const json_t *words,
				   bool after, struct gw_agent_process **out)
{
	char path[GW_AGENT_PATH_MAX];
	struct gw_agent_process like = {
		.ready = server->ready, .env = server->env, .quiet = true, .generation = server->generation + 1};
	memcpy(like.name, server->name, sizeof(like.name));
	if (snprintf(path, sizeof(path), "%s/%s-again%u.log", agent->logs, like.name, like.generation) >=
	    (int)sizeof(path))
		return gw_fail(GW_INVALID, "%s: the path of its log is too long", like.name);
	return process_begin(agent, &like, path, words, after ? server->pid : 0, out);
}

gw_status gw_agent_process_start(struct gw_agent *agent, const json_t *request)
{
	const char *name = json_string_value(json_object_get(request, "name"));
	const char *ready = json_string_value(json_object_get(request, "ready"));
	char path[GW_AGENT_PATH_MAX];
	if (!name || !*name || strlen(name) >= GW_AGENT_NAME_MAX || strchr(name, '/'))
		return gw_fail(GW_INVALID, "a process needs a name of at most %d letters", GW_AGENT_NAME_MAX - 1);
	if (snprintf(path, sizeof(path), "%s/%s.log", agent->logs, name) >= (int)sizeof(path))
		return gw_fail(GW_INVALID, "%s: the path of its log is too long", name);
	struct gw_agent_process like = {.ready = (char *)ready, .env = json_object_get(request, "env")}, *p;
	snprintf(like.name, sizeof(like.name), "%s", name);
	gw_status status = process_begin(agent, &like, path, json_object_get(request, "argv"), 0, &p);
	if (status != GW_OK)
		return status;
	json_t *event = json_pack("{ss ss si ss}", "event", "started", "name", name, "pid", (int)p->pid, "log", path);
	gw_agent_report(agent, event);
	return process_put_on_record(agent, p, request);
}
