/* Writes the replicas of a graph on disk.
 *
 *   a writer over the graph's own folder -> links to all arrays but replicas -> for each part: what is hot, what is
 *   chosen, index, rows of the owners -> one rename
 *
 * An interrupted run leaves the graph as it was. A graph of a newer minor version is refused, because what this program
 * does not know of it would be lost.
 */
#include <stdio.h>
#include <string.h>

#include "core/graph/book.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "tools/replicate/replicate.h"

#define BUFFER_BYTES (4u << 20)

struct replicate {
	const struct gw_replicate_plan *plan;
	const struct gw_graph_meta *meta;
	struct gw_hot_graph graph;
	struct gw_writer *writer;
	struct gw_client *client;         /* of GW_HOT_EPOCHS */
	uint64_t *cost;                   /* [ntypes] */
	struct gw_replica_block **blocks; /* [ntypes]; NULL: the type has no replicas */
	double *hot;
	uint8_t *buffer;
	struct gw_replicate_report *report;
};

static bool is_dropped(const struct replicate *r)
{
	return !(r->plan->share > 0) && r->plan->bytes == 0;
}

/* --- The graph without its replicas. --- */

static gw_status take_arrays(struct replicate *r)
{
	const struct gw_graph_meta *meta = r->meta;
	gw_status status = GW_OK;
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		for (uint32_t a = 0; a < meta->parts[p].count && status == GW_OK; a++) {
			const char *key = meta->parts[p].arrays[a].key;
			if (!gw_replica_key(meta, key))
				status = gw_writer_link(r->writer, p, key, meta);
		}
	}
	return status;
}

/* The lowest minor version that has all of the graph but its replicas. */
static uint32_t minor_without(const struct gw_graph_meta *meta)
{
	uint32_t minor = meta->num_originals ? GW_FORMAT_MINOR_ORIGINALS : meta->num_units ? GW_FORMAT_MINOR_TIMES : 1;
	struct gw_array_key key;
	if (meta->num_replicas == 0)
		return meta->minor;
	for (uint32_t a = 0; a < meta->parts[0].count; a++) {
		const struct gw_array_meta *array = &meta->parts[0].arrays[a];
		if (gw_array_key_parse(meta, array->key, &key) != GW_OK)
			continue;
		uint32_t needed = gw_meta_minor_of(meta, array->key, array->ndim);
		if (gw_name_is_of_times(key.edge, key.name))
			needed = GW_FORMAT_MINOR_TIMES;
		else if (key.edge ? strcmp(key.name, GW_INVERSE_NAME) == 0 : gw_name_is_node_ids(key.name))
			needed = GW_FORMAT_MINOR_IDS;
		minor = needed > minor ? needed : minor;
	}
	return minor;
}

static gw_status begin_writer(struct replicate *r)
{
	const struct gw_graph_meta *meta = r->meta;
	gw_status status = gw_writer_open(meta->folder[0] ? meta->folder : ".", meta, true, &r->writer);
	if (status != GW_OK)
		return status;
	gw_writer_set_minor(r->writer, minor_without(meta));
	for (uint32_t i = 0; i < meta->num_units && status == GW_OK; i++)
		status = gw_writer_set_unit(r->writer, meta->units[i].key, meta->units[i].unit);
	for (uint32_t i = 0; i < meta->num_originals && status == GW_OK; i++) {
		const struct gw_original_meta *original = &meta->originals[i];
		status = gw_writer_set_original(r->writer, original->key, original->dtype, original->columns);
	}
	return status == GW_OK ? take_arrays(r) : status;
}

/* --- Rows. --- */

static const uint8_t *owned_row(const struct replicate *r, const struct gw_node_type *type,
				const struct gw_array *const *arrays, uint64_t id)
{
	uint32_t owner = gw_book_owner(type->starts, r->meta->num_parts, id);
	return arrays[owner]->data + (id - type->starts[owner]) * arrays[owner]->row_bytes;
}

static gw_status replicate_append_rows(struct replicate *r, struct gw_array_stream *stream, uint32_t ntype,
				       const struct gw_array *const *arrays)
{
	const struct gw_node_type *type = &r->meta->ntypes[ntype];
	const struct gw_replica_block *blocks = r->blocks[ntype];
	const uint64_t bytes = arrays[0]->row_bytes, room = bytes < BUFFER_BYTES ? BUFFER_BYTES / bytes : 0;
	uint64_t used = 0;
	gw_status status = GW_OK;
	for (uint64_t id = 0, row; id < type->count && status == GW_OK; id++) {
		if (id % 64 == 0 && blocks[id / GW_REPLICA_BLOCK_IDS].bits[id % GW_REPLICA_BLOCK_IDS / 64] == 0) {
			id += 63;
			continue;
		}
		if (!gw_replica_find(blocks, id, &row))
			continue;
		if (room == 0) { /* a row that is longer than the buffer */
			status = gw_writer_append(stream, owned_row(r, type, arrays, id), bytes);
			continue;
		}
		memcpy(r->buffer + used++ * bytes, owned_row(r, type, arrays, id), bytes);
		if (used == room) {
			status = gw_writer_append(stream, r->buffer, used * bytes);
			used = 0;
		}
	}
	return status == GW_OK ? gw_writer_append(stream, r->buffer, used * bytes) : status;
}

