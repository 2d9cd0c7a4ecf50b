#include "server/figures.h"

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "core/graph/replicas.h"
#include "core/system/clock.h"
#include "server/call_figures.h"
#include "server/lists.h"

struct figure_values {
	const char *version, *graph, *graph_id, *address, *transports, *name, *pages, *load_driver, *metrics;
	uint64_t part, parts, pid, ready, threads, bytes, replica_rows, replica_bytes, replica_hits, replica_hit_bytes,
		held_hops, lists_bytes, connections_max, tensor_bytes, tensor_bytes_max;
	double uptime_s, load_s;
	struct gw_service_counters service;
	struct gw_tensor_totals rows;
	struct gw_disk_counts disk;
	uint64_t disk_cache;
	/* the texts that no other object holds */
	char metrics_text[GW_ADDRESS_MAX], graph_id_text[17], address_text[GW_ADDRESS_MAX],
		transports_text[GW_SERVER_TRANSPORTS_MAX];
};

#define AT(field) offsetof(struct figure_values, field)

const size_t gw_figures_bytes = sizeof(struct figure_values);

const struct gw_figure gw_figures[] = {
	{"version", "the version of Graphwire", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(version), NULL, 0, 0,
	 "graphwire_build", "version"},
	{"graph", "the graph's name", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(graph), "graph", -16, GW_FIGURE_IN_STAT,
	 "graphwire_part", "graph"},
	{"graph_id", "the graph's id", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(graph_id), NULL, 0, 0, "graphwire_part",
	 "graph_id"},
	{"part", "the part that is served", GW_FIGURE_OF_NEXT, GW_FIGURE_GAUGE, AT(part), "part", -8, GW_FIGURE_IN_STAT,
	 "graphwire_part", "part"},
	{"parts", "parts of the graph", GW_FIGURE_NUMBER, GW_FIGURE_GAUGE, AT(parts), NULL, 0, 0, "graphwire_part",
	 "parts"},
	{"address", "the address that clients connect to", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(address), NULL, 0, 0,
	 "graphwire_part", "address"},
	{"name", "the service's name", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(name), "name", -10, GW_FIGURE_IN_STAT,
	 "graphwire_part", "name"},
	{"transports", "the transports by which clients reach the server", GW_FIGURE_NUMBER, GW_FIGURE_TEXT,
	 AT(transports), "over", -13, GW_FIGURE_IN_BOTH, "graphwire_part", "transports"},
	{"pid", "the server's process", GW_FIGURE_NUMBER, GW_FIGURE_GAUGE, AT(pid), "pid", 7, GW_FIGURE_IN_STAT, NULL,
	 NULL},
	{"uptime_s", "time since the server began", GW_FIGURE_SECONDS, GW_FIGURE_GAUGE, AT(uptime_s), "up", 9,
	 GW_FIGURE_IN_BOTH, NULL, NULL},
	{"threads", "threads that answer clients", GW_FIGURE_NUMBER, GW_FIGURE_GAUGE, AT(threads), NULL, 0, 0,
	 "graphwire_threads", NULL},
	{"bytes", "memory of the part", GW_FIGURE_BYTES, GW_FIGURE_GAUGE, AT(bytes), "memory", 10, GW_FIGURE_IN_BOTH,
	 "graphwire_part_bytes", NULL},
	{"replica_rows", "rows of other parts that the part has replicas of", GW_FIGURE_COUNT, GW_FIGURE_GAUGE,
	 AT(replica_rows), NULL, 0, 0, "graphwire_replica_rows", NULL},
	{"replica_bytes", "bytes of these rows, in the memory of the part", GW_FIGURE_BYTES, GW_FIGURE_GAUGE,
	 AT(replica_bytes), "replicas", 10, GW_FIGURE_IN_STAT, "graphwire_replica_bytes", NULL},
	{"replica_hits", "rows that clients copied from these replicas, as far as they have reported them",
	 GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(replica_hits), "hits", 9, GW_FIGURE_IN_STAT, "graphwire_replica_hits",
	 NULL},
	{"replica_hit_bytes", "bytes of these rows, which no server had to send", GW_FIGURE_BYTES, GW_FIGURE_COUNTER,
	 AT(replica_hit_bytes), "saved", 10, GW_FIGURE_IN_STAT, "graphwire_replica_hit_bytes", NULL},
	{"lists_bytes", "of it: lists of other parts, for clients on the server's host", GW_FIGURE_BYTES,
	 GW_FIGURE_GAUGE, AT(lists_bytes), NULL, 0, 0, "graphwire_lists_bytes", NULL},
	{"held_hops", "hops that clients drew from these lists, as far as they have reported them", GW_FIGURE_COUNT,
	 GW_FIGURE_COUNTER, AT(held_hops), NULL, 0, 0, "graphwire_held_hops", NULL},
	{"pages", "the pages of that memory", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(pages), "pages", -16,
	 GW_FIGURE_IN_CLUSTER, NULL, NULL},
	{"load_driver", "what read the part's files", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(load_driver), NULL, 0, 0,
	 NULL, NULL},
	{"load_s", "time that the part took to load", GW_FIGURE_SECONDS, GW_FIGURE_GAUGE, AT(load_s), NULL, 0, 0,
	 "graphwire_load_seconds", NULL},
	{"connections", "clients that are connected", GW_FIGURE_NUMBER, GW_FIGURE_GAUGE, AT(service.connections_open),
	 "clients", 7, GW_FIGURE_IN_BOTH, "graphwire_connections", NULL},
	{"connections_total", "clients that have connected", GW_FIGURE_COUNT, GW_FIGURE_COUNTER,
	 AT(service.connections_total), NULL, 0, 0, "graphwire_connections_accepted", NULL},
	{"connections_max", "clients that may be connected", GW_FIGURE_NUMBER, GW_FIGURE_GAUGE, AT(connections_max),
	 NULL, 0, 0, "graphwire_connections_limit", NULL},
	{"refused", "clients that were refused", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(service.refused), NULL, 0, 0,
	 "graphwire_connections_refused", NULL},
	{"unproven", "open sockets without a completed hello", GW_FIGURE_NUMBER, GW_FIGURE_GAUGE, AT(service.unproven),
	 NULL, 0, 0, "graphwire_connections_unproven", NULL},
	{"dropped", "pending clients closed for newer ones, and clients that did not read replies", GW_FIGURE_COUNT,
	 GW_FIGURE_COUNTER, AT(service.dropped), NULL, 0, 0, "graphwire_connections_dropped", NULL},
	{"reads", "read requests", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(service.reads), NULL, 0, 0, NULL, NULL},
	{"read_ranges", "ranges of memory read", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(service.read_ranges), "ranges",
	 9, GW_FIGURE_IN_STAT, "graphwire_read_ranges", NULL},
	{"read_bytes", "bytes sent for them", GW_FIGURE_BYTES, GW_FIGURE_COUNTER, AT(service.read_bytes), "sent", 10,
	 GW_FIGURE_IN_STAT, NULL, NULL},
	{"requests", "requests", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(service.requests), "requests", 9,
	 GW_FIGURE_IN_STAT, NULL, NULL},
	{"errors", "requests that failed", GW_FIGURE_NUMBER, GW_FIGURE_COUNTER, AT(service.errors), "errors", 7,
	 GW_FIGURE_IN_BOTH, NULL, NULL},
	{"deferred", "slices after the first of long requests", GW_FIGURE_COUNT, GW_FIGURE_COUNTER,
	 AT(service.deferred), NULL, 0, 0, NULL, NULL},
	{"reply_bytes", "memory of long replies", GW_FIGURE_BYTES, GW_FIGURE_GAUGE, AT(service.reply_bytes), NULL, 0, 0,
	 "graphwire_reply_memory_bytes", NULL},
	{"tensor_bytes", "memory of tensors", GW_FIGURE_BYTES, GW_FIGURE_GAUGE, AT(tensor_bytes), NULL, 0, 0,
	 "graphwire_tensor_bytes", NULL},
	{"tensor_bytes_max", "memory that tensors may take; 0: no limit", GW_FIGURE_BYTES, GW_FIGURE_GAUGE,
	 AT(tensor_bytes_max), NULL, 0, 0, "graphwire_tensor_limit_bytes", NULL},
	{"replays", "repeated requests that were not applied again", GW_FIGURE_COUNT, GW_FIGURE_COUNTER,
	 AT(service.replays), NULL, 0, 0, "graphwire_replays", NULL},
	{"rows_written", "rows of tensors that clients wrote", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(rows.written),
	 NULL, 0, 0, "graphwire_tensor_rows_written", NULL},
	{"rows_pushed", "rows of tensors that clients pushed gradients for", GW_FIGURE_COUNT, GW_FIGURE_COUNTER,
	 AT(rows.pushed), NULL, 0, 0, "graphwire_tensor_rows_pushed", NULL},
	{"rows_pulled", "rows of tensors that clients requested", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(rows.pulled),
	 NULL, 0, 0, "graphwire_tensor_rows_pulled", NULL},
	{"rows_read", "rows of tensors that clients read without a request, as far as they have reported them",
	 GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(rows.read), NULL, 0, 0, "graphwire_tensor_rows_read", NULL},
	{"rows_torn", "rows of tensors that clients requested because each read was torn", GW_FIGURE_COUNT,
	 GW_FIGURE_COUNTER, AT(rows.torn), NULL, 0, 0, "graphwire_tensor_rows_torn", NULL},
	{"disk_cache_bytes", "memory for blocks of rows on disk; 0: no rows are", GW_FIGURE_BYTES, GW_FIGURE_GAUGE,
	 AT(disk_cache), NULL, 0, 0, "graphwire_disk_cache_bytes", NULL},
	{"disk_rows", "rows on disk that clients requested", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(disk.rows), NULL, 0,
	 0, "graphwire_disk_rows", NULL},
	{"disk_reads", "reads of the files of these rows", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(disk.reads), NULL, 0,
	 0, "graphwire_disk_reads", NULL},
	{"disk_read_bytes", "bytes that these reads got", GW_FIGURE_BYTES, GW_FIGURE_COUNTER, AT(disk.bytes), NULL, 0,
	 0, "graphwire_disk_read_bytes", NULL},
	{"disk_hits", "blocks of these files that were in the cache when rows needed them", GW_FIGURE_COUNT,
	 GW_FIGURE_COUNTER, AT(disk.hits), NULL, 0, 0, "graphwire_disk_hits", NULL},
	{"disk_misses", "blocks that were not, and were read", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(disk.misses),
	 NULL, 0, 0, "graphwire_disk_misses", NULL},
	{"disk_errors", "blocks that could not be read", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(disk.errors), NULL, 0,
	 0, "graphwire_disk_errors", NULL},
	{"metrics", "where the server answers scrapers; empty: nowhere", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(metrics),
	 NULL, 0, 0, NULL, NULL},
	{"ready", "1 if the part is served, 0 while it loads and while the server ends", GW_FIGURE_NUMBER,
	 GW_FIGURE_GAUGE, AT(ready), NULL, 0, 0, "graphwire_ready", NULL},
	{"requests_open", "requests in progress", GW_FIGURE_NUMBER, GW_FIGURE_GAUGE, AT(service.calls_open), NULL, 0, 0,
	 "graphwire_requests_open", NULL},
	{0},
};

