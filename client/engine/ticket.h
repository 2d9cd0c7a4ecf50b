/* Tickets: jobs as callers hold them. Each kind of operation embeds a ticket and defines how the operation is finished
 * and freed. */
#ifndef GW_CLIENT_ENGINE_TICKET_H
#define GW_CLIENT_ENGINE_TICKET_H

#include "client/state/client.h"
#include "client/state/job.h"

struct gw_ticket {
	struct gw_job job;
	struct gw_client *client;
	/* The waiting thread calls this once, after the job has ended: returns the results and frees the operation. */
	void (*finish)(struct gw_ticket *ticket, gw_status status);
};

/* Waits for an operation that was submitted with soon = true, then finishes it. Returns its status and sets the error
 * text. */
gw_status gw_ticket_finish(struct gw_ticket *ticket);

#endif
