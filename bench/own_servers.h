/* A benchmark's own partitioned graph and servers. This program makes the graph in a temporary folder, and runs its own
 * commands as the server processes. The end of the benchmark removes both, on Ctrl-C too.
 */
#ifndef GW_BENCH_OWN_SERVERS_H
#define GW_BENCH_OWN_SERVERS_H

#include <stdbool.h>
#include <sys/types.h>

#include <graphwire/graphwire.h>

#include "client/launched.h"

#define GW_OWN_SERVERS_MAX 16

struct gw_own_servers {
	struct gw_staging *staging; /* the temporary folder; NULL: not created */
	char *part_config;          /* the graph made in that folder; NULL: not made */
	_Atomic pid_t working;      /* the process of generate or partition, while it runs */
	uint32_t count;
	_Atomic pid_t pids[GW_OWN_SERVERS_MAX];
	int outputs[GW_OWN_SERVERS_MAX]; /* the servers' stdout; open while they run */
	char addresses[GW_OWN_SERVERS_MAX][64];
	const char *list[GW_OWN_SERVERS_MAX]; /* the addresses in the form that gw_client_options needs */
	struct gw_launched launched;          /* the graph and servers of the job that started this program */
	struct gw_client_options served;      /* with which gw_own_clients_open opened its client of servers */
};

/* Options for opening a benchmark's clients. */
struct gw_own_clients_options {
	/* Without part_config, the benchmark makes its own graph; without servers, it starts its own. If a launched
	 * program names neither, it uses the graph and servers of its job. */
	struct gw_client_options client;
	bool standalone; /* do not use servers */
	uint32_t scale,
		features; /* of the benchmark's own graph: 2^scale nodes, each with 16 edges and `features` float32 */
	uint32_t server_threads; /* threads of each of its own servers */
	const char *server_pin;  /* its own servers' --pin; NULL: the default of serve */
	/* Its own servers' --tcp-driver and --spin, in microseconds. NULL and 0: the defaults of serve. */
	const char *server_driver;
	uint32_t server_spin_us;
};

/* Checks a command line: --servers needs the folder that the servers serve. GW_INVALID: the folder is missing. */
gw_status gw_own_clients_check(const struct gw_client_options *client);

/* Opens `alone`, a standalone client of the graph. Unless options->standalone is set, also opens `served`, a client of
 * servers. Makes and starts what the options lack: a graph in two parts, a server on loopback for each part, with their
 * own keys and locks. A process may have one at a time. On failure, and at the end, close the clients and call
 * gw_own_servers_end. */
gw_status gw_own_clients_open(struct gw_own_servers *own, const struct gw_own_clients_options *options,
			      struct gw_client **alone, struct gw_client **served);

/* Opens one more client of the servers that gw_own_clients_open's client has, with this number of threads. */
gw_status gw_own_clients_again(const struct gw_own_servers *own, uint32_t threads, struct gw_client **out);

/* After gw_own_clients_open has started servers: starts another server for each part of alone's graph, and opens a
 * client of these. GW_INVALID: the servers are not the benchmark's own. */
gw_status gw_own_clients_more(struct gw_own_servers *own, const struct gw_own_clients_options *options,
			      struct gw_client *alone, struct gw_client **served);

/* Seconds of processor time. */
struct gw_own_used {
	double user, system;
};

/* What this process and the benchmark's own servers have used so far; the servers' part in steps of 10 ms. */
struct gw_own_used gw_own_servers_used(const struct gw_own_servers *own);

/* Ends the servers and removes the folder. */
void gw_own_servers_end(struct gw_own_servers *own);

#endif
