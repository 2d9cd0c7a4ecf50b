/* `graphwire serve`: options -> start -> ready line -> wait for a signal -> drain. */
#include <argp.h>
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/options.h"
#include "core/base/parallel.h"
#include "core/base/probe.h"
#include "server/server.h"

static const char doc[] =
	"Load one part of a partitioned graph and serve it to clients.\n\n"
	"Examples:\n"
	"  graphwire serve --part-config parts/mygraph.json --part 0 --listen 127.0.0.1:30050\n"
	"  graphwire serve --part-config parts/mygraph.json --part 1 --listen 10.0.0.2:30050 --key-file job.key\n"
	"\vPrints one line when it is ready. SIGTERM, SIGINT or SIGHUP: accepts no more clients, lets open work "
	"finish, "
	"ends; a second signal ends it at once. Exit status: 0 ended by a signal, 1 failed, 2 bad options.";

/* In the order of the table: a bad value is told with the name found there. */
enum {
	OPT_PART_CONFIG = 256,
	OPT_PART,
	OPT_LISTEN,
	OPT_TRANSPORT,
	OPT_THREADS,
	OPT_PIN,
	OPT_HUGE,
	OPT_NUMA,
	OPT_KEY,
	OPT_INSECURE,
	OPT_NAME,
	OPT_DRIVER,
	OPT_DRAIN,
	OPT_END
};

static const struct argp_option options_table[] = {
	{"part-config", OPT_PART_CONFIG, "FILE", 0, "the graph's JSON, or its folder (required)", 0},
	{"part", OPT_PART, "N", 0, "the part to serve (required)", 0},
	{"listen", OPT_LISTEN, "ADDR:PORT", 0, "where to listen; [V6]:PORT for IPv6; port 0: any (127.0.0.1:30050)", 0},
	{"transport", OPT_TRANSPORT, "auto|tcp", 0, "how clients reach the memory (auto)", 0},
	{"threads", OPT_THREADS, "N", 0, "threads that answer clients (one per processor)", 0},
	{"no-pin", OPT_PIN, NULL, 0, "do not pin threads to processors", 0},
	{"hugepages", OPT_HUGE, "require|try|off", 0, "pages behind the graph's memory (try)", 0},
	{"numa", OPT_NUMA, "spread|NODE", 0, "where the graph's memory lies (spread)", 0},
	{"key-file", OPT_KEY, "FILE", 0, "the key that clients must know; on loopback one is made if none is given", 0},
	{"insecure", OPT_INSECURE, NULL, 0, "serve anybody who can connect", 0},
	{"name", OPT_NAME, "NAME", 0, "a name for this service, shown by stat", 0},
	{"tcp-driver", OPT_DRIVER, "auto|io_uring|epoll", 0, "how sockets are driven (auto)", 0},
	{"drain", OPT_DRAIN, "MS", 0, "how long open work may go on after a signal (5000)", 0},
	{0},
};
static_assert(sizeof(options_table) / sizeof(options_table[0]) == OPT_END - OPT_PART_CONFIG + 1, "one for each");

struct arguments {
	struct gw_server_options server;
	bool has_part;
};

static gw_status parse_numa(const char *text, int *out)
{
	if (strcmp(text, "spread") == 0) {
		*out = GW_NUMA_SPREAD;
		return GW_OK;
	}
	uint64_t node;
	gw_status status = gw_parse_u64(text, 0, 1023, &node);
	*out = (int)node;
	return status;
}

static gw_status parse_listen(const char *text, struct gw_address *out)
{
	gw_status status = gw_address_parse(text, out);
	if (status == GW_OK && strcmp(out->scheme, "tcp") != 0)
		return gw_fail(GW_UNSUPPORTED, "\"%.64s\": this version serves over TCP only: ADDR:PORT", text);
	return status;
}

