/* The daemon that serves one part: what its files share. */
#ifndef GW_SERVER_SERVER_H
#define GW_SERVER_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/graph/part.h"
#include "sampler/pick.h"
#include "server/placement.h"
#include "tensors/service.h"
#include "transport/transport.h"

#define GW_SERVER_THREADS_MAX 256
#define GW_SERVER_MUTABLE_MAX 64

struct gw_server_options {
	const char *part_config; /* the graph's JSON or folder */
	uint32_t part;
	struct gw_address listen;
	uint32_t threads; /* that answer; 1 to GW_SERVER_THREADS_MAX */
	enum gw_server_pin pin;
	enum gw_huge_policy huge;
	int numa;
	const char *key_file; /* or NULL */
	bool insecure;        /* serve anybody */
	const char *name;     /* of this service, for stat */
	const char *tcp_driver;
	/* Besides TCP: NULL or "auto": RDMA, unless it is a loopback address, and mapped memory, where they can be;
	 * "verbs", "shm": this must be, and nothing else; "tcp": none. */
	const char *transport;
	uint32_t connections;   /* of clients at once; 0: 1,024 */
	uint32_t unproven;      /* sockets at once that have not proved the key; 0: 256 */
	uint32_t idle_ms;       /* how long a client may be silent inside a frame or the hello; 0: 10,000 */
	uint32_t drain_ms;      /* how long open work may go on after the first signal */
	uint64_t tensor_memory; /* bytes that tensors may take; 0: as many as there are */
	/* Features that are served as rows that change: words of gw_feature_is_meant. */
	const char *mutable_features[GW_SERVER_MUTABLE_MAX];
	uint32_t mutable_count;
	uint32_t tensor_lease_ms; /* how long a job's tensors stay after its last client; 0: 300,000 */
};

struct gw_server_thread {
	struct gw_server *server;
	uint32_t number;
	struct gw_poll_group *group;
	pthread_t thread;
	bool started;
	struct gw_picks picks; /* working memory of sample requests */
};

struct gw_server {
	struct gw_server_options options;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	struct gw_service *service;
	struct gw_tensor_table *tensors;
	struct gw_listener *listener, *local; /* local: of clients that map our memory; or NULL */
	struct gw_server_thread *threads;
	uint64_t incarnation, started_ns;
	int reservation;         /* of the port, until the listener has it; -1: none */
	struct gw_address bound; /* what options.listen stands for on this host, in numbers */
	int guard_fd;
	char *catalog;      /* JSON */
	uint8_t key[1024];  /* until it is published */
	uint32_t key_bytes; /* 0: none */
	bool has_key;       /* in the runtime folder */
	bool keep_failed;   /* the last look at the runtime folder could not mend it */
	atomic_bool stop_accepting, stop;
};

/* serve.c: loads, listens, starts the threads; returns when it is ready. On failure nothing is left. */
gw_status gw_server_start(const struct gw_server_options *options, struct gw_server **out);
/* Stops accepting, lets open work finish for up to drain_ms, closes, frees. NULL is allowed. */
void gw_server_end(struct gw_server *server, uint32_t drain_ms);

#define GW_SERVER_KEEP_S 3 /* how often to look */
/* keep.c: makes again what somebody has removed of the runtime folder; warns once where it cannot. By the thread that
 * started the server and will end it, every GW_SERVER_KEEP_S. */
void gw_server_keep(struct gw_server *server);

#define GW_SERVER_TRANSPORTS_MAX 48 /* bytes of its transports as text */

/* Where clients find it, and over what, for people and stat: "10.0.0.2:30050", "tcp+verbs+shm". */
char *gw_server_address(const struct gw_server *server, char text[GW_ADDRESS_MAX]);
char *gw_server_transports(const struct gw_server *server, char text[GW_SERVER_TRANSPORTS_MAX]);

/* answer.c: sets the handlers of the two-sided calls. */
gw_status gw_server_answer(struct gw_server *server);

/* answer_sample.c: the sample request's handler; context: the server. */
gw_status gw_server_sample(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread);

/* answer_edges.c: the edge request's handler; likewise. */
gw_status gw_server_edges(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread);

/* guard.c: takes the right to serve this part on this host; GW_BUSY names who has it. */
gw_status gw_server_guard(struct gw_server *server);
void gw_server_unguard(struct gw_server *server);
/* Takes it again where somebody has removed the lock's file. GW_BUSY: another server took it meanwhile. */
gw_status gw_server_guard_keep(struct gw_server *server);
/* Whether a server of this user, perhaps one that still loads, has the port; holder: "pid 12 at 127.0.0.1:30050". */
bool gw_server_find_holder(uint16_t port, char *holder, size_t bytes);

/* main.c: `graphwire serve`. */
int gw_serve_main(int argc, char **argv);

#endif
