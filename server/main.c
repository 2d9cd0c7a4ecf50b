/* `graphwire serve`: options -> start -> ready line -> wait for a signal -> drain. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/errors/lines.h"
#include "core/errors/log.h"
#include "core/errors/options.h"
#include "core/errors/status.h"
#include "core/system/clock.h"
#include "metrics/exporter.h"
#include "server/handover.h"
#include "server/lists.h"
#include "server/notify.h"
#include "server/server.h"

static const char doc[] =
	"Load one part of a partitioned graph and serve it to clients.\n\n"
	"Examples:\n"
	"  graphwire serve --part-config parts/mygraph.json --part 0 \\\n"
	"                  --listen 127.0.0.1:30050\n"
	"  graphwire serve --part-config parts/mygraph.json --part 1 \\\n"
	"                  --listen 10.0.0.2:30050 --key-file job.key\n"
	"\vPrints one line when it is ready, and notifies the service manager that started it (NOTIFY_SOCKET). "
	"On SIGTERM, SIGINT or SIGHUP the server accepts no more clients, waits for open work, and ends; "
	"a second signal ends it at once. Exit status: 0 ended by a signal, 1 failed, 2 bad options.";

#define TENSOR_LEASE_MAX_S 1000000 /* 11 days */
#define CONNECTIONS_MAX    65536
#define CONNECTIONS_FEW    512 /* a smaller limit is a warning in the log */
#define UNPROVEN_MAX       256
#define UNPROVEN_MIN       4
#define FILES_KEPT         48 /* descriptors that are not connections */
#define READY_MAX          2048
#define READY_MS           500
#define FILES_A_THREAD     8 /* descriptors of each thread: ring or epoll, wake, RDMA's channels */

struct server_arguments {
	struct gw_server_options server;
	enum gw_log_format log_format;
};

static gw_status take_numa(void *input, char *text)
{
	struct server_arguments *a = input;
	uint64_t node = 0;
	a->server.numa = GW_NUMA_SPREAD;
	if (strcmp(text, "spread") == 0)
		return GW_OK;
	gw_status status = gw_parse_u64(text, 0, GW_NUMA_NODES_MAX - 1, &node);
	a->server.numa = (int)node;
	return status;
}

static gw_status take_listen(void *input, char *text)
{
	struct gw_address *address = &((struct server_arguments *)input)->server.listen;
	gw_status status = gw_address_parse(text, address);
	if (status == GW_OK && gw_scheme_find(address->scheme)->rank != GW_RANK_FIRST)
		return gw_fail(GW_UNSUPPORTED, "\"%.64s\": this version serves over TCP only: ADDR:PORT", text);
	return status;
}

static gw_status take_metrics(void *input, char *text)
{
	struct server_arguments *a = input;
	a->server.metrics = true;
	return gw_exporter_address(text, &a->server.metrics_at);
}

static gw_status take_name(void *input, char *text)
{
	((struct server_arguments *)input)->server.name = text;
	return gw_name_check("service", text);
}

static gw_status take_tensor_lease(void *input, char *text)
{
	uint64_t seconds = 0;
	gw_status status = gw_parse_u64(text, 1, TENSOR_LEASE_MAX_S, &seconds);
	((struct server_arguments *)input)->server.tensor_lease_ms = (uint32_t)seconds * 1000;
	return status;
}

static gw_status take_mutable(void *input, char *text)
{
	struct gw_server_options *server = &((struct server_arguments *)input)->server;
	if (server->mutable_count == GW_SERVER_MUTABLE_MAX)
		return gw_fail(GW_LIMIT, "more than %d features", GW_SERVER_MUTABLE_MAX);
	server->mutable_features[server->mutable_count++] = text;
	return GW_OK;
}

static gw_status take_on_disk(void *input, char *text)
{
	struct gw_server_options *server = &((struct server_arguments *)input)->server;
	return gw_split_list(text, GW_SERVER_ON_DISK_MAX, server->on_disk_features, &server->on_disk_count);
}

