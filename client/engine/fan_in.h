/* One step of a job that consists of several pieces under way at once: it ends when all have ended, and the first error
 * is its error, which cancels the rest.
 *
 *   begin -> add, for each piece ... -> end_one, for each as it ends, and one for begin -> done, once
 *
 * All of it happens in the thread that runs the engine. A piece may end while it is being started, and while it is
 * being cancelled.
 */
#ifndef GW_CLIENT_ENGINE_FAN_IN_H
#define GW_CLIENT_ENGINE_FAN_IN_H

#include <string.h>

#include "client/state/job.h"

struct gw_fan_in {
	struct gw_job *job;
	/* Makes the pieces that are under way end soon. Called once at most. */
	void (*cancel)(struct gw_fan_in *fan_in);
	/* All have ended; the error text is set for a failure. */
	void (*done)(struct gw_fan_in *fan_in, gw_status status);
	/* Its own: */
	uint32_t open;
	gw_status status; /* the first failure: nothing more need be started */
	char text[GW_ERROR_TEXT_MAX];
};

/* Until end_one is called once more than add was, it has not ended. */
static inline void gw_fan_in_begin(struct gw_fan_in *fan_in, struct gw_job *job,
				   void (*cancel)(struct gw_fan_in *fan_in),
				   void (*done)(struct gw_fan_in *fan_in, gw_status status))
{
	fan_in->job = job;
	fan_in->cancel = cancel;
	fan_in->done = done;
	fan_in->open = 1;
	fan_in->status = GW_OK;
}

static inline void gw_fan_in_add(struct gw_fan_in *fan_in)
{
	fan_in->open++;
}

static inline void gw_fan_in_leave(struct gw_fan_in *fan_in)
{
	if (--fan_in->open > 0)
		return;
	if (fan_in->status != GW_OK)
		gw_fail_text(fan_in->status, fan_in->text);
	fan_in->done(fan_in, fan_in->status);
}

/* The error text of this thread is the step's, unless it has one already. */
static inline void gw_fan_in_fail(struct gw_fan_in *fan_in, gw_status status)
{
	if (fan_in->status != GW_OK)
		return;
	/* First of all: a piece that ends at once finds that there is nothing more to cancel. */
	fan_in->status = status;
	memcpy(fan_in->text, gw_last_error(), sizeof(fan_in->text));
	fan_in->open++; /* until all are told */
	fan_in->cancel(fan_in);
	gw_fan_in_leave(fan_in);
}

static inline void gw_fan_in_end_one(struct gw_fan_in *fan_in, gw_status status)
{
	if (status != GW_OK)
		gw_fan_in_fail(fan_in, status);
	gw_fan_in_leave(fan_in);
}

/* Makes it end soon; done is still called. */
static inline void gw_fan_in_cancel(struct gw_fan_in *fan_in)
{
	gw_fan_in_fail(fan_in, gw_fail(GW_CANCELLED, "cancelled"));
}

#endif
