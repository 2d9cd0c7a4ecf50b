/* The two-sided calls: catalog, stats (figures.c), sample (answer_sample.c), edges (answer_edges.c), subgraphs
 * (answer_subgraph.c) and original ids (answer_ids.c). Each call runs in the thread whose poll group received it, so it
 * must neither wait nor keep the thread's other clients waiting. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/ops.h"
#include "protocol/saved_call.h"
#include "server/call_figures.h"
#include "server/figures.h"
#include "server/server.h"

#define STATS_TENSORS_MAX 4096

static gw_status reply_text(struct gw_reply *reply, const char *text)
{
	const size_t bytes = strlen(text);
	if (bytes > GW_REPLY_BYTES_MAX)
		return gw_fail(GW_LIMIT, "a reply of %zu bytes: at most %u", bytes, GW_REPLY_BYTES_MAX);
	uint8_t *out = gw_reply_extend(reply, (uint32_t)bytes);
	if (!out)
		return GW_NO_MEMORY;
	memcpy(out, text, bytes); /* NOLINT(bugprone-not-null-terminated-result): its length is sent with it */
	return GW_OK;
}

static gw_status answer_catalog(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	const struct gw_server *server = context;
	const unsigned form =
		call->byte_count == 1 ? call->bytes[0] & ~(unsigned)GW_CATALOG_KNOWS_DISK : GW_CATALOG_FORMS;
	if (form >= GW_CATALOG_FORMS)
		return gw_fail(GW_INVALID, "a request for the catalog is one byte: a form below %d", GW_CATALOG_FORMS);
	if (server->disk && !(call->bytes[0] & GW_CATALOG_KNOWS_DISK))
		return gw_fail(GW_REFUSED,
			       "the server keeps features on disk (serve --on-disk), which this client "
			       "does not know: upgrade the client to the server's version, %s",
			       GRAPHWIRE_VERSION);
	return reply_text(reply, server->catalogs[form]);
}

/* --- Statistics of the tensors. --- */

static void stats_add_tensor(void *context, const struct gw_shard *shard, uint64_t bytes, bool ready)
{
	const struct gw_tensor_plan *plan = &shard->plan;
	const struct gw_shard_counts *counts = &shard->counts;
	json_t *shape = json_array();
	for (uint32_t i = 0; shape && i < plan->ndim; i++)
		json_array_append_new(shape, json_integer((json_int_t)plan->shape[i]));
	json_t *tensor = json_pack(
		"{s:s, s:s, s:s, s:o, s:I, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "name", plan->name, "job", plan->job,
		"dtype", gw_dtype_name((gw_dtype)plan->dtype), "shape", shape, "bytes", (json_int_t)bytes, "ready",
		ready, "written", (json_int_t)atomic_load(&counts->written), "pushed",
		(json_int_t)atomic_load(&counts->pushed), "pulled", (json_int_t)atomic_load(&counts->pulled), "pulls",
		(json_int_t)atomic_load(&counts->pulls), "torn", (json_int_t)atomic_load(&counts->torn), "read",
		(json_int_t)atomic_load(&counts->read));
	/* If memory runs out, the list is shorter. */
	if (tensor && json_array_size(context) < STATS_TENSORS_MAX)
		json_array_append_new(context, tensor);
	else
		json_decref(tensor);
}

static void stats_add_tensors(const struct gw_server *server, json_t *root)
{
	json_t *tensors = json_array();
	if (!root || !tensors) {
		json_decref(tensors);
		return;
	}
	gw_tensor_table_each(server->tensors, stats_add_tensor, tensors);
	json_object_set_new(root, "tensors", tensors);
}

static gw_status answer_stats(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	const struct gw_server *server = context;
	json_t *root = gw_server_figures(server);
	stats_add_tensors(server, root);
	gw_call_figures_add(root, server->service, call->byte_count == 1 && call->bytes[0] == GW_STATS_WITH_CLIENTS);
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	if (!text)
		return gw_fail(GW_NO_MEMORY, "no memory for the statistics");
	gw_status status = reply_text(reply, text);
	free(text);
	return status;
}

static gw_status answer_saved(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct gw_server *server = context;
	struct gw_saved saved;
	(void)reply;
	gw_status status = gw_saved_parse(call->bytes, call->byte_count, &saved);
	if (status != GW_OK)
		return status;
	atomic_fetch_add(&server->saved.rows, saved.rows);
	atomic_fetch_add(&server->saved.bytes, saved.bytes);
	atomic_fetch_add(&server->saved.hops, saved.hops);
	return GW_OK;
}

gw_status gw_server_answer(struct gw_server *server)
{
	gw_status status = gw_service_handle(server->service, GW_OP_CATALOG, answer_catalog, server);
	if (status == GW_OK && server->disk_rows)
		status = gw_disk_rows_serve(server->disk_rows, server->service);
	if (status == GW_OK)
		status = gw_service_handle(server->service, GW_OP_SAMPLE, gw_server_sample, server);
	if (status == GW_OK)
		status = gw_service_handle(server->service, GW_OP_STATS, answer_stats, server);
	if (status == GW_OK)
		status = gw_service_handle(server->service, GW_OP_SAVED, answer_saved, server);
	if (status == GW_OK)
		status = gw_service_handle(server->service, GW_OP_EDGES, gw_server_edges, server);
	if (status == GW_OK)
		status = gw_service_handle(server->service, GW_OP_IDS, gw_server_ids, server);
	if (status == GW_OK)
		status = gw_service_handle(server->service, GW_OP_SUBGRAPH, gw_server_subgraph, server);
	return status;
}
