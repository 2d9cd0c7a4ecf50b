/* The two-sided calls: catalog, sample, stats. Each runs in the thread whose poll group received it and must not wait.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "protocol/ops.h"
#include "protocol/sample_call.h"
#include "server/server.h"

#define REPLY_BYTES_MAX (16u << 20) /* of picks, whatever a client asks for */

static gw_status reply_text(struct gw_reply *reply, const char *text)
{
	const size_t bytes = strlen(text);
	if (bytes > GW_REPLY_BYTES_MAX)
		return gw_fail(GW_LIMIT, "a reply of %zu bytes: at most %u", bytes, GW_REPLY_BYTES_MAX);
	uint8_t *out = gw_reply_extend(reply, (uint32_t)bytes);
	if (!out)
		return GW_NO_MEMORY;
	memcpy(out, text, bytes); /* NOLINT(bugprone-not-null-terminated-result): its length goes with it */
	return GW_OK;
}

static gw_status answer_catalog(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)call;
	(void)thread;
	return reply_text(reply, ((const struct gw_server *)context)->catalog);
}

/* How many of the vertices, from the first on, have picks that fit into a run of `room` bytes: found before anything is
 * picked, so that no request makes the server take more memory than its reply may have. A vertex that is not ours
 * fits: picking from it is what fails. */
static uint32_t count_fitting(const struct gw_adjacency *adjacency, const struct gw_pick_rule *rule,
			      const uint64_t *vertices, uint32_t n, uint32_t id_bytes, uint64_t room)
{
	if (rule->fanout != GW_FANOUT_ALL &&
	    gw_sample_run_bytes(n, (uint64_t)n * (uint32_t)rule->fanout, id_bytes) <= room)
		return n;
	uint64_t edges = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t row = vertices[i] - adjacency->dst_start, begin, end;
		if (row >= adjacency->rows)
			return i + 1;
		gw_adjacency_list(adjacency, row, &begin, &end);
		edges += gw_pick_count(rule, end - begin);
		if (gw_sample_run_bytes(i + 1, edges, id_bytes) > room)
			return i;
	}
	return n;
}

/* Picks for a prefix of the rows, run by run, as long as the reply has room. Rows come from a peer: each is checked. */
static gw_status answer_sample(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	const struct gw_server *server = context;
	struct gw_picks *picks = &server->threads[thread].picks;
	struct gw_sample_call sample;
	const uint32_t *rows;
	gw_status status =
		gw_sample_call_parse(call->bytes, call->byte_count, server->meta->num_etypes, &sample, &rows);
	if (status != GW_OK)
		return status;

	const struct gw_adjacency *adjacency = gw_part_adjacency(server->part, sample.etype);
	uint32_t id_bytes = adjacency->index_bytes == 8 || adjacency->indptr_bytes == 8 ? 8 : 4;
	struct gw_pick_rule rule = {.key = sample.key, .fanout = sample.fanout, .replace = sample.replace != 0};
	uint64_t room = sample.reply_bytes_max < REPLY_BYTES_MAX ? sample.reply_bytes_max : REPLY_BYTES_MAX;
	uint64_t vertices[GW_SAMPLE_RUN_ROWS];
	for (uint32_t i = 0; i < sample.row_count; i += GW_SAMPLE_RUN_ROWS) {
		uint32_t left = sample.row_count - i, n = left < GW_SAMPLE_RUN_ROWS ? left : GW_SAMPLE_RUN_ROWS;
		for (uint32_t j = 0; j < n; j++) {
			uint32_t row;
			memcpy(&row, rows + i + j, sizeof(row));
			vertices[j] = adjacency->dst_start + row;
		}
		uint32_t fitting = count_fitting(adjacency, &rule, vertices, n, id_bytes, room);
		if (fitting == 0)
			return GW_OK;
		status = gw_picks_from_memory(picks, adjacency, &rule, vertices, fitting);
		if (status != GW_OK)
			return status;
		size_t bytes = gw_sample_run_bytes(fitting, picks->edge_count, id_bytes);
		uint8_t *out = gw_reply_extend(reply, (uint32_t)bytes);
		if (!out)
			return GW_NO_MEMORY;
		gw_sample_run_print(picks, id_bytes, out);
		room -= bytes;
		if (fitting < n)
			return GW_OK;
	}
	return GW_OK;
}

static json_t *stats(const struct gw_server *server)
{
	struct gw_service_counters counters;
	gw_service_counters(server->service, &counters);
	static const char *const levels[] = {"4 KiB", "2 MiB, collapsed", "2 MiB, hugetlb"};
	const struct gw_arena *arena = gw_part_arena(server->part);
	const struct gw_load_stats *load = gw_part_load_stats(server->part);
	char address[GW_ADDRESS_MAX], id[17];
	snprintf(id, sizeof(id), "%016llx", (unsigned long long)server->meta->graph_id);
	return json_pack(
		"{s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:s, s:I, s:f, s:I, s:I, s:s, s:s, s:f, s:I, s:I, s:I, s:I, "
		"s:I, s:I, s:I, s:I}",
		"version", GRAPHWIRE_VERSION, "graph", server->meta->graph_name, "graph_id", id, "part",
		(json_int_t)server->options.part, "parts", (json_int_t)server->meta->num_parts, "address",
		gw_server_address(server, address), "transports", gw_server_transports(server), "name",
		server->options.name ? server->options.name : "", "pid", (json_int_t)getpid(), "uptime_s",
		(double)(gw_now_ns() - server->started_ns) / 1e9, "threads", (json_int_t)server->options.threads,
		"bytes", (json_int_t)gw_arena_bytes(arena), "pages", levels[gw_arena_page_level(arena)], "load_driver",
		load->driver ? load->driver : "", "load_s", (double)load->ns / 1e9, "connections",
		(json_int_t)counters.connections_open, "connections_total", (json_int_t)counters.connections_total,
		"refused", (json_int_t)counters.refused, "reads", (json_int_t)counters.reads, "read_ranges",
		(json_int_t)counters.read_ranges, "read_bytes", (json_int_t)counters.read_bytes, "requests",
		(json_int_t)counters.requests, "errors", (json_int_t)counters.errors);
}

static gw_status answer_stats(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread)
{
	(void)call;
	(void)thread;
	json_t *root = stats(context);
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	if (!text)
		return gw_fail(GW_NO_MEMORY, "no memory for the statistics");
	gw_status status = reply_text(reply, text);
	free(text);
	return status;
}

gw_status gw_server_answer(struct gw_server *server)
{
	gw_status status = gw_service_handle(server->service, GW_OP_CATALOG, answer_catalog, server);
	if (status == GW_OK)
		status = gw_service_handle(server->service, GW_OP_SAMPLE, answer_sample, server);
	if (status == GW_OK)
		status = gw_service_handle(server->service, GW_OP_STATS, answer_stats, server);
	return status;
}
