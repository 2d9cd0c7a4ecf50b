/* Work of an engine that another thread continues: what a job waits for happens in another engine.
 *
 *   engine A: the job sets `run`, and waits -> engine B, or any thread: gw_parked_wake -> engine A: run
 */
#ifndef GW_CLIENT_ENGINE_PARKED_H
#define GW_CLIENT_ENGINE_PARKED_H

#include "client/state/job.h"

/* The memory belongs to what waits, which keeps it until `run` is called. */
struct gw_parked {
	struct gw_job job; /* first; private */
	struct gw_engine *engine;
	void (*run)(struct gw_parked *parked);
};

/* Lets the engine call parked->run once. Any thread may call it; the engine must have an open job. It must not be
 * called again before `run` is called. */
void gw_parked_wake(struct gw_parked *parked);

#endif
