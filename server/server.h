/* The state of the server of one part, which the files of server/ share. */
#ifndef GW_SERVER_SERVER_H
#define GW_SERVER_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/graph/part.h"
#include "protocol/catalog.h"
#include "sampler/pick.h"
#include "server/footprint.h"
#include "server/placement.h"
#include "tensors/disk_rows.h"
#include "tensors/service.h"
#include "transport/prefetch.h"
#include "transport/transport.h"

#define GW_SERVER_MUTABLE_MAX 64
#define GW_SERVER_ON_DISK_MAX 64

/* The neighbour lists in memory: of the server's part, or of all parts (server/lists.h). */
enum gw_server_lists { GW_SERVER_LISTS_OWN, GW_SERVER_LISTS_ALL };

struct gw_server_options {
	const char *part_config; /* the graph's JSON or folder */
	uint32_t part;
	struct gw_address listen;
	uint32_t threads; /* that answer clients; 1 to GW_SERVER_THREADS_MAX */
	enum gw_server_pin pin;
	enum gw_huge_policy huge;
	int numa;
	const char *key_file; /* NULL: no key file */
	bool insecure;        /* serve every client, without a key */
	const char *name;     /* the service's name, shown by stat */
	const char *tcp_driver;
	uint32_t spin_us; /* how long a thread polls after an event before it sleeps; 0: it sleeps at once */
	enum gw_prefetch prefetch;
	/* Transports in addition to TCP. NULL or "auto": RDMA (unless the address is a loopback address) and mapped
	 * memory, each if possible. "verbs", "shm": this one, and it is required. "tcp": none. */
	const char *transport;
	uint32_t connections;   /* of clients at once; 0: 1024 */
	uint32_t unproven;      /* pending clients at once; 0: 256 */
	uint32_t idle_ms;       /* how long a client may be silent inside a frame or the hello; 0: 10,000 */
	uint32_t drain_ms;      /* how long open work may go on after the first signal */
	uint64_t tensor_memory; /* bytes that tensors may take; 0: no limit */
	/* Features that are served as mutable rows, in the words that gw_feature_is_meant accepts. */
	const char *mutable_features[GW_SERVER_MUTABLE_MAX];
	uint32_t mutable_count;
	enum gw_server_lists lists;
	/* Features whose rows stay in their files, in the same words. */
	const char *on_disk_features[GW_SERVER_ON_DISK_MAX];
	uint32_t on_disk_count;
	uint64_t disk_cache; /* bytes; 0: GW_DISK_CACHE_DEFAULT */
	bool metrics;        /* answer scrapers at metrics_at */
	struct gw_address metrics_at;
	bool take_over;           /* from the running server of the part: see server/handover.h */
	uint32_t tensor_lease_ms; /* how long a job's tensors stay after its last client; 0: 300,000 */
};

struct gw_server_thread {
	struct gw_server *server;
	uint32_t number;
	struct gw_poll_group *group;
	pthread_t thread;
	bool started;
	/* Working memory of sample requests. */
	struct gw_picks picks;
	struct gw_vec group_times;
};

struct gw_server {
	struct gw_server_options options;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	struct gw_part **lists; /* of the other parts, in the memory of `part`; or NULL */
	uint32_t list_count;
	struct gw_service *service;
	struct gw_tensor_table *tensors;
	struct gw_disk *disk; /* NULL: all arrays are in memory */
	struct gw_disk_rows_of_part *disk_rows;
	struct {
		_Atomic uint64_t rows, bytes, hops;
	} saved;                              /* clients of this host, as far as they have reported it */
	struct gw_listener *listener, *local; /* local: for clients that map the memory; or NULL */
	struct gw_server_thread *threads;
	uint64_t incarnation, started_ns;
	int reservation;         /* reserves the port until the listener has it; -1: none */
	struct gw_address bound; /* options.listen on this host, in numbers */
	int guard_fd;
	char *catalogs[GW_CATALOG_FORMS]; /* JSON */
	uint8_t key[1024];                /* until the service has a copy */
	uint32_t key_bytes;               /* 0: none */
	bool has_key;                     /* the key is in the runtime folder */
	bool keep_failed;                 /* the last check of the runtime folder failed */
	struct gw_exporter *exporter;     /* NULL: none */
	atomic_bool serving;              /* every member above is there */
	atomic_bool stop_accepting, stop;
	atomic_bool draining; /* the listeners drain: connections_open only falls */
	pthread_mutex_t gate; /* threads serve when they have passed it */
	/* Hand-over: server/handover.h */
	int handover_fd;                 /* by which a successor finds this server; -1: none */
	struct gw_taker *taker;          /* of a successor, until it serves */
	int sockets[2];                  /* listening sockets for the network and for this host; -1: none */
	atomic_bool yield;               /* the listeners' sockets stay, in `sockets` */
	gw_status yielded;               /* whether that worked */
	const struct gw_scheme *kept[2]; /* transports that a successor must offer; NULL: none */
};

