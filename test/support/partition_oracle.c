/* See the header. Memory is libc's, not the hook's: tests of shortages do not see it. */
#include "test/support/partition_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/part.h"
#include "core/numbers/digest.h"

#define KEY_ROOM (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32)

/* An array of the input and its shares in the parts, looked up once. */
struct column {
	const struct gw_array *array, **there; /* there: [parts] */
	bool edge, data, alias;
	uint32_t type;
};

struct oracle {
	struct gw_graph_meta *in, *out;
	struct gw_part *whole, **part;
	uint64_t **old_node; /* [ntypes]: by new id */
	uint64_t **new_node; /* [ntypes]: by old id */
	uint64_t **old_edge; /* [etypes]: by new id */
	struct column *columns;
	uint32_t column_count;
	struct gw_oracle_result *result;
};

static bool ends_with(const char *text, const char *suffix)
{
	size_t length = strlen(text), tail = strlen(suffix);
	return length > tail && strcmp(text + length - tail, suffix) == 0;
}

/* One row of any array; of strings, by the key of their offsets, the string. */
static const uint8_t *row_of(const struct gw_part *part, const struct gw_array *array, uint64_t row, uint64_t *bytes)
{
	if (!ends_with(array->meta->key, ".offsets")) {
		*bytes = array->row_bytes;
		return array->data + row * array->row_bytes;
	}
	char key[KEY_ROOM];
	const uint64_t *offsets = (const uint64_t *)array->data;
	snprintf(key, sizeof(key), "%.*s.bytes", (int)strlen(array->meta->key) - 8, array->meta->key);
	const struct gw_array *text = gw_part_array(part, key);
	assert_non_null(text);
	*bytes = offsets[row + 1] - offsets[row];
	return text->data + offsets[row];
}

static void find_columns(struct oracle *o)
{
	const struct gw_array *array;
	while (gw_part_array_at(o->whole, o->column_count))
		o->column_count++;
	o->columns = calloc(o->column_count, sizeof(*o->columns));
	for (uint32_t i = 0; (array = gw_part_array_at(o->whole, i)); i++) {
		struct column *column = &o->columns[i];
		struct gw_array_key key;
		assert_int_equal(gw_array_key_parse(o->in, array->meta->key, &key), GW_OK);
		column->array = array;
		column->edge = key.edge;
		column->type = key.type;
		column->alias = key.edge && ends_with(key.name, ".alias");
		/* Data of a row, and not lists, or written again for each list. */
		column->data = !key.out && strcmp(key.name, "indptr") != 0 && strcmp(key.name, "out_indptr") != 0 &&
			       strcmp(key.name, "indices") != 0 && !ends_with(key.name, ".bytes") &&
			       !ends_with(key.name, ".alias") && !ends_with(key.name, ".names.offsets") &&
			       !(key.edge ? strcmp(key.name, GW_INVERSE_NAME) == 0 : gw_name_is_node_ids(key.name));
		column->there = calloc(o->out->num_parts, sizeof(*column->there));
		for (uint32_t p = 0; p < o->out->num_parts; p++) {
			column->there[p] = gw_part_array(o->part[p], array->meta->key);
			assert_true(!column->data || column->there[p]);
			assert_true(!column->data || column->there[p]->meta->dtype == array->meta->dtype);
		}
	}
}

static void check_names(struct oracle *o)
{
	const struct gw_array *array;
	for (uint32_t i = 0; (array = gw_part_array_at(o->whole, i)); i++) {
		const char *key = array->meta->key;
		if (!ends_with(key, ".names.offsets") && !ends_with(key, ".names.bytes"))
			continue;
		for (uint32_t p = 0; p < o->out->num_parts; p++) {
			const struct gw_array *there = gw_part_array(o->part[p], key);
			assert_non_null(there);
			assert_int_equal(there->rows, array->rows);
			assert_memory_equal(there->data, array->data, array->rows * array->row_bytes);
		}
	}
}

struct mark {
	uint64_t hash, row;
};

