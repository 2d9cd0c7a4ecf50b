/* Cancels the job that a thread waits for, and the thread's later calls: see cancel_scope.h. */
#include "client/engine/cancel_scope.h"

#include "client/engine/engine.h"
#include "core/system/clock.h"
#include "core/system/futex.h"

static _Thread_local struct gw_cancel_scope *scope_mine;

void gw_cancel_scope_enter(struct gw_cancel_scope *scope)
{
	scope_mine = scope;
}

/* The lock prevents the waiter from freeing the job during the cancel. */
void gw_cancel_scope_cancel(struct gw_cancel_scope *scope)
{
	pthread_mutex_lock(&scope->lock);
	atomic_store(&scope->stop, 1);
	gw_futex_wake(&scope->stop, INT32_MAX);
	if (scope->waited_for)
		gw_job_cancel(scope->waited_for);
	pthread_mutex_unlock(&scope->lock);
}

static void scope_note(struct gw_cancel_scope *scope, struct gw_job *job)
{
	pthread_mutex_lock(&scope->lock);
	scope->waited_for = job;
	if (job && atomic_load(&scope->stop))
		gw_job_cancel(job);
	pthread_mutex_unlock(&scope->lock);
}

void gw_cancel_scope_wait(struct gw_job *job)
{
	struct gw_cancel_scope *scope = scope_mine;
	if (scope)
		scope_note(scope, job);
	gw_job_wait(job, GW_NO_DEADLINE);
	if (scope)
		scope_note(scope, NULL);
}

gw_status gw_cancel_scope_pause(uint64_t deadline_ns)
{
	static _Atomic uint32_t never;
	_Atomic uint32_t *stop = scope_mine ? &scope_mine->stop : &never;
	while (!atomic_load(stop) && gw_now_ns() < deadline_ns)
		gw_futex_wait(stop, 0, deadline_ns);
	return atomic_load(stop) ? gw_fail(GW_CANCELLED, "cancelled") : GW_OK;
}
