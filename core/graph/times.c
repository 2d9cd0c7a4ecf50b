/* Writes and checks the arrays that are made of times: see times.h.
 *
 *   writing:  times of a part as they were written -> every 64th key -> fence
 *             times of a part's nodes -> sorted by (key, row) -> keys and rows
 *   checking: the same keys, compared with the arrays
 */
#include "core/graph/times.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/graph/csc.h"
#include "core/memory/alloc.h"
#include "core/numbers/time_key.h"
#include "core/system/parallel.h"

#define KEY_MAX (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32)
#define GRAIN   (64u << 10)

bool gw_times_are_of_sources(const struct gw_graph_meta *meta, uint32_t etype)
{
	const struct gw_edge_type *type = &meta->etypes[etype];
	return meta->minor >= GW_FORMAT_MINOR_TIMES && type->order == GW_ORDER_TIME_SRC &&
	       gw_name_ends_in(type->time_name, GW_TIME_SOURCE_TAIL);
}

gw_status gw_time_name_check(const char *name)
{
	size_t most = GW_NAME_MAX - strlen(GW_TIME_SOURCE_TAIL GW_TIME_FENCE_TAIL);
	gw_status status = gw_name_check("time", name);
	if (status == GW_OK && strlen(name) > most)
		status = gw_fail(GW_INVALID, "\"%.80s\": the name of a time has at most %zu characters", name, most);
	if (status == GW_OK && gw_name_is_taken(true, name))
		status = gw_fail(GW_INVALID, "\"%s\": the format uses this name itself", name);
	return status;
}

bool gw_times_names_are_used(const struct gw_graph_meta *meta)
{
	for (uint32_t i = 0; i < meta->parts[0].count; i++) {
		struct gw_array_key key;
		if (gw_array_key_parse(meta, meta->parts[0].arrays[i].key, &key) == GW_OK && !key.out &&
		    gw_name_is_of_times(key.edge, key.name))
			return true;
	}
	return false;
}

uint64_t gw_times_bytes(const struct gw_graph_meta *meta)
{
	uint64_t bytes = 0;
	for (uint32_t p = 0; meta->minor >= GW_FORMAT_MINOR_TIMES && p < meta->num_parts; p++) {
		for (uint32_t i = 0; i < meta->parts[p].count; i++) {
			const struct gw_array_meta *array = &meta->parts[p].arrays[i];
			struct gw_array_key key;
			if (gw_array_key_parse(meta, array->key, &key) == GW_OK && !key.out &&
			    gw_name_is_of_times(key.edge, key.name))
				bytes += gw_array_meta_bytes(array);
		}
	}
	return bytes;
}

/* ---- writing ---- */

static gw_status write_fence(struct gw_writer *writer, uint32_t part, uint32_t etype)
{
	const struct gw_edge_type *type = &gw_writer_meta(writer)->etypes[etype];
	char key[KEY_MAX];
	struct gw_npy_file times;
	snprintf(key, sizeof(key), "edge/%s/%s", type->folder, type->time_name);
	gw_status status = gw_writer_map(writer, part, key, &times);
	if (status != GW_OK)
		return status;
	uint64_t entries = gw_fence_entries(times.npy.shape[0]), bytes = gw_dtype_bytes(times.npy.dtype);
	int64_t *fence = gw_malloc(entries * sizeof(*fence));
	for (uint64_t j = 0; fence && j < entries; j++)
		fence[j] = gw_time_key(times.npy.dtype, (const uint8_t *)times.data + j * GW_FENCE_STEP * bytes);
	gw_npy_close(&times);
	snprintf(key, sizeof(key), "edge/%s/%s" GW_TIME_FENCE_TAIL, type->folder, type->time_name);
	status = fence ? gw_writer_array(writer, part, key, GW_INT64, 1, &entries, fence) : GW_NO_MEMORY;
	gw_free(fence);
	return status;
}

/* The lists of a single destination, sorted by (time, source), are the order of the index. */
static gw_status sort_times(const int64_t *keys, uint64_t rows, unsigned threads, struct gw_csc *sorted)
{
	struct gw_coo coo = {.num_src = rows, .num_dst = 1, .num_edges = rows, .time = keys};
	uint64_t *row = gw_malloc(rows * sizeof(*row)), *one = gw_calloc(rows, sizeof(*one));
	gw_status status = row && one ? GW_OK : GW_NO_MEMORY;
	for (uint64_t i = 0; status == GW_OK && i < rows; i++)
		row[i] = i;
	coo.src = row;
	coo.dst = one;
	if (status == GW_OK)
		status = gw_csc_build(&coo, threads, sorted);
	gw_free(row);
	gw_free(one);
	return status;
}

static gw_status write_index(struct gw_writer *writer, uint32_t part, const struct gw_time_index *index,
			     unsigned threads)
{
	const struct gw_node_type *type = &gw_writer_meta(writer)->ntypes[index->ntype];
	char key[KEY_MAX];
	struct gw_npy_file times;
	struct gw_csc sorted = {0};
	snprintf(key, sizeof(key), "node/%s/%s", type->name, index->name);
	gw_status status = gw_writer_map(writer, part, key, &times);
	if (status != GW_OK)
		return status;
	uint64_t rows = times.npy.shape[0], bytes = gw_dtype_bytes(times.npy.dtype);
	int64_t *keys = gw_malloc(rows * sizeof(*keys)), *ascending = gw_malloc(rows * sizeof(*ascending));
	status = keys && ascending ? GW_OK : GW_NO_MEMORY;
	for (uint64_t i = 0; status == GW_OK && i < rows; i++)
		keys[i] = gw_time_key(times.npy.dtype, (const uint8_t *)times.data + i * bytes);
	gw_npy_close(&times);
	if (status == GW_OK)
		status = sort_times(keys, rows, threads, &sorted);
	for (uint64_t i = 0; status == GW_OK && i < rows; i++)
		ascending[i] = keys[sorted.order[i]];
	snprintf(key, sizeof(key), "node/%s/%s" GW_TIMES_TAIL, type->name, index->name);
	if (status == GW_OK)
		status = gw_writer_array(writer, part, key, GW_INT64, 1, &rows, ascending);
	snprintf(key, sizeof(key), "node/%s/%s" GW_TIMES_NODES_TAIL, type->name, index->name);
	if (status == GW_OK)
		status = gw_writer_ids(writer, part, key, sorted.order, rows, type->count);
	gw_csc_free(&sorted);
	gw_free(keys);
	gw_free(ascending);
	return status;
}

