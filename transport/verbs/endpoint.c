/* The life of an endpoint.
 *
 *   DIALLING ─▶ ASKING ─▶ CONNECTING ─▶ OPENED ─▶ LOST
 *       └──────────┴──────────┴────────────┼────────┘   refused, another version, wrong graph, deadline
 *                                          └─▶ DOUBTING ─▶ LOST   a key was refused: has the server loaded anew?
 *
 * The hello and the key go over TCP; a request over it brings the ticket, and every queue pair shows that. The TCP
 * connection stays: the server ends our queue pairs with it, and we notice the end of the server by it when its last
 * words over RDMA were lost. The server may offer several addresses; they are tried in turn, each with a new ticket.
 *
 * An endpoint is silenced before anything of it completes with an error: its queue pairs are flushed and destroyed, so
 * that nothing writes to a destination any more. A lost one stays, and fails what is asked of it, until it is closed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "transport/tcp/tcp.h"
#include "transport/verbs/endpoint.h"

#define LIVENESS_DEFAULT_NS (30 * GW_NS_PER_SECOND)
#define DOUBT_NS            (2 * GW_NS_PER_SECOND) /* for the hello that resolves a doubt */
#define STEP_MS             2000                   /* for an address or a route to be found */
#define RETRIES             7                      /* by the device, when no acknowledgement comes */

static void endpoint_run(struct verbs_touch *touch);

const char *gw_verbs_name(const struct verbs_endpoint *endpoint, char text[GW_ADDRESS_MAX])
{
	return gw_address_text(&endpoint->options.address, text);
}

static void connected(struct verbs_endpoint *endpoint, gw_status status)
{
	if (!endpoint->connecting)
		return;
	gw_outbox_post(&endpoint->loop->outbox, endpoint->connecting, status);
	endpoint->connecting = NULL;
	endpoint->loop->open--;
}

static void control_wait(struct verbs_endpoint *endpoint, bool wait)
{
	if (endpoint->control_open != wait)
		endpoint->loop->controls_busy += wait ? 1u : -1u;
	endpoint->control_open = wait;
}

static void control_close(struct verbs_endpoint *endpoint)
{
	static _Atomic uint64_t count;
	if (endpoint->control)
		gw_transport_tcp.close(endpoint->control);
	endpoint->control = NULL;
	endpoint->dialled = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1;
	control_wait(endpoint, false);
}

/* --- Silence. --- */

static void lines_end(struct verbs_endpoint *endpoint)
{
	for (uint32_t i = 0; i < VERBS_QUEUES_MAX; i++)
		if (endpoint->lines[i].queue)
			gw_verbs_queue_break(endpoint->lines[i].queue); /* all at once, then one after the other */
	for (uint32_t i = 0; i < VERBS_QUEUES_MAX; i++) {
		struct verbs_line *line = &endpoint->lines[i];
		gw_verbs_queue_destroy(line->queue);
		if (line->id)
			rdma_destroy_id(line->id);
		*line = (struct verbs_line){0};
	}
	gw_verbs_stream_end(&endpoint->stream);
	gw_verbs_reads_silenced(endpoint);
	gw_verbs_untouch(endpoint->loop, &endpoint->touch);
	endpoint->established = endpoint->queue_count = 0;
}

/* Silenced already: everything open fails. */
static void fail_all(struct verbs_endpoint *endpoint, gw_status status)
{
	char text[GW_ERROR_TEXT_MAX];
	snprintf(text, sizeof(text), "%s", gw_last_error());
	connected(endpoint, status);
	for (struct gw_group *group = endpoint->groups, *next; group; group = next) {
		next = group->next;
		gw_group_fail(group, gw_fail_text(status, text));
		gw_verbs_group_drop(endpoint, group);
	}
	gw_fail_text(status, text);
	gw_verbs_requests_fail(endpoint, status);
	if (endpoint->room_wanted)
		gw_poll_group_room(endpoint->loop->group);
	endpoint->room_wanted = false;
}

void gw_verbs_lose(struct verbs_endpoint *endpoint, gw_status status)
{
	char text[GW_ERROR_TEXT_MAX];
	if (endpoint->phase == ENDPOINT_LOST)
		return;
	snprintf(text, sizeof(text), "%s", gw_last_error());
	endpoint->phase = ENDPOINT_LOST;
	endpoint->base.state = GW_ENDPOINT_LOST;
	lines_end(endpoint);
	control_close(endpoint);
	fail_all(endpoint, gw_fail_text(status, text));
}