static gw_status take_runtime_dir(void *input, char *text)
{
	char path[PATH_MAX];
	struct stat st;
	(void)input;
	if (!realpath(text, path) || stat(path, &st) != 0)
		return gw_fail_errno(GW_INVALID, errno, "%.200s: mkdir -m 700 it", text);
	if (!S_ISDIR(st.st_mode))
		return gw_fail(GW_INVALID, "%.200s: not a folder", text);
	/* Set the variable, since the rest of the program reads the folder from it. */
	return setenv("XDG_RUNTIME_DIR", path, 1) == 0
		       ? GW_OK
		       : gw_fail_errno(GW_NO_MEMORY, errno, "XDG_RUNTIME_DIR=%.200s", path);
}

static const char *const pins[] = {"node", "core", "off", NULL}; /* enum gw_server_pin */
static const char *const huge[] = {"try", "require", "off", NULL};
static const char *const log_formats[] = {"text", "json", NULL};        /* enum gw_log_format */
static const char *const prefetches[] = {"auto", "first", "all", NULL}; /* enum gw_prefetch */
static const char *const list_choices[] = {"own", "all", NULL};         /* enum gw_server_lists */
static const char *const drivers[] = {"auto", "io_uring", "epoll", NULL};

#define A struct server_arguments
static const struct gw_option table[] = {
	{"part-config", "FILE", "the graph's JSON, or its folder (required)", 0,
	 GW_OPTION_TEXT(A, server.part_config, .missing = "which graph? Name its JSON or its folder")},
	{"part", "N", "the part to serve (required)", 0,
	 GW_OPTION_NUMBER(A, server.part, 0, GW_PARTS_MAX - 1, .missing = "which part of the graph?")},
	{"listen", "ADDR:PORT", "where to listen; [V6]:PORT for IPv6; port 0: any (127.0.0.1:30050)", 0,
	 GW_OPTION_CALL(take_listen)},
	{"transport", GW_SCHEME_CHOICES,
	 "the transports in addition to TCP: RDMA and memory mapped by clients on this host, each if possible (auto); "
	 "none (tcp); or one of them, which is then required",
	 0, GW_OPTION_CHOICE(A, server.transport, gw_scheme_choices)},
	{"threads", "N", "threads that answer clients (one per processor)", 0,
	 GW_OPTION_NUMBER(A, server.threads, 1, GW_SERVER_THREADS_MAX)},
	{"pin", "node|core|off",
	 "where threads run: each on a NUMA node, in turn, or on the node of --numa (node); "
	 "each on a separate processor (core), for a host that does nothing else; anywhere (off)",
	 0, GW_OPTION_CHOICE(A, server.pin, pins)},
	{"no-pin", NULL, "as --pin off", 0, GW_OPTION_VALUE(A, server.pin, GW_SERVER_PIN_OFF)},
	{"hugepages", "require|try|off", "huge pages for the graph's memory (try)", 0,
	 GW_OPTION_CHOICE(A, server.huge, huge)},
	{"numa", "spread|NODE", "the NUMA node of the graph's memory (spread over all)", 0, GW_OPTION_CALL(take_numa)},
	{"key-file", "FILE", "the key that clients must know; on loopback one is made if none is given", 0,
	 GW_OPTION_TEXT(A, server.key_file)},
	{"runtime-dir", "DIR",
	 "the folder of key, lock and socket, by which clients on this host find the server: DIR/graphwire; "
	 "clients need XDG_RUNTIME_DIR=DIR ($XDG_RUNTIME_DIR; without it /tmp/graphwire-UID)",
	 0, GW_OPTION_CALL(take_runtime_dir)},
	{"insecure", NULL, "serve every client that can connect, without a key", 0, GW_OPTION_FLAG(A, server.insecure)},
	{"name", "NAME", "a name for this service, shown by stat", 0, GW_OPTION_CALL(take_name)},
	{"tcp-driver", "auto|io_uring|epoll", "the driver of sockets (auto)", 0,
	 GW_OPTION_CHOICE(A, server.tcp_driver, drivers)},
	{"spin", "US",
	 "how long a thread polls after an event before it sleeps, at most 1000000 microseconds; "
	 "each polling thread takes up a processor meanwhile (0)",
	 0, GW_OPTION_NUMBER(A, server.spin_us, 0, 1000000)},
	{"prefetch", "first|all|auto",
	 "the cache lines of a row that gathers over TCP prefetch; auto: a trial of 5 ms chooses (auto)", 0,
	 GW_OPTION_CHOICE(A, server.prefetch, prefetches)},
	{"connections", "N", "connections of clients at once (what the limit of open files allows, at most 65536)", 0,
	 GW_OPTION_NUMBER(A, server.connections, 1, CONNECTIONS_MAX)},
	{"tensor-memory", "BYTES", "memory for tensors that clients create (no limit)", 0,
	 GW_OPTION_NUMBER(A, server.tensor_memory, 1, INT64_MAX)},
	{"tensor-lease", "SECONDS", "how long a job's tensors stay after its last client (300)", 0,
	 GW_OPTION_CALL(take_tensor_lease)},
	{"mutable", "NAME",
	 "serve the feature NAME, or TYPE/NAME, as rows that clients can write; the files stay as they are; "
	 "may be given several times, and the same for all servers",
	 0, GW_OPTION_CALL(take_mutable)},
	{"lists", "own|all",
	 "the neighbour lists in memory: of the part (own), or of all parts, whose files must be on this host: clients on "
	 "this host then sample without requests to other servers (own)",
	 0, GW_OPTION_CHOICE(A, server.lists, list_choices)},
	{"on-disk", "NAME[,NAME...]",
	 "leave the rows of these features, each NAME or TYPE/NAME, in their files, and read them for clients that "
	 "request them; \"lists\": the neighbours, ids and columns of all edges; \"offsets\": where each node's list "
	 "begins; all else stays in memory",
	 0, GW_OPTION_CALL(take_on_disk)},
	{"disk-cache", "BYTES", "memory for blocks of the files of --on-disk, at least 1Mi (256Mi)", 0,
	 GW_OPTION_NUMBER(A, server.disk_cache, GW_DISK_CACHE_MIN, INT64_MAX)},
	{"metrics", "[ADDR:]PORT",
	 "answer scrapers there, over HTTP and without a key: /metrics (Prometheus, OpenMetrics), /healthz, /readyz "
	 "(none; without ADDR on the loopback address)",
	 0, GW_OPTION_CALL(take_metrics)},
	{"take-over", NULL,
	 "take over memory, tensors and clients from the server of this part that runs on this host, which then ends: for "
	 "another version or other options; if that fails, the running server goes on",
	 0, GW_OPTION_FLAG(A, server.take_over)},
	{"log-format", "text|json", "the lines on stderr: text, or one JSON object each (text)", 0,
	 GW_OPTION_CHOICE(A, log_format, log_formats)},
	{"drain", "MS", "how long open work may go on after a signal (5000)", 0,
	 GW_OPTION_NUMBER(A, server.drain_ms, 0, 3600000)},
	{0},
};
#undef A

