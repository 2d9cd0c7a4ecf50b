/* A partitioned graph and servers for it, of a benchmark's own: made in a temporary folder by this same program, as
 * processes, and taken away at the end. */
#ifndef GW_BENCH_OWN_SERVERS_H
#define GW_BENCH_OWN_SERVERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/base/status.h"

#define GW_OWN_SERVERS_MAX 16

struct gw_own_servers {
	char folder[64]; /* temporary; "" if there is none */
	char part_config[96];
	uint32_t count;
	pid_t pids[GW_OWN_SERVERS_MAX];
	int outputs[GW_OWN_SERVERS_MAX]; /* their stdout; open as long as they run */
	char addresses[GW_OWN_SERVERS_MAX][64];
	const char *list[GW_OWN_SERVERS_MAX]; /* addresses, as gw_client_options wants them */
};

/* Makes an R-MAT graph (2^scale nodes, 16 edges each, `features` float32 and a label per node) in `parts` random parts.
 */
gw_status gw_own_graph_make(struct gw_own_servers *own, uint32_t scale, uint32_t features, uint32_t parts);

/* Starts a server with `threads` threads for each part of part_config on loopback, and waits until they are ready. They
 * die with this process. */
gw_status gw_own_servers_start(struct gw_own_servers *own, const char *part_config, uint32_t parts, uint32_t threads);

/* Ends the servers, removes the folder. */
void gw_own_servers_end(struct gw_own_servers *own);

#endif