static gw_status write_rows(struct replicate *r, uint32_t part, const struct gw_array_meta *array, uint32_t ntype,
			    uint64_t rows)
{
	char key[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16];
	struct gw_array_stream *stream = NULL;
	uint64_t shape[GW_DIMS_MAX];
	const struct gw_array **arrays = gw_calloc(r->meta->num_parts, sizeof(struct gw_array *));
	if (!arrays)
		return GW_NO_MEMORY;
	for (uint32_t p = 0; p < r->meta->num_parts; p++)
		arrays[p] = gw_part_array(r->graph.parts[p], array->key);
	memcpy(shape, array->shape, sizeof(shape));
	shape[0] = rows;
	snprintf(key, sizeof(key), "%s" GW_REPLICA_TAIL, array->key);
	gw_status status = gw_writer_begin(r->writer, part, key, array->dtype, array->ndim, shape, &stream);
	if (status == GW_OK) {
		status = replicate_append_rows(r, stream, ntype, (const struct gw_array *const *)arrays);
		if (status == GW_OK)
			status = gw_writer_end(stream);
		else
			gw_writer_drop(stream);
	}
	gw_free(arrays);
	r->report->bytes[part] += rows * gw_array_meta_row_bytes(array);
	return status;
}

static gw_status replicate_write_type(struct replicate *r, uint32_t part, uint32_t ntype)
{
	const struct gw_graph_meta *meta = r->meta;
	const struct gw_node_type *type = &meta->ntypes[ntype];
	const uint64_t shape[2] = {gw_replica_blocks(type->count), GW_REPLICA_COLUMNS};
	const uint64_t rows = gw_replica_count(r->blocks[ntype], type->count);
	char key[2 * GW_NAME_MAX + 16];
	r->report->nodes[part] += rows;
	snprintf(key, sizeof(key), "node/%s/" GW_REPLICA_INDEX_NAME, type->name);
	gw_status status = gw_writer_array(r->writer, part, key, GW_UINT64, 2, shape, r->blocks[ntype]);
	for (uint32_t a = 0; a < meta->parts[0].count && status == GW_OK; a++) {
		const struct gw_array_meta *array = &meta->parts[0].arrays[a];
		struct gw_array_key parsed;
		if (!gw_replicate_means(r->plan, meta, array))
			continue;
		status = gw_array_key_parse(meta, array->key, &parsed);
		if (status == GW_OK && parsed.type == ntype)
			status = write_rows(r, part, array, ntype, rows);
	}
	return status;
}

/* --- Parts. --- */

/* What the hotness says that the replicas save. */
static void report_part(struct replicate *r, uint32_t part)
{
	double all = 0, near = 0;
	for (uint32_t t = 0; t < r->meta->num_ntypes; t++) {
		const double *hot = r->hot + r->graph.first[t];
		for (uint64_t i = 0, row; r->blocks[t] && i < r->meta->ntypes[t].count; i++) {
			all += hot[i] * (double)r->cost[t];
			near += gw_replica_find(r->blocks[t], i, &row) ? hot[i] * (double)r->cost[t] : 0;
		}
	}
	r->report->share[part] = all > 0 ? near / all : 0;
}

static gw_status replicate_part(struct replicate *r, uint32_t part)
{
	gw_status status = gw_hot_of_part(&r->graph, r->plan, r->client, part, r->hot);
	for (uint32_t t = 0; t < r->meta->num_ntypes; t++) {
		if (r->blocks[t])
			memset(r->blocks[t], 0,
			       gw_replica_blocks(r->meta->ntypes[t].count) * sizeof(struct gw_replica_block));
	}
	if (status == GW_OK)
		status = gw_hot_choose(&r->graph, r->hot, r->cost, r->plan->share, r->plan->bytes, r->blocks);
	for (uint32_t t = 0; t < r->meta->num_ntypes && status == GW_OK; t++) {
		if (r->blocks[t])
			status = replicate_write_type(r, part, t);
	}
	if (status == GW_OK)
		report_part(r, part);
	return status;
}

