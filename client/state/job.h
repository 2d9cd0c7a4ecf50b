/* Jobs: the work of an engine, as the steps of an operation see it.
 *
 *   start -> reads, requests ... events -> gw_job_end
 *
 * The thread that runs the engine executes all steps. A job without an engine has a thread of its own. engine.h
 * describes how a job is submitted and waited for.
 */
#ifndef GW_CLIENT_STATE_JOB_H
#define GW_CLIENT_STATE_JOB_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/errors/status.h"
#include "transport/transport.h"

struct gw_engine;

/* The cookie of a completion points to this structure. */
struct gw_event {
	void (*fire)(struct gw_event *event, const struct gw_completion *completion);
};

/* What the requests of a job are for, as the trace shows them: client/link/link_trace.h. */
enum gw_job_aim { GW_AIM_CALL, GW_AIM_EDGES, GW_AIM_HOP, GW_AIM_ROWS };

/* A slice of a job: see gw_engine_continue. The memory belongs to the job. */
struct gw_job_slice {
	struct gw_job_slice *next;
	void (*run)(struct gw_job_slice *slice);
};

/* A wake is a system call, which takes a fifth of the time of reading one row from mapped memory. A job therefore wakes
 * its waiter only if the waiter sleeps. */
enum gw_job_state { GW_JOB_OPEN, GW_JOB_AWAITED, GW_JOB_ENDED };

/* One operation: a gather, a sample. The caller owns the memory, and keeps it until the job has ended.
 *
 * A job has one deadline for all of its reads. While a server that the job waits for is away, the deadline is paused
 * and the reconnect budget runs instead (link.h). */
struct gw_job {
	void (*start)(struct gw_job *job); /* runs in the engine; ends the job, or waits for events */
	/* runs in the engine, at most once, only while the job waits; makes the job end soon */
	void (*cancel)(struct gw_job *job);
	/* NULL: a separate thread works on the job and ends it (background.h); the canceller notifies that thread. */
	struct gw_engine *engine;
	/* does not count towards GW_JOBS_MAX: the job waits in a queue of its own, and uses only memory meanwhile */
	bool is_boundless;
	/* Fields of the engine: */
	struct gw_job *next_in_inbox;
	struct gw_job *next, *previous; /* jobs that wait for events */
	_Atomic uint32_t ended;         /* futex: enum gw_job_state */
	atomic_bool cancel_wanted;
	bool cancel_begun;
	uint64_t deadline_ns; /* or GW_NO_DEADLINE */
	uint64_t left_ns;     /* time left when the first of its servers went away */
	uint32_t waits_away;  /* number of its reads that wait for a server that is away */
	enum gw_job_aim aim;  /* GW_AIM_CALL, until the job sets it */
	struct {
		uint64_t batch, epoch, step, hop;
	} traced; /* of other aims, set while the trace is on */
	gw_status status;
	char text[GW_ERROR_TEXT_MAX];
};

/* Ends a job. Call it in the engine, from start, from cancel or from an event. The thread's error text becomes the
 * job's. status must not be GW_AGAIN or GW_END, which gw_wait uses. The job may be freed before this returns. */
void gw_job_end(struct gw_job *job, gw_status status);

/* The time by which a read of the job must complete while its server is connected. Call it in the engine. */
uint64_t gw_job_deadline(const struct gw_job *job, uint64_t now_ns);
/* Pause: one read of the job starts to wait for a server that is away. Resume: one read no longer waits. Call both in
 * the engine. */
void gw_job_pause(struct gw_job *job, uint64_t now_ns);
void gw_job_resume(struct gw_job *job, uint64_t now_ns);

#endif
