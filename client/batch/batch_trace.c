/* Events of a mini-batch in the trace: see batch_trace.h. */
#include "client/batch/batch_trace.h"

static const struct gw_trace_form batch_form = {"batch", "batch", {"batch", "epoch", "step"}, "end"};
static const struct gw_trace_form batch_flow = {"hand over", "batch", {"batch"}, NULL};

static const struct gw_trace_form batch_phases[] = {
	[GW_BATCH_QUEUED] = {"queued", "batch", {NULL}, NULL}, [GW_BATCH_EDGES] = {"edges", "batch", {NULL}, NULL},
	[GW_BATCH_SAMPLING] = {"hops", "batch", {NULL}, NULL}, [GW_BATCH_HOP] = {"hop #", "batch", {"hop"}, NULL},
	[GW_BATCH_ROWS] = {"rows", "batch", {NULL}, NULL},     [GW_BATCH_READY] = {"ready", "batch", {NULL}, NULL},
};

const struct gw_trace_form gw_batch_spans[] = {
	[GW_SPAN_START] = {"start", "batch", {NULL}, NULL},
	[GW_SPAN_SEEDS] = {"seeds", "batch", {NULL}, NULL},
	[GW_SPAN_SAMPLE] = {"sample", "batch", {NULL}, NULL},
	[GW_SPAN_ASK] = {"hop #: ask", "batch", {"hop"}, NULL},
	[GW_SPAN_BLOCK] = {"hop #: block", "batch", {"hop"}, NULL},
	[GW_SPAN_FETCH] = {"rows: ask", "batch", {NULL}, NULL},
	[GW_SPAN_WAIT] = {"wait", "caller", {"epoch", "step"}, NULL},
};

static const enum gw_job_aim phase_aims[] = {
	[GW_BATCH_EDGES] = GW_AIM_EDGES, [GW_BATCH_HOP] = GW_AIM_HOP, [GW_BATCH_ROWS] = GW_AIM_ROWS};

static struct gw_trace_event batch_event(const struct gw_batch_trace *trace, const struct gw_job *job,
					 enum gw_trace_kind kind)
{
	return (struct gw_trace_event){.kind = kind,
				       .form = &batch_form,
				       .at_ns = gw_trace_clock(),
				       .id = trace->id,
				       .numbers = {trace->id, job->traced.epoch, job->traced.step}};
}

static void batch_trace_flow(const struct gw_batch_trace *trace, const struct gw_job *job, enum gw_trace_kind kind)
{
	struct gw_trace_event event = batch_event(trace, job, kind);
	event.form = &batch_flow;
	gw_trace_put(&event);
}

void gw_batch_trace_begin(struct gw_batch_trace *trace, struct gw_job *job, uint64_t epoch, uint64_t step)
{
	trace->id = job->traced.batch = gw_trace_id();
	job->traced.epoch = epoch;
	job->traced.step = step;
	const struct gw_trace_event event = batch_event(trace, job, GW_TRACE_BEGIN);
	trace->phase = GW_BATCH_QUEUED;
	trace->began_ns = event.at_ns + 1;
	if (!gw_trace_put(&event))
		trace->id = 0;
}

/* The next phase begins 1 ns later: events of one time, from several threads, have no order in the file. */
static void batch_trace_end_phase(struct gw_batch_trace *trace, const struct gw_job *job)
{
	struct gw_trace_event event = batch_event(trace, job, GW_TRACE_PHASE);
	event.form = &batch_phases[trace->phase];
	event.for_ns = event.at_ns > trace->began_ns ? event.at_ns - trace->began_ns : 0;
	event.at_ns = trace->began_ns;
	event.numbers[0] = job->traced.hop;
	gw_trace_put(&event);
	trace->began_ns = event.at_ns + event.for_ns + 1;
}

void gw_batch_trace_phase(struct gw_batch_trace *trace, struct gw_job *job, enum gw_batch_phase next, uint32_t hop)
{
	batch_trace_end_phase(trace, job);
	trace->phase = next;
	job->traced.hop = hop;
	if (next == GW_BATCH_READY)
		batch_trace_flow(trace, job, GW_TRACE_FLOW_OUT);
	else
		job->aim = phase_aims[next];
}

void gw_batch_trace_end(struct gw_batch_trace *trace, const struct gw_job *job, bool handed_over)
{
	batch_trace_end_phase(trace, job);
	if (handed_over)
		batch_trace_flow(trace, job, GW_TRACE_FLOW_IN);
	struct gw_trace_event event = batch_event(trace, job, GW_TRACE_END);
	event.at_ns = event.at_ns > trace->began_ns ? event.at_ns : trace->began_ns;
	event.text = handed_over ? "handed over" : "dropped";
	gw_trace_put(&event);
	trace->id = 0;
}
