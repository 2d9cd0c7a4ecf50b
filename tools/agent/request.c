/* The launcher's requests: a line of JSON with "op", answered by a line with "event". A failed request is answered by
 * {"event":"failed","op":...,"text":...}; the launcher decides whether the job continues.
 *
 *   setup     the job: workspace, logs, ip_config, the trainers' sitecustomize; must come before all of the following
 *   key       the key of the job, for its servers and trainers
 *   graph     the graph that a part config of this host describes
 *   servers   the servers on record here, with the keys of kept servers
 *   left      the remaining processes here of jobs whose agents were killed (left.c)
 *   end_left  SIGTERM or SIGKILL to the remaining processes of a job
 *   sweep     removes folders without running processes, with their keys
 *   port      a port that is free now
 *   own       the address of this host's own name on this host (own.c)
 *   start     starts a process; events: "started", "ready", "output", "ended"
 *   signal    signals a process group
 *   watch     watches a kept server, by its port and pid; event "gone" when it has ended
 *   stop      SIGTERM to a server on record; event "stopping"
 *   release   (with --keep) the servers stay, and this agent leaves its launcher
 *   bye       everything ends
 */
#include "tools/agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files/replace.h"
#include "core/graph/meta.h"
#include "core/system/clock.h"

#define KEY_BYTES_MAX 1024

static const char *request_text(const json_t *request, const char *name)
{
	return json_string_value(json_object_get(request, name));
}

/* --- setup. --- */

static gw_status request_write_key(const struct gw_agent *agent, const char *hex)
{
	uint8_t key[KEY_BYTES_MAX];
	size_t bytes = strlen(hex) / 2;
	if (bytes > sizeof(key) || strlen(hex) % 2)
		return gw_fail(GW_INVALID, "the key must have 16 to %d bytes", KEY_BYTES_MAX);
	for (size_t i = 0; i < bytes; i++) {
		char digits[3] = {hex[2 * i], hex[2 * i + 1]}, *end;
		key[i] = (uint8_t)strtoul(digits, &end, 16);
		if (*end)
			return gw_fail(GW_INVALID, "the key must be in hexadecimal digits");
	}
	gw_status status = gw_file_replace(agent->folder, "key", key, bytes);
	explicit_bzero(key, sizeof(key));
	return status;
}

static gw_status request_take_job(struct gw_agent *agent, const json_t *request)
{
	const char *job = request_text(request, "job"), *workspace = request_text(request, "workspace");
	if (!job || !workspace || strlen(job) >= sizeof(agent->job) || strchr(job, '/') || *job == '.')
		return gw_fail(GW_INVALID, "setup needs a job and a workspace");
	snprintf(agent->job, sizeof(agent->job), "%s", job);
	agent->mark = (struct gw_agent_mark){.worker = getpid(), .start = gw_agent_start_of(getpid())};
	memcpy(agent->mark.job, agent->job, sizeof(agent->job));
	gw_status status = gw_agent_expand(workspace, agent->workspace);
	struct stat st;
	if (status == GW_OK && (stat(agent->workspace, &st) != 0 || !S_ISDIR(st.st_mode)))
		status = gw_fail(GW_NOT_FOUND, "%s: the workspace is not there: copy_files.py makes it",
				 agent->workspace);
	if (status != GW_OK)
		return status;
	json_int_t silence = json_integer_value(json_object_get(request, "silence_ms"));
	const char *bytes = request_text(request, "log_bytes");
	agent->silence_ns = silence > 0 ? (uint64_t)silence * GW_NS_PER_MS : agent->silence_ns;
	if (bytes && gw_parse_u64(bytes, 1, INT64_MAX, &agent->log_bytes_max) != GW_OK)
		return gw_context(GW_INVALID, "log_bytes");
	status = gw_agent_folder_make(agent);
	if (json_is_true(json_object_get(
		    request, "quiet"))) { /* a quiet agent keeps no logs: its folder is removed at its end */
		snprintf(agent->logs, sizeof(agent->logs), "%s", agent->folder);
		return status;
	}
	if (snprintf(agent->logs, sizeof(agent->logs), "%s/logs/%s/", agent->workspace, job) >=
	    (int)sizeof(agent->logs))
		return gw_fail(GW_INVALID, "%s: the path is too long", agent->workspace);
	gw_agent_left_sweep();
	json_int_t keep = json_integer_value(json_object_get(request, "logs_kept"));
	if (status == GW_OK)
		status = gw_folders_make(agent->logs, 1, 0755);
	agent->logs[strlen(agent->logs) - 1] = '\0'; /* the '/' that marked the last folder */
	if (status == GW_OK)
		status = gw_agent_logs_lock(agent);
	if (status == GW_OK && keep > 0)
		gw_agent_logs_remove_old(agent, (size_t)keep);
	return status;
}

