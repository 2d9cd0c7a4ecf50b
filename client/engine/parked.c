/* Continues work in its engine by a job that does nothing else: see parked.h. */
#include "client/engine/parked.h"

#include "client/engine/engine.h"

static void parked_start(struct gw_job *job)
{
	struct gw_parked *parked = (struct gw_parked *)job;
	gw_job_end(job, GW_OK);
	parked->run(parked);
}

static void parked_cancel(struct gw_job *job)
{
	(void)job; /* it ends as it starts */
}

void gw_parked_wake(struct gw_parked *parked)
{
	parked->job.start = parked_start;
	parked->job.cancel = parked_cancel;
	parked->job.is_boundless = true;
	gw_engine_submit(parked->engine, &parked->job, false);
}
