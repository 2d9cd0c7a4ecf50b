/* A server like `graphwire serve` with one more signal. SIGUSR1 puts the queue pairs of all its clients into the error
 * state, as a failing device does; the server prints how many it broke.
 */
#include <signal.h>
#include <stdio.h>

#include "core/errors/options.h"
#include "server/server.h"
#include "test/support/rdma.h"

static gw_status take_listen(void *input, char *text)
{
	return gw_address_parse(text, &((struct gw_server_options *)input)->listen);
}

#define S struct gw_server_options
static const struct gw_option table[] = {
	{"part-config", "FOLDER", "the graph", 0, GW_OPTION_TEXT(S, part_config, .missing = "which graph?")},
	{"part", "N", "its part", 0, GW_OPTION_NUMBER(S, part, 0, 1, .missing = "which part?")},
	{"listen", "ADDR:PORT", "where to listen", 0, GW_OPTION_CALL(take_listen)},
	{"key-file", "FILE", "the key", 0, GW_OPTION_TEXT(S, key_file)},
	{"threads", "N", "serving threads", 0, GW_OPTION_NUMBER(S, threads, 1, 64)},
	{0},
};
#undef S

int main(int argc, char **argv)
{
	static const struct gw_options options = {.table = table, .doc = "A server whose queue pairs break."};
	struct gw_server_options server_options = {.threads = 1, .numa = GW_NUMA_SPREAD, .transport = "auto"};
	struct gw_server *server;
	sigset_t signals;
	int signal_number;
	gw_options_parse(&options, argc, argv, &server_options);
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (gw_server_start(&server_options, &server) != GW_OK) {
		fprintf(stderr, "server: %s\n", gw_last_error());
		return 1;
	}
	printf("serving part %u\n", server_options.part);
	fflush(stdout);
	while (sigwait(&signals, &signal_number) == 0 && signal_number == SIGUSR1) {
		printf("broken: %u\n", rdma_break_peers(server->listener));
		fflush(stdout);
	}
	gw_server_end(server, 0);
	return 0;
}