static gw_status request_key(struct gw_agent *agent, const json_t *request)
{
	char path[GW_AGENT_PATH_MAX + 16];
	const char *key = request_text(request, "key");
	gw_status status = key ? request_write_key(agent, key) : gw_fail(GW_INVALID, "no key");
	if (status != GW_OK)
		return status;
	snprintf(path, sizeof(path), "%s/key", agent->folder);
	gw_agent_report(agent, json_pack("{ss ss}", "event", "key", "key_file", path));
	return GW_OK;
}

static gw_status request_setup(struct gw_agent *agent, const json_t *request)
{
	char path[GW_AGENT_PATH_MAX + 16];
	const char *hosts = request_text(request, "ip_config");
	const char *sitecustomize = request_text(request, "sitecustomize");
	if (agent->set_up)
		return gw_fail(GW_INVALID, "setup may come only once");
	gw_status status = request_take_job(agent, request);
	if (status == GW_OK && hosts)
		status = gw_file_replace(agent->folder, "ip_config", hosts, strlen(hosts));
	if (status == GW_OK && sitecustomize)
		status = gw_file_replace(agent->folder, "sitecustomize.py", sitecustomize, strlen(sitecustomize));
	if (status != GW_OK)
		return status;
	agent->set_up = true;
	snprintf(path, sizeof(path), "%s/ip_config", agent->folder);
	gw_agent_report(agent, json_pack("{ss ss ss ss}", "event", "setup", "workspace", agent->workspace, "logs",
					 agent->logs, "ip_config", path));
	return GW_OK;
}

/* --- Reports. --- */

static gw_status request_graph(struct gw_agent *agent, const json_t *request)
{
	const char *config = request_text(request, "part_config");
	struct gw_graph_meta *meta = NULL;
	char id[32];
	if (!config || chdir(agent->workspace) != 0)
		return gw_fail_errno(GW_IO, errno, "%s", agent->workspace);
	gw_status status = gw_meta_read(config, &meta);
	if (status != GW_OK)
		return status;
	snprintf(id, sizeof(id), "%016llx", (unsigned long long)meta->graph_id);
	gw_agent_report(agent, json_pack("{ss ss ss si}", "event", "graph", "name", meta->graph_name, "id", id, "parts",
					 (int)meta->num_parts));
	gw_meta_destroy(meta);
	return GW_OK;
}

/* Only the launcher of the server's own user gets a kept server's key, over ssh. */
static void request_add_key(json_t *record)
{
	char path[GW_AGENT_PATH_MAX], hex[2 * KEY_BYTES_MAX + 1] = "";
	uint8_t key[KEY_BYTES_MAX];
	const char *folder = request_text(record, "folder");
	snprintf(path, sizeof(path), "%s/key", folder ? folder : "");
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd >= 0 ? read(fd, key, sizeof(key)) : 0;
	for (ssize_t i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", key[i]);
	if (fd >= 0)
		close(fd);
	if (n > 0)
		json_object_set_new(record, "key", json_string(hex));
	json_object_set_new(record, "key_file", json_string(path));
	explicit_bzero(key, sizeof(key));
}

static gw_status request_servers(struct gw_agent *agent)
{
	json_t *records = gw_agent_records(), *record;
	size_t i;
	json_array_foreach(records, i, record)
	{
		request_add_key(record);
	}
	gw_agent_report(agent, json_pack("{ss so}", "event", "servers", "servers", records));
	return GW_OK;
}

static gw_status request_port(struct gw_agent *agent)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
	struct sockaddr_in old = {.sin_family = AF_INET};
	struct sockaddr *any = (struct sockaddr *)&address;
	socklen_t bytes = sizeof(address);
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		any = (struct sockaddr *)&old;
		bytes = sizeof(old);
	}
	gw_status status = GW_OK;
	if (fd < 0 || bind(fd, any, bytes) != 0 || getsockname(fd, any, &bytes) != 0)
		status = gw_fail_errno(GW_IO, errno, "no free port");
	else
		gw_agent_report(agent,
				json_pack("{ss si}", "event", "port", "port",
					  (int)ntohs(any->sa_family == AF_INET6 ? address.sin6_port : old.sin_port)));
	if (fd >= 0)
		close(fd);
	return status;
}

/* --- Actions. --- */

static gw_status request_signal(struct gw_agent *agent, const json_t *request)
{
	const char *name = request_text(request, "name");
	int number = (int)json_integer_value(json_object_get(request, "signal"));
	for (struct gw_agent_process *p = agent->processes; name && p; p = p->next) {
		if (strcmp(p->name, name) == 0 && !p->ended && number > 0 && number < 32)
			gw_agent_process_signal(p, number);
	}
	return GW_OK;
}

