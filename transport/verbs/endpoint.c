/* The life of an endpoint.
 *
 *   DIALLING ─▶ ASKING ─▶ CONNECTING ─▶ OPENED ─▶ LOST
 *       └──────────┴──────────┴────────────┼────────┘   refused, another version, wrong graph, deadline
 *                                          └─▶ DOUBTING ─▶ LOST   a key was refused: has the server reloaded?
 *
 * The hello and the service's key go over TCP. A request over the same connection gets a token, and every queue pair's
 * connection request carries the token. The TCP connection stays open. When it ends, the server ends our queue pairs.
 * If the server ends and its last messages over RDMA are lost, the client notices by the end of the TCP connection. The
 * server may have several addresses; the client tries them in turn, each with a new token.
 *
 * An endpoint is silenced before any work of it completes with an error: its queue pairs are flushed and destroyed, so
 * that nothing writes to a destination any more. A lost endpoint exists until the caller closes it, and fails all
 * calls.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/clock.h"
#include "transport/verbs/endpoint_private.h"

#define LIVENESS_DEFAULT_NS (30 * GW_NS_PER_SECOND)
#define PORT_DOWN_NS        (1 * GW_NS_PER_SECOND) /* how long a local port may be down while work is open */

static void endpoint_run(struct verbs_deferred *deferred);

/* --- Creating and closing. --- */

