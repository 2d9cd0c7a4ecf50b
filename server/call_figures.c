/* Operations that no client has used are left out: most servers see a few of them. */
#include "server/call_figures.h"

#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "protocol/ops.h"
#include "transport/scheme.h"

#define CLIENTS_MAX 1024 /* of an answer: those that wait come first */

struct op_times {
	struct gw_latency request, slice;
};

static const struct gw_figure call_figures[] = {
	{"requests", "requests, and reads, by operation", GW_FIGURE_COUNT, GW_FIGURE_COUNTER,
	 offsetof(struct gw_service_calls, requests), NULL, 0, 0, "graphwire_requests", NULL},
	{"errors", "requests and reads that failed", GW_FIGURE_COUNT, GW_FIGURE_COUNTER,
	 offsetof(struct gw_service_calls, errors), NULL, 0, 0, "graphwire_request_errors", NULL},
	{"received_bytes", "bytes of requests; 0 for reads", GW_FIGURE_BYTES, GW_FIGURE_COUNTER,
	 offsetof(struct gw_service_calls, received_bytes), NULL, 0, 0, "graphwire_received_bytes", NULL},
	{"sent_bytes", "bytes of replies and reads", GW_FIGURE_BYTES, GW_FIGURE_COUNTER,
	 offsetof(struct gw_service_calls, sent_bytes), NULL, 0, 0, "graphwire_sent_bytes", NULL},
	{0},
};

static const struct gw_figure time_figures[] = {
	{"request", "time from a request's arrival to its reply", GW_FIGURE_SECONDS, GW_FIGURE_HISTOGRAM,
	 offsetof(struct op_times, request), NULL, 0, 0, "graphwire_request_seconds", NULL},
	{"slice", "time that a request keeps the thread from other clients", GW_FIGURE_SECONDS, GW_FIGURE_HISTOGRAM,
	 offsetof(struct op_times, slice), NULL, 0, 0, "graphwire_slice_seconds", NULL},
	{0},
};

struct peer_values {
	const char *name, *client, *transport, *waits_for;
	uint64_t reads, read_bytes, calls;
	double waits_s;
};

#define AT(field) offsetof(struct peer_values, field)
static const struct gw_figure peer_figures[] = {
	{"name", "the client's address, or its process on this host", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(name), NULL,
	 0, 0, NULL, NULL},
	{"client", "the same for all connections of a client", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(client), NULL, 0, 0,
	 NULL, NULL},
	{"transport", "the transport of the connection", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(transport), NULL, 0, 0,
	 NULL, NULL},
	{"reads", "reads", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(reads), NULL, 0, 0, NULL, NULL},
	{"read_bytes", "bytes sent for them", GW_FIGURE_BYTES, GW_FIGURE_COUNTER, AT(read_bytes), NULL, 0, 0, NULL,
	 NULL},
	{"requests", "requests", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(calls), NULL, 0, 0, NULL, NULL},
	{"waits_for", "the operation of the request in progress", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(waits_for), NULL,
	 0, 0, NULL, NULL},
	{"waits_s", "how long that request has taken", GW_FIGURE_SECONDS, GW_FIGURE_GAUGE, AT(waits_s), NULL, 0, 0,
	 NULL, NULL},
	{0},
};
#undef AT

static const char *op_label(uint32_t op, char text[16])
{
	const char *known = op == GW_SERVICE_OP_READS ? "read" : op == GW_OPS_MAX ? "transport" : gw_op_name(op);
	if (known)
		return known;
	snprintf(text, 16, "%u", op); /* of a later version */
	return text;
}

static bool is_used(const struct gw_service_calls *calls)
{
	return calls->requests || calls->errors;
}

static bool was_run(const struct gw_latency *latency)
{
	uint64_t any = 0;
	for (uint32_t i = 0; i < GW_LATENCY_BUCKETS; i++)
		any |= latency->buckets[i];
	return any != 0;
}

/* The used ones, with their labels; NULL members in a copy that has no memory. */
struct used_calls {
	struct gw_service_totals totals;
	uint32_t call_count, time_count;
	struct {
		uint32_t op, scheme;
	} calls[GW_SERVICE_OPS * GW_SERVICE_SCHEMES];
	uint32_t times[GW_SERVICE_OPS];
};

/* NULL: no memory. */
static struct used_calls *read_calls(struct gw_service *service)
{
	struct used_calls *used = gw_calloc(1, sizeof(*used));
	if (!used)
		return NULL;
	gw_service_totals(service, &used->totals);
	for (uint32_t op = 0; op < GW_SERVICE_OPS; op++) {
		for (uint32_t scheme = 0; scheme < GW_SERVICE_SCHEMES; scheme++) {
			if (!is_used(&used->totals.calls[op][scheme]))
				continue;
			used->calls[used->call_count].op = op;
			used->calls[used->call_count++].scheme = scheme;
		}
		if (was_run(&used->totals.slices[op]))
			used->times[used->time_count++] = op;
	}
	return used;
}

