/* Connects an endpoint's queue pairs.
 *
 *   dial: hello and key over TCP ─▶ ask: for a token, over the same connection ─▶ an address of the server
 *        ─▶ for each queue pair: address ─▶ route ─▶ queue pair ─▶ connection request with the token ─▶ established
 *
 * If an address does not work, the client tries the next one, with a new token. After the last address the endpoint is
 * lost, with the reason from the connection manager or the server.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "transport/verbs/endpoint_private.h"

#define STEP_MS  2000                   /* time limit to resolve an address or a route */
#define RETRIES  7                      /* retransmissions by the device without an acknowledgement */
#define DOUBT_NS (2 * GW_NS_PER_SECOND) /* time limit of the hello that resolves a doubt */

/* --- The hello over TCP. --- */

gw_status gw_verbs_dial(struct verbs_endpoint *endpoint, uint64_t deadline_ns)
{
	struct gw_connect_options options = endpoint->options;
	snprintf(options.address.scheme, sizeof(options.address.scheme), "tcp");
	options.deadline_ns = deadline_ns;
	gw_verbs_hang_up(endpoint); /* also gives the attempt a new number */
	gw_status status = gw_transport_tcp.connect(endpoint->loop->control, &options,
						    (void *)(uintptr_t)endpoint->dialled, &endpoint->control);
	if (status != GW_OK)
		return status;
	gw_tcp_dynamic_reader(endpoint->control, &endpoint->dynamic_reader);
	gw_verbs_control_wait(endpoint, true);
	return GW_OK;
}

static void connect_copy_hello(struct verbs_endpoint *endpoint)
{
	const struct gw_peer *peer = &endpoint->control->peer;
	memcpy(endpoint->regions, peer->regions, peer->region_count * sizeof(*peer->regions));
	endpoint->base.peer = *peer;
	endpoint->base.peer.regions = endpoint->regions;
}

static void connect_ask(struct verbs_endpoint *endpoint)
{
	const struct gw_poll_group_options *options = gw_poll_group_options(endpoint->loop->group);
	uint32_t qps = options->queue_pairs ? options->queue_pairs : VERBS_QPS_DEFAULT;
	struct handshake_question question;
	uint32_t n = gw_handshake_ask(endpoint->asks_in_oldest, qps < VERBS_QPS_MAX ? qps : VERBS_QPS_MAX, &question);
	endpoint->phase = ENDPOINT_ASKING;
	gw_status status =
		gw_transport_tcp.request(endpoint->control, GW_OP_UPGRADE, 0, &question, n,
					 endpoint->options.deadline_ns, (void *)(uintptr_t)endpoint->dialled);
	if (status != GW_OK)
		gw_verbs_lose(endpoint, status);
	else
		gw_verbs_control_wait(endpoint, true);
}

/* --- Queue pairs. --- */

/* The address does not work, and gw_last_error() has the reason. Tries the next address with a new token. After the
 * last address the endpoint is lost. */
static void verbs_address_failed(struct verbs_endpoint *endpoint, gw_status status)
{
	if (endpoint->phase != ENDPOINT_CONNECTING)
		return;
	gw_log(GW_LOG_INFO, "%s", gw_last_error());
	if (status == GW_NO_MEMORY || ++endpoint->address_at >= endpoint->answer.answer.address_count) {
		gw_verbs_lose(endpoint, status);
		return;
	}
	gw_verbs_conns_end(endpoint);
	connect_ask(endpoint);
}

static void address_text(const struct verbs_endpoint *endpoint, char text[64])
{
	struct handshake_address address;
	memcpy(&address, endpoint->answer.addresses + endpoint->address_at * sizeof(address), sizeof(address));
	inet_ntop(address.family == 4 ? AF_INET : AF_INET6, address.bytes, text, 64);
}

static gw_status step_failed(const struct verbs_endpoint *endpoint, gw_status status, int error, const char *what)
{
	char name[GW_ADDRESS_MAX], address[64];
	gw_verbs_name(endpoint, name);
	address_text(endpoint, address);
	if (error > 0)
		return gw_fail_errno(status, error, "%s: RDMA %s to %s", name, what, address);
	return gw_fail(status, "%s: RDMA %s to %s failed", name, what, address);
}

/* The ACK timeout exponent n: 4.096 us * 2^n, from 0.13 s to 1.07 s. The device makes RETRIES + 1 attempts and waits
 * about twice the timeout for each. All attempts must fit into liveness_ns, except at the lower end, which leaves room
 * for loss and delay on a busy network. */
static uint8_t acknowledge_timeout(uint64_t liveness_ns)
{
	uint8_t n = 15;
	while (n < 18 && 2ull * (RETRIES + 1) * (4096ull << (n + 1)) <= liveness_ns)
		n++;
	return n;
}