static void endpoint_free(struct verbs_endpoint *endpoint)
{
	GW_LIST_REMOVE(endpoint);
	gw_verbs_dynamic_end(endpoint);
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
	if (status != GW_OK)
		return status;
	struct verbs_endpoint *endpoint = gw_calloc(1, sizeof(*endpoint));
	if (!endpoint)
		return GW_NO_MEMORY;
	endpoint->base = (struct gw_endpoint){.transport = &gw_transport_verbs, .group = loop->group};
	endpoint->loop = loop;
	endpoint->deferred.run = endpoint_run;
	endpoint->leaving.run = gw_verbs_requests_leave;
	endpoint->dynamic_reader.withdrawn = gw_verbs_dynamic_withdrawn;
	endpoint->options = *options;
	if (options->key) {
		memcpy(endpoint->key, options->key, options->key_bytes);
		endpoint->options.key = endpoint->key;
	}
	if (!options->deadline_ns)
		endpoint->options.deadline_ns = GW_NO_DEADLINE;
	endpoint->liveness_ns = options->liveness_ns ? options->liveness_ns : LIVENESS_DEFAULT_NS;
	gw_verbs_reads_begin(endpoint);
	GW_LIST_INSERT(loop->endpoints, endpoint);
	status = gw_note_create(cookie, &endpoint->connecting);
	if (status == GW_OK)
		status = gw_verbs_dial(endpoint, endpoint->options.deadline_ns);
	if (status != GW_OK) {
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
	for (struct gw_read_set *set = endpoint->sets; set; set = set->next)
		set->last_accepted = true;
	if (endpoint->leaving.queued) /* a goodbye */
		gw_verbs_requests_leave(&endpoint->leaving);
	gw_verbs_lose(endpoint, gw_fail(GW_CANCELLED, "the endpoint was closed"));
	/* These sets had failed earlier, and waited only for the call with last = true. */
	for (struct gw_read_set *set = endpoint->sets, *next; set; set = next) {
		next = set->next;
		gw_read_set_settle(&endpoint->loop->completions, set);
	}
	endpoint_free(endpoint);
}

void gw_verbs_endpoints_end(struct verbs_loop *loop)
{
	while (loop->endpoints)
		gw_verbs_close(&loop->endpoints->base);
}

/* --- Work. --- */

static void endpoint_run(struct verbs_deferred *deferred)
{
	struct verbs_endpoint *endpoint =
		(struct verbs_endpoint *)(void *)((uint8_t *)deferred - offsetof(struct verbs_endpoint, deferred));
	if (gw_verbs_failed(endpoint) || endpoint->phase != ENDPOINT_OPENED)
		return;
	endpoint->heard = true;
	gw_verbs_reads_pump(endpoint);
	if (endpoint->talked) {
		endpoint->talked = false;
		gw_verbs_requests_pump(endpoint);
	}
}

/* --- The connection over TCP. --- */

void gw_verbs_control_wait(struct verbs_endpoint *endpoint, bool wait)
{
	if (endpoint->control_open != wait)
		endpoint->loop->controls_busy += wait ? 1u : -1u;
	endpoint->control_open = wait;
}

uint64_t gw_verbs_number(void)
{
	static _Atomic uint64_t count;
	return atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1;
}

void gw_verbs_control_settle(struct verbs_endpoint *endpoint)
{
	gw_verbs_control_wait(endpoint, endpoint->openings != NULL);
}

void gw_verbs_hang_up(struct verbs_endpoint *endpoint)
{
	if (endpoint->control)
		gw_transport_tcp.close(endpoint->control);
	endpoint->control = NULL;
	endpoint->dialled = gw_verbs_number();
	gw_verbs_control_wait(endpoint, false);
}

/* --- Silence, and loss. --- */

void gw_verbs_connected(struct verbs_endpoint *endpoint, gw_status status)
{
	if (!endpoint->connecting)
		return;
	gw_completions_post(&endpoint->loop->completions, endpoint->connecting, status);
	endpoint->connecting = NULL;
	endpoint->loop->open--;
}

void gw_verbs_conns_end(struct verbs_endpoint *endpoint)
{
	for (uint32_t i = 0; i < VERBS_QPS_MAX; i++)
		if (endpoint->conns[i].qp)
			gw_verbs_qp_break(endpoint->conns[i].qp); /* break all first, so that their flushes overlap */
	for (uint32_t i = 0; i < VERBS_QPS_MAX; i++) {
		struct verbs_conn *conn = &endpoint->conns[i];
		gw_verbs_qp_destroy(conn->qp);
		if (conn->id)
			rdma_destroy_id(conn->id);
		*conn = (struct verbs_conn){0};
	}
	gw_verbs_stream_end(&endpoint->stream);
	gw_verbs_reads_silenced(endpoint);
	gw_verbs_rows_end(endpoint);
	gw_verbs_undefer(endpoint->loop, &endpoint->deferred);
	gw_verbs_undefer(endpoint->loop, &endpoint->leaving);
	endpoint->established = endpoint->qp_count = 0;
	endpoint->poller = NULL;
}

/* The endpoint is silenced already. */
static void fail_all(struct verbs_endpoint *endpoint, gw_status status)
{
	char text[GW_ERROR_TEXT_MAX];
	snprintf(text, sizeof(text), "%s", gw_last_error());
	gw_verbs_connected(endpoint, status);
	for (struct gw_read_set *set = endpoint->sets, *next; set; set = next) {
		next = set->next;
		gw_read_set_fail(set, gw_fail_text(status, text));
		gw_verbs_set_drop(endpoint, set);
	}
	gw_fail_text(status, text);
	gw_verbs_dynamic_fail(endpoint, status);
	gw_verbs_requests_fail(endpoint, gw_fail_text(status, text));
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
	endpoint->base.moved = endpoint->control && endpoint->control->moved;
	gw_verbs_conns_end(endpoint);
	gw_verbs_hang_up(endpoint);
	fail_all(endpoint, gw_fail_text(status, text));
}

void gw_verbs_doubt_resolve(struct verbs_endpoint *endpoint, gw_status status)
{
	char text[GW_ADDRESS_MAX];
	gw_verbs_name(endpoint, text);
	bool stale = false;
	if (status == GW_OK) {
		const struct gw_peer *peer = &endpoint->control->peer;
		stale = peer->incarnation != endpoint->base.peer.incarnation ||
			peer->region_count != endpoint->base.peer.region_count;
		for (uint32_t i = 0; i < peer->region_count && !stale; i++)
			stale = peer->regions[i].generation != endpoint->regions[i].generation;
	}
	if (stale)
		status = gw_fail(GW_STALE, "%s: the server has reloaded its data; connect again", text);
	else
		status = gw_fail(GW_PEER_LOST, "%s: the server's device refused a read", text);
	gw_verbs_lose(endpoint, status);
}

/* --- Time. --- */

static gw_status endpoint_deadline_fail(const struct verbs_endpoint *endpoint, const char *what)
{
	char text[GW_ADDRESS_MAX];
	return gw_fail(GW_DEADLINE, "%s %s: not done in time", what, gw_verbs_name(endpoint, text));
}

static void tick_groups(struct verbs_endpoint *endpoint, uint64_t now_ns)
{
	for (struct gw_read_set *set = endpoint->sets, *next; set; set = next) {
		next = set->next;
		if (!set->deadline_ns || set->status)
			continue;
		if (now_ns < set->deadline_ns) {
			verbs_timer(endpoint->loop, set->deadline_ns);
			continue;
		}
		gw_read_set_fail(set, endpoint_deadline_fail(endpoint, "read from"));
		if (endpoint->room_wanted)
			gw_poll_group_room(endpoint->loop->group);
		gw_verbs_set_drop(endpoint, set);
	}
	if (!endpoint->dying)
		return;
	uint64_t due = gw_verbs_dying_since(endpoint) + ENDPOINT_PATIENCE_NS;
	if (now_ns < due)
		verbs_timer(endpoint->loop, due);
	else
		gw_verbs_lose(endpoint,
			      gw_fail(GW_PEER_LOST, "a failed read did not end in time; its queue pairs are closed"));
}

/* While work is open and the peer is silent: after liveness_ns a read of 0 bytes probes the peer's device. After
 * another liveness_ns the peer is lost. */
static void endpoint_tick_liveness(struct verbs_endpoint *endpoint, uint64_t now_ns)
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
		gw_verbs_lose(endpoint, gw_fail(GW_PEER_LOST, "%s: nothing heard for %llu ms, and no answer to a probe",
						gw_verbs_name(endpoint, text),
						(unsigned long long)((now_ns - endpoint->heard_ns) / GW_NS_PER_MS)));
	} else {
		endpoint->probed = true;
		gw_verbs_qp_probe(endpoint->conns[0].qp);
	}
}

