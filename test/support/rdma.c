#include "test/support/rdma.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/link/link.h"
#include "client/state/client.h"
#include "core/system/futex.h"

#ifdef GRAPHWIRE_VERBS
#include "transport/verbs/endpoint_private.h"
#include "transport/verbs/library.h"
#include "transport/verbs/listener_private.h"

bool rdma_is_here(void)
{
	int n = 0;
	struct ibv_device **list = gw_verbs_library() == GW_OK ? ibv_get_device_list(&n) : NULL;
	if (list)
		ibv_free_device_list(list);
	return n > 0;
}

static void break_queue(const struct verbs_qp *qp)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	assert_int_equal(ibv_modify_qp(qp->id->qp, &error, IBV_QP_STATE), 0);
}

static void break_endpoint(struct gw_endpoint *endpoint)
{
	if (!endpoint || endpoint->transport != &gw_transport_verbs)
		return;
	struct verbs_endpoint *inside = (struct verbs_endpoint *)endpoint;
	for (uint32_t q = 0; q < inside->qp_count; q++)
		break_queue(inside->conns[q].qp);
}

uint32_t rdma_break_peers(struct gw_listener *listener)
{
	uint32_t broken = 0;
	if (listener->transport != &gw_transport_verbs)
		return 0;
	struct verbs_listener *inside = (struct verbs_listener *)listener;
	for (uint32_t d = 0; d < inside->cm_listener_count; d++) {
		struct verbs_cm_listener *cm_listener = &inside->cm_listeners[d];
		gw_verbs_possess(cm_listener->loop);
		for (struct verbs_client *peer = cm_listener->clients; peer; peer = peer->next)
			for (uint32_t q = 0; q < peer->qp_count; q++)
				if (peer->conns[q].established) {
					break_queue(peer->conns[q].qp);
					broken++;
				}
		gw_verbs_release(cm_listener->loop);
	}
	return broken;
}

void rdma_break(struct gw_client *client)
{
	for (uint32_t e = 0; e < client->engine_count; e++) {
		struct gw_engine *engine = &client->engines[e];
		uint32_t free = 0;
		/* An engine is whose owner word is one's own. */
		while (!atomic_compare_exchange_weak(&engine->owner, &free, 1)) {
			gw_poll_group_wake(engine->group);
			free = 0;
		}
		for (uint32_t s = 0; s < client->server_count; s++)
			break_endpoint(engine->links[s].endpoint);
		atomic_store(&engine->owner, 0);
		atomic_fetch_add(&engine->wakeups, 1);
		gw_futex_wake(&engine->wakeups, 1);
	}
}
#else
bool rdma_is_here(void)
{
	return false;
}

void rdma_break(struct gw_client *client)
{
	(void)client;
}

uint32_t rdma_break_peers(struct gw_listener *listener)
{
	(void)listener;
	return 0;
}
#endif
