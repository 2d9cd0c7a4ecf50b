/* Checks facts that digests do not prove: that a part's numbers are consistent.
 *
 *   for each edge type: offsets start at 0, ascend, end at the edges -> ids below their count, in list order ->
 *   relations and alias entries in range; transposed lists agree with the book; masks are 0 or 1; string offsets
 * ascend; the index of original ids is in order (id_index_check.c); fences and indexes of times hold their keys
 * (times.c)
 *
 * Offsets are checked first, because all later checks walk the lists that they define. Arrays that the part leaves on
 * disk are not checked: readers check what they use of them. Chunks are checked in parallel.
 * The error is the first fault of the lowest chunk that has one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/graph/book.h"
#include "core/graph/id_index.h"
#include "core/graph/part.h"
#include "core/graph/replicas.h"
#include "core/graph/times.h"
#include "core/numbers/time_key.h"
#include "core/system/parallel.h"

#define GRAIN 65536u /* rows or elements per chunk */

struct part_check {
	const struct gw_part *part;
	const struct gw_graph_meta *meta;
	uint32_t number;
	uint32_t etype;
	const struct gw_adjacency *lists;
	const struct gw_array *offsets, *ids; /* the arrays of lists, for error texts */
	const struct gw_array *array;         /* a further array to check with the lists; NULL: none */
	const struct gw_array *keys;          /* the first sort key of the lists: time, relation, or NULL */
	bool real;                            /* these keys are times of real numbers */
	bool unknown;                         /* the keys are rows that change, so the order of lists is not checked */
	const struct gw_array *bytes;         /* if `array` has the offsets of strings: the bytes of the strings */
};

static gw_status offsets_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct part_check *check = context;
	const struct gw_adjacency *a = check->lists;
	(void)thread;
	for (uint64_t row = begin; row < end; row++) {
		uint64_t from, to;
		gw_adjacency_list(a, row, &from, &to);
		if (to < from || to > a->edges)
			return gw_part_bad(check->meta, GW_FORMAT, check->offsets,
					   "row %" PRIu64 ", column %u: the list is [%" PRIu64 ", %" PRIu64
					   ") of %" PRIu64 " edges",
					   row, a->column, from, to, a->edges);
	}
	return GW_OK;
}

static gw_status check_offsets(struct part_check *check, unsigned threads)
{
	const struct gw_adjacency *a = check->lists;
	uint64_t first = gw_load_id(a->indptr, a->indptr_bytes, a->column);
	uint64_t last = gw_load_id(a->indptr, a->indptr_bytes, a->rows * a->columns + a->column);
	if (first != 0)
		return gw_part_bad(check->meta, GW_FORMAT, check->offsets,
				   "row 0, column %u: starts at %" PRIu64 ", not at 0", a->column, first);
	if (last != a->edges)
		return gw_part_bad(check->meta, GW_FORMAT, check->offsets,
				   "row %" PRIu64 ", column %u: ends at %" PRIu64 ", but there are %" PRIu64 " edges",
				   a->rows, a->column, last, a->edges);
	return gw_parallel_for(threads, a->rows, GRAIN, offsets_body, check);
}

/* Maps signed numbers to unsigned numbers of the same order. */
static uint64_t flip_sign(int64_t value)
{
	return (uint64_t)value ^ (uint64_t)1 << 63;
}

/* The first sort key at a CSC position, as a number whose unsigned order is the key's order: of a time (signed) or a
 * relation. */
static uint64_t first_key(const struct gw_array *array, uint64_t position)
{
	const void *data = array->data;
	switch (array->meta->dtype) {
	case GW_UINT32:
		return ((const uint32_t *)data)[position];
	case GW_UINT16:
		return ((const uint16_t *)data)[position];
	case GW_UINT8:
		return ((const uint8_t *)data)[position];
	default:
		return flip_sign(gw_time_key(array->meta->dtype, array->data + position * array->row_bytes));
	}
}

