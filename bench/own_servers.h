/* A benchmark's own partitioned graph and servers. This program makes them in a temporary folder, as processes, and
 * removes them at the end, also on Ctrl-C. */
#ifndef GW_BENCH_OWN_SERVERS_H
#define GW_BENCH_OWN_SERVERS_H

#include <stdbool.h>
#include <sys/types.h>

#include <graphwire/graphwire.h>

#include "client/launched.h"

#define GW_OWN_SERVERS_MAX 16

struct gw_own_servers {
	struct gw_staging *staging; /* the temporary folder; NULL: none */
	char *part_config;          /* the generated graph in it; NULL: none */
	_Atomic pid_t working;      /* generate or partition, while it runs */
	uint32_t count;
	_Atomic pid_t pids[GW_OWN_SERVERS_MAX];
	int outputs[GW_OWN_SERVERS_MAX]; /* their stdout; open while they run */
	char addresses[GW_OWN_SERVERS_MAX][64];
	const char *list[GW_OWN_SERVERS_MAX]; /* addresses in the form of gw_client_options */
	struct gw_launched launched;          /* the graph and servers of the job, if a launcher started this program */
};

/* The origin of a benchmark's clients. */
struct gw_own_clients_options {
	/* Without part_config, a graph is generated; without servers, they are started. If a launcher started this
	 * program and the options name neither, the graph and servers are those of its job. */
	struct gw_client_options client;
	bool standalone;          /* use no servers */
	uint32_t scale, features; /* of a generated graph: 2^scale nodes, 16 edges and `features` float32 each */
	uint32_t server_threads;  /* of each started server */
	const char *server_pin;   /* the processors of the servers (serve --pin); NULL: the default of serve */
};

/* Checks a command line: servers need the folder of the graph that they serve. GW_INVALID. */
gw_status gw_own_clients_check(const struct gw_client_options *client);

/* Opens `alone`, a standalone client of the graph, and, unless standalone, `served`, a client of servers. Makes and
 * starts what is missing: a graph in two parts, and a server on loopback for each part, with their own keys and
 * locks. One at a time in a process. On failure and at the end, close the clients and call gw_own_servers_end. */
gw_status gw_own_clients_open(struct gw_own_servers *own, const struct gw_own_clients_options *options,
			      struct gw_client **alone, struct gw_client **served);

/* Ends the servers and removes the folder. */
void gw_own_servers_end(struct gw_own_servers *own);

#endif
