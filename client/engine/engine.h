/* Running an engine: a poll group, links to every server, and the thread that runs them at the moment.
 *
 *   gw_engine_submit(job) -> inbox -> job->start -> reads, requests ... events -> gw_job_end -> gw_job_wait returns
 *
 * An engine is run by one thread at a time: by the caller that waits for one of its jobs, so that a lone call costs no
 * hand-over between threads, or else by the engine's own thread. Who runs it holds `owner`; who leaves it with jobs
 * open wakes the engine's thread. All of a job's work happens in the running thread: nothing below this file locks.
 */
#ifndef GW_CLIENT_ENGINE_ENGINE_H
#define GW_CLIENT_ENGINE_ENGINE_H

#include "client/link/link.h"
#include "client/state/client.h"
#include "client/state/job.h"

#define GW_JOBS_MAX 16384 /* operations of one engine at once, but for those that are boundless */

gw_status gw_engine_open(struct gw_engine *engine, struct gw_client *client, uint32_t number);
gw_status gw_engine_start_thread(struct gw_engine *engine);
/* Notes which link serves which part. The servers' parts are known, and the engine runs nothing. */
void gw_engine_map_parts(struct gw_engine *engine);
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

/* The link that serves a part. The choice is made here alone: a caller that needs the same link twice keeps it. */
static inline struct gw_link *gw_engine_link(const struct gw_engine *engine, uint32_t part)
{
	return engine->part_links[part];
}

/* Posts an op to the link that serves a part, as gw_link_post does. */
static inline void gw_engine_post(const struct gw_engine *engine, uint32_t part, struct gw_link_op *op)
{
	gw_link_post(gw_engine_link(engine, part), op);
}

/* For opening: runs the engine once, by the thread that made it, before its thread starts. */
void gw_engine_run_once(struct gw_engine *engine, uint64_t deadline_ns);

#endif