/* serve.c: loads, listens, starts the threads; returns when the server is ready. A failure leaves nothing behind. */
gw_status gw_server_start(const struct gw_server_options *options, struct gw_server **out);
/* Stops accepting, lets open work finish for up to drain_ms, closes, frees. NULL is allowed. */
void gw_server_end(struct gw_server *server, uint32_t drain_ms);

#define GW_SERVER_KEEP_S 3 /* seconds between two checks */
/* keep.c: restores removed files of the runtime folder; warns once if that fails. The thread that started the server
 * and will end it calls this every GW_SERVER_KEEP_S. */
void gw_server_keep(struct gw_server *server);

#define GW_SERVER_TRANSPORTS_MAX 48 /* bytes of the text below */

/* address.c: the address and the transports by which clients reach the server: "10.0.0.2:30050", "tcp+verbs+shm". */
char *gw_server_address(const struct gw_server *server, char text[GW_ADDRESS_MAX]);
char *gw_server_transports(const struct gw_server *server, char text[GW_SERVER_TRANSPORTS_MAX]);

/* answer.c: sets the handlers of the two-sided calls. */
gw_status gw_server_answer(struct gw_server *server);

/* answer_sample.c: the sample request's handler; context: the server. */
gw_status gw_server_sample(void *context, const struct gw_call *call, struct gw_reply *reply);

/* answer_edges.c: the edge request's handler; context: the server. */
gw_status gw_server_edges(void *context, const struct gw_call *call, struct gw_reply *reply);

/* answer_subgraph.c: the subgraph request's handler; context: the server. */
gw_status gw_server_subgraph(void *context, const struct gw_call *call, struct gw_reply *reply);

/* answer_ids.c: the id request's handler; context: the server. */
gw_status gw_server_ids(void *context, const struct gw_call *call, struct gw_reply *reply);

/* threads.c */
gw_status gw_server_open_groups(struct gw_server *server);
/* Listens, at the port that was reserved or on the sockets that were yielded. */
gw_status gw_server_listen(struct gw_server *server);
gw_status gw_server_start_threads(struct gw_server *server);
/* Stops accepting, and waits until all accepted work is answered, or the time is up. */
void gw_server_drain(struct gw_server *server, uint32_t drain_ms);
/* Ends the threads and the listeners with their connections. */
void gw_server_stop_threads(struct gw_server *server);
/* Drains, stops the threads, and ends the listeners, whose sockets stay open in server->sockets. Whatever the result,
 * gw_server_thaw makes the server listen and serve again. */
gw_status gw_server_freeze(struct gw_server *server, uint32_t drain_ms);
gw_status gw_server_thaw(struct gw_server *server);

/* handover_socket.c: the name of the socket by which a successor finds the server of a part. */
void gw_handover_name(const struct gw_server *server, char name[GW_ADDRESS_NAME_MAX + 1]);

/* guard.c: takes the lock for this part on this host; GW_BUSY names the process that has it. */
gw_status gw_server_guard(struct gw_server *server);
void gw_server_unguard(struct gw_server *server);
/* Writes this process's name into a lock that it got from another process. */
gw_status gw_server_guard_sign(struct gw_server *server);
/* Takes the lock again if its file was removed. GW_BUSY: another server took it meanwhile. */
gw_status gw_server_guard_keep(struct gw_server *server);
/* Whether a server of this user has the port, even if it is still loading; holder: "pid 12 at 127.0.0.1:30050". */
bool gw_server_find_holder(uint16_t port, char *holder, size_t bytes);

/* metrics.c: answers scrapers from before the load until gw_server_end. */
gw_status gw_server_metrics_start(struct gw_server *server);

/* main.c: `graphwire serve`. */
int gw_serve_main(int argc, char **argv);

#endif
