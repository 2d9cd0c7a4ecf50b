/* A partitioned graph and servers for it, of a benchmark's own: made in a temporary folder by this same program, as
 * processes, and taken away at the end, on Ctrl-C too. */
#ifndef GW_BENCH_OWN_SERVERS_H
#define GW_BENCH_OWN_SERVERS_H

#include <stdbool.h>
#include <sys/types.h>

#include <graphwire/graphwire.h>

#include "client/launched.h"

#define GW_OWN_SERVERS_MAX 16

struct gw_own_servers {
	struct gw_staging *staging; /* the temporary folder; NULL: none */
	char *part_config;          /* the graph that was made there; NULL: none */
	_Atomic pid_t working;      /* generate or partition, while it runs */
	uint32_t count;
	_Atomic pid_t pids[GW_OWN_SERVERS_MAX];
	int outputs[GW_OWN_SERVERS_MAX]; /* their stdout; open as long as they run */
	char addresses[GW_OWN_SERVERS_MAX][64];
	const char *list[GW_OWN_SERVERS_MAX]; /* addresses, as gw_client_options wants them */
	struct gw_launched launched;          /* the graph and servers of the job that started this program */
};

/* What the clients of a benchmark are opened from. */
struct gw_own_clients_options {
	/* Without part_config: a graph of its own; without servers: its own, too. A program that was launched takes
	 * those of its job instead, where it names neither. */
	struct gw_client_options client;
	bool standalone;          /* no servers at all */
	uint32_t scale, features; /* of a graph of its own: 2^scale nodes, 16 edges and `features` float32 each */
	uint32_t server_threads;  /* of each server of its own */
	const char *server_pin;   /* where they run (serve --pin); NULL: as servers do unless told */
};

/* Whether servers of others come with the folder that they serve: of a command line. GW_INVALID. */
gw_status gw_own_clients_check(const struct gw_client_options *client);

/* Opens `alone`, a standalone client of the graph, and, unless standalone, `served`, a client of servers; makes and
 * starts what is missing: a graph in two parts, a server on loopback for each part, with keys and locks of their own.
 * One at a time in a process. On failure, and at the end, close the clients and call gw_own_servers_end. */
gw_status gw_own_clients_open(struct gw_own_servers *own, const struct gw_own_clients_options *options,
			      struct gw_client **alone, struct gw_client **served);

/* Ends the servers, removes the folder. */
void gw_own_servers_end(struct gw_own_servers *own);

#endif
