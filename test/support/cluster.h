/* Servers for all parts of a graph, in this process, on loopback: what tests of the client stand on. */
#ifndef GW_TEST_CLUSTER_H
#define GW_TEST_CLUSTER_H

#include <graphwire/graphwire.h>

#include "server/server.h"

#define CLUSTER_PARTS_MAX 512

struct cluster {
	const char *part_config;
	uint32_t parts;
	bool insecure;
	const char *transport;      /* of what is started from now on; NULL: TCP alone */
	const char *driver;         /* of TCP, of what is started again; NULL: the best */
	enum gw_server_lists lists; /* likewise */
	struct gw_server *servers[CLUSTER_PARTS_MAX];
	struct gw_address addresses[CLUSTER_PARTS_MAX]; /* kept over a restart */
	char text[CLUSTER_PARTS_MAX][GW_ADDRESS_MAX];
	const char *list[CLUSTER_PARTS_MAX]; /* for gw_client_options.servers */
};

/* Starts a server for every part on a port of its own; fails the test when it cannot. */
void cluster_begin(struct cluster *cluster, const char *part_config, uint32_t parts, const char *tcp_driver);
/* Keys and guards of this process alone, so that the same test may run twice at a time. cluster_begin does it; call it
 * before a fork. */
void cluster_use_own_runtime_folder(void);
/* Whether GRAPHWIRE_TEST_BED=verbs takes every test of the client over RDMA. */
bool cluster_is_rdma(void);
/* The transport to a server that offers nothing but its address: "verbs" or "tcp". */
const char *cluster_far(void);
/* What servers that are begun from now on offer besides TCP: "shm", "verbs"; at first, or with NULL: nothing. */
void cluster_offer(const char *transport);

/* What tensors may take of each server that is started from now on, and how long a job's stay unheard of; 0: the
 * default. */
void cluster_limit_tensors(uint64_t bytes, uint32_t lease_ms);

/* Threads of each server that is started from now on; 0: 2. */
void cluster_limit_threads(uint32_t threads);

/* How long a client may be silent inside a frame, of each server that is started from now on; 0: the default. */
void cluster_limit_silence(uint32_t ms);

/* A feature that servers which are started from now on serve as rows that change; NULL: none any more. */
void cluster_serve_mutable(const char *name);

/* A feature that servers which are started from now on leave on disk, in a cache of the least size; NULL: none any
 * more. */
void cluster_leave_on_disk(const char *name);

/* Servers that want no key. */
void cluster_begin_open(struct cluster *cluster, const char *part_config, uint32_t parts);
/* Ends one server at once (no draining), and starts it again at its address. */
void cluster_kill(struct cluster *cluster, uint32_t part);
void cluster_revive(struct cluster *cluster, uint32_t part);
/* Replaces one server by a successor in this process, as serve --take-over does. */
void cluster_replace(struct cluster *cluster, uint32_t part);
void cluster_end(struct cluster *cluster);

#endif