static gw_status conn_begin(struct verbs_endpoint *endpoint, uint32_t number)
{
	struct verbs_conn *conn = &endpoint->conns[number];
	struct handshake_address address;
	struct sockaddr_storage to = {0};
	uint16_t port = htons((uint16_t)endpoint->answer.answer.port);
	memcpy(&address, endpoint->answer.addresses + endpoint->address_at * sizeof(address), sizeof(address));
	if (address.family == 4) {
		struct sockaddr_in *v4 = (struct sockaddr_in *)&to;
		v4->sin_family = AF_INET;
		v4->sin_port = port;
		memcpy(&v4->sin_addr, address.bytes, 4);
	} else {
		struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&to;
		v6->sin6_family = AF_INET6;
		v6->sin6_port = port;
		memcpy(&v6->sin6_addr, address.bytes, 16);
	}
	if (rdma_create_id(endpoint->loop->events, &conn->id, &conn->handler, RDMA_PS_TCP) != 0) {
		conn->id = NULL;
		return gw_verbs_missing("RDMA connection manager", errno);
	}
	uint8_t timeout = acknowledge_timeout(endpoint->liveness_ns);
	rdma_set_option(conn->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));
	if (rdma_resolve_addr(conn->id, NULL, (struct sockaddr *)&to, STEP_MS) != 0)
		return step_failed(endpoint, GW_PEER_LOST, errno, "address");
	return GW_OK;
}

static void conn_received(struct verbs_qp *qp, uint32_t slot, uint32_t bytes)
{
	struct verbs_endpoint *endpoint = qp->owner;
	endpoint->talked = true;
	gw_verbs_stream_received(&endpoint->stream, slot, bytes);
}

static void conn_sent(struct verbs_qp *qp)
{
	struct verbs_endpoint *endpoint = qp->owner;
	endpoint->talked = true;
	gw_verbs_stream_sent(&endpoint->stream);
}

/* The route is known. */
static gw_status conn_connect(struct verbs_conn *conn)
{
	struct verbs_endpoint *endpoint = conn->endpoint;
	struct verbs_poller *poller;
	gw_status status = gw_verbs_poller_get(endpoint->loop, conn->id, &poller);
	if (status != GW_OK)
		return status;
	if (endpoint->poller && endpoint->poller != poller) /* destinations are registered on one device */
		return step_failed(endpoint, GW_PEER_LOST, 0, "connection through the first queue pair's device");
	endpoint->poller = poller;
	struct ibv_pd *pd = endpoint->poller->device->pd;
	struct verbs_needs needs = {.work = VERBS_RING, .sges = VERBS_SGES_MAX};
	needs.receives = conn->number == 0 ? VERBS_RECEIVES + VERBS_RECEIVES_SPARE : 0;
	status = gw_verbs_qp_create(endpoint->poller, conn->id, pd, &needs, &conn->qp);
	if (status != GW_OK)
		return status;
	conn->qp->deferred = &endpoint->deferred;
	conn->qp->owner = endpoint;
	conn->qp->read_done = gw_verbs_read_done;
	conn->qp->received = conn_received;
	conn->qp->sent = conn_sent;
	conn->id = NULL; /* the queue pair owns it */
	if (needs.receives)
		status = gw_verbs_stream_begin(&endpoint->stream, conn->qp, pd);
	if (status != GW_OK)
		return status;
	struct handshake_token token = {.magic = HANDSHAKE_MAGIC,
					.version = (uint16_t)endpoint->answer.answer.version,
					.number = (uint16_t)conn->number};
	memcpy(token.token, endpoint->answer.answer.token, sizeof(token.token));
	int depth = endpoint->poller->device->attr.max_qp_init_rd_atom;
	struct rdma_conn_param param = {
		.private_data = &token,
		.private_data_len = sizeof(token),
		.initiator_depth = (uint8_t)(depth < 254 ? depth : 254),
		.retry_count = RETRIES,
		.rnr_retry_count = 0, /* credits make RNR retries unnecessary */
	};
	if (rdma_connect(conn->qp->id, &param) != 0)
		return step_failed(endpoint, GW_PEER_LOST, errno, "connection");
	return GW_OK;
}

static void log_opened(const struct verbs_endpoint *endpoint)
{
	char text[GW_ADDRESS_MAX], address[64];
	struct ibv_qp_attr attr = {0};
	struct ibv_qp_init_attr init;
	address_text(endpoint, address);
	ibv_query_qp(endpoint->conns[0].qp->id->qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_PATH_MTU, &init);
	gw_log(GW_LOG_INFO, "%s: %u RDMA queue pairs to %s by %s, MTU %u, %u reads at once on the wire each",
	       gw_verbs_name(endpoint, text), endpoint->qp_count, address,
	       ibv_get_device_name(endpoint->poller->device->context->device), 128u << attr.path_mtu,
	       attr.max_rd_atomic);
}

