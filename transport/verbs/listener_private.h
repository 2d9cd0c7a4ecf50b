/* A server over RDMA, as the server's files see it. */
#ifndef GW_TRANSPORT_VERBS_LISTENER_PRIVATE_H
#define GW_TRANSPORT_VERBS_LISTENER_PRIVATE_H

#include "core/memory/deadlines.h"
#include "core/memory/queue.h"
#include "transport/service/task.h"
#include "transport/verbs/handshake.h"
#include "transport/verbs/verbs.h"

/* One device, with the service's regions registered for reading in a protection domain of their own. */
struct verbs_rail {
	struct verbs_device *device;
	struct ibv_pd *pd;
	struct ibv_mr **mrs;                /* the MR of every slice of every region, in order */
	_Atomic uint32_t cm_listeners_left; /* CM listeners that still use a removed device */
};

/* One queue pair of a client, from its connection request on. */
struct verbs_server_conn {
	struct verbs_cm_handler handler;
	struct verbs_client *client;
	struct verbs_qp *qp;
	bool established;
};

/* A client. It lives from its question for a token until its TCP connection or one of its queue pairs ends. */
struct verbs_client {
	struct verbs_deferred deferred;
	struct verbs_cm_listener *cm_listener;
	struct verbs_client *next, **previous;
	struct verbs_client *next_by_token, *next_by_connection; /* in their chains */
	uint64_t connection;                                     /* number of its TCP connection */
	uint8_t token[HANDSHAKE_TOKEN_BYTES];
	uint8_t client_uuid[16];
	struct gw_service_peer peer;
	uint64_t expires_ns;         /* the client ends then, unless every queue pair is established */
	struct gw_deadline deadline; /* in the CM listener's: when gw_verbs_client_tick must run */
	struct verbs_rail *rail;
	struct verbs_server_conn conns[VERBS_QPS_MAX];
	uint32_t qp_count, established;
	struct verbs_stream stream;
	/* The request that arrives in pieces. */
	uint8_t *request;
	uint32_t request_bytes, request_done;
	uint64_t request_tag;
	uint64_t piece_ns; /* when the last piece arrived */
	/* The request that is being answered. held: it is a message of one piece, and stays in its receive buffer. */
	bool calling, held;
	struct gw_task task;
	struct gw_queued turn;  /* in loop->calls */
	struct gw_queued pause; /* in loop->paused */
	/* The reply that is being sent. */
	bool replying;
	gw_status reply_status;
	uint64_t reply_tag;
	uint32_t reply_sent;
	uint64_t replied_ns; /* time of the last progress */
	bool stall_timed;    /* its deadline includes the check whether it stalls */
};

/* A listener's part of one poll group. */
struct verbs_cm_listener {
	struct verbs_cm_handler handler;
	struct verbs_listener *listener;
	struct verbs_loop *loop;
	struct verbs_cm_listener *next; /* in the loop's list */
	uint32_t number;
	struct rdma_cm_id *id; /* NULL: it does not listen any more */
	uint16_t port;
	struct verbs_client *clients;
	/* Chains of the same clients, by the low bits of the token and of the connection's number. */
	struct verbs_client *by_token[VERBS_CHAINS], *by_connection[VERBS_CHAINS];
	struct gw_deadlines deadlines; /* of the clients */
	bool drained;                  /* no client is left, and no new one can connect */
	bool rails_gone[VERBS_RAILS_MAX];
};

/* The MRs of dynamic regions. */
struct verbs_dynamic_mrs;
struct verbs_dynamic {
	struct gw_dynamic_region_registrar registrar; /* registered with the service while it listens */
	pthread_mutex_t rails_lock;                   /* protects MRs and the rails' domains; held while registering */
	struct verbs_dynamic_mrs *first;
	pthread_mutex_t lock; /* protects the fields below; held briefly */
	pthread_cond_t changed;
	struct verbs_dynamic_mrs *removed; /* to be deregistered */
	pthread_t thread;
	bool started, stop;
};

struct verbs_listener {
	struct gw_listener base;
	struct gw_listener *tcp;
	struct gw_service_upgrade way;
	_Atomic bool stopped, draining, closing;
	uint64_t drain_ns; /* draining: when idle clients end */
	_Atomic uint32_t cm_listeners_undrained;
	struct verbs_rail rails[VERBS_RAILS_MAX];
	uint32_t rail_count;
	uint32_t whole_words; /* a bit for each rail, as in the answer */
	struct handshake_address addresses[HANDSHAKE_ADDRESSES_MAX];
	uint32_t address_count;
	struct handshake_region places[GW_REGIONS_MAX];
	uint64_t slice_count; /* of all regions */
	struct verbs_dynamic dynamic;
	uint32_t cm_listener_count;
	struct verbs_cm_listener cm_listeners[];
};

/* --- region_mrs.c --- */
/* The place of memory as clients see it: address and slices. */
struct handshake_region gw_verbs_place(const uint8_t *base, uint64_t bytes, uint64_t slice_bytes);
/* Registers slice i of the memory, for remote reads only. */
gw_status gw_verbs_slice_register(struct ibv_pd *pd, const uint8_t *base, uint64_t bytes, uint32_t shift, uint64_t i,
				  struct ibv_mr **out);

/* Finds the devices behind the listener's address, and the addresses that clients may try. */
gw_status gw_verbs_rails_find(struct verbs_listener *listener);
/* Registers every region on every rail. */
gw_status gw_verbs_rails_register(struct verbs_listener *listener);
void gw_verbs_rail_close(struct verbs_listener *listener, struct verbs_rail *rail);

/* --- dynamic_mrs.c --- */
void gw_verbs_dynamic_mrs_begin(struct verbs_listener *listener);
/* Deregisters all dynamic regions; they stay published. Call it before closing the rails. */
void gw_verbs_dynamic_mrs_end(struct verbs_listener *listener);
/* Deregisters the MRs on a rail. The caller holds rails_lock. */
void gw_verbs_dynamic_mrs_rail_close(struct verbs_listener *listener, struct verbs_rail *rail);
/* Answers GW_OP_KEYS. */
gw_status gw_verbs_dynamic_mrs_notify(struct verbs_listener *listener, const struct gw_call *call,
				      struct gw_reply *reply);

/* --- accepted_client.c --- */
/* Creates a client with a token. Ends an earlier client of the same connection, with its queue pairs. */
gw_status gw_verbs_client_create(struct verbs_cm_listener *cm_listener, const struct gw_call *call,
				 const struct handshake_question *question, struct verbs_client **out);
/* Accepts a connection request. On success the client owns the id. The text of a failure is sent to the client. */
gw_status gw_verbs_client_accept(struct verbs_cm_listener *cm_listener, struct rdma_cm_id *id,
				 const struct rdma_conn_param *param);
void gw_verbs_client_end(struct verbs_client *client);
/* The TCP connection of this number has ended, or asks for another token: ends its client. */
void gw_verbs_client_left(struct verbs_cm_listener *cm_listener, uint64_t connection);
/* Whether the client still waits for a reply that is not sent yet. */
bool gw_verbs_client_busy(const struct verbs_client *client);
/* Handles the clients' deadlines that are due. A client ends if its queue pairs were not established in time, if it is
 * silent inside a request, or if it does not read its reply while others need the memory. A paused handler runs again.
 */
void gw_verbs_clients_tick(struct verbs_cm_listener *cm_listener, uint64_t now_ns);

#endif
