#include "server/figures.h"

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "core/system/clock.h"

struct figure_values {
	const char *version, *graph, *graph_id, *address, *transports, *name, *pages, *load_driver;
	uint64_t part, parts, pid, threads, bytes, connections_max, tensor_bytes, tensor_bytes_max;
	double uptime_s, load_s;
	struct gw_service_counters service;
	/* the texts that no other object holds */
	char graph_id_text[17], address_text[GW_ADDRESS_MAX], transports_text[GW_SERVER_TRANSPORTS_MAX];
};

#define AT(field) offsetof(struct figure_values, field)

const size_t gw_figures_bytes = sizeof(struct figure_values);

const struct gw_figure gw_figures[] = {
	{"version", "the version of Graphwire", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(version), NULL, 0, 0},
	{"graph", "the graph's name", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(graph), "graph", -16, GW_FIGURE_IN_STAT},
	{"graph_id", "the graph's id", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(graph_id), NULL, 0, 0},
	{"part", "the part that is served", GW_FIGURE_OF_NEXT, GW_FIGURE_GAUGE, AT(part), "part", -8,
	 GW_FIGURE_IN_STAT},
	{"parts", "parts of the graph", GW_FIGURE_NUMBER, GW_FIGURE_GAUGE, AT(parts), NULL, 0, 0},
	{"address", "the address that clients connect to", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(address), NULL, 0, 0},
	{"name", "the service's name", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(name), "name", -10, GW_FIGURE_IN_STAT},
	{"transports", "the transports by which clients reach the server", GW_FIGURE_NUMBER, GW_FIGURE_TEXT,
	 AT(transports), "over", -13, GW_FIGURE_IN_BOTH},
	{"pid", "the server's process", GW_FIGURE_NUMBER, GW_FIGURE_GAUGE, AT(pid), "pid", 7, GW_FIGURE_IN_STAT},
	{"uptime_s", "time since the server began", GW_FIGURE_SECONDS, GW_FIGURE_GAUGE, AT(uptime_s), "up", 9,
	 GW_FIGURE_IN_BOTH},
	{"threads", "threads that answer clients", GW_FIGURE_NUMBER, GW_FIGURE_GAUGE, AT(threads), NULL, 0, 0},
	{"bytes", "memory of the part", GW_FIGURE_BYTES, GW_FIGURE_GAUGE, AT(bytes), "memory", 10, GW_FIGURE_IN_BOTH},
	{"pages", "the pages of that memory", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(pages), "pages", -16,
	 GW_FIGURE_IN_CLUSTER},
	{"load_driver", "what read the part's files", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(load_driver), NULL, 0, 0},
	{"load_s", "time that the part took to load", GW_FIGURE_SECONDS, GW_FIGURE_GAUGE, AT(load_s), NULL, 0, 0},
	{"connections", "clients that are connected", GW_FIGURE_NUMBER, GW_FIGURE_GAUGE, AT(service.connections_open),
	 "clients", 7, GW_FIGURE_IN_BOTH},
	{"connections_total", "clients that have connected", GW_FIGURE_COUNT, GW_FIGURE_COUNTER,
	 AT(service.connections_total), NULL, 0, 0},
	{"connections_max", "clients that may be connected", GW_FIGURE_NUMBER, GW_FIGURE_GAUGE, AT(connections_max),
	 NULL, 0, 0},
	{"refused", "clients that were refused", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(service.refused), NULL, 0, 0},
	{"unproven", "open sockets without a completed hello", GW_FIGURE_NUMBER, GW_FIGURE_GAUGE, AT(service.unproven),
	 NULL, 0, 0},
	{"dropped", "pending clients closed for newer ones, and clients that did not read replies", GW_FIGURE_COUNT,
	 GW_FIGURE_COUNTER, AT(service.dropped), NULL, 0, 0},
	{"reads", "read requests", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(service.reads), NULL, 0, 0},
	{"read_ranges", "ranges of memory read", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(service.read_ranges), "ranges",
	 9, GW_FIGURE_IN_STAT},
	{"read_bytes", "bytes sent for them", GW_FIGURE_BYTES, GW_FIGURE_COUNTER, AT(service.read_bytes), "sent", 10,
	 GW_FIGURE_IN_STAT},
	{"requests", "requests", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(service.requests), "requests", 9,
	 GW_FIGURE_IN_STAT},
	{"errors", "requests that failed", GW_FIGURE_NUMBER, GW_FIGURE_COUNTER, AT(service.errors), "errors", 7,
	 GW_FIGURE_IN_BOTH},
	{"deferred", "slices after the first of long requests", GW_FIGURE_COUNT, GW_FIGURE_COUNTER,
	 AT(service.deferred), NULL, 0, 0},
	{"reply_bytes", "memory of long replies", GW_FIGURE_BYTES, GW_FIGURE_GAUGE, AT(service.reply_bytes), NULL, 0,
	 0},
	{"tensor_bytes", "memory of tensors", GW_FIGURE_BYTES, GW_FIGURE_GAUGE, AT(tensor_bytes), NULL, 0, 0},
	{"tensor_bytes_max", "memory that tensors may take; 0: no limit", GW_FIGURE_BYTES, GW_FIGURE_GAUGE,
	 AT(tensor_bytes_max), NULL, 0, 0},
	{0},
};