static gw_status check_list(const struct part_check *check, uint64_t row, uint64_t id_count, uint32_t relations)
{
	const struct gw_adjacency *a = check->lists;
	uint64_t from, to, last_key = 0, last_id = 0;
	gw_adjacency_list(a, row, &from, &to);
	for (uint64_t i = from; i < to; i++) {
		uint64_t id = gw_load_id(a->indices, a->index_bytes, i);
		uint64_t key = check->keys ? first_key(check->keys, i) : 0;
		if (id >= id_count)
			return gw_part_bad(check->meta, GW_RANGE, check->ids,
					   "position %" PRIu64 ": id %" PRIu64 ", but the type has %" PRIu64 " nodes",
					   i, id, id_count);
		if (relations > 0 && key >= relations)
			return gw_part_bad(check->meta, GW_RANGE, check->keys,
					   "position %" PRIu64 ": relation %" PRIu64 " of %u", i, key, relations);
		if (check->real && key == flip_sign(GW_TIME_KEY_NAN))
			return gw_part_bad(check->meta, GW_RANGE, check->keys,
					   "position %" PRIu64 ": a time is no number", i);
		if (i > from && !check->unknown && (key < last_key || (key == last_key && id < last_id)))
			return gw_part_bad(check->meta, GW_FORMAT, check->ids,
					   "position %" PRIu64 " (row %" PRIu64 "): out of the list's order", i, row);
		last_key = key;
		last_id = id;
	}
	return GW_OK;
}

static gw_status lists_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct part_check *check = context;
	const struct gw_edge_type *type = &check->meta->etypes[check->etype];
	(void)thread;
	gw_status status = GW_OK;
	for (uint64_t row = begin; status == GW_OK && row < end; row++)
		status = check_list(check, row, check->meta->ntypes[type->src].count, type->relations);
	return status;
}

/* Checks an edge of a transposed list. Its id exists in the type, and the owner of its destination owns it. If the
 * owner is this part, the edge starts at this row. */
static gw_status check_out_edge(const struct part_check *check, uint64_t row, uint64_t position)
{
	const struct gw_adjacency *a = check->lists;
	const struct gw_edge_type *type = &check->meta->etypes[check->etype];
	const struct gw_node_type *dst = &check->meta->ntypes[type->dst];
	uint64_t id = gw_load_id(a->indices, a->index_bytes, position), edge = a->eid[position];
	if (id >= dst->count)
		return gw_part_bad(check->meta, GW_RANGE, check->ids,
				   "position %" PRIu64 ": id %" PRIu64 ", but the type has %" PRIu64 " nodes", position,
				   id, dst->count);
	if (edge >= type->count)
		return gw_part_bad(check->meta, GW_RANGE, check->array,
				   "position %" PRIu64 ": edge %" PRIu64 ", but the type has %" PRIu64 " edges",
				   position, edge, type->count);
	uint32_t owner = gw_book_owner(dst->starts, check->meta->num_parts, id);
	if (edge < type->starts[owner] || edge >= type->starts[owner + 1])
		return gw_part_bad(check->meta, GW_FORMAT, check->array,
				   "position %" PRIu64 ": edge %" PRIu64 " is not of part %u, which owns node %" PRIu64,
				   position, edge, owner, id);
	if (owner != check->number)
		return GW_OK;
	const struct gw_adjacency *in = gw_part_adjacency(check->part, check->etype);
	uint64_t from, to, at = edge - in->edge_start;
	gw_adjacency_list(in, id - in->dst_start, &from, &to);
	if (at < from || at >= to || gw_load_id(in->indices, in->index_bytes, at) != a->dst_start + row)
		return gw_part_bad(check->meta, GW_FORMAT, check->array,
				   "position %" PRIu64 ": edge %" PRIu64 " does not go from row %" PRIu64
				   " to node %" PRIu64,
				   position, edge, row, id);
	return GW_OK;
}

/* Checks a list's order by time or relation. Only edges that this part owns are compared, because a part has no times
 * and relations of other edges. */
static gw_status check_out_list(const struct part_check *check, uint64_t row)
{
	const struct gw_adjacency *a = check->lists, *in = gw_part_adjacency(check->part, check->etype);
	uint64_t from, to, last_key = 0, last_id = 0;
	gw_adjacency_list(a, row, &from, &to);
	for (uint64_t i = from; i < to; i++) {
		gw_status status = check_out_edge(check, row, i);
		if (status != GW_OK)
			return status;
		uint64_t id = gw_load_id(a->indices, a->index_bytes, i), key = 0;
		if (check->keys) {
			/* wraps to a number that is too large, if another part owns the edge */
			uint64_t position = a->eid[i] - in->edge_start;
			if (position >= in->edges)
				continue;
			key = first_key(check->keys, position);
		}
		if (!check->unknown && (key < last_key || (key == last_key && id < last_id)))
			return gw_part_bad(check->meta, GW_FORMAT, check->ids,
					   "position %" PRIu64 " (row %" PRIu64 "): out of the list's order", i, row);
		last_key = key;
		last_id = id;
	}
	return GW_OK;
}

