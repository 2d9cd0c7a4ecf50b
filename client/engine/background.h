/* Calls that block, in the background: a ticket whose job is no engine's, but a thread's of its own. */
#ifndef GW_CLIENT_ENGINE_BACKGROUND_H
#define GW_CLIENT_ENGINE_BACKGROUND_H

#include <pthread.h>

#include "client/engine/cancel_scope.h"
#include "client/engine/ticket.h"

struct gw_background {
	struct gw_ticket ticket; /* first: the job */
	/* What the thread does, by calls that block; neither GW_AGAIN nor GW_END. */
	gw_status (*work)(struct gw_background *background);
	void (*free)(struct gw_background *background); /* called once it has ended */
	pthread_t thread;
	struct gw_cancel_scope scope;
};

/* Starts a thread for it. background: zeroed but for work and free, which follow gw_wait and gw_cancel. GW_LIMIT. */
gw_status gw_background_start(struct gw_background *background, struct gw_client *client);

#endif
