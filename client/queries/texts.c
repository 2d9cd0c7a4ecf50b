/* Strings of nodes, mainly original ids that are text, and tables of names: reads the range of each string, then its
 * bytes.
 *
 *   ids -> records (two neighbouring offsets) from their owners -> checked -> room for all bytes
 *       -> ranges of bytes from their owners, neighbouring ranges as one -> strings
 *
 * A call is one operation with one deadline: one job runs both steps. The offsets come from a peer and are checked: a
 * string's offsets must ascend, and lie within the length that the graph's JSON gives. Fails as a gather does, or if
 * the strings are longer than a call may fetch.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "client/engine/engine.h"
#include "client/engine/fan_in.h"
#include "client/rows/gather.h"
#include "client/rows/tensors.h"
#include "client/state/recv_buffer.h"
#include "core/graph/book.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"

#define RECORD_BYTES    16u          /* an offset and the next one */
#define SPAN_BYTES_MAX  (1u << 20)   /* of one range; a longer string takes several ranges */
#define TEXTS_BYTES_MAX (1ull << 32) /* of one call */

struct texts_call {
	struct gw_job job; /* first */
	struct gw_client *client;
	const int64_t *ids;
	uint64_t n;
	struct gw_rows offsets;
	struct gw_place *bytes;        /* [num_parts] */
	uint64_t *bytes_count;         /* [num_parts]: length of the bytes */
	uint64_t *table_starts;        /* [num_parts + 1] of a table of names; else NULL */
	struct gw_recv_buffer records; /* [n] */
	struct gw_gather_op op;
	bool reading; /* the second step */
	struct gw_texts *texts;
	struct gw_buffer *buffer; /* registration of the bytes of `texts` */
	struct gw_span *spans;
	struct gw_link_op *link_ops; /* [num_parts] */
	struct gw_fan_in reads;
};

/* Runs in the engine, which owns the buffers. */
static void texts_end(struct texts_call *call, gw_status status)
{
	struct gw_error_kept kept;
	gw_error_keep(&kept);
	gw_buffer_release(call->buffer);
	call->buffer = NULL;
	gw_recv_buffer_free(&call->records);
	gw_error_restore(&kept);
	gw_job_end(&call->job, status);
}

/* ---- the second step: bytes ---- */

static struct texts_call *texts_of(struct gw_fan_in *reads)
{
	return (struct texts_call *)((char *)reads - offsetof(struct texts_call, reads));
}

static void texts_bytes_done(struct gw_fan_in *reads, gw_status status)
{
	texts_end(texts_of(reads), status);
}

static void texts_cancel_reads(struct gw_fan_in *reads)
{
	struct texts_call *call = texts_of(reads);
	for (uint32_t p = 0; p < call->client->meta->num_parts; p++) {
		if (call->link_ops[p].owner)
			gw_link_cancel(&call->link_ops[p]);
	}
}

static void texts_read_done(struct gw_link_op *link_op, gw_status status, const struct gw_completion *completion)
{
	(void)completion;
	struct texts_call *call = link_op->owner;
	link_op->owner = NULL;
	gw_fan_in_end_one(&call->reads, status);
}

/* The range is [*begin, *end). */
static gw_status read_record(const struct texts_call *call, uint64_t i, uint32_t *part, uint64_t *begin, uint64_t *end)
{
	const uint8_t *record = call->records.data + i * RECORD_BYTES;
	*part = gw_book_owner(call->offsets.starts, call->client->meta->num_parts, (uint64_t)call->ids[i]);
	memcpy(begin, record, 8);
	memcpy(end, record + 8, 8);
	if (*begin > *end || *end > call->bytes_count[*part])
		return gw_fail(GW_PROTOCOL, "part %u: string %lld has the impossible range [%llu, %llu) in %llu bytes",
			       *part, (long long)call->ids[i], (unsigned long long)*begin, (unsigned long long)*end,
			       (unsigned long long)call->bytes_count[*part]);
	return GW_OK;
}

/* Computes where each string will be stored, and the largest number of ranges of each part, in link_ops[p].count. */
static gw_status texts_lay_out(struct texts_call *call, uint64_t *offsets, uint64_t *spans)
{
	offsets[0] = 0;
	*spans = 0;
	for (uint64_t i = 0; i < call->n; i++) {
		uint32_t part;
		uint64_t begin, end;
		gw_status status = read_record(call, i, &part, &begin, &end);
		if (status != GW_OK)
			return status;
		uint64_t pieces = (end - begin + SPAN_BYTES_MAX - 1) / SPAN_BYTES_MAX;
		call->link_ops[part].count += pieces;
		*spans += pieces;
		/* Check each length before adding, so that the sum cannot overflow. */
		if (end - begin > TEXTS_BYTES_MAX || offsets[i] + (end - begin) > TEXTS_BYTES_MAX)
			return gw_fail(GW_LIMIT, "strings of more than %llu bytes in one call: ask for fewer at a time",
				       (unsigned long long)TEXTS_BYTES_MAX);
		offsets[i + 1] = offsets[i] + (end - begin);
	}
	return GW_OK;
}

