/* Cancels the work of a thread: cancelling the thread's scope cancels each call that the thread makes. The calls need
 * no parameter for this. */
#ifndef GW_CLIENT_ENGINE_CANCEL_SCOPE_H
#define GW_CLIENT_ENGINE_CANCEL_SCOPE_H

#include <pthread.h>

#include "client/state/job.h"

struct gw_cancel_scope {
	pthread_mutex_t lock;
	struct gw_job *waited_for; /* the job of the open call, or NULL; protected by the lock */
	_Atomic uint32_t stop;     /* futex; 1: cancelled */
};

/* The calling thread works for this scope until the thread ends. */
void gw_cancel_scope_enter(struct gw_cancel_scope *scope);
/* Cancels the call that the scope's thread waits for; its later calls end at once. Any thread may call this. */
void gw_cancel_scope_cancel(struct gw_cancel_scope *scope);

/* Waits for the job without a deadline (gw_job_wait). If the thread's scope is cancelled, the job is cancelled too. */
void gw_cancel_scope_wait(struct gw_job *job);
/* Sleeps until the deadline, or until this thread's scope is cancelled. Returns GW_CANCELLED if the scope is cancelled,
 * even if that happened before this call. deadline_ns 0: only checks. */
gw_status gw_cancel_scope_pause(uint64_t deadline_ns);

#endif