static gw_status check_together(void *input)
{
	const struct gw_server_options *server = &((const struct server_arguments *)input)->server;
	if (server->insecure && server->key_file)
		return gw_fail(GW_INVALID, "--key-file and --insecure exclude each other: leave out one");
	return GW_OK;
}

/* The parent process may wait for this line. If standard output takes nothing, or if it is closed, the server goes on
 * without it. */
static gw_status print_ready(const struct gw_server *server)
{
	static char queue_bytes[GW_LINES_BYTES_MAX + READY_MAX];
	static struct gw_lines lines = GW_LINES(STDOUT_FILENO, queue_bytes, NULL);
	char line[READY_MAX];
	char transports[GW_SERVER_TRANSPORTS_MAX], address[GW_ADDRESS_MAX];
	char bytes[GW_UNIT_TEXT_MAX], took[GW_UNIT_TEXT_MAX], rate[GW_UNIT_TEXT_MAX];
	const struct gw_load_stats *load = gw_part_load_stats(server->part);
	double seconds = (double)load->ns / 1e9;
	char loaded[3 * GW_UNIT_TEXT_MAX], lists[GW_UNIT_TEXT_MAX + 32] = "";
	gw_text_bytes(bytes, (double)load->bytes);
	if (server->options.take_over)
		snprintf(loaded, sizeof(loaded), "%s taken over", bytes);
	else
		snprintf(loaded, sizeof(loaded), "%s in %s (%s/s)", bytes, gw_text_duration(took, seconds),
			 gw_text_bytes(rate, seconds > 0 ? (double)load->bytes / seconds : 0));
	if (server->list_count)
		snprintf(lists, sizeof(lists), ", %s in lists of other parts",
			 gw_text_bytes(bytes, (double)gw_server_lists_held(server)));
	snprintf(line, sizeof(line), "serving part %u of %u of %s at %s: %s%s, over %s, %u thread%s, pid %ld\n",
		 server->options.part, server->meta->num_parts, server->meta->graph_name,
		 gw_server_address(server, address), loaded, lists, gw_server_transports(server, transports),
		 server->options.threads, server->options.threads == 1 ? "" : "s", (long)getpid());
	gw_lines_put(&lines, line, strlen(line));
	int error = gw_lines_drain(&lines, READY_MS);
	if (error == ETIMEDOUT)
		gw_log(GW_LOG_WARN, "standard output takes no line: the line that reports the server as ready waits");
	else if (error && error != EBADF)
		return gw_fail_errno(GW_IO, error, "standard output");
	return GW_OK;
}

