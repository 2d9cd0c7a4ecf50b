/* One step of a job, made of several pieces that run at the same time. The step ends when all pieces have ended. The
 * first error becomes the step's error and cancels the other pieces.
 *
 *   begin -> add, for each piece ... -> end_one, for each piece that ends, and once for begin -> done, once
 *
 * All calls happen in the thread that runs the engine. A piece may end while it is being started, and while it is being
 * cancelled.
 */
#ifndef GW_CLIENT_ENGINE_FAN_IN_H
#define GW_CLIENT_ENGINE_FAN_IN_H

#include <string.h>

#include "client/state/job.h"

struct gw_fan_in {
	struct gw_job *job;
	/* Makes the running pieces end soon. Called at most once. */
	void (*cancel)(struct gw_fan_in *fan_in);
	/* All pieces have ended. The error text is set on failure. */
	void (*done)(struct gw_fan_in *fan_in, gw_status status);
	/* Private: */
	uint32_t open;
	gw_status status; /* the first failure; after one, the caller need not start more pieces */
	char text[GW_ERROR_TEXT_MAX];
};

/* Begins a step. The step ends when end_one has been called once for each add, and once for begin. */
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

/* This thread's error text becomes the step's, unless the step already has one. */
static inline void gw_fan_in_fail(struct gw_fan_in *fan_in, gw_status status)
{
	if (fan_in->status != GW_OK)
		return;
	/* Set the status first: a piece that ends during the cancel must find that the step has failed. */
	fan_in->status = status;
	memcpy(fan_in->text, gw_last_error(), sizeof(fan_in->text));
	fan_in->open++; /* until all pieces are cancelled */
	fan_in->cancel(fan_in);
	gw_fan_in_leave(fan_in);
}

static inline void gw_fan_in_end_one(struct gw_fan_in *fan_in, gw_status status)
{
	if (status != GW_OK)
		gw_fan_in_fail(fan_in, status);
	gw_fan_in_leave(fan_in);
}

/* Makes the step end soon; done is still called. */
static inline void gw_fan_in_cancel(struct gw_fan_in *fan_in)
{
	gw_fan_in_fail(fan_in, gw_fail(GW_CANCELLED, "cancelled"));
}

#endif
