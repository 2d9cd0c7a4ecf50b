/* What the trace shows of a mini-batch: a line from its submission to its hand-over, with its phases, and the spans of
 * the threads that worked on it.
 *
 *   batch  |queued|edges|hop 0|hop 1|rows|ready|          one line; the requests in flight have lines of their own
 *
 * If trace.id is 0 the trace is off, and the functions below, except the spans, are not called.
 */
#ifndef GW_CLIENT_BATCH_BATCH_TRACE_H
#define GW_CLIENT_BATCH_BATCH_TRACE_H

#include "client/state/job.h"
#include "core/system/trace.h"

enum gw_batch_phase {
	GW_BATCH_QUEUED,
	GW_BATCH_EDGES,
	GW_BATCH_SAMPLING, /* all hops, from memory */
	GW_BATCH_HOP,
	GW_BATCH_ROWS,
	GW_BATCH_READY, /* the batch waits for its caller */
};

struct gw_batch_trace {
	uint64_t id, began_ns; /* of the phase */
	enum gw_batch_phase phase;
};

/* The batch of a job is submitted, with its place in the loader's order. */
void gw_batch_trace_begin(struct gw_batch_trace *trace, struct gw_job *job, uint64_t epoch, uint64_t step)
	__attribute__((cold));
/* Ends the phase, and begins the next one. hop: the number of the next phase, if that is a hop. */
void gw_batch_trace_phase(struct gw_batch_trace *trace, struct gw_job *job, enum gw_batch_phase next, uint32_t hop)
	__attribute__((cold));
/* The caller gets the batch; or the batch is released before that. */
void gw_batch_trace_end(struct gw_batch_trace *trace, const struct gw_job *job, bool handed_over) __attribute__((cold));

enum gw_batch_span {
	GW_SPAN_START,
	GW_SPAN_SEEDS,
	GW_SPAN_SAMPLE,
	GW_SPAN_ASK,
	GW_SPAN_BLOCK,
	GW_SPAN_FETCH,
	GW_SPAN_WAIT
};

/* Spans are the work on a batch in a thread, and the wait of a caller. first: the hop, or the epoch; second: the step.
 */
extern const struct gw_trace_form gw_batch_spans[];

#endif
