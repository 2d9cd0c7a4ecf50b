/* Finds, writes and checks the first edge of every original id. See inverse.h.
 *
 *   greatest id -> an array with a place per id, all empty -> every edge lowers the place of its id -> no place empty?
 *
 * Threads lower a place by compare and exchange, so the smallest position remains in any order of threads. Fails if
 * memory runs out, and with the errors of core/graph/writer.h.
 */
#include "core/graph/inverse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/graph/inverse_private.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "core/system/parallel.h"

#define INVERSE_GRAIN 65536u /* edges or ids per chunk */

struct inverse {
	gw_inverse_id id;
	const void *context;
	uint64_t edges, rows;
	bool wide;
	union {
		uint32_t *narrow; /* [rows] */
		uint64_t *wide;
	} at;
};

/* Stops at an id that is not below the number of edges: a smaller id must then be missing. */
static gw_status inverse_greatest(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct inverse *inverse = context;
	uint64_t rows = 0;
	(void)thread;
	for (uint64_t i = begin; i < end && rows <= inverse->edges; i++) {
		uint64_t id = inverse->id(inverse->context, i);
		if (id >= rows)
			rows = id < inverse->edges ? id + 1 : UINT64_MAX;
	}
	gw_inverse_raise(&inverse->rows, rows);
	return GW_OK;
}

static gw_status inverse_lower(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct inverse *inverse = context;
	(void)thread;
	for (uint64_t i = begin; i < end; i++) {
		uint64_t id = inverse->id(inverse->context, i);
		if (inverse->wide)
			gw_inverse_lower_wide(&inverse->at.wide[id], i);
		else
			gw_inverse_lower_narrow(&inverse->at.narrow[id], (uint32_t)i);
	}
	return GW_OK;
}

static bool inverse_is_full(const struct inverse *inverse)
{
	for (uint64_t i = 0; i < inverse->rows; i++) {
		if (inverse->wide ? inverse->at.wide[i] == UINT64_MAX : inverse->at.narrow[i] == UINT32_MAX)
			return false;
	}
	return true;
}

gw_status gw_inverse_write(struct gw_writer *writer, const char *key, gw_inverse_id id, const void *context,
			   uint64_t edges, unsigned threads, uint64_t *rows)
{
	struct inverse inverse = {.id = id, .context = context, .edges = edges, .wide = gw_is_wide(edges)};
	char name[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32];
	if (rows)
		*rows = 0;
	gw_parallel_for(threads, edges, INVERSE_GRAIN, inverse_greatest, &inverse);
	if (inverse.rows > edges)
		return GW_OK;
	size_t bytes = inverse.rows * (inverse.wide ? 8u : 4u);
	inverse.at.narrow = gw_malloc(bytes);
	if (!inverse.at.narrow)
		return gw_context(GW_NO_MEMORY, "%s", key);
	memset(inverse.at.narrow, 0xff, bytes);
	gw_parallel_for(threads, edges, INVERSE_GRAIN, inverse_lower, &inverse);
	gw_status status = GW_OK;
	if (inverse_is_full(&inverse)) {
		snprintf(name, sizeof(name), "%s" GW_INVERSE_TAIL, key);
		status = gw_writer_array(writer, 0, name, inverse.wide ? GW_UINT64 : GW_UINT32, 1, &inverse.rows,
					 inverse.at.narrow);
		if (rows)
			*rows = inverse.rows;
	}
	gw_free(inverse.at.narrow);
	return status;
}

struct inverse_check {
	const struct gw_graph_meta *meta;
	const struct gw_array *ids, *inverse;
};

static gw_status inverse_bad(const struct inverse_check *check, uint64_t row, const char *what)
{
	return gw_fail(GW_FORMAT, "%s/%s: %s: row %" PRIu64 " %s: build the graph again", check->meta->folder,
		       check->inverse->meta->file, check->inverse->meta->key, row, what);
}

static uint64_t inverse_load(const struct gw_array *array, uint64_t row)
{
	return gw_load_id(array->data, (uint8_t)array->row_bytes, row);
}

