/* Endpoints over TCP: for the loop, for unix sockets (transport/shm) and for the control connections of
 * transport/verbs. client_private.h lists the files of an endpoint. */
#ifndef GW_TRANSPORT_TCP_CLIENT_CLIENT_H
#define GW_TRANSPORT_TCP_CLIENT_CLIENT_H

#include "transport/tcp/loop.h"

gw_status gw_tcp_connect(void *state, const struct gw_connect_options *options, void *cookie, struct gw_endpoint **out);
void gw_tcp_close(struct gw_endpoint *base);
size_t gw_tcp_read(struct gw_endpoint *base, struct gw_read_set *set, const struct gw_region *region,
		   struct gw_buffer *buffer, const struct gw_reads *reads, bool last);
gw_status gw_tcp_request(struct gw_endpoint *base, uint16_t op, const struct gw_once *once, const void *bytes,
			 uint32_t n, uint64_t deadline_ns, void *cookie);
void gw_tcp_cancel(struct gw_endpoint *base, struct gw_read_set *set);
void gw_tcp_request_cancel(struct gw_endpoint *base, const void *cookie);
/* Sends the small requests that were posted since the last poll: those to one server together. */
void gw_tcp_clients_flush(struct tcp_loop *loop);
/* Checks deadlines and liveness of the loop's endpoints and sets the loop's next timer. */
void gw_tcp_clients_tick(struct tcp_loop *loop, uint64_t now_ns);
bool gw_tcp_clients_busy(struct tcp_loop *loop);
void gw_tcp_clients_end(struct tcp_loop *loop);

/* --- client_lone.c --- */
/* The io whose short answer is the only open work of the loop and may be awaited alone; else NULL. */
struct tcp_io *gw_tcp_lone(struct tcp_loop *loop);
/* Reports the outcome of that wait. */
void gw_tcp_lone_ended(struct tcp_loop *loop, enum tcp_awaited outcome);

/* --- client_dynamic.c --- */
gw_status gw_tcp_region_open(struct gw_endpoint *base, uint32_t id, uint32_t generation, void *cookie);
/* A reader of dynamic regions over another transport: it is notified of withdrawals, and releases the region. */
struct tcp_dynamic_reader {
	void (*withdrawn)(struct tcp_dynamic_reader *reader, uint32_t id, uint32_t generation);
};
void gw_tcp_dynamic_reader(struct gw_endpoint *base, struct tcp_dynamic_reader *reader);
/* As gw_tcp_region_open; the server also keeps the memory until the client releases it. */
gw_status gw_tcp_dynamic_pin(struct gw_endpoint *base, uint32_t id, uint32_t generation, void *cookie);
void gw_tcp_dynamic_release(struct gw_endpoint *base, uint32_t id, uint32_t generation);

/* --- For transport/shm: its connections are TCP's, and its reads are copies. --- */
struct tcp_copies {
	struct gw_read_set **sets; /* started, not complete */
	struct gw_completions *completions;
	const void *mapped; /* what tcp_local.map returned; only while the endpoint is open */
};
struct tcp_copies gw_tcp_copies(struct gw_endpoint *base);
const char *gw_tcp_client_name(const struct tcp_client *client, char text[GW_ADDRESS_MAX]);

#endif