static struct op_times times_of(const struct used_calls *used, uint32_t i)
{
	return (struct op_times){used->totals.requests[used->times[i]], used->totals.slices[used->times[i]]};
}

/* --- JSON. --- */

static void add(json_t *list, json_t *object, const char *name, const char *value)
{
	if (object)
		json_object_set_new(object, name, json_string(value));
	json_array_append_new(list, object);
}

static json_t *calls_json(const struct used_calls *used)
{
	json_t *list = json_array();
	char text[16];
	for (uint32_t i = 0; list && i < used->call_count; i++) {
		const uint32_t op = used->calls[i].op, scheme = used->calls[i].scheme;
		json_t *one = gw_figures_json(call_figures, &used->totals.calls[op][scheme]);
		if (one)
			json_object_set_new(one, "transport", json_string(gw_schemes[scheme].name));
		add(list, one, "op", op_label(op, text));
	}
	return list;
}

static json_t *times_json(const struct used_calls *used)
{
	json_t *list = json_array();
	char text[16];
	for (uint32_t i = 0; list && i < used->time_count; i++) {
		const struct op_times times = times_of(used, i);
		add(list, gw_figures_json(time_figures, &times), "op", op_label(used->times[i], text));
	}
	return list;
}

static json_t *clients_json(struct gw_service *service)
{
	struct gw_service_peer_state *peers = gw_calloc(CLIENTS_MAX, sizeof(*peers));
	const uint32_t count = peers ? gw_service_peers(service, peers, CLIENTS_MAX) : 0;
	json_t *list = json_array();
	for (uint32_t i = 0; list && i < count; i++) {
		/* the last byte differs between the connections of a client (gw_link_connect_options) */
		char text[16], client[2 * (sizeof(peers[i].client_uuid) - 1) + 1];
		for (size_t b = 0; b + 1 < sizeof(peers[i].client_uuid); b++)
			snprintf(client + 2 * b, 3, "%02x", peers[i].client_uuid[b]);
		const struct peer_values values = {
			.name = peers[i].name,
			.client = client,
			.transport = gw_schemes[peers[i].scheme].name,
			.waits_for = peers[i].calls_open ? op_label(peers[i].op, text) : "",
			.reads = peers[i].reads,
			.read_bytes = peers[i].read_bytes,
			.calls = peers[i].calls,
			.waits_s = (double)peers[i].call_ns / 1e9,
		};
		json_array_append_new(list, gw_figures_json(peer_figures, &values));
	}
	gw_free(peers);
	return list;
}

void gw_call_figures_add(json_t *answer, struct gw_service *service, bool clients)
{
	struct used_calls *used = answer ? read_calls(service) : NULL;
	if (!used)
		return;
	json_object_set_new(answer, "calls", calls_json(used));
	json_object_set_new(answer, "times", times_json(used));
	if (clients)
		json_object_set_new(answer, "clients", clients_json(service));
	gw_free(used);
}

/* --- Metrics. --- */

static void expose_calls(const struct used_calls *used, struct gw_exposition *out)
{
	struct gw_service_calls values[GW_SERVICE_OPS * GW_SERVICE_SCHEMES];
	char labels[GW_SERVICE_OPS * GW_SERVICE_SCHEMES][64], text[16];
	const char *at[GW_SERVICE_OPS * GW_SERVICE_SCHEMES];
	for (uint32_t i = 0; i < used->call_count; i++) {
		const uint32_t op = used->calls[i].op, scheme = used->calls[i].scheme;
		values[i] = used->totals.calls[op][scheme];
		snprintf(labels[i], sizeof(labels[i]), "op=\"%s\",transport=\"%s\"", op_label(op, text),
			 gw_schemes[scheme].name);
		at[i] = labels[i];
	}
	gw_exposition_figures(out, call_figures, values, sizeof(*values), at, used->call_count);
}

static void expose_times(const struct used_calls *used, struct gw_exposition *out)
{
	struct op_times values[GW_SERVICE_OPS];
	char labels[GW_SERVICE_OPS][32], text[16];
	const char *at[GW_SERVICE_OPS];
	for (uint32_t i = 0; i < used->time_count; i++) {
		values[i] = times_of(used, i);
		snprintf(labels[i], sizeof(labels[i]), "op=\"%s\"", op_label(used->times[i], text));
		at[i] = labels[i];
	}
	gw_exposition_figures(out, time_figures, values, sizeof(*values), at, used->time_count);
}

void gw_call_figures_expose(struct gw_service *service, struct gw_exposition *out)
{
	struct used_calls *used = read_calls(service);
	if (!used) {
		out->status = GW_NO_MEMORY;
		return;
	}
	expose_calls(used, out);
	expose_times(used, out);
	gw_free(used);
}
