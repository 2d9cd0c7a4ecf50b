/* The clients of all connections, and the sums of what they read. The lock is taken when a connection begins or ends
 * and when the sums are read, never by a read or a call. */
#include <string.h>

#include "core/memory/list.h"
#include "core/system/clock.h"
#include "transport/service/service_private.h"

static uint64_t peer_load(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void gw_service_peer_begin(struct gw_service *service, struct gw_service_peer *peer)
{
	peer->begun = true;
	pthread_mutex_lock(&service->peers.lock);
	GW_LIST_INSERT(service->peers.first, peer);
	pthread_mutex_unlock(&service->peers.lock);
}

void gw_service_peer_end(struct gw_service *service, struct gw_service_peer *peer)
{
	if (!peer->begun)
		return;
	peer->begun = false;
	pthread_mutex_lock(&service->peers.lock);
	GW_LIST_REMOVE(peer);
	service->peers.ended[peer->scheme].reads += peer_load(&peer->reads);
	service->peers.ended[peer->scheme].ranges += peer_load(&peer->ranges);
	service->peers.ended[peer->scheme].bytes += peer_load(&peer->bytes);
	service->peers.ended[peer->scheme].errors += peer_load(&peer->read_errors);
	pthread_mutex_unlock(&service->peers.lock);
}

void gw_service_peer_call(struct gw_service_peer *peer, uint32_t op, uint64_t now_ns)
{
	gw_count_alone(&peer->calls, 1);
	if (atomic_fetch_add_explicit(&peer->calls_open, 1, memory_order_relaxed) > 0)
		return;
	atomic_store_explicit(&peer->op, op, memory_order_relaxed);
	atomic_store_explicit(&peer->call_since_ns, now_ns, memory_order_relaxed);
}

void gw_service_peer_called(struct gw_service_peer *peer)
{
	if (atomic_fetch_sub_explicit(&peer->calls_open, 1, memory_order_relaxed) == 1)
		atomic_store_explicit(&peer->call_since_ns, 0, memory_order_relaxed);
}

void gw_service_peers_sum(struct gw_service *service, struct gw_service_counters *out,
			  struct gw_service_calls reads[GW_SERVICE_SCHEMES])
{
	pthread_mutex_lock(&service->peers.lock);
	for (uint32_t scheme = 0; scheme < GW_SERVICE_SCHEMES; scheme++) {
		reads[scheme].requests += service->peers.ended[scheme].reads;
		reads[scheme].sent_bytes += service->peers.ended[scheme].bytes;
		reads[scheme].errors += service->peers.ended[scheme].errors;
		out->read_ranges += service->peers.ended[scheme].ranges;
	}
	for (const struct gw_service_peer *peer = service->peers.first; peer; peer = peer->next) {
		reads[peer->scheme].requests += peer_load(&peer->reads);
		reads[peer->scheme].sent_bytes += peer_load(&peer->bytes);
		reads[peer->scheme].errors += peer_load(&peer->read_errors);
		out->read_ranges += peer_load(&peer->ranges);
	}
	pthread_mutex_unlock(&service->peers.lock);
	for (uint32_t scheme = 0; scheme < GW_SERVICE_SCHEMES; scheme++) {
		out->reads += reads[scheme].requests;
		out->read_bytes += reads[scheme].sent_bytes;
	}
}

static void take_state(const struct gw_service_peer *peer, uint64_t now_ns, struct gw_service_peer_state *out)
{
	const uint64_t since_ns = peer_load(&peer->call_since_ns);
	*out = (struct gw_service_peer_state){
		.scheme = peer->scheme,
		.reads = peer_load(&peer->reads),
		.read_bytes = peer_load(&peer->bytes),
		.calls = peer_load(&peer->calls),
		.calls_open = atomic_load_explicit(&peer->calls_open, memory_order_relaxed),
		.op = atomic_load_explicit(&peer->op, memory_order_relaxed),
		.call_ns = since_ns && now_ns > since_ns ? now_ns - since_ns : 0,
	};
	memcpy(out->name, peer->name, sizeof(out->name));
	memcpy(out->client_uuid, peer->client_uuid, sizeof(out->client_uuid));
}

uint32_t gw_service_peers(struct gw_service *service, struct gw_service_peer_state *out, uint32_t max)
{
	const uint64_t now = gw_now_ns();
	uint32_t count = 0;
	pthread_mutex_lock(&service->peers.lock);
	for (int waiting = 1; waiting >= 0; waiting--) {
		for (const struct gw_service_peer *peer = service->peers.first; peer && count < max;
		     peer = peer->next) {
			/* a call that ends between the two turns leaves its client out or lists it twice */
			take_state(peer, now, &out[count]);
			count += (out[count].calls_open > 0) == waiting;
		}
	}
	pthread_mutex_unlock(&service->peers.lock);
	return count;
}
