/* Runs this program's other commands as processes: /proc/self/exe generate, partition, serve. Reads a server's address
 * from its ready line.
 *
 *   temporary folder -> generate -> partition -> serve, one for each part -> clients
 *
 * The processes end with this process. A signal that ends this process first ends them and then removes the folder, so
 * that no process writes into it any more. Fails when the folder has no room, or when a command fails; the command
 * prints its reason on stderr.
 */
#include "bench/own_servers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/errors/signals.h"
#include "core/files/staging.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/sysfile.h"

#define READY_MS           120000
#define OWN_PARTS          2u
#define SERVE_WORDS_ALWAYS 14u /* of a server's command line */
#define SERVE_WORDS        (SERVE_WORDS_ALWAYS + 6u)

/* ---- signals ---- */

static struct gw_own_servers *_Atomic running; /* the servers that a signal handler must end */

static void kill_and_wait(pid_t pid)
{
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static void end_all_and_die(int number)
{
	struct gw_own_servers *own = atomic_load(&running);
	if (own) {
		kill_and_wait(atomic_load(&own->working));
		for (uint32_t i = 0; i < GW_OWN_SERVERS_MAX; i++)
			kill_and_wait(atomic_load(&own->pids[i]));
	}
	gw_staging_cleanup();
	gw_die_of_signal(number);
}

static void servers_catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = end_all_and_die}, before;
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
}

/* ---- processes ---- */

/* Starts this program with arguments; its stdout goes to `output`. Signals are blocked until *pid is set, so a signal
 * handler always knows the process. */
static gw_status run_self(const char *const *arguments, int output, _Atomic pid_t *pid)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid_t parent = getpid(), child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(1);
		dup2(output, STDOUT_FILENO);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		execv("/proc/self/exe", (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	int error = errno;
	if (child > 0)
		atomic_store(pid, child);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return child > 0 ? GW_OK : gw_fail_errno(GW_LIMIT, error, "cannot start graphwire %s", arguments[1]);
}

static gw_status run_to_end(struct gw_own_servers *own, const char *const *arguments)
{
	int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC), result;
	if (quiet < 0)
		return gw_fail_errno(GW_IO, errno, "/dev/null");
	gw_status status = run_self(arguments, quiet, &own->working);
	close(quiet);
	if (status != GW_OK)
		return status;
	pid_t pid = atomic_load(&own->working);
	while (waitpid(pid, &result, 0) < 0) {
		if (errno != EINTR)
			return gw_fail_errno(GW_IO, errno, "graphwire %s", arguments[1]);
	}
	atomic_store(&own->working, 0);
	if (!WIFEXITED(result) || WEXITSTATUS(result) != 0)
		return gw_fail(GW_IO, "graphwire %s failed: its line above has the reason", arguments[1]);
	return GW_OK;
}

/* ---- the folder and the graph ---- */

/* Keys and locks are in this folder too, so that other programs do not meet a benchmark's server. */
static gw_status servers_make_folder(struct gw_own_servers *own)
{
	const char *base = getenv("TMPDIR");
	char *name = gw_format("%s/graphwire-bench-%ld", base && *base ? base : "/var/tmp", (long)getpid());
	if (!name)
		return GW_NO_MEMORY;
	gw_status status = gw_staging_begin(name, false, &own->staging);
	gw_free(name);
	if (status != GW_OK)
		return status;
	if (setenv("XDG_RUNTIME_DIR", gw_staging_path(own->staging), 1) != 0)
		return gw_fail_errno(GW_NO_MEMORY, errno, "XDG_RUNTIME_DIR");
	servers_catch_signals();
	atomic_store(&running, own);
	return GW_OK;
}