/* The texts are valid as long as `out` and the server. */
static void read_figures(const struct gw_server *server, struct figure_values *out)
{
	static const char *const levels[] = {"4 KiB", "2 MiB, collapsed", "2 MiB, hugetlb"};
	const struct gw_arena *arena = gw_part_arena(server->part);
	const struct gw_load_stats *load = gw_part_load_stats(server->part);
	*out = (struct figure_values){
		.version = GRAPHWIRE_VERSION,
		.graph = server->meta->graph_name,
		.graph_id = out->graph_id_text,
		.part = server->options.part,
		.parts = server->meta->num_parts,
		.address = out->address_text,
		.transports = out->transports_text,
		.name = server->options.name ? server->options.name : "",
		.pid = (uint64_t)getpid(),
		.uptime_s = (double)(gw_monotonic_ns() - server->started_ns) / 1e9,
		.threads = server->options.threads,
		.bytes = gw_arena_bytes(arena),
		.pages = levels[gw_arena_page_level(arena)],
		.load_driver = load->driver ? load->driver : "",
		.load_s = (double)load->ns / 1e9,
		.connections_max = server->options.connections,
		.tensor_bytes = gw_tensor_table_bytes(server->tensors),
		.tensor_bytes_max = server->options.tensor_memory,
	};
	snprintf(out->graph_id_text, sizeof(out->graph_id_text), "%016llx", (unsigned long long)server->meta->graph_id);
	gw_server_address(server, out->address_text);
	gw_server_transports(server, out->transports_text);
	gw_service_counters(server->service, &out->service);
}

static json_t *value_json(const struct gw_figure *figure, const void *values)
{
	const void *at = (const char *)values + figure->offset;
	if (figure->kind == GW_FIGURE_TEXT)
		return json_string(*(const char *const *)at);
	if (figure->unit == GW_FIGURE_SECONDS)
		return json_real(*(const double *)at);
	return json_integer((json_int_t) * (const uint64_t *)at);
}

json_t *gw_figures_json(const void *values)
{
	json_t *object = json_object();
	for (const struct gw_figure *figure = gw_figures; object && figure->name; figure++) {
		if (json_object_set_new(object, figure->name, value_json(figure, values)) != 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

json_t *gw_server_figures(const struct gw_server *server)
{
	struct figure_values values;
	read_figures(server, &values);
	return gw_figures_json(&values);
}

char *gw_figure_text(const struct gw_figure *figure, const json_t *answer, char text[GW_FIGURE_TEXT_MAX])
{
	const json_t *value = json_object_get(answer, figure->name);
	double number = json_number_value(value);
	if (figure->kind == GW_FIGURE_TEXT)
		gw_text_printable(text, GW_FIGURE_TEXT_MAX, json_string_value(value));
	else if (figure->unit == GW_FIGURE_OF_NEXT)
		snprintf(text, GW_FIGURE_TEXT_MAX, "%.0f/%.0f", number,
			 json_number_value(json_object_get(answer, figure[1].name)));
	else if (figure->unit == GW_FIGURE_COUNT)
		gw_text_count(text, number);
	else if (figure->unit == GW_FIGURE_BYTES)
		gw_text_bytes(text, number);
	else if (figure->unit == GW_FIGURE_SECONDS)
		gw_text_duration(text, number);
	else
		snprintf(text, GW_FIGURE_TEXT_MAX, "%.0f", number);
	return text;
}