static gw_status replicate_make_room(struct replicate *r)
{
	const struct gw_graph_meta *meta = r->meta;
	r->blocks = gw_calloc(meta->num_ntypes, sizeof(struct gw_replica_block *));
	r->hot = gw_malloc(gw_hot_nodes(&r->graph) * sizeof(*r->hot) + 1);
	r->buffer = gw_malloc(BUFFER_BYTES);
	if (!r->blocks || !r->hot || !r->buffer)
		return GW_NO_MEMORY;
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		const uint64_t blocks = gw_replica_blocks(meta->ntypes[t].count);
		if (r->cost[t] == 0 || blocks == 0)
			continue;
		r->blocks[t] = gw_calloc(blocks, sizeof(**r->blocks));
		r->report->index_bytes += blocks * sizeof(**r->blocks);
		if (!r->blocks[t])
			return GW_NO_MEMORY;
	}
	return GW_OK;
}

static gw_status record(struct replicate *r)
{
	char by[GW_REPLICA_BY_MAX + 1];
	gw_status status = GW_OK;
	for (uint32_t a = 0; a < r->meta->parts[0].count && status == GW_OK; a++) {
		const struct gw_array_meta *array = &r->meta->parts[0].arrays[a];
		if (gw_replicate_means(r->plan, r->meta, array))
			status = gw_writer_set_replicas(r->writer, array->key, gw_replicate_by_text(r->plan, by),
							gw_replicas_digest(r->meta, array->key));
	}
	return status;
}

static gw_status replicate_all(struct replicate *r, const char *config, bool verify)
{
	gw_status status = gw_hot_graph_open(r->plan, config, r->meta, verify, &r->graph);
	if (status == GW_OK)
		status = replicate_make_room(r);
	if (status == GW_OK)
		status = record(r);
	if (status == GW_OK && r->plan->by == GW_HOT_EPOCHS)
		status = gw_hot_client_open(&r->graph, NULL, &r->client);
	for (uint32_t p = 0; p < r->meta->num_parts && status == GW_OK; p++)
		status = replicate_part(r, p);
	return status;
}

static gw_status check_graph(const struct replicate *r)
{
	if (r->meta->minor > GW_FORMAT_MINOR)
		return gw_fail(GW_VERSION,
			       "graph \"%s\" is of minor version %u, and this program knows %d: use a newer program",
			       r->meta->graph_name, r->meta->minor, GW_FORMAT_MINOR);
	if (r->meta->num_parts == 1 && !is_dropped(r))
		return gw_fail(GW_INVALID, "graph \"%s\" is in one part, and no row is remote: partition it first",
			       r->meta->graph_name);
	for (uint32_t t = 0; t < r->meta->num_ntypes && !is_dropped(r); t++) {
		char key[2 * GW_NAME_MAX + 16];
		snprintf(key, sizeof(key), "node/%s/" GW_REPLICA_INDEX_NAME, r->meta->ntypes[t].name);
		if (r->meta->minor < GW_FORMAT_MINOR_REPLICAS && gw_meta_array(r->meta, 0, key))
			return gw_fail(GW_INVALID, "\"%s\" is a feature of the graph: replicas need this name", key);
	}
	return GW_OK;
}

static void replicate_free(struct replicate *r)
{
	for (uint32_t t = 0; r->blocks && t < r->meta->num_ntypes; t++)
		gw_free(r->blocks[t]);
	gw_client_close(r->client);
	gw_free(r->blocks);
	gw_free(r->cost);
	gw_free(r->hot);
	gw_free(r->buffer);
	gw_hot_graph_close(&r->graph);
}

gw_status gw_replicate(const struct gw_replicate_plan *plan, const char *config, bool verify,
		       struct gw_replicate_report *report)
{
	struct gw_graph_meta *meta = NULL;
	const uint64_t begun_ns = gw_now_ns();
	*report = (struct gw_replicate_report){0};
	gw_status status = gw_meta_read(config, &meta);
	if (status != GW_OK)
		return status;
	struct replicate r = {.plan = plan, .meta = meta, .report = report};
	status = gw_replicate_report_begin(plan, meta->num_parts, report);
	r.cost = gw_calloc(meta->num_ntypes, sizeof(*r.cost));
	if (status == GW_OK)
		status = r.cost ? check_graph(&r) : GW_NO_MEMORY;
	if (status == GW_OK && !is_dropped(&r))
		status = gw_replicate_costs(plan, meta, r.cost);
	if (status == GW_OK)
		status = begin_writer(&r);
	if (status == GW_OK && !is_dropped(&r))
		status = replicate_all(&r, config, verify);
	if (status == GW_OK)
		status = gw_writer_commit(r.writer, NULL);
	else
		gw_writer_abort(r.writer);
	replicate_free(&r);
	gw_meta_destroy(meta);
	report->seconds = (double)(gw_now_ns() - begun_ns) / GW_NS_PER_SECOND;
	return status;
}
