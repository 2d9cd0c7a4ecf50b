/* Silence, and loss.
 *
 * An endpoint is silenced before any work of it completes with an error: its queue pairs are flushed and destroyed, so
 * that nothing writes to a destination any more. A lost endpoint exists until the caller closes it, and fails all
 * calls.
 */
#include <stdio.h>

#include "transport/verbs/endpoint_private.h"

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
	endpoint->established = endpoint->qp_count = 0;
	endpoint->poller = NULL;
}

/* Fails everything open. The endpoint is silenced already. */
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
