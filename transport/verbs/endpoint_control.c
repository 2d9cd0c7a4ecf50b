/* An endpoint's connection over TCP: whether an answer is awaited there, and its end. */
#include "transport/verbs/endpoint_private.h"

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