static void sum_replicas(const struct gw_server *server, struct figure_values *out)
{
	const struct gw_array *array;
	for (uint32_t i = 0; (array = gw_part_array_at(server->part, i)); i++) {
		if (array->apart || !gw_replica_key(server->meta, array->meta->key) ||
		    !gw_name_ends_in(array->meta->key, GW_REPLICA_TAIL))
			continue;
		out->replica_rows += array->rows;
		out->replica_bytes += array->rows * array->row_bytes;
	}
}

/* What exists once the part is served. */
static void read_served(const struct gw_server *server, struct figure_values *out)
{
	static const char *const levels[] = {"4 KiB", "2 MiB, collapsed", "2 MiB, hugetlb"};
	const struct gw_arena *arena = gw_part_arena(server->part);
	const struct gw_load_stats *load = gw_part_load_stats(server->part);
	out->ready = !atomic_load(&server->stop_accepting);
	out->bytes = gw_arena_bytes(arena);
	sum_replicas(server, out);
	out->replica_hits = atomic_load(&server->saved.rows);
	out->replica_hit_bytes = atomic_load(&server->saved.bytes);
	out->held_hops = atomic_load(&server->saved.hops);
	out->lists_bytes = gw_server_lists_held(server);
	out->pages = levels[gw_arena_page_level(arena)];
	out->load_driver = load->driver ? load->driver : "";
	out->load_s = (double)load->ns / 1e9;
	out->tensor_bytes = gw_tensor_table_bytes(server->tensors);
	gw_server_transports(server, out->transports_text);
	gw_service_counters(server->service, &out->service);
	gw_tensor_table_totals(server->tensors, &out->rows);
	if (server->disk) {
		gw_disk_counts(server->disk, &out->disk);
		out->disk_cache = gw_disk_cache_bytes(server->disk);
	}
}

