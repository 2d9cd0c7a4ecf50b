/* Events of a link in the trace: see link_trace.h. A read or request names the batch and the hop that it belongs to, as
 * its job names them (struct gw_job). */
#include "client/link/link_trace.h"

#include "client/state/client.h"
#include "transport/scheme.h"

#define OP_NUMBERS                                                                                                     \
	{                                                                                                              \
		"part", "hop", "batch", "epoch", "step", "bytes"                                                       \
	}

static const struct gw_trace_form op_forms[] = {
	[GW_AIM_CALL] = {"part #: call", "request", {"part", NULL, NULL, NULL, NULL, "bytes"}, "transport"},
	[GW_AIM_EDGES] = {"part #: edges", "request", {"part", NULL, "batch", "epoch", "step", "bytes"}, "transport"},
	[GW_AIM_HOP] = {"part #: hop #", "request", OP_NUMBERS, "transport"},
	[GW_AIM_ROWS] = {"part #: rows", "request", {"part", NULL, "batch", "epoch", "step", "bytes"}, "transport"},
};

static const char *link_transport(const struct gw_link *link)
{
	return link->endpoint ? link->endpoint->transport->scheme->name : NULL;
}

static struct gw_trace_event op_event(const struct gw_link_op *op, enum gw_trace_kind kind, uint64_t id, uint64_t bytes)
{
	const struct gw_job *job = op->job;
	return (struct gw_trace_event){.kind = kind,
				       .form = &op_forms[job->aim],
				       .at_ns = gw_trace_clock(),
				       .id = id,
				       .numbers = {op->link->server->part, job->traced.hop, job->traced.batch,
						   job->traced.epoch, job->traced.step, bytes},
				       .text = link_transport(op->link)};
}

uint64_t gw_link_trace_op(const struct gw_link_op *op)
{
	const struct gw_trace_event event = op_event(op, GW_TRACE_BEGIN, gw_trace_id(), gw_link_op_bytes(op));
	return gw_trace_put(&event) ? event.id : 0;
}

uint64_t gw_link_trace_op_end(const struct gw_link_op *op, const struct gw_completion *completion)
{
	uint64_t bytes =
		gw_link_op_bytes(op) + (completion && op->form == GW_LINK_REQUEST ? completion->reply_bytes : 0);
	const struct gw_trace_event event = op_event(op, GW_TRACE_END, op->traced, bytes);
	gw_trace_put(&event);
	return event.at_ns;
}

void gw_link_trace_landed(const struct gw_link *link, uint64_t began)
{
	static const struct gw_trace_form form = {"part #: landing", "batch", {"part"}, NULL};
	gw_trace_span_end(&form, began, link->server->part, 0);
}

/* The part of a server is known once it is connected. */
static struct gw_trace_event link_event(const struct gw_link *link, enum gw_trace_kind kind,
					const struct gw_trace_form *form, uint64_t id)
{
	return (struct gw_trace_event){.kind = kind,
				       .form = form,
				       .at_ns = gw_trace_clock(),
				       .id = id,
				       .numbers = {(uint64_t)(link->server - link->engine->client->servers),
						   link->engine->number, link->server->part},
				       .text = link_transport(link)};
}

static const struct gw_trace_form connect_begins = {"server #: connect", "link", {"server", "engine"}, NULL};

uint64_t gw_link_trace_connect(const struct gw_link *link)
{
	const struct gw_trace_event event = link_event(link, GW_TRACE_BEGIN, &connect_begins, gw_trace_id());
	return gw_trace_put(&event) ? event.id : 0;
}

void gw_link_trace_connected(struct gw_link *link, bool open)
{
	static const struct gw_trace_form opened = {
		"server #: connect", "link", {"server", "engine", "part"}, "transport"};
	const struct gw_trace_event event =
		link_event(link, GW_TRACE_END, open ? &opened : &connect_begins, link->traced);
	gw_trace_put(&event);
	link->traced = 0;
}

void gw_link_trace_lost(const struct gw_link *link)
{
	static const struct gw_trace_form lost = {"server #: lost", "link", {"server", "engine", "part"}, "transport"};
	const struct gw_trace_event event = link_event(link, GW_TRACE_POINT, &lost, 0);
	gw_trace_put(&event);
}
