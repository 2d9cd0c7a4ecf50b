/* A bed over RDMA with one client, from the inside. To be included behind cmocka.h. */
#ifndef GW_TEST_VERBS_ONE_H
#define GW_TEST_VERBS_ONE_H

#include "core/system/clock.h"
#include "test/support/transport_bed.h"
#include "transport/verbs/endpoint_private.h"
#include "transport/verbs/listener_private.h"

static inline struct verbs_endpoint *verbs_inside(struct one *one)
{
	return (struct verbs_endpoint *)one->endpoint;
}

/* Waits for the loss of the endpoint. */
static inline void verbs_wait_for_loss(struct one *one)
{
	for (int i = 0; i < 2000 && one->endpoint->state != GW_ENDPOINT_LOST; i++)
		gw_one_nothing_more(one, 2);
	assert_int_equal(one->endpoint->state, GW_ENDPOINT_LOST);
}

/* Polls until the port is known to be down, or up again. */
static inline void verbs_wait_for_gate(struct one *one, const struct verbs_port *port, bool down)
{
	for (int i = 0; i < 10000 && down == !atomic_load(&port->down_ns); i++)
		gw_one_nothing_more(one, 2);
	assert_true(down == !!atomic_load(&port->down_ns));
}

static inline void verbs_connect_again(struct one *one)
{
	struct gw_connect_options connect = gw_bed_options(&one->bed);
	gw_endpoint_close(one->endpoint);
	assert_int_equal(gw_bed_connect(one->group, &connect, &one->endpoint), GW_OK);
	one->region = one->endpoint->peer.regions[0];
	gw_one_read_works(one);
}

/* The row of gw_beds. */
static inline const struct bed_kind *verbs_kind(void)
{
	const struct bed_kind *kind = gw_beds;
	while (strcmp(kind->name, "verbs") != 0)
		kind++;
	return kind;
}

#endif