/* --- The hello over TCP. --- */

static gw_status dial(struct verbs_endpoint *endpoint, uint64_t deadline_ns)
{
	struct gw_connect_options options = endpoint->options;
	snprintf(options.address.scheme, sizeof(options.address.scheme), "tcp");
	options.deadline_ns = deadline_ns;
	control_close(endpoint); /* numbers the attempt */
	gw_status status = gw_transport_tcp.connect(endpoint->loop->control, &options,
						    (void *)(uintptr_t)endpoint->dialled, &endpoint->control);
	if (!status)
		control_wait(endpoint, true);
	return status;
}

/* Copies what the hello told. */
static void greet(struct verbs_endpoint *endpoint)
{
	const struct gw_peer *peer = &endpoint->control->peer;
	memcpy(endpoint->regions, peer->regions, peer->region_count * sizeof(*peer->regions));
	endpoint->base.peer = *peer;
	endpoint->base.peer.regions = endpoint->regions;
}

static void ask(struct verbs_endpoint *endpoint)
{
	const struct gw_poll_group_options *options = gw_poll_group_options(endpoint->loop->group);
	uint32_t queues = options->queue_pairs ? options->queue_pairs : VERBS_QUEUES_DEFAULT;
	struct rail_question question = {.version = RAIL_VERSION,
					 .queues = queues < VERBS_QUEUES_MAX ? queues : VERBS_QUEUES_MAX,
					 .receives = VERBS_RECEIVES,
					 .chunk_bytes = VERBS_CHUNK_BYTES};
	endpoint->phase = ENDPOINT_ASKING;
	gw_status status =
		gw_transport_tcp.request(endpoint->control, GW_OP_RAIL, 0, &question, sizeof(question),
					 endpoint->options.deadline_ns, (void *)(uintptr_t)endpoint->dialled);
	if (status)
		gw_verbs_lose(endpoint, status);
	else
		control_wait(endpoint, true);
}

/* --- Queue pairs. --- */

/* This address does not work: the next one is tried with a new ticket, unless it was the last. */
static void address_failed(struct verbs_endpoint *endpoint, gw_status status)
{
	if (endpoint->phase != ENDPOINT_CONNECTING)
		return;
	gw_log(GW_LOG_INFO, "%s", gw_last_error());
	if (status == GW_NO_MEMORY || ++endpoint->address_at >= endpoint->answer.answer.address_count) {
		gw_verbs_lose(endpoint, status);
		return;
	}
	lines_end(endpoint);
	ask(endpoint);
}

static void address_text(const struct verbs_endpoint *endpoint, char text[64])
{
	struct rail_address address;
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

/* The device gives up after RETRIES + 1 times about twice this, so choose it to fit into the time of silence allowed.
 * 4.096 us * 2^n: from 0.13 s (loss and delay on a busy network are no death) to 1.07 s. */
static uint8_t acknowledge_timeout(uint64_t liveness_ns)
{
	uint8_t n = 15;
	while (n < 18 && 2ull * (RETRIES + 1) * (4096ull << (n + 1)) <= liveness_ns)
		n++;
	return n;
}

static gw_status line_begin(struct verbs_endpoint *endpoint, uint32_t number)
{
	struct verbs_line *line = &endpoint->lines[number];
	struct rail_address address;
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
	if (rdma_create_id(endpoint->loop->events, &line->id, &line->hearer, RDMA_PS_TCP) != 0) {
		line->id = NULL;
		return gw_verbs_missing("RDMA connection manager", errno);
	}
	uint8_t timeout = acknowledge_timeout(endpoint->liveness_ns);
	rdma_set_option(line->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));
	if (rdma_resolve_addr(line->id, NULL, (struct sockaddr *)&to, STEP_MS) != 0)
		return step_failed(endpoint, GW_PEER_LOST, errno, "address");
	return GW_OK;
}

static void line_received(struct verbs_queue *queue, uint32_t slot, uint32_t bytes)
{
	struct verbs_endpoint *endpoint = queue->owner;
	gw_verbs_stream_received(&endpoint->stream, slot, bytes);
}

static void line_sent(struct verbs_queue *queue)
{
	struct verbs_endpoint *endpoint = queue->owner;
	gw_verbs_stream_sent(&endpoint->stream);
}

