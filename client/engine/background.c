/* Threads that do the work of a ticket.
 *
 *   gw_background_start -> thread: work -> calls, each a job of an engine -> gw_job_end -> gw_wait: joins, frees
 *   gw_cancel -> the scope: cancels the call that the thread waits for; later calls end at once
 */
#include "client/engine/background.h"

#include "core/system/thread.h"

static void *background_run(void *context)
{
	struct gw_background *background = context;
	gw_cancel_scope_enter(&background->scope);
	gw_job_end(&background->ticket.job, background->work(background));
	return NULL;
}

static void background_cancel(struct gw_job *job)
{
	gw_cancel_scope_cancel(&((struct gw_background *)job)->scope);
}

static void background_finish(struct gw_ticket *ticket, gw_status status)
{
	(void)status;
	struct gw_background *background = (struct gw_background *)ticket;
	pthread_join(background->thread, NULL);
	pthread_mutex_destroy(&background->scope.lock);
	background->free(background);
}

gw_status gw_background_start(struct gw_background *background, struct gw_client *client)
{
	background->ticket.client = client;
	background->ticket.finish = background_finish;
	background->ticket.job.cancel = background_cancel;
	pthread_mutex_init(&background->scope.lock, NULL);
	int error = gw_thread_start(&background->thread, background_run, background);
	if (!error)
		return GW_OK;
	pthread_mutex_destroy(&background->scope.lock);
	return gw_thread_failed(error, "cannot start a thread for an operation in the background");
}
