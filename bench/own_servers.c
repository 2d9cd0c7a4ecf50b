/* Running this program's other commands as processes: /proc/self/exe generate, partition, serve. A server's address is
 * read from its ready line. */
#include "bench/own_servers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/staging.h"

#define READY_MS 120000

/* Starts this program with arguments; its stdout goes to `output`. */
static pid_t run_self(const char *const *arguments, int output)
{
	pid_t parent = getpid(), pid = fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	dup2(output, STDOUT_FILENO);
	execv("/proc/self/exe", (char *const *)(uintptr_t)arguments);
	_exit(127);
}

static gw_status run_to_end(const char *const *arguments)
{
	int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC), result;
	if (quiet < 0)
		return gw_fail_errno(GW_IO, errno, "/dev/null");
	pid_t pid = run_self(arguments, quiet);
	close(quiet);
	if (pid < 0)
		return gw_fail_errno(GW_LIMIT, errno, "cannot start graphwire %s", arguments[1]);
	while (waitpid(pid, &result, 0) < 0) {
		if (errno != EINTR)
			return gw_fail_errno(GW_IO, errno, "graphwire %s", arguments[1]);
	}
	if (!WIFEXITED(result) || WEXITSTATUS(result) != 0)
		return gw_fail(GW_IO, "graphwire %s failed: its line above says why", arguments[1]);
	return GW_OK;
}

gw_status gw_own_graph_make(struct gw_own_servers *own, uint32_t scale, uint32_t features, uint32_t parts)
{
	const char *base = getenv("TMPDIR");
	snprintf(own->folder, sizeof(own->folder), "%s/graphwire-bench-XXXXXX", base && *base ? base : "/var/tmp");
	if (!mkdtemp(own->folder)) {
		gw_status status = gw_fail_errno(GW_IO, errno, "%s", own->folder);
		own->folder[0] = 0;
		return status;
	}
	char whole[80], scale_text[16], features_text[16], parts_text[16];
	snprintf(whole, sizeof(whole), "%s/whole", own->folder);
	snprintf(own->part_config, sizeof(own->part_config), "%s/parts", own->folder);
	snprintf(scale_text, sizeof(scale_text), "%u", scale);
	snprintf(features_text, sizeof(features_text), "%u", features);
	snprintf(parts_text, sizeof(parts_text), "%u", parts);
	const char *generate[] = {"graphwire", "generate", "rmat",  "--scale", scale_text, "--features", features_text,
				  "--labels",  "47",       "--out", whole,     "--quiet",  NULL};
	const char *partition[] = {"graphwire", "partition", whole,   "--num-parts",    parts_text,
				   "--method",  "random",    "--out", own->part_config, NULL};
	gw_status status = run_to_end(generate);
	return status == GW_OK ? run_to_end(partition) : status;
}

/* Reads the ready line, "serving part 0 of 2 of NAME at ADDRESS: ...". */
static gw_status read_ready(int output, char *address, size_t bytes)
{
	char line[1024] = "";
	size_t used = 0;
	while (used + 1 < sizeof(line) && !memchr(line, '\n', used)) {
		struct pollfd readable = {.fd = output, .events = POLLIN};
		if (poll(&readable, 1, READY_MS) <= 0)
			return gw_fail(GW_DEADLINE, "a server was not ready within %d s", READY_MS / 1000);
		ssize_t n = read(output, line + used, sizeof(line) - 1 - used);
		if (n <= 0)
			return gw_fail(GW_IO, "a server ended before it was ready: its line above says why");
		used += (size_t)n;
	}
	line[used] = 0;
	char *at = strstr(line, " at "), *end = at ? strstr(at, ": ") : NULL;
	if (!end || (size_t)(end - at) - 4 >= bytes)
		return gw_fail(GW_FORMAT, "a server's ready line is not understood: %.80s", line);
	*end = 0;
	memcpy(address, at + 4, (size_t)(end - at) - 4 + 1); /* with its end */
	return GW_OK;
}

gw_status gw_own_servers_start(struct gw_own_servers *own, const char *part_config, uint32_t parts, uint32_t threads)
{
	char part[16], threads_text[16];
	snprintf(threads_text, sizeof(threads_text), "%u", threads);
	for (own->count = 0; own->count < parts;) {
		int ends[2];
		if (own->count == GW_OWN_SERVERS_MAX)
			return gw_fail(GW_LIMIT, "a benchmark starts at most %d servers", GW_OWN_SERVERS_MAX);
		if (pipe2(ends, O_CLOEXEC) != 0)
			return gw_fail_errno(GW_LIMIT, errno, "pipe");
		snprintf(part, sizeof(part), "%u", own->count);
		const char *serve[] = {"graphwire", "serve",       "--part-config", part_config,  "--part", part,
				       "--listen",  "127.0.0.1:0", "--threads",     threads_text, NULL};
		pid_t pid = run_self(serve, ends[1]);
		close(ends[1]);
		if (pid < 0) {
			close(ends[0]);
			return gw_fail_errno(GW_LIMIT, errno, "cannot start a server");
		}
		uint32_t i = own->count++;
		own->pids[i] = pid;
		own->outputs[i] = ends[0];
		gw_status status = read_ready(ends[0], own->addresses[i], sizeof(own->addresses[i]));
		if (status != GW_OK)
			return status;
		own->list[i] = own->addresses[i];
	}
	return GW_OK;
}

void gw_own_servers_end(struct gw_own_servers *own)
{
	for (uint32_t i = 0; i < own->count; i++)
		kill(own->pids[i], SIGTERM);
	for (uint32_t i = 0; i < own->count; i++) {
		waitpid(own->pids[i], NULL, 0);
		close(own->outputs[i]);
	}
	own->count = 0;
	if (own->folder[0])
		gw_remove_tree(own->folder);
	own->folder[0] = 0;
}