/* The route is known: a queue pair, and a connection request with our ticket. */
static gw_status line_connect(struct verbs_line *line)
{
	struct verbs_endpoint *endpoint = line->endpoint;
	gw_status status = gw_verbs_port_get(endpoint->loop, line->id, &endpoint->port);
	if (status)
		return status;
	struct ibv_pd *pd = endpoint->port->device->pd;
	uint32_t receives = line->number == 0 ? VERBS_RECEIVES + VERBS_RECEIVES_SPARE : 0;
	status = gw_verbs_queue_create(endpoint->port, line->id, pd, receives, &line->queue);
	if (status)
		return status;
	line->queue->touch = &endpoint->touch;
	line->queue->owner = endpoint;
	line->queue->read_done = gw_verbs_read_done;
	line->queue->received = line_received;
	line->queue->sent = line_sent;
	line->id = NULL; /* the queue's */
	if (receives)
		status = gw_verbs_stream_begin(&endpoint->stream, line->queue, pd);
	if (status)
		return status;
	struct rail_ticket ticket = {.magic = RAIL_MAGIC, .version = RAIL_VERSION, .number = (uint16_t)line->number};
	memcpy(ticket.token, endpoint->answer.answer.token, sizeof(ticket.token));
	int depth = endpoint->port->device->attr.max_qp_init_rd_atom;
	struct rdma_conn_param param = {
		.private_data = &ticket,
		.private_data_len = sizeof(ticket),
		.initiator_depth = (uint8_t)(depth < 254 ? depth : 254),
		.retry_count = RETRIES,
		.rnr_retry_count = 0, /* credits see to it that it is never needed */
	};
	if (rdma_connect(line->queue->id, &param) != 0)
		return step_failed(endpoint, GW_PEER_LOST, errno, "connection");
	return GW_OK;
}

static void log_opened(const struct verbs_endpoint *endpoint)
{
	char text[GW_ADDRESS_MAX], address[64];
	struct ibv_qp_attr attr = {0};
	struct ibv_qp_init_attr init;
	address_text(endpoint, address);
	ibv_query_qp(endpoint->lines[0].queue->id->qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_PATH_MTU, &init);
	gw_log(GW_LOG_INFO, "%s: %u RDMA queue pairs to %s by %s, MTU %u, %u reads at once on the wire each",
	       gw_verbs_name(endpoint, text), endpoint->queue_count, address,
	       ibv_get_device_name(endpoint->port->device->context->device), 128u << attr.path_mtu, attr.max_rd_atomic);
}

static void line_established(struct verbs_line *line)
{
	struct verbs_endpoint *endpoint = line->endpoint;
	if (line->established || !line->queue)
		return;
	line->established = true;
	line->queue->connected = true;
	if (++endpoint->established < endpoint->queue_count)
		return;
	endpoint->phase = ENDPOINT_OPENED;
	endpoint->base.state = GW_ENDPOINT_OPEN;
	endpoint->heard_ns = gw_now_ns();
	log_opened(endpoint);
	connected(endpoint, GW_OK);
}

/* What the server said when it turned the connection request down. */
static gw_status rejected(const struct verbs_endpoint *endpoint, const struct rdma_cm_event *event)
{
	char name[GW_ADDRESS_MAX], said[160] = "";
	const uint8_t *data = event->param.conn.private_data;
	uint32_t n = data ? event->param.conn.private_data_len : 0;
	for (uint32_t i = 0; i < n && i < sizeof(said) - 1 && data[i] >= ' ' && data[i] < 127; i++)
		said[i] = (char)data[i];
	return gw_fail(GW_REFUSED, "%s: the server turned our RDMA connection down: %s", gw_verbs_name(endpoint, name),
		       *said ? said : "nobody listens there any more");
}