gw_status gw_times_write(struct gw_writer *writer, const struct gw_time_index *index, uint32_t count, unsigned threads,
			 uint64_t *bytes)
{
	const struct gw_graph_meta *meta = gw_writer_meta(writer);
	uint64_t before = gw_times_bytes(meta);
	gw_status status = GW_OK;
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		for (uint32_t e = 0; e < meta->num_etypes && status == GW_OK; e++) {
			if (meta->etypes[e].order == GW_ORDER_TIME_SRC)
				status = write_fence(writer, p, e);
		}
		for (uint32_t i = 0; i < count && status == GW_OK; i++)
			status = write_index(writer, p, &index[i], threads);
	}
	*bytes += gw_times_bytes(meta) - before;
	return status;
}

/* ---- checking ---- */

struct times_check {
	const struct gw_graph_meta *meta;
	const struct gw_array *times;
	const struct gw_array *keys;  /* the fence, or the keys of the index */
	const struct gw_array *nodes; /* of the index */
};

static int64_t times_key(const struct gw_array *times, uint64_t i)
{
	return gw_time_key(times->meta->dtype, times->data + i * times->row_bytes);
}

static gw_status fence_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct times_check *c = context;
	const int64_t *fence = (const int64_t *)c->keys->data;
	(void)thread;
	for (uint64_t j = begin; j < end; j++) {
		if (fence[j] != times_key(c->times, j * GW_FENCE_STEP))
			return gw_part_bad(c->meta, GW_FORMAT, c->keys,
					   "entry %" PRIu64 ": not the key of the time at position %" PRIu64, j,
					   j * GW_FENCE_STEP);
	}
	return GW_OK;
}

/* Keys follow from nodes, so ascending pairs of both are a permutation. */
static gw_status index_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct times_check *c = context;
	const int64_t *keys = (const int64_t *)c->keys->data;
	uint8_t bytes = (uint8_t)c->nodes->row_bytes;
	(void)thread;
	for (uint64_t i = begin; i < end; i++) {
		uint64_t node = gw_load_id(c->nodes->data, bytes, i);
		if (node >= c->times->rows)
			return gw_part_bad(c->meta, GW_RANGE, c->nodes,
					   "entry %" PRIu64 ": row %" PRIu64 " of %" PRIu64, i, node, c->times->rows);
		if (keys[i] != times_key(c->times, node))
			return gw_part_bad(c->meta, GW_FORMAT, c->keys,
					   "entry %" PRIu64 ": not the key of the time of row %" PRIu64, i, node);
		if (i > 0 && (keys[i] < keys[i - 1] ||
			      (keys[i] == keys[i - 1] && node <= gw_load_id(c->nodes->data, bytes, i - 1))))
			return gw_part_bad(c->meta, GW_FORMAT, c->nodes, "entry %" PRIu64 ": out of order", i);
	}
	return GW_OK;
}

static const struct gw_array *times_array(const struct gw_part *part, const char *of, const char *type,
					  const char *name, size_t length, const char *tail)
{
	char key[KEY_MAX];
	snprintf(key, sizeof(key), "%s/%s/%.*s%s", of, type, (int)length, name, tail);
	const struct gw_array *array = gw_part_array(part, key);
	return array && !array->apart ? array : NULL;
}

gw_status gw_times_check(const struct gw_part *part, unsigned threads)
{
	struct times_check check = {.meta = gw_part_meta(part)};
	gw_status status = GW_OK;
	if (check.meta->minor < GW_FORMAT_MINOR_TIMES)
		return GW_OK;
	for (uint32_t e = 0; e < check.meta->num_etypes && status == GW_OK; e++) {
		const struct gw_edge_type *type = &check.meta->etypes[e];
		size_t length = strlen(type->time_name);
		check.times = times_array(part, "edge", type->folder, type->time_name, length, "");
		check.keys = times_array(part, "edge", type->folder, type->time_name, length, GW_TIME_FENCE_TAIL);
		if (type->order == GW_ORDER_TIME_SRC && check.times && check.keys)
			status = gw_parallel_for(threads, check.keys->rows, GRAIN, fence_body, &check);
	}
	for (uint32_t i = 0; status == GW_OK && (check.keys = gw_part_array_at(part, i)); i++) {
		struct gw_array_key key;
		status = gw_array_key_parse(check.meta, check.keys->meta->key, &key);
		if (status != GW_OK || key.edge || !gw_name_ends_in(key.name, GW_TIMES_TAIL))
			continue;
		const char *type = check.meta->ntypes[key.type].name;
		size_t length = strlen(key.name) - strlen(GW_TIMES_TAIL);
		check.times = times_array(part, "node", type, key.name, length, "");
		check.nodes = times_array(part, "node", type, key.name, length, GW_TIMES_NODES_TAIL);
		if (check.times && check.nodes)
			status = gw_parallel_for(threads, check.keys->rows, GRAIN, index_body, &check);
	}
	return status;
}
