/* Waits for operations and cancels them: see ticket.h. */
#include "client/engine/ticket.h"

#include "client/engine/cancel_scope.h"
#include "client/engine/engine.h"
#include "core/system/clock.h"
#include "core/system/trace.h"

static const struct gw_trace_form ticket_wait = {"wait", "caller", {NULL}, NULL};

static gw_status ticket_result(struct gw_ticket *ticket)
{
	gw_status status = ticket->job.status;
	if (status != GW_OK)
		gw_fail_text(status, ticket->job.text);
	ticket->finish(ticket, status);
	return status;
}

gw_status gw_ticket_finish(struct gw_ticket *ticket)
{
	uint64_t began = gw_trace_span_begin();
	gw_cancel_scope_wait(&ticket->job);
	gw_trace_span_end(&ticket_wait, began, 0, 0);
	return ticket_result(ticket);
}

gw_status gw_wait(struct gw_ticket *ticket, int64_t timeout_ms)
{
	gw_status status = gw_client_check(ticket->client);
	if (status != GW_OK)
		return status;
	uint64_t began = gw_trace_span_begin();
	bool ended = gw_job_wait(&ticket->job, gw_deadline_ns(timeout_ms));
	gw_trace_span_end(&ticket_wait, began, 0, 0);
	if (!ended)
		return gw_fail(GW_AGAIN, "not done within %lld ms: wait again, or cancel", (long long)timeout_ms);
	return ticket_result(ticket);
}

void gw_cancel(struct gw_ticket *ticket)
{
	struct gw_error_kept kept;
	if (!ticket || gw_client_is_inherited(ticket->client))
		return;
	gw_error_keep(&kept);
	gw_job_cancel(&ticket->job);
	gw_job_wait(&ticket->job, GW_NO_DEADLINE);
	/* The job may have succeeded despite the cancel: finish frees its result. */
	ticket->finish(ticket, GW_CANCELLED);
	gw_error_restore(&kept);
}