static gw_status out_lists_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	gw_status status = GW_OK;
	for (uint64_t row = begin; status == GW_OK && row < end; row++)
		status = check_out_list(context, row);
	return status;
}

/* Checks that aliases are positions within their list. A list without any weight must have UINT32_MAX as every alias
 * and 0 as every threshold, so that no edge of it can be drawn. */
static gw_status alias_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct part_check *check = context;
	const uint32_t *table = (const uint32_t *)check->array->data;
	(void)thread;
	for (uint64_t row = begin; row < end; row++) {
		uint64_t from, to;
		gw_adjacency_list(check->lists, row, &from, &to);
		bool none = from < to && table[2 * from + 1] == UINT32_MAX;
		for (uint64_t i = from; i < to; i++) {
			uint32_t alias = table[2 * i + 1];
			if (none ? alias != UINT32_MAX : alias >= to - from)
				return gw_part_bad(check->meta, GW_RANGE, check->array,
						   "position %" PRIu64 ": alias %u in a list of %" PRIu64 " edges", i,
						   alias, to - from);
			if (none && table[2 * i] != 0)
				return gw_part_bad(check->meta, GW_RANGE, check->array,
						   "position %" PRIu64 ": threshold %u in a list without weight", i,
						   table[2 * i]);
		}
	}
	return GW_OK;
}

static gw_status bool_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct part_check *check = context;
	(void)thread;
	for (uint64_t i = begin; i < end; i++) {
		if (check->array->data[i] > 1)
			return gw_part_bad(check->meta, GW_RANGE, check->array,
					   "byte %" PRIu64 " is %u; a bool is 0 or 1", i, check->array->data[i]);
	}
	return GW_OK;
}

static gw_status strings_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct part_check *check = context;
	const uint64_t *offsets = (const uint64_t *)check->array->data;
	(void)thread;
	for (uint64_t i = begin; i < end; i++) {
		if (offsets[i + 1] < offsets[i] || offsets[i + 1] > check->bytes->rows)
			return gw_part_bad(check->meta, GW_FORMAT, check->array,
					   "entry %" PRIu64 ": the string is [%" PRIu64 ", %" PRIu64 ") of %" PRIu64
					   " bytes",
					   i, offsets[i], offsets[i + 1], check->bytes->rows);
	}
	return GW_OK;
}

/* A draw would take a missing time for the first of all times. */
static gw_status unit_body(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct part_check *check = context;
	const int64_t *times = (const int64_t *)check->array->data;
	(void)thread;
	for (uint64_t i = begin; i < end; i++) {
		if (times[i] == GW_TIME_NAT)
			return gw_part_bad(check->meta, GW_RANGE, check->array, "entry %" PRIu64 ": no time (NaT)", i);
	}
	return GW_OK;
}

static gw_status part_check_strings(struct part_check *check, unsigned threads)
{
	const char *key = check->array->meta->key;
	const uint64_t *offsets = (const uint64_t *)check->array->data;
	char other[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16];
	snprintf(other, sizeof(other), "%.*s.bytes", (int)(strlen(key) - strlen(".offsets")), key);
	check->bytes = gw_part_array(check->part, other);
	if (!check->bytes)
		return gw_part_bad(check->meta, GW_FORMAT, check->array, "there is no \"%s\"", other);
	uint64_t count = check->array->rows - 1; /* the schema requires one more row than strings */
	if (offsets[0] != 0 || offsets[count] != check->bytes->rows)
		return gw_part_bad(check->meta, GW_FORMAT, check->array,
				   "runs from %" PRIu64 " to %" PRIu64 ", but there are %" PRIu64 " bytes", offsets[0],
				   offsets[count], check->bytes->rows);
	return gw_parallel_for(threads, count, GRAIN, strings_body, check);
}

static const struct gw_array *node_array(const struct part_check *check, uint32_t ntype, const char *name)
{
	char key[2 * GW_NAME_MAX + 16];
	snprintf(key, sizeof(key), "node/%s/%s", check->meta->ntypes[ntype].name, name);
	return gw_part_array(check->part, key);
}