static gw_status parse_one(int key, char *value, struct arguments *arguments)
{
	static const char *const huge[] = {"try", "require", "off", NULL};
	static const char *const transports[] = {"auto", "tcp", NULL};
	static const char *const drivers[] = {"auto", "io_uring", "epoll", NULL};
	struct gw_server_options *server = &arguments->server;
	uint64_t number = 0;
	int choice = 0;
	gw_status status = GW_OK;
	switch (key) {
	case OPT_PART_CONFIG:
		server->part_config = value;
		break;
	case OPT_PART:
		status = gw_parse_u64(value, 0, GW_PARTS_MAX - 1, &number);
		server->part = (uint32_t)number;
		arguments->has_part = true;
		break;
	case OPT_LISTEN:
		status = parse_listen(value, &server->listen);
		break;
	case OPT_TRANSPORT:
		status = gw_parse_choice(value, transports, &choice);
		break;
	case OPT_THREADS:
		status = gw_parse_u64(value, 1, GW_SERVER_THREADS_MAX, &number);
		server->threads = (uint32_t)number;
		break;
	case OPT_PIN:
		server->pin = false;
		break;
	case OPT_HUGE:
		status = gw_parse_choice(value, huge, &choice);
		server->huge = (enum gw_huge_policy)choice;
		break;
	case OPT_NUMA:
		status = parse_numa(value, &server->numa);
		break;
	case OPT_KEY:
		server->key_file = value;
		break;
	case OPT_INSECURE:
		server->insecure = true;
		break;
	case OPT_NAME:
		status = gw_name_check("service", value);
		server->name = value;
		break;
	case OPT_DRIVER:
		status = gw_parse_choice(value, drivers, &choice);
		server->tcp_driver = drivers[choice];
		break;
	case OPT_DRAIN:
		status = gw_parse_u64(value, 0, 3600000, &number);
		server->drain_ms = (uint32_t)number;
		break;
	default:
		status = GW_NOT_FOUND;
	}
	return status;
}

static error_t parse(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;
	if (key == ARGP_KEY_ARG)
		argp_failure(state, 2, 0, "\"%s\" is no option: see --help", value);
	if (key == ARGP_KEY_END && (!arguments->server.part_config || !arguments->has_part))
		argp_failure(state, 2, 0, "--part-config and --part are required: see --help");
	if (key == ARGP_KEY_END && arguments->server.insecure && arguments->server.key_file)
		argp_failure(state, 2, 0, "--key-file and --insecure exclude each other: leave out one");
	if (key < OPT_PART_CONFIG)
		return ARGP_ERR_UNKNOWN;
	gw_status status = parse_one(key, value, arguments);
	if (status == GW_NOT_FOUND)
		return ARGP_ERR_UNKNOWN;
	if (status != GW_OK)
		argp_failure(state, 2, 0, "--%s: %s", options_table[key - OPT_PART_CONFIG].name, gw_last_error());
	return 0;
}

static void print_ready(const struct gw_server *server)
{
	char address[GW_ADDRESS_MAX], bytes[GW_UNIT_TEXT_MAX], took[GW_UNIT_TEXT_MAX], rate[GW_UNIT_TEXT_MAX];
	const struct gw_load_stats *load = gw_part_load_stats(server->part);
	double seconds = (double)load->ns / 1e9;
	printf("serving part %u of %u of %s at %s: %s in %s (%s/s), %u thread%s, pid %ld\n", server->options.part,
	       server->meta->num_parts, server->meta->graph_name, gw_address_text(&server->listener->address, address),
	       gw_text_bytes(bytes, (double)load->bytes), gw_text_duration(took, seconds),
	       gw_text_bytes(rate, seconds > 0 ? (double)load->bytes / seconds : 0), server->options.threads,
	       server->options.threads == 1 ? "" : "s", (long)getpid());
	fflush(stdout);
}

/* A second signal while draining ends the process at once. */
static void end_at_once(int signal_number)
{
	(void)signal_number;
	_exit(1);
}

/* The signals that drain; a hang-up only where nobody (nohup) has told us to ignore it. */
static void choose_signals(sigset_t *signals)
{
	struct sigaction hang_up;
	sigemptyset(signals);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	if (sigaction(SIGHUP, NULL, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN)
		sigaddset(signals, SIGHUP);
}

int gw_serve_main(int argc, char **argv)
{
	unsigned processors = gw_processors();
	struct arguments arguments = {
		.server = {.threads = processors < GW_SERVER_THREADS_MAX ? processors : GW_SERVER_THREADS_MAX,
			   .pin = true,
			   .numa = GW_NUMA_SPREAD,
			   .drain_ms = 5000},
	};
	gw_address_parse("127.0.0.1:30050", &arguments.server.listen);
	static const struct argp argp = {options_table, parse, NULL, doc, NULL, NULL, NULL};
	if (gw_options_parse(&argp, argc, argv, &arguments) != 0)
		return 2;
	signal(SIGPIPE, SIG_IGN);

	struct gw_server *server;
	gw_status status = gw_server_start(&arguments.server, &server);
	if (status != GW_OK) {
		fprintf(stderr, "graphwire serve: %s\n", gw_last_error());
		return 1;
	}
	/* Until here a signal ends the process: loading may take long, and leaves nothing behind. The server's threads
	 * take none. */
	sigset_t signals;
	choose_signals(&signals);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	print_ready(server);
	int received;
	while (sigwait(&signals, &received) != 0)
		;
	gw_log(GW_LOG_INFO, "signal %d: draining", received);
	signal(SIGTERM, end_at_once);
	signal(SIGINT, end_at_once);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	gw_server_end(server, arguments.server.drain_ms);
	return 0;
}