static void conn_established(struct verbs_conn *conn)
{
	struct verbs_endpoint *endpoint = conn->endpoint;
	if (conn->established || !conn->qp)
		return;
	conn->established = true;
	conn->qp->connected = true;
	/* A connection was established, so the port is up, whatever its events reported. */
	atomic_store(&conn->qp->share->port->down_ns, 0);
	if (++endpoint->established < endpoint->qp_count)
		return;
	endpoint->phase = ENDPOINT_OPENED;
	endpoint->base.state = GW_ENDPOINT_OPEN;
	endpoint->heard_ns = gw_now_ns();
	log_opened(endpoint);
	gw_verbs_connected(endpoint, GW_OK);
}

/* Fails with the reason that the server sent with its rejection. If many clients connect at once, a token may expire
 * before the server handles its request: that is GW_PEER_LOST, after which clients try again. */
static gw_status connect_rejected(const struct verbs_endpoint *endpoint, const struct rdma_cm_event *event)
{
	char name[GW_ADDRESS_MAX], said[160] = "";
	const uint8_t *data = event->param.conn.private_data;
	uint32_t n = data ? event->param.conn.private_data_len : 0;
	for (uint32_t i = 0; i < n && i < sizeof(said) - 1 && data[i] >= ' ' && data[i] < 127; i++)
		said[i] = (char)data[i];
	gw_status status = strcmp(said, HANDSHAKE_TOKEN_OVER) == 0 ? GW_PEER_LOST : GW_REFUSED;
	return gw_fail(status, "%s: the server rejected the RDMA connection: %s", gw_verbs_name(endpoint, name),
		       *said ? said : "no server listens there any more");
}

/* --- A queue pair fails. --- */

/* The endpoint is silenced, so read sets that had failed earlier have nothing to wait for. */
static void drop_failed(struct verbs_endpoint *endpoint)
{
	for (struct gw_read_set *set = endpoint->sets, *next; set; set = next) {
		next = set->next;
		if (set->status)
			gw_verbs_set_drop(endpoint, set);
	}
}

/* The device's status is the only hint at the reason: the peer reports none. */
static void qp_failed(struct verbs_endpoint *endpoint, const struct verbs_qp *qp)
{
	char text[GW_ADDRESS_MAX];
	gw_verbs_name(endpoint, text);
	if (qp->failure == IBV_WC_REM_ACCESS_ERR && endpoint->phase == ENDPOINT_OPENED) {
		endpoint->phase = ENDPOINT_DOUBTING;
		endpoint->base.state = GW_ENDPOINT_LOST;
		gw_verbs_conns_end(endpoint);
		drop_failed(endpoint);
		if (gw_verbs_dial(endpoint, gw_now_ns() + DOUBT_NS))
			gw_verbs_doubt_resolve(endpoint, GW_PEER_LOST);
		return;
	}
	gw_status status = gw_fail(GW_PEER_LOST, "%s: RDMA %s", text, gw_verbs_qp_reason(qp));
	if (endpoint->phase == ENDPOINT_CONNECTING)
		verbs_address_failed(endpoint, status);
	else
		gw_verbs_lose(endpoint, status);
}

bool gw_verbs_failed(struct verbs_endpoint *endpoint)
{
	const struct verbs_qp *failed = NULL;
	for (uint32_t i = 0; i < endpoint->qp_count; i++) {
		const struct verbs_qp *qp = endpoint->conns[i].qp;
		/* When one queue pair fails by a refused key, the server closes the others too. So prefer the refused
		 * key as the reason. */
		if (qp && qp->failure && (!failed || qp->failure == IBV_WC_REM_ACCESS_ERR))
			failed = qp;
	}
	if (failed)
		qp_failed(endpoint, failed);
	return failed;
}

static void conn_event(struct verbs_cm_handler *handler, const struct rdma_cm_event *event)
{
	struct verbs_conn *conn = (struct verbs_conn *)handler;
	struct verbs_endpoint *endpoint = conn->endpoint;
	char text[GW_ADDRESS_MAX];
	gw_status status = GW_OK;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(conn->id, STEP_MS) != 0)
			status = step_failed(endpoint, GW_PEER_LOST, errno, "route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		status = conn_connect(conn);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		conn_established(conn);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		status = step_failed(endpoint, GW_PEER_LOST, event->status < 0 ? -event->status : 0, "connection");
		break;
	case RDMA_CM_EVENT_REJECTED:
		status = connect_rejected(endpoint, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (endpoint->phase == ENDPOINT_OPENED && gw_verbs_poller_poll(endpoint->poller) &&
		    gw_verbs_failed(endpoint))
			return; /* a completion has already given the reason */
		status = gw_fail(GW_PEER_LOST, "%s: the server closed the RDMA connection",
				 gw_verbs_name(endpoint, text));
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		gw_verbs_lose(endpoint,
			      gw_fail(GW_PEER_LOST, "%s: the RDMA device was removed", gw_verbs_name(endpoint, text)));
		verbs_timer(endpoint->loop, 0);
		return;
	default: /* address changes, the end of TIMEWAIT */
		break;
	}
	if (status != GW_OK && endpoint->phase == ENDPOINT_CONNECTING)
		verbs_address_failed(endpoint, status);
	else if (status != GW_OK)
		gw_verbs_lose(endpoint, status);
}