/* Each row names an edge with the row's id. */
static gw_status inverse_check_rows(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct inverse_check *check = context;
	(void)thread;
	for (uint64_t row = begin; row < end; row++) {
		uint64_t at = inverse_load(check->inverse, row);
		if (at >= check->ids->rows || inverse_load(check->ids, at) != row)
			return inverse_bad(check, row, "names an edge with another orig_id");
	}
	return GW_OK;
}

/* Each edge's id has a row, and the row names no later edge. */
static gw_status inverse_check_edges(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct inverse_check *check = context;
	(void)thread;
	for (uint64_t i = begin; i < end; i++) {
		uint64_t id = inverse_load(check->ids, i);
		if (id >= check->inverse->rows)
			return inverse_bad(check, id, "is missing, but an edge has this orig_id");
		if (inverse_load(check->inverse, id) > i)
			return inverse_bad(check, id, "does not name the first edge with this orig_id");
	}
	return GW_OK;
}

gw_status gw_inverse_check(const struct gw_part *part, uint32_t etype, unsigned threads)
{
	struct inverse_check check = {.meta = gw_part_meta(part)};
	char key[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16];
	snprintf(key, sizeof(key), "edge/%s/orig_id", check.meta->etypes[etype].folder);
	check.ids = gw_part_array(part, key);
	snprintf(key, sizeof(key), "edge/%s/" GW_INVERSE_NAME, check.meta->etypes[etype].folder);
	check.inverse = gw_part_array(part, key);
	if (!check.inverse || check.meta->num_parts > 1)
		return GW_OK;
	gw_status status = gw_parallel_for(threads, check.inverse->rows, INVERSE_GRAIN, inverse_check_rows, &check);
	if (status == GW_OK)
		status = gw_parallel_for(threads, check.ids->rows, INVERSE_GRAIN, inverse_check_edges, &check);
	return status;
}

/* --- Several parts. --- */

struct inverse_adding {
	const struct gw_array *array;
	uint64_t start; /* of the part: its first edge, or its first id */
	bool of_edges;
	uint64_t *sum;
};

static inline uint64_t inverse_pair(uint64_t id, uint64_t edge)
{
	return gw_mix64(gw_mix64(id + 0x9e3779b97f4a7c15ull) ^ (edge + 0xd1b54a32d192ed03ull));
}

static gw_status inverse_add(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct inverse_adding *a = context;
	uint64_t sum = 0;
	(void)thread;
	for (uint64_t i = begin; i < end; i++) {
		uint64_t value = inverse_load(a->array, i), at = a->start + i;
		sum += a->of_edges ? inverse_pair(value, at) : inverse_pair(at, value);
	}
	__atomic_fetch_add(a->sum, sum, __ATOMIC_RELAXED);
	return GW_OK;
}

gw_status gw_inverse_scan_add(const struct gw_part *part, uint32_t etype, unsigned threads,
			      struct gw_inverse_scan *scan)
{
	const struct gw_graph_meta *meta = gw_part_meta(part);
	uint32_t number = gw_part_number(part);
	char key[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16], ids[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16];
	snprintf(ids, sizeof(ids), "edge/%s/orig_id", meta->etypes[etype].folder);
	snprintf(key, sizeof(key), "edge/%s/" GW_INVERSE_NAME, meta->etypes[etype].folder);
	struct inverse_adding edges = {.array = gw_part_array(part, ids),
				       .start = meta->etypes[etype].starts[number],
				       .of_edges = true,
				       .sum = &scan->edges};
	struct inverse_adding rows = {.array = gw_part_array(part, key), .sum = &scan->inverse};
	if (!rows.array || meta->num_parts == 1)
		return GW_OK;
	for (uint32_t p = 0; p < number; p++)
		rows.start += gw_meta_array(meta, p, key)->shape[0];
	scan->rows += rows.array->rows;
	gw_status status = gw_parallel_for(threads, edges.array->rows, INVERSE_GRAIN, inverse_add, &edges);
	return status == GW_OK ? gw_parallel_for(threads, rows.array->rows, INVERSE_GRAIN, inverse_add, &rows) : status;
}
