/* Jobs: what an engine does, as the steps of an operation see it.
 *
 *   start -> reads, requests ... events -> gw_job_end
 *
 * All of it happens in the thread that runs the engine, or, without an engine, in the job's own. How a job is handed
 * over and waited for is in engine.h.
 */
#ifndef GW_CLIENT_STATE_JOB_H
#define GW_CLIENT_STATE_JOB_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/errors/status.h"
#include "transport/transport.h"

struct gw_engine;

/* What a completion's cookie points to. */
struct gw_event {
	void (*fire)(struct gw_event *event, const struct gw_completion *completion);
};

/* A wake is a system call, a fifth of the time of a row out of mapped memory: it is made for those alone who sleep. */
enum gw_job_state { GW_JOB_OPEN, GW_JOB_AWAITED, GW_JOB_ENDED };

/* One operation: gather, sample. The caller's memory until it has ended.
 *
 * It has one deadline, however many reads it takes. While a server that it waits for is away the deadline stands still:
 * the reconnect budget runs instead (link.h). */
struct gw_job {
	void (*start)(struct gw_job *job);  /* runs in the engine; ends, or waits for events */
	void (*cancel)(struct gw_job *job); /* runs in the engine, once, only while the job waits: makes it end soon */
	/* NULL: a thread of its own works on it (background.h), ends it, and is told by whoever cancels. */
	struct gw_engine *engine;
	bool is_boundless; /* as many as there are may be open: it waits for its turn, and takes nothing meanwhile */
	/* The engine's: */
	struct gw_job *next_in_inbox;
	struct gw_job *next, *previous; /* jobs that wait for events */
	_Atomic uint32_t ended;         /* futex: enum gw_job_state */
	atomic_bool cancel_wanted;
	bool cancel_begun;
	uint64_t deadline_ns; /* GW_NO_DEADLINE: none */
	uint64_t left_ns;     /* of it, from when its first server went away */
	uint32_t waits_away;  /* its reads that wait for a server that is away */
	gw_status status;
	char text[GW_ERROR_TEXT_MAX];
};

/* Ends a job: from start, cancel or an event, in the engine. The error text of this thread becomes the job's. status is
 * neither GW_AGAIN nor GW_END: those are for who waits for a job. The job may be gone when this returns. */
void gw_job_end(struct gw_job *job, gw_status status);

/* The time by which a read of the job must be done, if its server is there. Both in the engine. */
uint64_t gw_job_deadline(const struct gw_job *job, uint64_t now_ns);
/* One read more, or one less, of the job waits for a server that is away. */
void gw_job_pause(struct gw_job *job, uint64_t now_ns);
void gw_job_resume(struct gw_job *job, uint64_t now_ns);

#endif
