/* A server over RDMA, as the files that make it up see it. */
#ifndef GW_TRANSPORT_VERBS_LISTENER_H
#define GW_TRANSPORT_VERBS_LISTENER_H

#include "transport/task.h"
#include "transport/verbs/handshake.h"
#include "transport/verbs/verbs.h"

/* One device, with the service's regions registered for reading in a protection domain of their own. */
struct verbs_rail {
	struct verbs_device *device;
	struct ibv_pd *pd;
	struct ibv_mr **mrs;                /* of every slice of every region, in their order */
	_Atomic uint32_t cm_listeners_left; /* that have not let go of a removed device yet */
};

/* One queue pair of a client, from its connection request on. */
struct verbs_server_conn {
	struct verbs_cm_handler handler;
	struct verbs_client *client;
	struct verbs_qp *qp;
	bool established;
};

/* A client: from its question for a token until its TCP connection or a queue pair of it ends. */
struct verbs_client {
	struct verbs_deferred deferred;
	struct verbs_cm_listener *cm_listener;
	struct verbs_client *next, **previous;
	uint64_t connection; /* over TCP */
	uint8_t token[HANDSHAKE_TOKEN_BYTES];
	uint8_t client_uuid[16];
	uint64_t expires_ns; /* unless every queue pair is established by then */
	struct verbs_rail *rail;
	struct verbs_server_conn conns[VERBS_QPS_MAX];
	uint32_t qp_count, established;
	struct verbs_stream stream;
	/* The request that is coming in, in pieces. */
	uint8_t *request;
	uint32_t request_bytes, request_done;
	uint64_t request_tag;
	uint64_t piece_ns; /* when the last one came */
	/* The request that is being answered; held: a message of one piece, which stays where it was received. */
	bool calling, held;
	struct gw_task task;
	struct verbs_client *next_queued; /* of those whose handlers have more to do */
	bool queued;
	/* The reply that is going out. */
	bool replying;
	gw_status reply_status;
	uint64_t reply_tag;
	uint32_t reply_sent;
	uint64_t replied_ns; /* the last progress */
};

/* A listener's part of one poll group. */
struct verbs_cm_listener {
	struct verbs_cm_handler handler;
	struct verbs_listener *listener;
	struct verbs_loop *loop;
	struct verbs_cm_listener *next; /* of the loop */
	uint32_t number;
	struct rdma_cm_id *id; /* NULL: it listens no more */
	uint16_t port;
	struct verbs_client *clients;
	bool drained; /* no client is left, and none comes */
	bool rails_gone[VERBS_RAILS_MAX];
};

/* The MRs of regions that come and go. */
struct verbs_dynamic_mrs;
struct verbs_dynamic {
	struct gw_dynamic_region_registrar registrar; /* the service's, from when it listens */
	pthread_mutex_t rails_lock; /* of MRs and of the rails' domains; held as long as registering takes */
	struct verbs_dynamic_mrs *first;
	pthread_mutex_t lock; /* of what follows; held for a moment */
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
	_Atomic uint32_t cm_listeners_undrained;
	struct verbs_rail rails[VERBS_RAILS_MAX];
	uint32_t rail_count;
	uint32_t whole_words; /* rails: as the answer tells */
	struct handshake_address addresses[HANDSHAKE_ADDRESSES_MAX];
	uint32_t address_count;
	struct handshake_region places[GW_REGIONS_MAX];
	uint64_t slice_count; /* of all regions */
	struct verbs_dynamic dynamic;
	uint32_t cm_listener_count;
	struct verbs_cm_listener cm_listeners[];
};

/* --- region_mrs.c --- */
/* The devices that the address stands for, and the addresses that clients may try. */
gw_status gw_verbs_rails_find(struct verbs_listener *listener);
/* Registers every region on every rail. */
gw_status gw_verbs_rails_register(struct verbs_listener *listener);
void gw_verbs_rail_close(struct verbs_listener *listener, struct verbs_rail *rail);
/* Where clients find memory, and how it is cut. */
struct handshake_region gw_verbs_place(const uint8_t *base, uint64_t bytes, uint64_t slice_bytes);
/* Registers slice i of it, for reading only. */
gw_status gw_verbs_slice_register(struct ibv_pd *pd, const uint8_t *base, uint64_t bytes, uint32_t shift, uint64_t i,
				  struct ibv_mr **out);

/* --- dynamic_mrs.c --- */
void gw_verbs_dynamic_mrs_begin(struct verbs_listener *listener);
/* What was published stays, and is not registered any more. Before the rails are closed. */
void gw_verbs_dynamic_mrs_end(struct verbs_listener *listener);
/* With rails_lock: a rail takes its MRs along. */
void gw_verbs_dynamic_mrs_rail_close(struct verbs_listener *listener, struct verbs_rail *rail);
/* Answers GW_OP_KEYS. */
gw_status gw_verbs_dynamic_mrs_notify(struct verbs_listener *listener, const struct gw_call *call,
				      struct gw_reply *reply);

/* --- accepted_client.c --- */
/* A client asks for a token; its earlier one, and what came of it, ends. */
gw_status gw_verbs_client_create(struct verbs_cm_listener *cm_listener, const struct gw_call *call,
				 const struct handshake_question *question, struct verbs_client **out);
/* A connection request: the id is the client's if it succeeds. The text of a failure is for the client. */
gw_status gw_verbs_client_accept(struct verbs_cm_listener *cm_listener, struct rdma_cm_id *id,
				 const struct rdma_conn_param *param);
void gw_verbs_client_end(struct verbs_client *client);
/* Whether something that the client asked for is not sent yet. */
bool gw_verbs_client_busy(const struct verbs_client *client);
/* A call that is short of room tries again; a reply that is not read while others are ends the client, and so does
 * silence inside a request. */
void gw_verbs_client_tick(struct verbs_client *client, uint64_t now_ns);

#endif