/* A connection takes a descriptor, and the usual limit is low. Raises the limit, and divides the descriptors between
 * clients and pending clients. */
static gw_status choose_limits(struct gw_server_options *options)
{
	struct rlimit files, wanted;
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return gw_fail_errno(GW_IO, errno, "the limit of open files");
	wanted = (struct rlimit){files.rlim_max, files.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &wanted) == 0)
		files = wanted;
	else
		gw_log(GW_LOG_INFO, "cannot raise the limit of open files: %s", strerror(errno));
	uint64_t kept = FILES_KEPT + (uint64_t)FILES_A_THREAD * options->threads;
	uint64_t least = kept + UNPROVEN_MIN + (options->connections ? options->connections : UNPROVEN_MIN);
	if (files.rlim_cur < least)
		return gw_fail(
			GW_LIMIT,
			"the limit of open files is %llu, and a server with %u threads and %u connections needs %llu: "
			"raise it (" GW_FILES_HINT "), or give fewer --threads or --connections",
			(unsigned long long)files.rlim_cur, options->threads,
			options->connections ? options->connections : UNPROVEN_MIN, (unsigned long long)least);
	uint64_t left = files.rlim_cur - kept;
	uint64_t unproven = options->connections ? left - options->connections : left / 4;
	options->unproven = (uint32_t)(unproven < UNPROVEN_MIN   ? UNPROVEN_MIN
				       : unproven > UNPROVEN_MAX ? UNPROVEN_MAX
								 : unproven);
	if (options->connections)
		return GW_OK;
	left -= options->unproven;
	options->connections = left < CONNECTIONS_MAX ? (uint32_t)left : CONNECTIONS_MAX;
	if (options->connections < CONNECTIONS_FEW)
		gw_log(GW_LOG_WARN, "at most %u connections: the limit of open files is %llu (" GW_FILES_HINT ")",
		       options->connections, (unsigned long long)files.rlim_cur);
	return GW_OK;
}

/* A second signal while draining ends the process at once. */
static void end_at_once(int signal_number)
{
	(void)signal_number;
	_exit(1);
}

