/* Runs an engine: a poll group, links to every server, and the thread that runs them at the moment.
 *
 *   gw_engine_submit(job) -> inbox -> job->start -> reads, requests ... events -> gw_job_end -> gw_job_wait returns
 *
 * One thread runs an engine at a time. A caller that waits for one of the engine's jobs runs the engine itself, so that
 * a single call needs no hand-over between threads. If no caller does so, the engine's own thread runs it. The running
 * thread holds `owner`. If it releases the engine while jobs are open, it wakes the engine's thread. All work of a job
 * happens in the running thread, so the code that the engine calls needs no locks.
 */
#ifndef GW_CLIENT_ENGINE_ENGINE_H
#define GW_CLIENT_ENGINE_ENGINE_H

#include "client/link/link.h"
#include "client/state/client.h"
#include "client/state/job.h"

#define GW_JOBS_MAX 16384 /* open operations of one engine, except boundless ones */

/* A call of at most this size is short. */
#define GW_SHORT_SEEDS 64u
#define GW_SHORT_ROWS  1024u

gw_status gw_engine_open(struct gw_engine *engine, struct gw_client *client, uint32_t number);
gw_status gw_engine_start_thread(struct gw_engine *engine);
/* Records which link serves which part. The servers' parts must be known, and the engine must not run. */
void gw_engine_map_parts(struct gw_engine *engine);
/* Ends the thread; closes the links and the poll group. No job may be open. */
void gw_engine_close(struct gw_engine *engine);
/* Ends the engine's thread. The caller then owns all that belongs to the engine. */
void gw_engine_stop_thread(struct gw_engine *engine);

/* The engine for a call that is not bound to one. While the client has a loader, short calls get an engine of their
 * own, whose connections carry nothing else: on the connections of loaders they would wait for the answers to all that
 * the loaders have asked before. The first short call lets that engine connect. Until it is connected with all servers,
 * and while it is not, short calls share the other engines, so that no call waits for a connection that it does not
 * need. */
struct gw_engine *gw_engine_for_call(struct gw_client *client, bool is_short);

/* Submits a job and starts its clock. The engine's thread, or a caller in gw_job_wait, runs the job. soon: the caller
 * will wait for the job at once, so no thread needs to be woken. */
void gw_engine_submit(struct gw_engine *engine, struct gw_job *job, bool soon);

/* Continues a job: calls slice->run after the engine has looked at its other work. So a long computation does not stop
 * the engine's other jobs. Call it in the engine. */
void gw_engine_continue(struct gw_engine *engine, struct gw_job_slice *slice);

/* Waits for a job to end, and runs the engine meanwhile unless another thread does. False: the deadline passed
 * first. */
bool gw_job_wait(struct gw_job *job, uint64_t deadline_ns);

/* Requests that a job ends early. The caller must still wait for the job. Any thread may call this. */
void gw_job_cancel(struct gw_job *job);

/* The link that serves a part. Only this function chooses the link. A caller that needs the same link twice keeps the
 * pointer. */
static inline struct gw_link *gw_engine_link(const struct gw_engine *engine, uint32_t part)
{
	return engine->part_links[part];
}

/* Posts an op to the link that serves a part, as gw_link_post does. */
static inline void gw_engine_post(const struct gw_engine *engine, uint32_t part, struct gw_link_op *op)
{
	gw_link_post(gw_engine_link(engine, part), op);
}

/* For opening: runs the engine once, in the thread that created it, before the engine's thread starts. */
void gw_engine_run_once(struct gw_engine *engine, uint64_t deadline_ns);

#endif