static const struct gw_array *edge_array(const struct part_check *check, const char *name)
{
	char key[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16];
	snprintf(key, sizeof(key), "edge/%s/%s", check->meta->etypes[check->etype].folder, name);
	return gw_part_array(check->part, key);
}

static void set_sort_keys(struct part_check *check, const struct gw_edge_type *type)
{
	check->keys = NULL;
	if (type->order != GW_ORDER_SRC)
		check->keys = edge_array(check, type->order == GW_ORDER_TIME_SRC ? type->time_name : "rel");
	check->unknown = check->keys && check->keys->apart;
	if (check->unknown)
		check->keys = NULL;
	check->real = check->keys && gw_time_is_real(check->keys->meta->dtype);
}

static gw_status check_etype(struct part_check *check, unsigned threads)
{
	const struct gw_edge_type *type = &check->meta->etypes[check->etype];
	check->lists = gw_part_adjacency(check->part, check->etype);
	check->offsets = node_array(check, type->dst, "indptr");
	check->ids = edge_array(check, "indices");
	set_sort_keys(check, type);
	gw_status status = check->offsets->apart ? GW_OK : check_offsets(check, threads);
	if (status != GW_OK || check->lists->on_disk)
		return status;
	return gw_parallel_for(threads, check->lists->rows, GRAIN / 16, lists_body, check);
}

static gw_status part_check_transpose(struct part_check *check, unsigned threads)
{
	const struct gw_edge_type *type = &check->meta->etypes[check->etype];
	check->lists = gw_part_out_adjacency(check->part, check->etype);
	if (!check->lists)
		return GW_OK;
	check->offsets = node_array(check, type->src, "out_indptr");
	check->ids = edge_array(check, "out/indices");
	check->array = edge_array(check, "out/eid");
	set_sort_keys(check, type);
	gw_status status = check->offsets->apart ? GW_OK : check_offsets(check, threads);
	if (status != GW_OK || check->lists->on_disk)
		return status;
	return gw_parallel_for(threads, check->lists->rows, GRAIN / 16, out_lists_body, check);
}

static gw_status check_array(struct part_check *check, unsigned threads)
{
	const struct gw_array *array = check->array;
	struct gw_array_key key;
	if (array->apart)
		return GW_OK;
	if (array->meta->dtype == GW_BOOL)
		return gw_parallel_for(threads, array->rows * array->row_bytes, 16ull * GRAIN, bool_body, check);
	if (gw_name_ends_in(array->meta->key, ".offsets"))
		return part_check_strings(check, threads);
	if (gw_replica_key(check->meta, array->meta->key))
		return gw_name_ends_in(array->meta->key, GW_REPLICA_TAIL)
			       ? GW_OK
			       : gw_replicas_check(check->part, array, threads);
	if (array->meta->dtype == GW_INT64 && gw_meta_unit(check->meta, array->meta->key) != GW_UNIT_NONE)
		return gw_parallel_for(threads, gw_array_meta_bytes(array->meta) / sizeof(int64_t), GRAIN, unit_body,
				       check);
	gw_status status = gw_array_key_parse(check->meta, array->meta->key, &key);
	if (status != GW_OK || !key.edge || !gw_name_ends_in(key.name, ".alias"))
		return status;
	check->lists = gw_part_adjacency(check->part, key.type);
	if (!check->lists->indptr) /* on disk */
		return GW_OK;
	return gw_parallel_for(threads, check->lists->rows, GRAIN / 16, alias_body, check);
}

gw_status gw_part_check(const struct gw_part *part, unsigned threads)
{
	struct part_check check = {.part = part, .meta = gw_part_meta(part), .number = gw_part_number(part)};
	gw_status status = GW_OK;
	for (check.etype = 0; status == GW_OK && check.etype < check.meta->num_etypes; check.etype++)
		status = check_etype(&check, threads);
	for (check.etype = 0; status == GW_OK && check.etype < check.meta->num_etypes; check.etype++)
		status = part_check_transpose(&check, threads);
	for (uint32_t i = 0; status == GW_OK && (check.array = gw_part_array_at(part, i)); i++)
		status = check_array(&check, threads);
	for (uint32_t t = 0; status == GW_OK && t < check.meta->num_ntypes; t++)
		status = gw_id_index_check(part, t, threads);
	return status == GW_OK ? gw_times_check(part, threads) : status;
}
