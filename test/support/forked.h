/* A fork in a process that has a client open. */
#ifndef GW_TEST_FORKED_H
#define GW_TEST_FORKED_H

#include <graphwire/graphwire.h>

/* Forks. The child writes over its copy of the batch, where reads land; finds its parent's client refused, as
 * graphwire.h promises; opens one of its own, and gathers a row. GW_INVALID: it did not, or did not end within 20 s. */
gw_status gw_forked_child(struct gw_client *client, const struct gw_client_options *options,
			  const struct gw_sample_spec *spec, const struct gw_minibatch *batch);

#endif