/* If the string directly follows the last range in source and destination, extends that range instead. */
static void add_range(struct gw_link_op *link_op, struct gw_span *spans, uint64_t remote, uint64_t local,
		      uint64_t bytes)
{
	while (bytes > 0) {
		struct gw_span *last = link_op->count ? &spans[link_op->count - 1] : NULL;
		bool joins = last && last->remote + last->bytes == remote && last->local + last->bytes == local;
		uint64_t room = joins ? SPAN_BYTES_MAX - last->bytes : 0;
		uint64_t piece = bytes < (room ? room : SPAN_BYTES_MAX) ? bytes : room ? room : SPAN_BYTES_MAX;
		if (room)
			last->bytes += (uint32_t)piece;
		else
			spans[link_op->count++] =
				(struct gw_span){.remote = remote, .local = local, .bytes = (uint32_t)piece};
		remote += piece;
		local += piece;
		bytes -= piece;
	}
}

static gw_status list_ranges(struct texts_call *call, const uint64_t *offsets)
{
	uint64_t first = 0;
	for (uint32_t p = 0; p < call->client->meta->num_parts; p++) {
		call->link_ops[p].spans = call->spans + first;
		first += call->link_ops[p].count;
		call->link_ops[p].count = 0;
	}
	for (uint64_t i = 0; i < call->n; i++) {
		uint32_t part;
		uint64_t begin, end;
		gw_status status = read_record(call, i, &part, &begin, &end);
		if (status != GW_OK)
			return status;
		struct gw_link_op *link_op = &call->link_ops[part];
		add_range(link_op, call->spans + (link_op->spans - call->spans), call->bytes[part].offset + begin,
			  offsets[i], end - begin);
	}
	return GW_OK;
}

static gw_status prepare_bytes(struct texts_call *call)
{
	uint64_t spans, *offsets = gw_malloc((call->n + 1) * sizeof(*offsets));
	call->texts->offsets = offsets;
	if (!offsets)
		return GW_NO_MEMORY;
	gw_status status = texts_lay_out(call, offsets, &spans);
	if (status != GW_OK)
		return status;
	uint64_t bytes = offsets[call->n];
	char *memory = gw_malloc(bytes ? bytes : 1);
	call->texts->bytes = memory;
	call->spans = gw_calloc(spans ? spans : 1, sizeof(*call->spans));
	if (!memory || !call->spans)
		return GW_NO_MEMORY;
	call->texts->count = call->n;
	status = list_ranges(call, offsets);
	if (status == GW_OK && bytes)
		status = gw_buffer_register(call->job.engine->group, memory, bytes, &call->buffer);
	return status;
}

static void records_done(struct gw_gather_op *op, gw_status status)
{
	struct texts_call *call = op->owner;
	if (status == GW_OK)
		status = prepare_bytes(call);
	if (status != GW_OK) {
		texts_end(call, status);
		return;
	}
	call->reading = true;
	gw_fan_in_begin(&call->reads, &call->job, texts_cancel_reads, texts_bytes_done);
	for (uint32_t p = 0; p < call->client->meta->num_parts && call->reads.status == GW_OK; p++) {
		struct gw_link_op *link_op = &call->link_ops[p];
		if (link_op->count == 0)
			continue;
		gw_fan_in_add(&call->reads);
		link_op->form = GW_LINK_SPANS;
		link_op->buffer = call->buffer;
		link_op->region = call->bytes[p].region;
		link_op->job = &call->job;
		link_op->done = texts_read_done;
		link_op->owner = call;
		gw_engine_post(call->job.engine, p, link_op);
	}
	gw_fan_in_leave(&call->reads);
}

/* ---- the first step: records ---- */

static void call_start(struct gw_job *job)
{
	struct texts_call *call = (struct texts_call *)job;
	gw_status status = gw_recv_buffer_reserve(&call->records, &job->engine->slab, call->n * RECORD_BYTES);
	if (status != GW_OK) {
		texts_end(call, status);
		return;
	}
	call->op.done = records_done;
	call->op.owner = call;
	const struct gw_landing to = gw_landing_in(&call->records);
	gw_gather_op_start(&call->op, job, &call->offsets, call->ids, call->n, &to, false);
}

static void call_cancel(struct gw_job *job)
{
	struct texts_call *call = (struct texts_call *)job;
	if (call->reading)
		gw_fan_in_cancel(&call->reads);
	else
		gw_gather_op_cancel(&call->op);
}

static gw_status texts_run(struct texts_call *call)
{
	struct gw_engine *engine = gw_client_engine(call->client);
	gw_status status = gw_gather_op_init(&call->op, engine);
	if (status != GW_OK)
		return status;
	call->job.start = call_start;
	call->job.cancel = call_cancel;
	gw_engine_submit(engine, &call->job, true);
	gw_job_wait(&call->job, GW_NO_DEADLINE);
	gw_gather_op_free(&call->op);
	status = call->job.status;
	return status == GW_OK ? GW_OK : gw_fail_text(status, call->job.text);
}

