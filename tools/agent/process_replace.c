/* A server is replaced by a successor, under the agent that started it: the new process is the agent's child as the old
 * one was, with its environment, key and record.
 *
 *   graphwire agent --replace PORT ── program, options ──▶ ~/.graphwire/HOST/agent-PID/control ──▶ worker
 *   the worker starts `serve <the old arguments> <options> --take-over`; the old server hands over to it, and ends
 *                ◀── the new pid and the pause, or the line with which the successor failed; then the old server goes
 * on
 *
 * Cold: the old server ends first, and the successor loads the part; clients wait for it.
 *
 * The end of a server that was replaced is no end for the launcher: it gets "replaced", with the arguments of the new
 * server. While the two change places, the record names both, so that a reader always finds the one that runs
 * (record.c).
 */
#include "tools/agent/process_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/sysfile.h"

#define LINE_BYTES   (256u << 10)
#define REQUEST_S    2 /* time for a request that was announced to arrive */
#define TAKE_OVER    "--take-over"
#define TOOK_OVER    "took over from pid "
#define PAUSE        ": pause "
#define NOT_REPORTED (-1)

/* --- The socket. --- */

/* The path of a socket may have 107 bytes, so the folder is named by a descriptor. */
static gw_status control_address(const char *folder, struct sockaddr_un *address, int *fd)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	*fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*fd < 0)
		return gw_fail_errno(GW_NOT_FOUND, errno, "%s", folder);
	snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/control", *fd);
	return GW_OK;
}