static gw_status servers_make_graph(struct gw_own_servers *own, uint32_t scale, uint32_t features)
{
	char scale_text[16], features_text[16], parts_text[16];
	snprintf(scale_text, sizeof(scale_text), "%u", scale);
	snprintf(features_text, sizeof(features_text), "%u", features);
	snprintf(parts_text, sizeof(parts_text), "%u", OWN_PARTS);
	char *whole = gw_format("%s/whole", gw_staging_path(own->staging));
	own->part_config = gw_format("%s/parts", gw_staging_path(own->staging));
	if (!whole || !own->part_config) {
		gw_free(whole);
		return GW_NO_MEMORY;
	}
	const char *generate[] = {"graphwire", "generate", "rmat",  "--scale", scale_text, "--features", features_text,
				  "--labels",  "47",       "--out", whole,     "--quiet",  NULL};
	const char *partition[] = {"graphwire", "partition", whole,   "--num-parts",    parts_text,
				   "--method",  "random",    "--out", own->part_config, NULL};
	gw_status status = run_to_end(own, generate);
	if (status == GW_OK)
		status = run_to_end(own, partition);
	gw_free(whole);
	return status;
}

/* ---- servers ---- */

/* Reads the ready line, "serving part 0 of 2 of NAME at ADDRESS: ...". */
static gw_status read_ready(int output, char *address, size_t bytes)
{
	char line[1024] = "";
	size_t used = 0;
	uint64_t deadline = gw_deadline_ns(READY_MS);
	while (used + 1 < sizeof(line) && !memchr(line, '\n', used)) {
		struct pollfd readable = {.fd = output, .events = POLLIN};
		uint64_t now = gw_now_ns();
		if (now >= deadline || poll(&readable, 1, (int)((deadline - now) / GW_NS_PER_MS)) <= 0)
			return gw_fail(GW_DEADLINE, "a server was not ready within %d s", READY_MS / 1000);
		ssize_t n = read(output, line + used, sizeof(line) - 1 - used);
		if (n <= 0)
			return gw_fail(GW_IO, "a server ended before it was ready: its line above has the reason");
		used += (size_t)n;
	}
	line[used] = 0;
	char *at = strstr(line, " at "), *end = at ? strstr(at, ": ") : NULL;
	if (!end || (size_t)(end - at) - 4 >= bytes)
		return gw_fail(GW_FORMAT, "a server's ready line has an unknown format: %.80s", line);
	*end = 0;
	memcpy(address, at + 4, (size_t)(end - at) - 4 + 1); /* with the terminating 0 */
	return GW_OK;
}

static gw_status start_server(struct gw_own_servers *own, const char *part_config, uint32_t number,
			      const struct gw_own_clients_options *options, const char *runtime)
{
	char part[16], threads_text[16], spin_text[16];
	int ends[2];
	if (own->count == GW_OWN_SERVERS_MAX)
		return gw_fail(GW_LIMIT, "a benchmark starts at most %d servers", GW_OWN_SERVERS_MAX);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return gw_fail_errno(GW_LIMIT, errno, "pipe");
	snprintf(part, sizeof(part), "%u", number);
	snprintf(threads_text, sizeof(threads_text), "%u", options->server_threads);
	snprintf(spin_text, sizeof(spin_text), "%u", options->server_spin_us);
	const char *serve[SERVE_WORDS] = {"graphwire",     "serve",
					  "--part-config", part_config,
					  "--part",        part,
					  "--spin",        spin_text,
					  "--listen",      "127.0.0.1:0",
					  "--threads",     threads_text,
					  "--tcp-driver",  options->server_driver ? options->server_driver : "auto"};
	uint32_t words = SERVE_WORDS_ALWAYS;
	if (options->server_pin) {
		serve[words++] = "--pin";
		serve[words++] = options->server_pin;
	}
	if (runtime) {
		serve[words++] = "--insecure";
		serve[words++] = "--runtime-dir";
		serve[words++] = runtime;
	}
	uint32_t i = own->count;
	gw_status status = run_self(serve, ends[1], &own->pids[i]);
	close(ends[1]);
	if (status != GW_OK) {
		close(ends[0]);
		return status;
	}
	own->outputs[i] = ends[0];
	own->list[i] = own->addresses[i];
	own->count++;
	return read_ready(ends[0], own->addresses[i], sizeof(own->addresses[i]));
}

/* Starts a server for each part, and lets the client use them. runtime: their folder for locks, without a key; NULL:
 * this process's. */
static gw_status start_servers(struct gw_own_servers *own, uint32_t parts, const struct gw_own_clients_options *options,
			       struct gw_client_options *client, const char *runtime)
{
	gw_status status = GW_OK;
	client->servers = own->list + own->count;
	client->server_count = parts;
	for (uint32_t part = 0; part < parts && status == GW_OK; part++)
		status = start_server(own, client->part_config, part, options, runtime);
	return status;
}