/* A table of names has a string for each value of a feature. Every part has the same table, so that of part 0 is read.
 */
static gw_status find_table(struct texts_call *call, const struct gw_array_meta *offsets)
{
	uint32_t parts = call->client->meta->num_parts;
	call->table_starts = gw_calloc(parts + 1ull, sizeof(*call->table_starts));
	if (!call->table_starts)
		return GW_NO_MEMORY;
	for (uint32_t p = 1; p <= parts; p++)
		call->table_starts[p] = offsets->shape[0] - 1;
	call->offsets.starts = call->table_starts;
	return GW_OK;
}

static gw_status find_strings(struct texts_call *call, bool of_edges, uint32_t type, const char *name)
{
	const struct gw_graph_meta *meta = call->client->meta;
	const char *folder = of_edges ? meta->etypes[type].folder : meta->ntypes[type].name;
	char offsets[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32], bytes[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32];
	size_t length = strlen(name), tail = strlen(".names");
	gw_status status = gw_name_check("name", name);
	if (status != GW_OK)
		return status;
	snprintf(offsets, sizeof(offsets), "%s/%s/%s.offsets", of_edges ? "edge" : "node", folder, name);
	snprintf(bytes, sizeof(bytes), "%s/%s/%s.bytes", of_edges ? "edge" : "node", folder, name);
	bool names = length > tail && strcmp(name + length - tail, ".names") == 0;
	if (!gw_meta_array(meta, 0, offsets))
		return gw_fail(
			GW_NOT_FOUND, "%s type %s has no strings \"%s\"%s", of_edges ? "edge" : "node", folder, name,
			strcmp(name, "orig_id") == 0 ? ": its original ids are numbers, a tensor of that name" : "");
	status = gw_places_find(call->client, offsets, &call->offsets.places);
	if (status == GW_OK)
		status = gw_places_find(call->client, bytes, &call->bytes);
	if (status != GW_OK)
		return status;
	for (uint32_t p = 0; p < meta->num_parts; p++)
		call->bytes_count[p] = gw_meta_array(meta, p, bytes)->shape[0];
	call->offsets.starts = of_edges ? meta->etypes[type].starts : meta->ntypes[type].starts;
	call->offsets.step = RECORD_BYTES / 2;
	call->offsets.row_bytes = RECORD_BYTES;
	return names ? find_table(call, gw_meta_array(meta, 0, offsets)) : GW_OK;
}

static gw_status fetch_texts(struct gw_client *client, bool of_edges, uint32_t type, const char *name,
			     const int64_t *ids, uint64_t n, struct gw_texts **out)
{
	*out = NULL;
	gw_status status = gw_client_check(client);
	if (status != GW_OK)
		return status;
	uint32_t parts = client->meta->num_parts;
	uint32_t types = of_edges ? client->meta->num_etypes : client->meta->num_ntypes;
	if (type >= types)
		return gw_fail(GW_RANGE, "%s type %u of %u", of_edges ? "edge" : "node", type, types);
	if (n > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%llu ids in one call: at most 2^32 - 1", (unsigned long long)n);
	struct texts_call *call = gw_calloc(1, sizeof(*call));
	if (!call)
		return GW_NO_MEMORY;
	*call = (struct texts_call){.client = client, .ids = ids, .n = n};
	call->texts = gw_calloc(1, sizeof(*call->texts));
	call->link_ops = gw_calloc(parts, sizeof(*call->link_ops));
	call->bytes_count = gw_calloc(parts, sizeof(*call->bytes_count));
	status = call->texts && call->link_ops && call->bytes_count ? find_strings(call, of_edges, type, name)
								    : GW_NO_MEMORY;
	if (status == GW_OK)
		status = texts_run(call);
	if (status == GW_OK)
		*out = call->texts;
	else
		gw_texts_free(call->texts);
	gw_free(call->offsets.places);
	gw_free(call->bytes);
	gw_free(call->bytes_count);
	gw_free(call->table_starts);
	gw_free(call->link_ops);
	gw_free(call->spans);
	gw_free(call);
	return status;
}

gw_status gw_node_texts(struct gw_client *client, uint32_t ntype, const char *name, const int64_t *ids, uint64_t n,
			struct gw_texts **out)
{
	return fetch_texts(client, false, ntype, name, ids, n, out);
}

gw_status gw_edge_texts(struct gw_client *client, uint32_t etype, const char *name, const int64_t *ids, uint64_t n,
			struct gw_texts **out)
{
	return fetch_texts(client, true, etype, name, ids, n, out);
}

void gw_texts_free(struct gw_texts *texts)
{
	if (!texts)
		return;
	gw_free((void *)(uintptr_t)texts->offsets);
	gw_free((void *)(uintptr_t)texts->bytes);
	gw_free(texts);
}