static gw_status request_watch(struct gw_agent *agent, const json_t *request)
{
	json_int_t port = json_integer_value(json_object_get(request, "port"));
	gw_status status = port > 0 && port < 65536
				   ? gw_agent_watch(agent, (uint16_t)port,
						    (pid_t)json_integer_value(json_object_get(request, "pid")))
				   : gw_fail(GW_INVALID, "watch needs a port");
	if (status == GW_OK)
		gw_agent_report(agent, json_pack("{ss}", "event", "watching"));
	return status;
}

/* The launcher then asks "servers" until the server is gone. */
static gw_status request_stop(struct gw_agent *agent, const json_t *request)
{
	json_int_t port = json_integer_value(json_object_get(request, "port"));
	const char *wanted = request_text(request, "name");
	json_t *record = port > 0 && port < 65536 ? gw_agent_record_read((uint16_t)port) : NULL;
	if (!record)
		return gw_fail(GW_NOT_FOUND, "no server of this user is on record at port %d", (int)port);
	const char *name = request_text(record, "name");
	gw_status status = GW_OK;
	pid_t pid = (pid_t)json_integer_value(json_object_get(record, "pid"));
	bool hard = json_is_true(json_object_get(request, "hard"));
	if (wanted && (!name || strcmp(name, wanted) != 0))
		status = gw_fail(GW_REFUSED, "the server at port %d is \"%s\", not \"%s\"", (int)port, name ? name : "",
				 wanted);
	else if (kill(pid, hard ? SIGKILL : SIGTERM) != 0)
		status = gw_fail_errno(GW_IO, errno, "the server of pid %d", (int)pid);
	else
		gw_agent_report(agent,
				json_pack("{ss si si}", "event", "stopping", "port", (int)port, "pid", (int)pid));
	json_decref(record);
	return status;
}

/* The launcher asks "left" until no process remains. */
static gw_status request_end_left(struct gw_agent *agent, const json_t *request)
{
	const char *job = request_text(request, "job");
	if (!job)
		return gw_fail(GW_INVALID, "end_left needs a job");
	int count = gw_agent_left_signal(job, json_is_true(json_object_get(request, "hard")) ? SIGKILL : SIGTERM);
	gw_agent_report(agent, json_pack("{ss si}", "event", "ending_left", "count", count));
	return GW_OK;
}

static gw_status request_left(struct gw_agent *agent, bool sweep)
{
	if (sweep)
		gw_agent_left_sweep();
	gw_agent_report(agent, json_pack("{ss so}", "event", sweep ? "swept" : "left", "left", gw_agent_left()));
	return GW_OK;
}

static gw_status request_release(struct gw_agent *agent)
{
	if (!agent->keep)
		return gw_fail(GW_INVALID, "release needs an agent that was started with --keep");
	agent->released = true;
	gw_agent_report(agent, json_pack("{ss}", "event", "released"));
	return GW_OK;
}

void gw_agent_request(struct gw_agent *agent, json_t *request)
{
	const char *op = request_text(request, "op");
	gw_status status = GW_OK;
	if (!op)
		status = gw_fail(GW_INVALID, "the line is not a request");
	else if (strcmp(op, "ping") == 0)
		status = GW_OK; /* the arrival of the line is enough: it breaks the silence */
	else if (strcmp(op, "bye") == 0)
		gw_agent_end(agent, NULL);
	else if (strcmp(op, "servers") == 0)
		status = request_servers(agent);
	else if (strcmp(op, "left") == 0 || strcmp(op, "sweep") == 0)
		status = request_left(agent, *op == 's');
	else if (strcmp(op, "end_left") == 0)
		status = request_end_left(agent, request);
	else if (strcmp(op, "stop") == 0)
		status = request_stop(agent, request);
	else if (strcmp(op, "watch") == 0)
		status = request_watch(agent, request);
	else if (strcmp(op, "port") == 0)
		status = request_port(agent);
	else if (strcmp(op, "own") == 0)
		status = gw_agent_own(agent, request_text(request, "address"));
	else if (strcmp(op, "setup") == 0)
		status = request_setup(agent, request);
	else if (!agent->set_up || agent->ending)
		status = gw_fail(GW_INVALID, "not before setup, and not while ending");
	else if (strcmp(op, "key") == 0)
		status = request_key(agent, request);
	else if (strcmp(op, "graph") == 0)
		status = request_graph(agent, request);
	else if (strcmp(op, "start") == 0)
		status = gw_agent_process_start(agent, request);
	else if (strcmp(op, "signal") == 0)
		status = request_signal(agent, request);
	else if (strcmp(op, "release") == 0)
		status = request_release(agent);
	else
		status = gw_fail(GW_UNSUPPORTED, "unknown request: launcher and program have different versions");
	if (status != GW_OK)
		gw_agent_report(agent, json_pack("{ss ss ss}", "event", "failed", "op", op ? op : "?", "text",
						 gw_last_error()));
}