/* Chooses the signals that make the server drain: SIGHUP only if it is not ignored (nohup). */
static void choose_signals(sigset_t *signals)
{
	struct sigaction hang_up;
	sigemptyset(signals);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	if (sigaction(SIGHUP, NULL, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN)
		sigaddset(signals, SIGHUP);
}

/* 0: a successor has taken over; -1: this server cannot go on. */
static int keep_files_until_signal(struct gw_server *server, const sigset_t *signals)
{
	int received = 0, fd = signalfd(-1, signals, SFD_CLOEXEC);
	enum gw_handover_result result = GW_HANDOVER_NONE;
	const struct timespec look = {.tv_sec = GW_SERVER_KEEP_S}, now = {0};
	while (result == GW_HANDOVER_NONE) {
		struct pollfd polled[2] = {{.fd = fd, .events = POLLIN}, {.fd = server->handover_fd, .events = POLLIN}};
		if (fd >= 0)
			poll(polled, 2, GW_SERVER_KEEP_S * 1000);
		received = sigtimedwait(signals, NULL, fd >= 0 ? &now : &look);
		if (received > 0)
			break;
		received = 0;
		gw_server_keep(server);
		if (fd >= 0 && polled[1].revents)
			result = gw_handover_answer(server, fd);
	}
	if (fd >= 0)
		close(fd);
	return result == GW_HANDOVER_LOST ? -1 : received;
}

/* The lines that stderr has not taken get the rest of the time for open work, if that is less than the usual. */
static void limit_last_lines(uint64_t drained)
{
	uint64_t now = gw_now_ns(), left = drained > now ? (drained - now) / GW_NS_PER_MS : 0;
	if (left < GW_LINES_EXIT_MS)
		gw_lines_limit_exit((uint32_t)left);
}

int gw_serve_main(int argc, char **argv)
{
	struct server_arguments arguments = {
		.server = {.threads = gw_server_threads(), .numa = GW_NUMA_SPREAD, .drain_ms = 5000},
	};
	gw_address_parse("127.0.0.1:30050", &arguments.server.listen);
	static const struct gw_options options = {.table = table, .doc = doc, .check = check_together};
	gw_options_parse(&options, argc, argv, &arguments);
	gw_log_set_format(arguments.log_format);
	signal(SIGPIPE, SIG_IGN);
	struct gw_server *server = NULL;
	gw_status status = choose_limits(&arguments.server);
	if (status == GW_OK) {
		gw_notify("STATUS=loading part %u of %.500s", arguments.server.part, arguments.server.part_config);
		status = gw_server_start(&arguments.server, &server);
	}
	if (status != GW_OK) {
		gw_log_failure("graphwire serve");
		return 1;
	}
	/* A signal that arrives before this point, while the part loads, ends the process at once: loading may take
	 * long, and an aborted load leaves nothing behind. The server's threads receive no signals. */
	sigset_t signals;
	choose_signals(&signals);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	status = print_ready(server);
	if (status != GW_OK) {
		gw_log_failure("graphwire serve");
		gw_server_end(server, 0);
		return 1;
	}
	char address[GW_ADDRESS_MAX];
	if (arguments.server.take_over)
		gw_notify("MAINPID=%ld", (long)getpid());
	gw_notify("READY=1\nSTATUS=serving part %u of %u of %.500s at %s", arguments.server.part,
		  server->meta->num_parts, server->meta->graph_name, gw_server_address(server, address));
	int received = keep_files_until_signal(server, &signals);
	if (received <= 0) {
		gw_server_end(server, 0);
		return received < 0;
	}
	gw_log(GW_LOG_INFO, "signal %d: draining", received);
	gw_notify("STOPPING=1\nSTATUS=ending on signal %d: open work may take %u ms more", received,
		  arguments.server.drain_ms);
	signal(SIGTERM, end_at_once);
	signal(SIGINT, end_at_once);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	uint64_t drained = gw_deadline_ns(arguments.server.drain_ms);
	gw_server_end(server, arguments.server.drain_ms);
	limit_last_lines(drained);
	return 0;
}