gw_status gw_own_clients_check(const struct gw_client_options *client)
{
	if (client->part_config || !client->server_count)
		return GW_OK;
	return gw_fail(GW_INVALID, "--servers needs --part-config, to check the servers' answers");
}

gw_status gw_own_clients_open(struct gw_own_servers *own, const struct gw_own_clients_options *options,
			      struct gw_client **alone, struct gw_client **served)
{
	struct gw_client_options client = options->client;
	gw_status status = GW_OK;
	*alone = *served = NULL;
	if (!options->standalone && !client.part_config && !client.server_count && gw_is_launched()) {
		status = gw_launched_read(&own->launched);
		gw_launched_fill(&own->launched, &client);
	}
	bool own_servers = !options->standalone && !client.server_count;
	if (status == GW_OK && (!client.part_config || own_servers))
		status = servers_make_folder(own);
	if (status == GW_OK && !client.part_config) {
		status = servers_make_graph(own, options->scale, options->features);
		client.part_config = own->part_config;
	}
	const struct gw_client_options folder = {.part_config = client.part_config, .threads = client.threads};
	if (status == GW_OK)
		status = gw_client_open(&folder, alone);
	if (status != GW_OK || options->standalone)
		return status;
	if (own_servers)
		status = start_servers(own, gw_client_graph(*alone)->num_parts, options, &client, NULL);
	own->served = client;
	return status != GW_OK ? status : gw_client_open(&client, served);
}

gw_status gw_own_clients_again(const struct gw_own_servers *own, uint32_t threads, struct gw_client **out)
{
	struct gw_client_options client = own->served;
	client.threads = threads;
	return gw_client_open(&client, out);
}

gw_status gw_own_clients_more(struct gw_own_servers *own, const struct gw_own_clients_options *options,
			      struct gw_client *alone, struct gw_client **served)
{
	struct gw_client_options client = options->client;
	*served = NULL;
	if (!own->count)
		return gw_fail(GW_INVALID, "the servers must be the benchmark's own");
	if (!client.part_config)
		client.part_config = own->part_config;
	/* A folder of servers has at most one server of a part. */
	char *runtime = gw_format("%s/servers%u", gw_staging_path(own->staging), own->count);
	if (!runtime)
		return GW_NO_MEMORY;
	client.insecure = true;
	gw_status status = mkdir(runtime, 0700) == 0 ? GW_OK : gw_fail_errno(GW_IO, errno, "%s", runtime);
	if (status == GW_OK)
		status = start_servers(own, gw_client_graph(alone)->num_parts, options, &client, runtime);
	gw_free(runtime);
	return status != GW_OK ? status : gw_client_open(&client, served);
}

#define USER_FIELD 12 /* spaces in /proc/PID/stat from the end of the name to utime, field 14; stime follows */

struct gw_own_used gw_own_servers_used(const struct gw_own_servers *own)
{
	const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	struct gw_own_used used = {(double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec,
				   (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec};
	for (uint32_t i = 0; i < own->count; i++) {
		char text[1024], *at = NULL;
		if (gw_sysfile_read(text, sizeof(text), "/proc/%ld/stat", (long)atomic_load(&own->pids[i])))
			at = strrchr(text, ')');
		for (int space = 0; at && space < USER_FIELD; space++)
			at = strchr(at + 1, ' ');
		if (!at)
			continue;
		used.user += tick * (double)strtoull(at, &at, 10);
		used.system += tick * (double)strtoull(at, NULL, 10);
	}
	return used;
}

void gw_own_servers_end(struct gw_own_servers *own)
{
	for (uint32_t i = 0; i < own->count; i++)
		kill(atomic_load(&own->pids[i]), SIGTERM);
	for (uint32_t i = 0; i < own->count; i++) {
		waitpid(atomic_load(&own->pids[i]), NULL, 0);
		atomic_store(&own->pids[i], 0);
		close(own->outputs[i]);
	}
	own->count = 0;
	atomic_store(&running, NULL);
	gw_staging_abort(own->staging);
	own->staging = NULL;
	gw_free(own->part_config);
	own->part_config = NULL;
	gw_launched_free(&own->launched);
}
