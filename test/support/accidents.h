/* What befalls a process that uses Graphwire, done to it on purpose: by tests that are that process. */
#ifndef GW_TEST_ACCIDENTS_H
#define GW_TEST_ACCIDENTS_H

#include <graphwire/graphwire.h>

struct gw_poll_group;

/* Puts every queue pair of the group, client's and server's, into the error state, as a device does that has had
 * enough; returns how many. Called by whoever may use the group, outside of polls, or by anybody while it is a server's
 * only: their loops are held meanwhile. None without RDMA. */
uint32_t gw_accident_break_group(struct gw_poll_group *group);

/* The same for all of a client's, each thread's by that thread; *broken counts them. */
gw_status gw_accident_break(struct gw_client *client, uint64_t *broken);

/* Forks. The child writes over its copy of the batch, where reads land; finds its parent's client refused, as
 * graphwire.h promises; opens one of its own, and gathers a row. GW_INVALID: it did not, or it did not end within 20 s. */
gw_status gw_accident_fork(struct gw_client *client, const struct gw_client_options *options,
			   const struct gw_sample_spec *spec, const struct gw_minibatch *batch);

#endif
