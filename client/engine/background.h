/* Blocking calls in the background: a ticket whose job runs in a thread of its own instead of an engine. */
#ifndef GW_CLIENT_ENGINE_BACKGROUND_H
#define GW_CLIENT_ENGINE_BACKGROUND_H

#include <pthread.h>

#include "client/engine/cancel_scope.h"
#include "client/engine/ticket.h"

struct gw_background {
	struct gw_ticket ticket; /* first: the job */
	/* The thread's work, made of blocking calls. It must not return GW_AGAIN or GW_END. */
	gw_status (*work)(struct gw_background *background);
	void (*free)(struct gw_background *background); /* called once the work has ended */
	pthread_t thread;
	struct gw_cancel_scope scope;
};

/* Starts a thread for the work. The caller sets work and free, and zeroes the other fields of `background`. Afterwards
 * use gw_wait and gw_cancel on the ticket. Fails with GW_LIMIT if no thread can be started. */
gw_status gw_background_start(struct gw_background *background, struct gw_client *client);

#endif
