/* A thread that works for an operation which may be cancelled: so are the calls that it makes, without being told. */
#ifndef GW_CLIENT_ENGINE_CANCEL_SCOPE_H
#define GW_CLIENT_ENGINE_CANCEL_SCOPE_H

#include <pthread.h>

#include "client/state/job.h"

struct gw_cancel_scope {
	pthread_mutex_t lock;
	struct gw_job *waited_for; /* of the call that is open, or NULL; with the lock */
	_Atomic uint32_t stop;     /* futex: 1: cancelled */
};

/* From here on this thread works for it, to its end. */
void gw_cancel_scope_enter(struct gw_cancel_scope *scope);
/* Cancels the call that its thread waits for; the next ones end at once. Any thread. */
void gw_cancel_scope_cancel(struct gw_cancel_scope *scope);

/* gw_job_wait without a limit; in a scope that is cancelled the job is. */
void gw_cancel_scope_wait(struct gw_job *job);
/* Sleeps until a time, or until this thread's scope is cancelled: then, and if it was before, GW_CANCELLED.
 * deadline_ns 0: asks only. */
gw_status gw_cancel_scope_pause(uint64_t deadline_ns);

#endif
