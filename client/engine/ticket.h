/* Tickets: jobs as callers hold them. Each kind of operation embeds one and says how it is ended and freed. */
#ifndef GW_CLIENT_ENGINE_TICKET_H
#define GW_CLIENT_ENGINE_TICKET_H

#include "client/state/client.h"
#include "client/state/job.h"

struct gw_ticket {
	struct gw_job job;
	struct gw_client *client;
	/* Called once by the waiting thread after the job has ended: hands results over and frees the operation. */
	void (*finish)(struct gw_ticket *ticket, gw_status status);
};

/* Waits for an operation that was submitted with soon = true, then finishes it; returns its status, error text set. */
gw_status gw_ticket_finish(struct gw_ticket *ticket);

#endif