static void line_event(struct verbs_hearer *hearer, const struct rdma_cm_event *event)
{
	struct verbs_line *line = (struct verbs_line *)hearer;
	struct verbs_endpoint *endpoint = line->endpoint;
	char text[GW_ADDRESS_MAX];
	gw_status status = GW_OK;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(line->id, STEP_MS) != 0)
			status = step_failed(endpoint, GW_PEER_LOST, errno, "route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		status = line_connect(line);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		line_established(line);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		status = step_failed(endpoint, GW_PEER_LOST, event->status < 0 ? -event->status : 0, "connection");
		break;
	case RDMA_CM_EVENT_REJECTED:
		status = rejected(endpoint, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
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
	if (status && endpoint->phase == ENDPOINT_CONNECTING)
		address_failed(endpoint, status);
	else if (status)
		gw_verbs_lose(endpoint, status);
}

/* The server has answered: places and keys, and where to connect. */
static gw_status take_answer(struct verbs_endpoint *endpoint, const uint8_t *reply, uint32_t n)
{
	struct rail_address address;
	uint8_t *bytes = gw_malloc(n);
	if (!bytes)
		return GW_NO_MEMORY;
	memcpy(bytes, reply, n);
	gw_free(endpoint->answer_bytes);
	endpoint->answer_bytes = bytes;
	gw_status status =
		gw_rail_answer(bytes, n, endpoint->regions, endpoint->base.peer.region_count, &endpoint->answer);
	if (status)
		return status;
	const struct rail_answer *answer = &endpoint->answer.answer;
	if (endpoint->address_at >= answer->address_count) /* fewer than when it was asked before */
		return gw_fail(GW_PEER_LOST, "the server offers no other address");
	memcpy(&address, endpoint->answer.addresses + endpoint->address_at * sizeof(address), sizeof(address));
	const uint8_t *keys = endpoint->answer.keys + 4ull * address.rail * endpoint->answer.keys_per_rail;
	for (uint32_t i = 0; i < answer->region_count; i++) {
		struct rail_place place;
		memcpy(&place, endpoint->answer.places + i * sizeof(place), sizeof(place));
		endpoint->places[i].base = place.base;
		endpoint->places[i].shift = place.slice_shift;
		endpoint->places[i].keys = keys;
		keys += 4ull * place.slice_count;
	}
	endpoint->requests_max =
		answer->requests_max < ENDPOINT_REQUESTS_MAX ? answer->requests_max : ENDPOINT_REQUESTS_MAX;
	endpoint->phase = ENDPOINT_CONNECTING;
	endpoint->queue_count = answer->queues;
	for (uint32_t i = 0; i < endpoint->queue_count; i++)
		endpoint->lines[i] = (struct verbs_line){.hearer.event = line_event, .endpoint = endpoint, .number = i};
	for (uint32_t i = 0; i < endpoint->queue_count && !status; i++)
		status = line_begin(endpoint, i);
	return status;
}

/* The hello after a refused key: another generation of the data, or no reason that we know. */
static void resolve_doubt(struct verbs_endpoint *endpoint, gw_status status)
{
	char text[GW_ADDRESS_MAX];
	gw_verbs_name(endpoint, text);
	bool stale = false;
	if (!status) {
		const struct gw_peer *peer = &endpoint->control->peer;
		stale = peer->incarnation != endpoint->base.peer.incarnation ||
			peer->region_count != endpoint->base.peer.region_count;
		for (uint32_t i = 0; i < peer->region_count && !stale; i++)
			stale = peer->regions[i].generation != endpoint->regions[i].generation;
	}
	if (stale)
		status = gw_fail(GW_STALE, "%s: the server has loaded its data anew; connect again", text);
	else
		status = gw_fail(GW_PEER_LOST, "%s: the server's device refused a read", text);
	gw_verbs_lose(endpoint, status);
}

void gw_verbs_control_completed(struct verbs_loop *loop, const struct gw_completion *completion)
{
	struct verbs_endpoint *endpoint = loop->endpoints;
	while (endpoint && (!endpoint->control || (void *)(uintptr_t)endpoint->dialled != completion->cookie))
		endpoint = endpoint->next;
	if (!endpoint)
		return; /* of one that was closed */
	control_wait(endpoint, false);
	gw_status status = completion->status;
	if (status)
		gw_fail_text(status, completion->text);
	if (endpoint->phase == ENDPOINT_DOUBTING) {
		resolve_doubt(endpoint, status);
		return;
	}
	if (!status && endpoint->phase == ENDPOINT_DIALLING) {
		greet(endpoint);
		ask(endpoint);
		return;
	}
	if (!status)
		status = take_answer(endpoint, completion->reply, completion->reply_bytes);
	if (status && endpoint->phase == ENDPOINT_CONNECTING)
		address_failed(endpoint, status);
	else if (status)
		gw_verbs_lose(endpoint, status);
}

/* --- Making and closing. --- */

static void endpoint_free(struct verbs_endpoint *endpoint)
{
	*endpoint->previous = endpoint->next;
	if (endpoint->next)
		endpoint->next->previous = endpoint->previous;
	gw_note_destroy(endpoint->connecting);
	gw_free(endpoint->answer_bytes);
	explicit_bzero(endpoint->key, sizeof(endpoint->key));
	gw_free(endpoint);
}

gw_status gw_verbs_connect(void *state, const struct gw_connect_options *options, void *cookie,
			   struct gw_endpoint **out)
{
	struct verbs_loop *loop = state;
	*out = NULL;
	if (options->key_bytes > GW_SERVICE_KEY_MAX || (options->key && !options->key_bytes))
		return gw_fail(GW_INVALID, "a key of %u bytes; 1 to %d are possible", options->key_bytes,
			       GW_SERVICE_KEY_MAX);
	gw_status status = gw_verbs_control(loop);
	if (status)
		return status;
	struct verbs_endpoint *endpoint = gw_calloc(1, sizeof(*endpoint));
	if (!endpoint)
		return GW_NO_MEMORY;
	endpoint->base = (struct gw_endpoint){.transport = &gw_transport_verbs, .group = loop->group};
	endpoint->loop = loop;
	endpoint->touch.run = endpoint_run;
	endpoint->options = *options;
	if (options->key) {
		memcpy(endpoint->key, options->key, options->key_bytes);
		endpoint->options.key = endpoint->key;
	}
	if (!options->deadline_ns)
		endpoint->options.deadline_ns = GW_NO_DEADLINE;
	endpoint->liveness_ns = options->liveness_ns ? options->liveness_ns : LIVENESS_DEFAULT_NS;
	gw_verbs_reads_begin(endpoint);
	endpoint->previous = &loop->endpoints;
	endpoint->next = loop->endpoints;
	if (endpoint->next)
		endpoint->next->previous = &endpoint->next;
	loop->endpoints = endpoint;
	status = gw_note_create(cookie, &endpoint->connecting);
	if (!status)
		status = dial(endpoint, endpoint->options.deadline_ns);
	if (status) {
		endpoint_free(endpoint);
		return status;
	}
	loop->open++;
	verbs_timer(loop, endpoint->options.deadline_ns);
	verbs_timer(loop, gw_now_ns() + 250 * GW_NS_PER_MS);
	*out = &endpoint->base;
	return GW_OK;
}

void gw_verbs_close(struct gw_endpoint *base)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;
	for (struct gw_group *group = endpoint->groups; group; group = group->next)
		group->last_accepted = true;
	gw_verbs_lose(endpoint, gw_fail(GW_CANCELLED, "the endpoint was closed"));
	/* Those that had failed before were waiting for their last read only. */
	for (struct gw_group *group = endpoint->groups, *next; group; group = next) {
		next = group->next;
		gw_group_settle(&endpoint->loop->outbox, group);
	}
	endpoint_free(endpoint);
}