static int compare_marks(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;
	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* A digest of all data of a node that the input has; part UINT32_MAX: of the input. */
static uint64_t node_hash(struct oracle *o, uint32_t part, uint32_t ntype, uint64_t row)
{
	uint64_t hash = 0, bytes;
	for (uint32_t i = 0; i < o->column_count; i++) {
		const struct column *column = &o->columns[i];
		if (column->edge || column->type != ntype || !column->data)
			continue;
		const uint8_t *data = part == UINT32_MAX ? row_of(o->whole, column->array, row, &bytes)
							 : row_of(o->part[part], column->there[part], row, &bytes);
		uint64_t both[2] = {hash, gw_digest(data, bytes)};
		hash = gw_digest(both, sizeof(both));
	}
	return hash;
}

static struct mark *mark_nodes(struct oracle *o, uint32_t ntype)
{
	uint64_t count = o->in->ntypes[ntype].count;
	struct mark *marks = malloc((count + 1) * sizeof(*marks));
	for (uint64_t v = 0; v < count; v++)
		marks[v] = (struct mark){node_hash(o, UINT32_MAX, ntype, v), v};
	qsort(marks, count, sizeof(*marks), compare_marks);
	for (uint64_t i = 1; i < count; i++)
		assert_true(marks[i].hash != marks[i - 1].hash); /* else the test's graph tells too little */
	return marks;
}

/* A bijection; within a part in the order of old ids. */
static void map_nodes(struct oracle *o, uint32_t ntype)
{
	const struct gw_node_type *type = &o->out->ntypes[ntype];
	char key[KEY_ROOM];
	snprintf(key, sizeof(key), "node/%s/orig_id", type->name);
	bool has_int = gw_part_array(o->whole, key) != NULL;
	snprintf(key, sizeof(key), "node/%s/orig_id.offsets", type->name);
	bool has_ids = has_int || gw_part_array(o->whole, key);
	struct mark *marks = has_ids ? mark_nodes(o, ntype) : NULL;
	assert_int_equal(type->count, o->in->ntypes[ntype].count);
	o->old_node[ntype] = malloc((type->count + 1) * 8);
	o->new_node[ntype] = malloc((type->count + 1) * 8);
	memset(o->new_node[ntype], 0xff, type->count * 8);
	for (uint32_t p = 0; p < o->out->num_parts; p++) {
		uint64_t last = UINT64_MAX;
		for (uint64_t id = type->starts[p]; id < type->starts[p + 1]; id++) {
			uint64_t row = id - type->starts[p], old;
			struct mark want = {node_hash(o, p, ntype, row), 0};
			if (marks) {
				struct mark *found = bsearch(&want, marks, type->count, sizeof(*marks), compare_marks);
				assert_non_null(found);
				old = found->row;
			} else {
				snprintf(key, sizeof(key), "node/%s/orig_id", type->name);
				old = ((const uint64_t *)gw_part_array(o->part[p], key)->data)[row];
				assert_true(old < type->count);
				assert_true(want.hash == node_hash(o, UINT32_MAX, ntype, old));
			}
			assert_true(last == UINT64_MAX || old > last);
			assert_true(o->new_node[ntype][old] == UINT64_MAX);
			o->old_node[ntype][id] = last = old;
			o->new_node[ntype][old] = id;
		}
	}
	free(marks);
}

struct expected {
	const uint8_t *key; /* or NULL */
	uint64_t key_bytes, id, at, tie;
};

static int64_t key_value(const struct expected *e)
{
	if (!e->key)
		return 0;
	int64_t value = 0;
	memcpy(&value, e->key, e->key_bytes);
	return e->key_bytes == 4 ? (int32_t)value : value; /* numbers of relations are small and not negative */
}

static int compare_expected(const void *a, const void *b)
{
	const struct expected *x = a, *y = b;
	int64_t kx = key_value(x), ky = key_value(y);
	if (kx != ky)
		return kx < ky ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->tie < y->tie ? -1 : x->tie > y->tie;
}

static struct expected *expect_list(struct oracle *o, uint32_t etype, uint64_t old_dst, uint64_t *count)
{
	const struct gw_edge_type *type = &o->in->etypes[etype];
	const struct gw_adjacency *a = gw_part_adjacency(o->whole, etype);
	char name[KEY_ROOM];
	uint64_t from, to;
	gw_adjacency_list(a, old_dst, &from, &to);
	snprintf(name, sizeof(name), "edge/%s/%s", type->folder,
		 type->order == GW_ORDER_TIME_SRC ? type->time_name : "rel");
	const struct gw_array *key = type->order == GW_ORDER_SRC ? NULL : gw_part_array(o->whole, name);
	struct expected *list = malloc((to - from + 1) * sizeof(*list));
	for (uint64_t i = from; i < to; i++)
		list[i - from] =
			(struct expected){key ? key->data + i * key->row_bytes : NULL, key ? key->row_bytes : 0,
					  o->new_node[type->src][gw_load_id(a->indices, a->index_bytes, i)], i, i};
	*count = to - from;
	qsort(list, *count, sizeof(*list), compare_expected);
	return list;
}

static void check_alias_means_the_same(struct oracle *o, const char *key, uint32_t p, uint64_t begin,
				       const struct expected *list, uint64_t count, uint64_t old_begin)
{
	const uint32_t *now = (const uint32_t *)gw_part_array(o->part[p], key)->data + 2 * begin;
	const uint32_t *was = (const uint32_t *)gw_part_array(o->whole, key)->data;
	for (uint64_t i = 0; i < count; i++) {
		uint32_t alias = was[2 * list[i].at + 1];
		assert_int_equal(now[2 * i], was[2 * list[i].at]);
		if (alias == UINT32_MAX)
			assert_int_equal(now[2 * i + 1], UINT32_MAX);
		else
			assert_true(list[now[2 * i + 1]].at == old_begin + alias);
	}
}

static void check_edge_rows(struct oracle *o, uint32_t etype, uint32_t p, uint64_t begin, const struct expected *list,
			    uint64_t count, uint64_t old_begin)
{
	for (uint32_t k = 0; k < o->column_count; k++) {
		const struct column *column = &o->columns[k];
		if (!column->edge || column->type != etype)
			continue;
		if (column->alias)
			check_alias_means_the_same(o, column->array->meta->key, p, begin, list, count, old_begin);
		if (!column->data)
			continue;
		for (uint64_t i = 0; i < count; i++) {
			uint64_t a_bytes, b_bytes;
			const uint8_t *a = row_of(o->whole, column->array, list[i].at, &a_bytes);
			const uint8_t *b = row_of(o->part[p], column->there[p], begin + i, &b_bytes);
			assert_int_equal(a_bytes, b_bytes);
			assert_memory_equal(a, b, a_bytes);
		}
	}
}

static void check_lists(struct oracle *o, uint32_t etype)
{
	const struct gw_edge_type *type = &o->out->etypes[etype];
	const uint64_t *starts = o->out->ntypes[type->dst].starts, *src_starts = o->out->ntypes[type->src].starts;
	uint64_t total = 0;
	assert_int_equal(type->count, o->in->etypes[etype].count);
	o->old_edge[etype] = malloc((type->count + 1) * 8);
	for (uint32_t p = 0; p < o->out->num_parts; p++) {
		const struct gw_adjacency *a = gw_part_adjacency(o->part[p], etype);
		assert_int_equal(a->rows, starts[p + 1] - starts[p]);
		for (uint64_t row = 0; row < a->rows; row++) {
			uint64_t from, to, count, old_from, old_to, old = o->old_node[type->dst][starts[p] + row];
			struct expected *list = expect_list(o, etype, old, &count);
			gw_adjacency_list(a, row, &from, &to);
			gw_adjacency_list(gw_part_adjacency(o->whole, etype), old, &old_from, &old_to);
			assert_int_equal(to - from, count);
			for (uint64_t i = 0; i < count; i++) {
				uint64_t id = gw_load_id(a->indices, a->index_bytes, from + i);
				assert_int_equal(id, list[i].id);
				o->old_edge[etype][a->edge_start + from + i] = list[i].at;
				o->result->edges_cut += id < src_starts[p] || id >= src_starts[p + 1];
			}
			check_edge_rows(o, etype, p, from, list, count, old_from);
			free(list);
		}
		total += a->edges;
		if (p < 16)
			o->result->part_edges[p] += a->edges;
	}
	assert_int_equal(total, type->count);
	o->result->edges += total;
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void check_transpose(struct oracle *o, uint32_t etype)
{
	const struct gw_edge_type *type = &o->out->etypes[etype];
	const struct gw_adjacency *old = gw_part_out_adjacency(o->whole, etype);
	assert_int_equal(type->out_column != GW_TYPE_NONE, o->in->etypes[etype].out_column != GW_TYPE_NONE);
	for (uint32_t p = 0; old && p < o->out->num_parts; p++) {
		const struct gw_adjacency *a = gw_part_out_adjacency(o->part[p], etype);
		for (uint64_t row = 0; row < a->rows; row++) {
			uint64_t from, to, old_from, old_to;
			gw_adjacency_list(a, row, &from, &to);
			gw_adjacency_list(old, o->old_node[type->src][a->dst_start + row], &old_from, &old_to);
			assert_int_equal(to - from, old_to - old_from);
			uint64_t *now = malloc((to - from + 1) * 8), *was = malloc((to - from + 1) * 8);
			for (uint64_t i = 0; i < to - from; i++) {
				uint64_t dst = gw_load_id(a->indices, a->index_bytes, from + i);
				uint64_t edge = o->old_edge[etype][a->eid[from + i]], end, begin;
				gw_adjacency_list(gw_part_adjacency(o->whole, etype), o->old_node[type->dst][dst],
						  &begin, &end);
				assert_true(edge >= begin && edge < end);
				if (type->order == GW_ORDER_SRC && i > 0) {
					uint64_t last = gw_load_id(a->indices, a->index_bytes, from + i - 1);
					assert_true(last < dst ||
						    (last == dst && a->eid[from + i - 1] < a->eid[from + i]));
				}
				now[i] = edge;
				was[i] = old->eid[old_from + i];
			}
			qsort(now, to - from, 8, compare_numbers);
			qsort(was, to - from, 8, compare_numbers);
			assert_memory_equal(now, was, (to - from) * 8);
			free(now);
			free(was);
		}
	}
}

static uint64_t load_row_of_parts(struct oracle *o, const char *key, uint64_t at)
{
	for (uint32_t p = 0;; p++) {
		const struct gw_array *array = gw_part_array(o->part[p], key);
		if (at < array->rows)
			return gw_load_id(array->data, (uint8_t)array->row_bytes, at);
		at -= array->rows;
	}
}

/* Where no id is left out; nothing elsewhere. */
static void check_inverse(struct oracle *o, uint32_t etype, bool has_ids)
{
	char key[KEY_ROOM], ids[KEY_ROOM];
	snprintf(key, sizeof(key), "edge/%s/" GW_INVERSE_NAME, o->out->etypes[etype].folder);
	snprintf(ids, sizeof(ids), "edge/%s/orig_id", o->out->etypes[etype].folder);
	uint64_t edges = has_ids ? o->out->etypes[etype].count : 0, rows = 0, found = 0, have = 0;
	uint64_t *first = malloc((edges + 1) * sizeof(*first));
	memset(first, 0xff, (edges + 1) * sizeof(*first));
	for (uint64_t i = 0; i < edges; i++) {
		uint64_t id = load_row_of_parts(o, ids, i);
		rows = id >= rows ? id + 1 : rows;
		if (id < edges && first[id] == UINT64_MAX) {
			first[id] = i;
			found++;
		}
	}
	bool there = gw_part_array(o->part[0], key);
	assert_int_equal(there, has_ids && found == rows);
	for (uint32_t p = 0; there && p < o->out->num_parts; p++)
		have += gw_part_array(o->part[p], key)->rows;
	assert_int_equal(have, there ? rows : 0);
	for (uint64_t id = 0; there && id < rows; id++)
		assert_int_equal(load_row_of_parts(o, key, id), first[id]);
	free(first);
}

/* Ids of the input that became orig_id, in the narrow type; those that were there are columns like any other. */
static void check_origins(struct oracle *o, uint32_t etype)
{
	char key[KEY_ROOM];
	const struct gw_array *ids = NULL;
	snprintf(key, sizeof(key), "edge/%s/orig_id", o->out->etypes[etype].folder);
	bool made = !gw_part_array(o->whole, key);
	for (uint32_t p = 0; p < o->out->num_parts; p++) {
		ids = gw_part_array(o->part[p], key);
		for (uint64_t i = 0; made && ids && i < ids->rows; i++)
			assert_int_equal(((const uint32_t *)ids->data)[i],
					 o->old_edge[etype][o->out->etypes[etype].starts[p] + i]);
	}
	check_inverse(o, etype, ids != NULL);
}

static void count_nodes(struct oracle *o, uint32_t ntype)
{
	const struct gw_node_type *type = &o->out->ntypes[ntype];
	char key[KEY_ROOM];
	snprintf(key, sizeof(key), "node/%s/train_mask", type->name);
	for (uint32_t p = 0; p < o->out->num_parts && p < 16; p++) {
		uint64_t rows = type->starts[p + 1] - type->starts[p];
		const struct gw_array *mask = gw_part_array(o->part[p], key);
		o->result->nodes[p] += rows;
		if (ntype < 8)
			o->result->ntype_nodes[ntype][p] = rows;
		for (uint64_t i = 0; mask && i < rows; i++)
			o->result->train[p] += mask->data[i];
	}
}

static void open_all(struct oracle *o, const char *in, const char *out)
{
	struct gw_part_options options = {.mapped = true};
	if (gw_meta_read(in, &o->in) || gw_meta_read(out, &o->out) || gw_part_open(o->in, 0, &options, &o->whole))
		fail_msg("%s", gw_last_error());
	assert_int_equal(o->in->num_ntypes, o->out->num_ntypes);
	assert_int_equal(o->in->num_etypes, o->out->num_etypes);
	assert_string_equal(o->in->graph_name, o->out->graph_name);
	o->part = calloc(o->out->num_parts, sizeof(*o->part));
	o->old_node = calloc(o->in->num_ntypes, sizeof(*o->old_node));
	o->new_node = calloc(o->in->num_ntypes, sizeof(*o->new_node));
	o->old_edge = calloc(o->in->num_etypes + 1u, sizeof(*o->old_edge));
	for (uint32_t p = 0; p < o->out->num_parts; p++) {
		if (gw_part_open(o->out, p, &options, &o->part[p]))
			fail_msg("%s", gw_last_error());
	}
	find_columns(o);
}

static void close_all(struct oracle *o)
{
	for (uint32_t i = 0; i < o->column_count; i++)
		free(o->columns[i].there);
	free(o->columns);
	for (uint32_t t = 0; t < o->in->num_ntypes; t++) {
		free(o->old_node[t]);
		free(o->new_node[t]);
	}
	for (uint32_t e = 0; e < o->in->num_etypes; e++)
		free(o->old_edge[e]);
	for (uint32_t p = 0; p < o->out->num_parts; p++)
		gw_part_close(o->part[p]);
	gw_part_close(o->whole);
	gw_meta_destroy(o->in);
	gw_meta_destroy(o->out);
	free(o->part);
	free(o->old_node);
	free(o->new_node);
	free(o->old_edge);
}

void gw_oracle_check(const char *in, const char *out, struct gw_oracle_result *result)
{
	struct oracle o = {.result = result};
	memset(result, 0, sizeof(*result));
	open_all(&o, in, out);
	result->parts = o.out->num_parts;
	result->graph_id = o.out->graph_id;
	for (uint32_t t = 0; t < o.in->num_ntypes; t++) {
		map_nodes(&o, t);
		count_nodes(&o, t);
	}
	for (uint32_t e = 0; e < o.in->num_etypes; e++) {
		check_lists(&o, e);
		check_transpose(&o, e);
		check_origins(&o, e);
		assert_int_equal(o.in->etypes[e].order, o.out->etypes[e].order);
		assert_int_equal(o.in->etypes[e].relations, o.out->etypes[e].relations);
		assert_int_equal(o.in->etypes[e].reverse, o.out->etypes[e].reverse);
	}
	check_names(&o);
	close_all(&o);
}
