/* Single mini-batches: gw_sample and its forms.
 *
 *   arguments -> check -> a batch of an engine -> submitted -> the ticket ends: the caller has the view
 */
#ifndef GW_CLIENT_BATCH_SINGLE_BATCH_H
#define GW_CLIENT_BATCH_SINGLE_BATCH_H

#include "client/batch/ahead.h"

/* The arguments of a single mini-batch. */
struct gw_single_batch {
	const struct gw_sample_spec *spec;
	uint64_t seed, stream;
	const struct gw_seeds *lists;
	uint32_t list_count;
	bool typed;             /* the lists name the types; else the spec does */
	struct gw_ahead *ahead; /* whose windows the batch uses, of which it takes a share; or NULL */
	uint64_t number;        /* in these windows */
};

/* Makes the batch of a call, a copy of its arguments, which is not submitted. The caller sets ticket.finish. */
gw_status gw_single_batch_make(struct gw_engine *engine, const struct gw_single_batch *call, struct gw_batch **out);

/* Submits the batch of a call. soon: the caller waits for it at once. */
gw_status gw_single_batch_start(struct gw_client *client, const struct gw_single_batch *call, bool soon,
				struct gw_minibatch **out, struct gw_ticket **ticket);

#endif