void gw_verbs_endpoints_end(struct verbs_loop *loop)
{
	while (loop->endpoints)
		gw_verbs_close(&loop->endpoints->base);
}

/* --- Work. --- */

/* A queue pair has failed. Without a peer's help we know why only roughly; the device says what it saw. */
static void queue_failed(struct verbs_endpoint *endpoint, enum ibv_wc_status failure)
{
	char text[GW_ADDRESS_MAX];
	gw_verbs_name(endpoint, text);
	if (failure == IBV_WC_REM_ACCESS_ERR && endpoint->phase == ENDPOINT_OPENED) {
		endpoint->phase = ENDPOINT_DOUBTING;
		endpoint->base.state = GW_ENDPOINT_LOST;
		lines_end(endpoint);
		if (dial(endpoint, gw_now_ns() + DOUBT_NS))
			resolve_doubt(endpoint, GW_PEER_LOST);
		return;
	}
	gw_verbs_lose(endpoint, gw_fail(GW_PEER_LOST, "%s: RDMA %s", text, ibv_wc_status_str(failure)));
}

static void endpoint_run(struct verbs_touch *touch)
{
	struct verbs_endpoint *endpoint =
		(struct verbs_endpoint *)(void *)((uint8_t *)touch - offsetof(struct verbs_endpoint, touch));
	for (uint32_t i = 0; i < endpoint->queue_count; i++) {
		const struct verbs_queue *queue = endpoint->lines[i].queue;
		if (queue && queue->failure) {
			queue_failed(endpoint, queue->failure);
			return;
		}
	}
	if (endpoint->phase != ENDPOINT_OPENED)
		return;
	endpoint->heard = true;
	gw_verbs_reads_pump(endpoint);
	gw_verbs_requests_pump(endpoint);
}