/* Loses the endpoint if its local port is down while work is open. The device itself would retransmit for seconds. */
static bool tick_port(struct verbs_endpoint *endpoint, uint64_t now_ns)
{
	char text[GW_ADDRESS_MAX];
	uint64_t since = atomic_load(&endpoint->conns[0].qp->share->port->down_ns);
	if (!since || (!endpoint->frames_open && !verbs_requests_open(endpoint)))
		return false;
	if (now_ns < since + PORT_DOWN_NS) {
		verbs_timer(endpoint->loop, since + PORT_DOWN_NS);
		return false;
	}
	assert(endpoint->poller);
	gw_verbs_lose(endpoint,
		      gw_fail(GW_PEER_LOST, "%s: the port of RDMA device %s is down", gw_verbs_name(endpoint, text),
			      ibv_get_device_name(endpoint->poller->device->context->device)));
	return true;
}

static void tick_opened(struct verbs_endpoint *endpoint, uint64_t now_ns)
{
	char text[GW_ADDRESS_MAX];
	if (endpoint->control->state == GW_ENDPOINT_LOST) {
		gw_verbs_lose(endpoint, gw_fail(GW_PEER_LOST, "%s: the server closed the connection",
						gw_verbs_name(endpoint, text)));
		return;
	}
	if (tick_port(endpoint, now_ns))
		return;
	gw_verbs_dynamic_pump(endpoint);
	gw_verbs_requests_tick(endpoint, now_ns);
	endpoint_tick_liveness(endpoint, now_ns);
	if (endpoint->phase == ENDPOINT_OPENED)
		tick_groups(endpoint, now_ns);
}

/* In phase DOUBTING no work is in flight. Open work waits for the hello's answer, at most until its deadline. */
static void tick_doubting(struct verbs_endpoint *endpoint, uint64_t now_ns)
{
	gw_verbs_requests_tick(endpoint, now_ns);
	tick_groups(endpoint, now_ns);
}

void gw_verbs_endpoints_tick(struct verbs_loop *loop, uint64_t now_ns)
{
	char text[GW_ADDRESS_MAX];
	for (struct verbs_endpoint *endpoint = loop->endpoints, *next; endpoint; endpoint = next) {
		next = endpoint->next;
		if (endpoint->phase == ENDPOINT_LOST)
			continue;
		if (endpoint->poller && atomic_load(&endpoint->poller->device->dead))
			gw_verbs_lose(endpoint, gw_fail(GW_PEER_LOST, "%s: the RDMA device was removed",
							gw_verbs_name(endpoint, text)));
		else if (endpoint->phase == ENDPOINT_OPENED)
			tick_opened(endpoint, now_ns);
		else if (endpoint->phase == ENDPOINT_DOUBTING)
			tick_doubting(endpoint, now_ns);
		else if (now_ns < endpoint->options.deadline_ns)
			verbs_timer(loop, endpoint->options.deadline_ns);
		else
			gw_verbs_lose(endpoint, endpoint_deadline_fail(endpoint, "connect to"));
	}
}