/* The texts are valid as long as `out` and the server. */
static void read_figures(const struct gw_server *server, struct figure_values *out)
{
	*out = (struct figure_values){
		.version = GRAPHWIRE_VERSION,
		.graph = server->meta->graph_name,
		.graph_id = out->graph_id_text,
		.part = server->options.part,
		.parts = server->meta->num_parts,
		.address = out->address_text,
		.metrics = out->metrics_text,
		.transports = out->transports_text,
		.name = server->options.name ? server->options.name : "",
		.pid = (uint64_t)getpid(),
		.uptime_s = (double)(gw_monotonic_ns() - server->started_ns) / 1e9,
		.threads = server->options.threads,
		.pages = "",
		.load_driver = "",
		.connections_max = server->options.connections,
		.tensor_bytes_max = server->options.tensor_memory,
	};
	snprintf(out->graph_id_text, sizeof(out->graph_id_text), "%016llx", (unsigned long long)server->meta->graph_id);
	gw_server_address(server, out->address_text);
	if (server->options.metrics)
		gw_address_text(&server->options.metrics_at, out->metrics_text);
	if (atomic_load(&server->serving))
		read_served(server, out);
}

json_t *gw_server_figures(const struct gw_server *server)
{
	struct figure_values values;
	read_figures(server, &values);
	return gw_figures_json(gw_figures, &values);
}

void gw_server_expose(const struct gw_server *server, struct gw_exposition *out)
{
	struct figure_values values;
	read_figures(server, &values);
	gw_exposition_figures(out, gw_figures, &values, sizeof(values), NULL, 1);
	if (atomic_load(&server->serving))
		gw_call_figures_expose(server->service, out);
}