/* --- Time. --- */

static gw_status deadline_fail(const struct verbs_endpoint *endpoint, const char *what)
{
	char text[GW_ADDRESS_MAX];
	return gw_fail(GW_DEADLINE, "%s %s: not done in time", what, gw_verbs_name(endpoint, text));
}

static void tick_groups(struct verbs_endpoint *endpoint, uint64_t now_ns)
{
	for (struct gw_group *group = endpoint->groups, *next; group; group = next) {
		next = group->next;
		if (!group->deadline_ns || group->status)
			continue;
		if (now_ns < group->deadline_ns) {
			verbs_timer(endpoint->loop, group->deadline_ns);
			continue;
		}
		gw_group_fail(group, deadline_fail(endpoint, "read from"));
		if (endpoint->room_wanted)
			gw_poll_group_room(endpoint->loop->group);
		gw_verbs_group_drop(endpoint, group);
	}
	if (!endpoint->dying)
		return;
	if (now_ns < endpoint->dying_ns + ENDPOINT_PATIENCE_NS)
		verbs_timer(endpoint->loop, endpoint->dying_ns + ENDPOINT_PATIENCE_NS);
	else
		gw_verbs_lose(endpoint, gw_fail(GW_PEER_LOST, "silenced, since a read that was given up did not end"));
}

/* Something is open and the peer is silent: a read of nothing asks its device, then it is given up. */
static void tick_liveness(struct verbs_endpoint *endpoint, uint64_t now_ns)
{
	char text[GW_ADDRESS_MAX];
	if (endpoint->heard || (!endpoint->frames_open && !verbs_requests_open(endpoint))) {
		endpoint->heard = endpoint->probed = false;
		endpoint->heard_ns = now_ns;
	}
	uint64_t due = endpoint->heard_ns + endpoint->liveness_ns * (endpoint->probed ? 2 : 1);
	if (now_ns < due) {
		verbs_timer(endpoint->loop, due);
	} else if (endpoint->probed) {
		gw_verbs_lose(endpoint, gw_fail(GW_PEER_LOST, "%s: nothing heard for %llu ms, nor an answer to a probe",
						gw_verbs_name(endpoint, text),
						(unsigned long long)((now_ns - endpoint->heard_ns) / GW_NS_PER_MS)));
	} else {
		endpoint->probed = true;
		gw_verbs_queue_probe(endpoint->lines[0].queue);
	}
}

static void tick_opened(struct verbs_endpoint *endpoint, uint64_t now_ns)
{
	char text[GW_ADDRESS_MAX];
	gw_verbs_name(endpoint, text);
	if (atomic_load(&endpoint->port->device->dead)) {
		gw_verbs_lose(endpoint, gw_fail(GW_PEER_LOST, "%s: the RDMA device was removed", text));
		return;
	}
	if (endpoint->control->state == GW_ENDPOINT_LOST) {
		gw_verbs_lose(endpoint, gw_fail(GW_PEER_LOST, "%s: the server closed the connection", text));
		return;
	}
	gw_verbs_requests_tick(endpoint, now_ns);
	tick_liveness(endpoint, now_ns);
	if (endpoint->phase == ENDPOINT_OPENED)
		tick_groups(endpoint, now_ns);
}

void gw_verbs_endpoints_tick(struct verbs_loop *loop, uint64_t now_ns)
{
	for (struct verbs_endpoint *endpoint = loop->endpoints, *next; endpoint; endpoint = next) {
		next = endpoint->next;
		if (endpoint->phase == ENDPOINT_LOST)
			continue;
		if (endpoint->phase == ENDPOINT_OPENED)
			tick_opened(endpoint, now_ns);
		else if (endpoint->phase == ENDPOINT_DOUBTING)
			tick_groups(endpoint, now_ns);
		else if (now_ns < endpoint->options.deadline_ns)
			verbs_timer(loop, endpoint->options.deadline_ns);
		else
			gw_verbs_lose(endpoint, deadline_fail(endpoint, "connect to"));
	}
}