gw_status gw_agent_control_open(struct gw_agent *agent)
{
	struct sockaddr_un address;
	int folder;
	if (agent->control >= 0)
		return GW_OK;
	gw_status status = control_address(agent->folder, &address, &folder);
	if (status != GW_OK)
		return status;
	agent->control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (agent->control < 0 || bind(agent->control, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(agent->control, 4) != 0) {
		status = gw_fail_errno(GW_IO, errno, "%s/control", agent->folder);
		if (agent->control >= 0)
			close(agent->control);
		agent->control = -1;
	}
	close(folder);
	return status;
}

/* A line from a socket, whose other side is a process of this user: the folder admits no other. NULL with the error
 * text set. */
static json_t *control_receive(int fd)
{
	char *line = gw_malloc(LINE_BYTES);
	size_t bytes = 0;
	json_t *message = NULL;
	while (line && bytes < LINE_BYTES) {
		ssize_t n = recv(fd, line + bytes, LINE_BYTES - bytes, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		bytes += (size_t)n;
		if (line[bytes - 1] == '\n')
			break;
	}
	if (line && bytes)
		message = json_loadb(line, bytes, 0, NULL);
	gw_free(line);
	if (!message)
		gw_fail(GW_PEER_LOST, "the agent of the server has ended");
	return message;
}

static void control_send(int fd, json_t *message)
{
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	json_decref(message);
	char *line = text ? gw_malloc(strlen(text) + 2) : NULL;
	if (line) {
		int n = snprintf(line, strlen(text) + 2, "%s\n", text);
		send(fd, line, (size_t)n, MSG_NOSIGNAL);
	}
	gw_free(line);
	free(text);
}

/* --- The worker. --- */

static void replace_answer(struct gw_agent *agent, json_t *answer)
{
	struct gw_agent_replacement *replacement = &agent->replacement;
	control_send(replacement->asker, answer);
	close(replacement->asker);
	json_decref(replacement->words);
	json_decref(replacement->server);
	*replacement = (struct gw_agent_replacement){.asker = -1};
}

static void replace_refuse(struct gw_agent *agent, const char *text)
{
	replace_answer(agent, json_pack("{ss ss}", "event", "failed", "text", text));
}

/* The arguments of a running server, without the word that made it a successor. NULL with the error text set. */
static json_t *replace_words(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%ld/cmdline", (long)pid);
	char *text = gw_calloc(1, LINE_BYTES);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t bytes = fd >= 0 && text ? read(fd, text, LINE_BYTES - 1) : -1;
	if (fd >= 0)
		close(fd);
	json_t *words = bytes > 0 ? json_array() : NULL;
	for (ssize_t at = 0; at < bytes; at += (ssize_t)strlen(text + at) + 1)
		if (strcmp(text + at, TAKE_OVER) != 0 && strcmp(text + at, "--take_over") != 0)
			json_array_append_new(words, json_string(text + at));
	gw_free(text);
	if (!words)
		gw_fail(GW_NOT_FOUND, "the server of pid %ld has ended", (long)pid);
	return words;
}

static struct gw_agent_process *server_at(const struct gw_agent *agent, json_int_t port)
{
	for (struct gw_agent_process *p = agent->processes; p; p = p->next)
		if (p->port && p->port == port && !p->ended)
			return p;
	return NULL;
}

static gw_status replace_start(struct gw_agent *agent, const json_t *request)
{
	struct gw_agent_replacement *replacement = &agent->replacement;
	struct gw_agent_process *old = server_at(agent, json_integer_value(json_object_get(request, "port")));
	const char *program = json_string_value(json_object_get(request, "program"));
	json_t *option;
	size_t i;
	if (!old || !program)
		return gw_fail(GW_NOT_FOUND, "the agent has no such server");
	if (!old->is_ready)
		return gw_fail(GW_BUSY, "the server of pid %ld is not ready", (long)old->pid);
	replacement->words = replace_words(old->pid);
	if (!replacement->words)
		return GW_NOT_FOUND;
	json_array_set_new(replacement->words, 0, json_string(program));
	json_array_foreach(json_object_get(request, "options"), i, option)
	{
		json_array_append(replacement->words, option);
	}
	replacement->server = json_deep_copy(old->server);
	json_object_set(replacement->server, "version", json_object_get(request, "version"));
	json_object_set_new(replacement->server, "before", json_integer(old->pid));
	replacement->cold = json_is_true(json_object_get(request, "cold"));
	json_t *words = json_copy(replacement->words);
	if (!replacement->cold)
		json_array_append_new(words, json_string(TAKE_OVER));
	replacement->old = old;
	gw_status status = gw_agent_process_succeed(agent, old, words, replacement->cold, &replacement->successor);
	json_decref(words);
	if (status != GW_OK)
		return status;
	replacement->successor->pause_ms = NOT_REPORTED;
	status = gw_agent_record_write(agent, old->server, old->pid, old->log.path, replacement->successor->pid);
	if (status == GW_OK && replacement->cold)
		gw_agent_process_signal(old, SIGTERM);
	return status;
}

void gw_agent_control_hear(struct gw_agent *agent)
{
	struct timeval limit = {.tv_sec = REQUEST_S};
	int fd = accept4(agent->control, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (agent->replacement.asker >= 0 || agent->ending) {
		control_send(fd, json_pack("{ss ss}", "event", "failed", "text",
					   agent->ending ? "the job of the server is ending"
							 : "the server is being replaced"));
		close(fd);
		return;
	}
	agent->replacement.asker = fd;
	json_t *request = control_receive(fd);
	gw_status status = request ? replace_start(agent, request) : GW_PEER_LOST;
	json_decref(request);
	if (status == GW_OK)
		return;
	if (agent->replacement.successor)
		gw_agent_process_signal(agent->replacement.successor, SIGKILL);
	replace_refuse(agent, gw_last_error());
}

void gw_agent_replace_read(struct gw_agent_process *process, const char *line)
{
	const char *at = strstr(line, TOOK_OVER), *pause = at ? strstr(at, PAUSE) : NULL;
	if (pause)
		process->pause_ms = strtoll(pause + strlen(PAUSE), NULL, 10);
}

/* The successor serves: it has the place of the old server, in the record and for the launcher. */
static void replace_commit(struct gw_agent *agent)
{
	struct gw_agent_replacement *replacement = &agent->replacement;
	struct gw_agent_process *old = replacement->old, *successor = replacement->successor;
	successor->port = old->port;
	successor->server = json_incref(replacement->server);
	successor->quiet = false;
	old->port = 0;
	old->quiet = true;
	gw_status status = gw_agent_record_write(agent, successor->server, successor->pid, successor->log.path, 0);
	if (status != GW_OK)
		gw_agent_report(agent,
				json_pack("{ss ss ss}", "event", "failed", "op", "replace", "text", gw_last_error()));
	gw_agent_report(agent, json_pack("{ss ss si si sO}", "event", "replaced", "name", successor->name, "pid",
					 (int)successor->pid, "before", (int)old->pid, "argv", replacement->words));
}

/* The successor has ended before it served. The old server goes on, except after a cold start. */
static void replace_failed(struct gw_agent *agent)
{
	struct gw_agent_replacement *replacement = &agent->replacement;
	struct gw_agent_process *old = replacement->old, *successor = replacement->successor;
	char text[GW_AGENT_TAIL_LINE + 64];
	const char *last = successor->tail_count
				   ? successor->tail[(successor->tail_next + GW_AGENT_TAIL - 1) % GW_AGENT_TAIL]
				   : "";
	snprintf(text, sizeof(text), "%s", *last ? last : "the successor ended without a word");
	if (!old->ended && gw_agent_record_write(agent, old->server, old->pid, old->log.path, 0) != GW_OK)
		gw_agent_report(agent,
				json_pack("{ss ss ss}", "event", "failed", "op", "replace", "text", gw_last_error()));
	replace_refuse(agent, text);
}

bool gw_agent_replace_holds(const struct gw_agent *agent, const struct gw_agent_process *process)
{
	const struct gw_agent_replacement *replacement = &agent->replacement;
	return process == replacement->old && replacement->successor && !replacement->successor->ended;
}

void gw_agent_replace_look(struct gw_agent *agent)
{
	struct gw_agent_replacement *replacement = &agent->replacement;
	struct gw_agent_process *old = replacement->old, *successor = replacement->successor;
	if (!successor)
		return;
	if (successor->is_ready && !old->quiet)
		replace_commit(agent);
	if (old->quiet && (old->ended || successor->pause_ms >= 0)) {
		json_t *pause = successor->pause_ms >= 0 ? json_integer(successor->pause_ms) : NULL;
		replace_answer(agent,
			       json_pack("{ss si si so* sO}", "event", "replaced", "pid", (int)successor->pid, "before",
					 (int)old->pid, "pause_ms", pause, "server", successor->server));
	} else if (!old->quiet && successor->told) {
		replace_failed(agent);
	}
}

/* --- The command. --- */

/* The program of this process, by the path under which it was started. */
static gw_status own_program(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	if (n < 0)
		return gw_fail_errno(GW_IO, errno, "/proc/self/exe");
	path[n] = '\0';
	return GW_OK;
}

static gw_status replace_ask(const char *folder, json_t *request, json_t **answer)
{
	struct sockaddr_un address;
	int place;
	gw_status status = control_address(folder, &address, &place);
	if (status != GW_OK)
		return status;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		status = gw_fail(GW_UNSUPPORTED,
				 "the agent of this server cannot replace it: it has ended, or is of an earlier "
				 "version; stop the servers, and start them again");
	close(place);
	if (status == GW_OK) {
		control_send(fd, json_incref(request));
		*answer = control_receive(fd);
		status = *answer ? GW_OK : GW_PEER_LOST;
	}
	if (fd >= 0)
		close(fd);
	return status;
}

gw_status gw_agent_replace(uint16_t port, bool cold, const char *const *options)
{
	char program[PATH_MAX];
	json_t *record = gw_agent_record_read(port), *answer = NULL, *list = json_array();
	const char *folder = json_string_value(json_object_get(record, "folder"));
	gw_status status = folder ? own_program(program)
				  : gw_fail(GW_NOT_FOUND, "no server of this user is on record at port %u", port);
	for (; options && *options; options++)
		json_array_append_new(list, json_string(*options));
	if (status == GW_OK) {
		json_t *request = json_pack("{ss si ss ss sb sO}", "op", "replace", "port", (int)port, "program",
					    program, "version", GRAPHWIRE_VERSION, "cold", cold, "options", list);
		status = request ? replace_ask(folder, request, &answer) : GW_NO_MEMORY;
		json_decref(request);
	}
	const char *event = json_string_value(json_object_get(answer, "event"));
	if (status == GW_OK && (!event || strcmp(event, "replaced") != 0)) {
		const char *text = json_string_value(json_object_get(answer, "text"));
		status = gw_fail(GW_REFUSED, "%s", text ? text : "the agent of the server gave no answer");
	}
	if (status == GW_OK) {
		json_object_set(answer, "version_before", json_object_get(record, "version"));
		char *text = json_dumps(answer, JSON_COMPACT);
		puts(text ? text : "");
		free(text);
	}
	json_decref(answer);
	json_decref(list);
	json_decref(record);
	return status;
}