/* The server has answered with addresses, places and keys: connects the queue pairs. */
static gw_status take_answer(struct verbs_endpoint *endpoint, const uint8_t *reply, uint32_t n)
{
	struct handshake_address address;
	uint8_t *bytes = gw_malloc(n);
	if (!bytes)
		return GW_NO_MEMORY;
	memcpy(bytes, reply, n);
	gw_free(endpoint->answer_bytes);
	endpoint->answer_bytes = bytes;
	gw_status status =
		gw_handshake_answer(bytes, n, endpoint->regions, endpoint->base.peer.region_count, &endpoint->answer);
	if (status != GW_OK)
		return status;
	const struct handshake_answer *answer = &endpoint->answer.answer;
	if (endpoint->address_at >=
	    answer->address_count) /* the server has fewer addresses than in its earlier answer */
		return gw_fail(GW_PEER_LOST, "the server has no other address");
	memcpy(&address, endpoint->answer.addresses + endpoint->address_at * sizeof(address), sizeof(address));
	const uint8_t *keys = endpoint->answer.keys + 4ull * address.rail * endpoint->answer.keys_per_rail;
	for (uint32_t i = 0; i < answer->region_count; i++) {
		struct handshake_region place;
		memcpy(&place, endpoint->answer.places + i * sizeof(place), sizeof(place));
		endpoint->places[i].base = place.base;
		endpoint->places[i].shift = place.slice_shift;
		endpoint->places[i].keys = keys;
		keys += 4ull * place.slice_count;
	}
	endpoint->rail = address.rail;
	endpoint->whole_words = answer->whole_words >> address.rail & 1;
	endpoint->requests_max =
		answer->requests_max < ENDPOINT_REQUESTS_MAX ? answer->requests_max : ENDPOINT_REQUESTS_MAX;
	endpoint->phase = ENDPOINT_CONNECTING;
	endpoint->qp_count = answer->qps;
	for (uint32_t i = 0; i < endpoint->qp_count; i++)
		endpoint->conns[i] =
			(struct verbs_conn){.handler.event = conn_event, .endpoint = endpoint, .number = i};
	for (uint32_t i = 0; i < endpoint->qp_count && status == GW_OK; i++)
		status = conn_begin(endpoint, i);
	return status;
}

void gw_verbs_control_completed(struct verbs_loop *loop, const struct gw_completion *completion)
{
	struct verbs_endpoint *endpoint = loop->endpoints;
	while (endpoint && (!endpoint->control || (void *)(uintptr_t)endpoint->dialled != completion->cookie))
		endpoint = endpoint->next;
	if (!endpoint) {
		gw_verbs_dynamic_completed(loop, completion); /* or the completion belongs to a closed endpoint */
		return;
	}
	gw_verbs_control_wait(endpoint, false);
	gw_status status = completion->status;
	if (status != GW_OK)
		gw_fail_text(status, completion->text);
	if (endpoint->phase == ENDPOINT_DOUBTING) {
		gw_verbs_doubt_resolve(endpoint, status);
		return;
	}
	if (status == GW_OK && endpoint->phase == ENDPOINT_DIALLING) {
		connect_copy_hello(endpoint);
		connect_ask(endpoint);
		return;
	}
	/* A server whose version has no range of versions refuses a newer question. */
	if (status == GW_VERSION && endpoint->phase == ENDPOINT_ASKING && !endpoint->asks_in_oldest &&
	    HANDSHAKE_OLDEST < HANDSHAKE_RANGES_FIRST && HANDSHAKE_OLDEST != HANDSHAKE_VERSION) {
		endpoint->asks_in_oldest = true;
		connect_ask(endpoint);
		return;
	}
	if (status == GW_OK)
		status = take_answer(endpoint, completion->reply, completion->reply_bytes);
	if (status != GW_OK && endpoint->phase == ENDPOINT_CONNECTING)
		verbs_address_failed(endpoint, status);
	else if (status != GW_OK)
		gw_verbs_lose(endpoint, status);
}
