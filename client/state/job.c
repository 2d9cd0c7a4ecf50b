/* The clock of a job, and its end: see job.h. */
#include "client/state/job.h"

#include <assert.h>
#include <string.h>

#include "client/state/client.h"
#include "core/system/clock.h"
#include "core/system/futex.h"

uint64_t gw_job_deadline(const struct gw_job *job, uint64_t now_ns)
{
	if (job->waits_away == 0 || job->deadline_ns == GW_NO_DEADLINE)
		return job->deadline_ns;
	return now_ns + job->left_ns;
}

void gw_job_pause(struct gw_job *job, uint64_t now_ns)
{
	if (job->waits_away++ == 0 && job->deadline_ns != GW_NO_DEADLINE)
		job->left_ns = job->deadline_ns > now_ns ? job->deadline_ns - now_ns : 0;
}

void gw_job_resume(struct gw_job *job, uint64_t now_ns)
{
	if (job->waits_away == 1)
		job->deadline_ns = gw_job_deadline(job, now_ns);
	job->waits_away--;
}

static void job_leave_engine(struct gw_job *job)
{
	struct gw_engine *engine = job->engine;
	if (job->previous)
		job->previous->next = job->next;
	else
		engine->jobs = job->next;
	if (job->next)
		job->next->previous = job->previous;
	engine->jobs_open--;
	engine->jobs_bounded -= !job->is_boundless;
	engine->jobs_ended++;
}

void gw_job_end(struct gw_job *job, gw_status status)
{
	assert(status != GW_AGAIN && status != GW_END && job->waits_away == 0);
	if (job->engine)
		job_leave_engine(job);
	job->status = status;
	if (status != GW_OK)
		memcpy(job->text, gw_last_error(), sizeof(job->text));
	/* The waiter may free the job as soon as `ended` is set. A wake on a futex that no longer exists wakes no
	 * thread. */
	if (atomic_exchange(&job->ended, GW_JOB_ENDED) == GW_JOB_AWAITED)
		gw_futex_wake(&job->ended, INT32_MAX);
}
