#include "test/support/rdma.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/client.h"
#include "client/link.h"
#include "core/base/futex.h"

#ifdef GRAPHWIRE_VERBS
#include "transport/verbs/endpoint.h"

bool rdma_is_here(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	if (list)
		ibv_free_device_list(list);
	return n > 0;
}

static void break_endpoint(struct gw_endpoint *endpoint)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	if (!endpoint || endpoint->transport != &gw_transport_verbs)
		return;
	struct verbs_endpoint *inside = (struct verbs_endpoint *)endpoint;
	for (uint32_t q = 0; q < inside->queue_count; q++)
		assert_int_equal(ibv_modify_qp(inside->lines[q].queue->id->qp, &error, IBV_QP_STATE), 0);
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
#endif
