/* An engine: a poll group, links to every server, and the thread that runs them at the moment.
 *
 *   gw_engine_submit(job) -> inbox -> job->start -> reads, requests ... events -> gw_job_end -> gw_job_wait returns
 *
 * An engine is run by one thread at a time: by the caller that waits for one of its jobs, so that a lone call costs no
 * hand-over between threads, or else by the engine's own thread. Who runs it holds `owner`; who leaves it with jobs
 * open wakes the engine's thread. All of a job's work happens in the running thread: nothing below this file locks.
 */
#ifndef GW_CLIENT_ENGINE_H
#define GW_CLIENT_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "client/landing.h"
#include "core/base/status.h"
#include "core/base/vec.h"
#include "transport/transport.h"

struct gw_client;
struct gw_engine;
struct gw_link;
struct gw_adjacency;

/* What a completion's cookie points to. */
struct gw_event {
	void (*fire)(struct gw_event *event, const struct gw_completion *completion);
};

#define GW_JOBS_MAX 16384 /* operations of one engine at once */

/* One operation: gather, sample. The caller's memory until it has ended.
 *
 * It has one deadline, however many reads it takes. While a server that it waits for is away the deadline stands still:
 * the reconnect budget runs instead (link.h). */
struct gw_job {
	void (*start)(struct gw_job *job);  /* runs in the engine; ends, or waits for events */
	void (*cancel)(struct gw_job *job); /* runs in the engine, once, only while the job waits: makes it end soon */
	struct gw_engine *engine;
	/* The engine's: */
	struct gw_job *next_in_inbox;
	struct gw_job *next, *previous; /* jobs that wait for events */
	_Atomic uint32_t ended;         /* futex: enum job_end of engine.c */
	atomic_bool cancel_wanted;
	bool cancel_told;
	uint64_t deadline_ns; /* GW_NO_DEADLINE: none */
	uint64_t left_ns;     /* of it, from when its first server went away */
	uint32_t waits_away;  /* its reads that wait for a server that is away */
	gw_status status;
	char text[GW_ERROR_TEXT_MAX];
};

struct gw_engine {
	struct gw_client *client;
	uint32_t number;
	struct gw_poll_group *group;
	struct gw_link *links;             /* [server_count] */
	struct gw_link **part_links;       /* [num_parts], once the parts are known */
	const struct gw_adjacency **lists; /* [num_parts]: of gw_local_lists_of_all */
	struct gw_slab slab;               /* what replies land in */
	struct gw_vec buffers;             /* struct gw_buffer *: gw_buffer_alloc's, by address */
	uint32_t buffer_count;
	_Atomic(struct gw_job *) inbox; /* newest first */
	_Atomic uint32_t cancels;       /* wishes not yet told */
	struct gw_job *jobs;
	uint32_t jobs_open;
	uint64_t jobs_ended;
	_Atomic uint32_t owner;   /* 1: somebody runs it */
	atomic_bool watches;      /* it is looked after while it is idle: see WATCH_NS */
	_Atomic uint32_t wakeups; /* futex of the engine's thread */
	atomic_bool sleeps;       /* that thread does, or is about to look at wakeups and then to sleep */
	atomic_bool stop;
	bool has_thread;
	pthread_t thread;
};

gw_status gw_engine_open(struct gw_engine *engine, struct gw_client *client, uint32_t number);
gw_status gw_engine_start_thread(struct gw_engine *engine);
/* Ends the thread and closes links and poll group. No job may be open. */
void gw_engine_close(struct gw_engine *engine);
/* Ends its thread: what belongs to the engine is the caller's from now on. */
void gw_engine_stop_thread(struct gw_engine *engine);

/* Hands a job over, and starts its clock. It is run by the engine's thread, or by a caller in gw_job_wait. soon:
 * somebody is about to wait for it, so no thread needs to be woken. */
void gw_engine_submit(struct gw_engine *engine, struct gw_job *job, bool soon);

/* Waits for a job to end, running the engine meanwhile if nobody else does. False: the deadline passed first. */
bool gw_job_wait(struct gw_job *job, uint64_t deadline_ns);

/* Asks a job to end early; it still must be waited for. Any thread. */
void gw_job_cancel(struct gw_job *job);

/* Ends a job: from start, cancel or an event, in the engine. The error text of this thread becomes the job's. status is
 * neither GW_AGAIN nor GW_END: those are for who waits for a job. The job may be gone when this returns. */
void gw_job_end(struct gw_job *job, gw_status status);

/* The time by which a read of the job must be done, if its server is there. Both in the engine. */
uint64_t gw_job_deadline(const struct gw_job *job, uint64_t now_ns);
/* One read more, or one less, of the job waits for a server that is away. */
void gw_job_pause(struct gw_job *job, uint64_t now_ns);
void gw_job_resume(struct gw_job *job, uint64_t now_ns);

/* For opening: runs the engine once, by the thread that made it, before its thread starts. */
void gw_engine_turn(struct gw_engine *engine, uint64_t deadline_ns);

#endif
