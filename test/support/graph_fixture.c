/* The graph of graph_fixture.h: seeded ids and edges, then one writer. */
#include "test/support/graph_fixture.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "core/graph/alias.h"
#include "core/graph/csc.h"
#include "core/graph/id_index.h"
#include "core/graph/times.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "test/support/scratch.h"

#define RELATIONS 7

static const char *const ntype_names[GW_FIXTURE_NTYPES] = {"paper", "author", "venue"};

static const struct {
	const char *name;
	uint32_t src, dst;
} etypes[GW_FIXTURE_ETYPES] = {
	[FIXTURE_WRITES] = {"writes", 1, 0},
	[FIXTURE_WRITTEN_BY] = {"written-by", 0, 1},
	[FIXTURE_CITES] = {"cites", 0, 0},
	[FIXTURE_KNOWS] = {"knows", 1, 1},
};

static void make_schema(struct gw_fixture *fixture, uint64_t scale, uint32_t parts)
{
	uint64_t counts[GW_FIXTURE_NTYPES] = {scale, scale / 2 + 1, 3};
	struct gw_graph_meta *meta;
	assert_int_equal(gw_meta_create("fixture", parts, GW_FIXTURE_NTYPES, GW_FIXTURE_ETYPES, &meta), GW_OK);
	for (uint32_t t = 0; t < GW_FIXTURE_NTYPES; t++) {
		struct gw_node_type *type = &meta->ntypes[t];
		snprintf(type->name, sizeof(type->name), "%s", ntype_names[t]);
		type->count = counts[t];
		for (uint32_t p = 0; p < parts; p++)
			type->starts[p + 1] = counts[t] * (p + 1) / parts;
		if (parts > 2) /* an empty part */
			type->starts[2] = type->starts[1];
	}
	for (uint32_t t = 0; t < GW_FIXTURE_ETYPES; t++) {
		struct gw_edge_type *type = &meta->etypes[t];
		snprintf(type->name, sizeof(type->name), "%s", etypes[t].name);
		type->src = etypes[t].src;
		type->dst = etypes[t].dst;
	}
	meta->etypes[FIXTURE_WRITES].reverse = FIXTURE_WRITTEN_BY;
	meta->etypes[FIXTURE_WRITTEN_BY].reverse = FIXTURE_WRITES;
	meta->etypes[FIXTURE_WRITES].out_column = 0;
	meta->etypes[FIXTURE_CITES].order = GW_ORDER_TIME_SRC;
	strcpy(meta->etypes[FIXTURE_CITES].time_name, "year");
	meta->etypes[FIXTURE_KNOWS].order = GW_ORDER_REL_SRC;
	meta->etypes[FIXTURE_KNOWS].relations = RELATIONS;
	fixture->schema = meta;
}

/* Skewed towards low ids, with parallel edges, loops and empty lists. */
static void make_edges(struct gw_fixture *fixture, uint32_t t, uint64_t seed)
{
	const struct gw_graph_meta *meta = fixture->schema;
	struct gw_fixture_edges *edges = &fixture->edges[t];
	uint64_t num_src = meta->ntypes[etypes[t].src].count, num_dst = meta->ntypes[etypes[t].dst].count;
	uint64_t count = 6 * num_dst;
	struct gw_draws draws = gw_draws_begin(gw_draw_key(seed, 0, GW_DRAW_WALK, 0, t), 1);
	uint64_t *src = gw_malloc(count * 8), *dst = gw_malloc(count * 8);
	int64_t *time = gw_malloc(count * 8);
	uint32_t *rel = gw_malloc(count * 4);
	for (uint64_t e = 0; e < count; e++) {
		src[e] = gw_draw_below(&draws, 1 + gw_draw_below(&draws, (uint32_t)num_src));
		dst[e] = gw_draw_below(&draws, 1 + gw_draw_below(&draws, (uint32_t)num_dst));
		time[e] = (int64_t)gw_draw_below(&draws, 40) - 20;
		rel[e] = gw_draw_below(&draws, RELATIONS);
	}
	struct gw_coo coo = {
		num_src, num_dst, count, src, dst, t == FIXTURE_CITES ? time : NULL, t == FIXTURE_KNOWS ? rel : NULL};
	struct gw_csc csc;
	assert_int_equal(gw_csc_build(&coo, 2, &csc), GW_OK);
	*edges = (struct gw_fixture_edges){count,
					   csc.indptr,
					   gw_malloc(count * 8),
					   gw_malloc(count * 8),
					   gw_malloc(count * 8),
					   gw_malloc(count * 4)};
	for (uint64_t i = 0; i < count; i++) {
		edges->src[i] = src[csc.order[i]];
		edges->dst[i] = dst[csc.order[i]];
		edges->time[i] = time[csc.order[i]];
		edges->rel[i] = rel[csc.order[i]];
	}
	gw_free(csc.order);
	gw_free(src);
	gw_free(dst);
	gw_free(time);
	gw_free(rel);
}

static void make_reverse_of_writes(struct gw_fixture *fixture)
{
	struct gw_fixture_edges *from = &fixture->edges[FIXTURE_WRITES], *to = &fixture->edges[FIXTURE_WRITTEN_BY];
	const struct gw_graph_meta *meta = fixture->schema;
	struct gw_coo coo = {
		meta->ntypes[0].count, meta->ntypes[1].count, from->count, from->dst, from->src, NULL, NULL};
	struct gw_csc csc;
	assert_int_equal(gw_csc_build(&coo, 1, &csc), GW_OK);
	*to = (struct gw_fixture_edges){.count = from->count,
					.indptr = csc.indptr,
					.src = gw_malloc(from->count * 8),
					.dst = gw_malloc(from->count * 8)};
	for (uint64_t i = 0; i < to->count; i++) {
		to->src[i] = from->dst[csc.order[i]];
		to->dst[i] = from->src[csc.order[i]];
	}
	gw_free(csc.order);
}

void gw_test_folder(char path[64])
{
	gw_scratch_make_in_memory("test", path);
}

void gw_fixture_begin(struct gw_fixture *fixture, uint64_t seed, uint64_t scale, uint32_t parts)
{
	memset(fixture, 0, sizeof(*fixture));
	gw_test_folder(fixture->root);
	snprintf(fixture->folder, sizeof(fixture->folder), "%s/graph", fixture->root);
	make_schema(fixture, scale, parts);
	make_edges(fixture, FIXTURE_WRITES, seed);
	make_reverse_of_writes(fixture);
	make_edges(fixture, FIXTURE_CITES, seed);
	make_edges(fixture, FIXTURE_KNOWS, seed);
	struct gw_graph_meta *meta = fixture->schema;
	for (uint32_t t = 0; t < GW_FIXTURE_ETYPES; t++) {
		const uint64_t *starts = meta->ntypes[meta->etypes[t].dst].starts;
		meta->etypes[t].count = fixture->edges[t].count;
		for (uint32_t p = 0; p <= parts; p++)
			meta->etypes[t].starts[p] = fixture->edges[t].indptr[starts[p]];
	}
	assert_int_equal(gw_meta_finish(meta), GW_OK);
}

static uint64_t span(const uint64_t *starts, uint32_t part)
{
	return starts[part + 1] - starts[part];
}

/* A feature whose bytes are a hash of where they lie: row by global id, so that every partitioning has the same rows.
 */
static gw_status write_feature(struct gw_writer *writer, uint32_t part, const char *key, gw_dtype dtype,
			       const uint64_t *starts, uint32_t ndim, uint64_t d1, uint64_t d2)
{
	uint64_t rows = span(starts, part), shape[3] = {rows, d1, d2};
	uint64_t row_bytes = gw_dtype_bytes(dtype) * (ndim > 1 ? d1 : 1) * (ndim > 2 ? d2 : 1);
	uint8_t *data = gw_malloc(rows * row_bytes);
	if (!data)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < rows * row_bytes; i++) {
		uint64_t word = gw_mix64(starts[part] * row_bytes + i + strlen(key) * 1000003u);
		data[i] = (uint8_t)(dtype == GW_BOOL ? word & 1 : dtype == GW_FLOAT32 && i % 4 == 3 ? 0x3f : word);
	}
	gw_status status = gw_writer_array(writer, part, key, dtype, ndim, shape, data);
	gw_free(data);
	return status;
}

static gw_status write_strings(struct gw_writer *writer, uint32_t part, const uint64_t *starts)
{
	uint64_t rows = span(starts, part);
	uint64_t *offsets = gw_calloc(rows + 1, sizeof(*offsets));
	char *bytes = gw_malloc(rows * 24 + 1);
	gw_status status = GW_NO_MEMORY;
	if (offsets && bytes) {
		for (uint64_t i = 0; i < rows; i++) {
			uint64_t id = starts[part] + i;
			int length =
				id % 5 == 0 ? 0 : sprintf(bytes + offsets[i], "paper-%llu", (unsigned long long)id);
			offsets[i + 1] = offsets[i] + (uint64_t)length;
		}
		status = gw_writer_strings(writer, part, "node/paper/orig_id", offsets, rows, bytes);
	}
	gw_free(offsets);
	gw_free(bytes);
	return status;
}

static gw_status write_orig_ids(struct gw_writer *writer, uint32_t part, const char *key, const uint64_t *starts)
{
	uint64_t rows = span(starts, part);
	int64_t *ids = gw_malloc(rows * sizeof(*ids));
	if (!ids)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < rows; i++)
		ids[i] = (int64_t)(starts[part] + i) * 10 + 7;
	gw_status status = gw_writer_array(writer, part, key, GW_INT64, 1, &rows, ids);
	gw_free(ids);
	return status;
}

static bool has_times;

void gw_fixture_give_times(bool give)
{
	has_times = give;
}

double gw_fixture_born(const struct gw_fixture *fixture, uint32_t ntype, uint64_t id)
{
	const uint64_t count = fixture->schema->ntypes[ntype].count, place = (id * 37 + 11) % count;
	if (place == 0)
		return GW_FIXTURE_BORN_1;
	if (place < 5)
		return GW_FIXTURE_BORN_5 - 4 + (double)place;
	return place < 51 ? GW_FIXTURE_BORN_51 - (double)(place % 3) : (double)(place * 7 % (GW_FIXTURE_BORN_ALL + 1));
}

double gw_fixture_gone(const struct gw_fixture *fixture, uint32_t ntype, uint64_t id)
{
	const uint64_t word = gw_mix64(2 * id + ntype);
	const double born = gw_fixture_born(fixture, ntype, id);
	if (word % 64 == 0 || born == GW_FIXTURE_BORN_1)
		return ntype == 0 ? NAN : 2 * GW_FIXTURE_NEVER;
	return born + (double)(word / 64 % 6) + (born < 0) + (ntype == 0 ? 0.25 : 0);
}

static gw_status write_time(const struct gw_fixture *fixture, struct gw_writer *writer, uint32_t part, uint32_t ntype,
			    bool end)
{
	const uint64_t *starts = fixture->schema->ntypes[ntype].starts;
	uint64_t rows = span(starts, part);
	int64_t *whole = gw_malloc(rows * sizeof(*whole));
	double *real = gw_malloc(rows * sizeof(*real));
	float *narrow = gw_malloc(rows * sizeof(*narrow));
	char key[64];
	gw_status status = whole && real && narrow ? GW_OK : GW_NO_MEMORY;
	for (uint64_t i = 0; i < rows && status == GW_OK; i++) {
		real[i] = (end ? gw_fixture_gone : gw_fixture_born)(fixture, ntype, starts[part] + i);
		narrow[i] = (float)real[i];
		whole[i] = isnan(real[i]) ? 0 : (int64_t)real[i];
	}
	snprintf(key, sizeof(key), "node/%s/%s", ntype_names[ntype], end ? "gone" : "born");
	if (status == GW_OK && (ntype == 0) != end)
		status = gw_writer_array(writer, part, key, GW_INT64, 1, &rows, whole);
	else if (status == GW_OK && end)
		status = gw_writer_array(writer, part, key, GW_FLOAT32, 1, &rows, narrow);
	else if (status == GW_OK)
		status = gw_writer_array(writer, part, key, GW_FLOAT64, 1, &rows, real);
	gw_free(whole);
	gw_free(real);
	gw_free(narrow);
	return status;
}

/* Made of the times of all parts. */
static gw_status write_times(struct gw_writer *writer)
{
	static const struct gw_time_index indexes[] = {{0, "born"}, {1, "born"}};
	uint64_t bytes = 0;
	gw_writer_set_minor(writer, GW_FORMAT_MINOR_TIMES);
	return gw_times_write(writer, indexes, 2, 1, &bytes);
}

static gw_status write_nodes(const struct gw_fixture *fixture, struct gw_writer *writer, uint32_t part)
{
	const struct gw_node_type *types = fixture->schema->ntypes;
	gw_status status = write_strings(writer, part, types[0].starts);
	if (status == GW_OK)
		status = write_orig_ids(writer, part, "node/author/orig_id", types[1].starts);
	if (status == GW_OK)
		status = write_feature(writer, part, "node/paper/feat", GW_FLOAT32, types[0].starts, 2, 5, 0);
	if (status == GW_OK)
		status = write_feature(writer, part, "node/paper/label", GW_INT64, types[0].starts, 1, 0, 0);
	if (status == GW_OK)
		status = write_feature(writer, part, "node/paper/train_mask", GW_BOOL, types[0].starts, 1, 0, 0);
	if (status == GW_OK)
		status = write_feature(writer, part, "node/author/half", GW_BFLOAT16, types[1].starts, 3, 2, 2);
	if (status == GW_OK)
		status = write_feature(writer, part, "node/author/q", GW_INT8_ROW, types[1].starts, 2, 12, 0);
	if (status == GW_OK)
		status = write_feature(writer, part, "node/venue/x", GW_UINT16, types[2].starts, 1, 0, 0);
	for (uint32_t i = 0; has_times && i < 4 && status == GW_OK; i++)
		status = write_time(fixture, writer, part, i / 2, i % 2);
	return status;
}

/* indptr of a node type: one column for each edge type that ends there, counted from the part's first row. */
static gw_status write_indptr(const struct gw_fixture *fixture, struct gw_writer *writer, uint32_t part, uint32_t ntype)
{
	const struct gw_node_type *type = &fixture->schema->ntypes[ntype];
	uint64_t rows = span(type->starts, part);
	uint64_t *columns[GW_FIXTURE_ETYPES] = {0};
	gw_status status = GW_OK;
	char key[96];
	for (uint32_t c = 0; c < type->columns; c++) {
		const uint64_t *from = fixture->edges[type->column_edge_types[c]].indptr + type->starts[part];
		columns[c] = gw_malloc((rows + 1) * sizeof(uint64_t));
		if (!columns[c])
			status = GW_NO_MEMORY;
		for (uint64_t i = 0; columns[c] && i <= rows; i++)
			columns[c][i] = from[i] - from[0];
	}
	snprintf(key, sizeof(key), "node/%s/indptr", type->name);
	if (status == GW_OK)
		status = gw_writer_indptr(writer, part, key, rows, type->columns, (const uint64_t *const *)columns);
	for (uint32_t c = 0; c < type->columns; c++)
		gw_free(columns[c]);
	return status;
}

static gw_status write_edges(const struct gw_fixture *fixture, struct gw_writer *writer, uint32_t part, uint32_t t)
{
	const struct gw_graph_meta *meta = fixture->schema;
	const struct gw_edge_type *type = &meta->etypes[t];
	const struct gw_fixture_edges *edges = &fixture->edges[t];
	uint64_t from = type->starts[part], count = span(type->starts, part);
	char key[GW_EDGE_FOLDER_MAX + 32];
	snprintf(key, sizeof(key), "edge/%s/indices", type->folder);
	gw_status status = gw_writer_ids(writer, part, key, edges->src + from, count, meta->ntypes[type->src].count);
	if (status == GW_OK && t == FIXTURE_CITES)
		status = gw_writer_array(writer, part, "edge/paper__cites__paper/year", GW_INT64, 1, &count,
					 edges->time + from);
	if (status == GW_OK && t == FIXTURE_KNOWS) {
		uint8_t *rel = gw_malloc(count);
		for (uint64_t i = 0; rel && i < count; i++)
			rel[i] = (uint8_t)edges->rel[from + i];
		status = rel ? gw_writer_array(writer, part, "edge/author__knows__author/rel", GW_UINT8, 1, &count, rel)
			     : GW_NO_MEMORY;
		gw_free(rel);
	}
	if (status == GW_OK && t == FIXTURE_WRITES)
		status = write_orig_ids(writer, part, "edge/author__writes__paper/orig_id", type->starts);
	return status;
}

/* weight of cites: a few zeros, one list without any weight. */
static gw_status write_weights(const struct gw_fixture *fixture, struct gw_writer *writer, uint32_t part)
{
	const struct gw_edge_type *type = &fixture->schema->etypes[FIXTURE_CITES];
	const uint64_t *starts = fixture->schema->ntypes[0].starts;
	uint64_t from = type->starts[part], shape[2] = {span(type->starts, part), 2}, rows = span(starts, part);
	float *weights = gw_malloc(shape[0] * sizeof(*weights));
	uint32_t *table = gw_malloc(shape[0] * 8);
	uint64_t *indptr = gw_malloc((rows + 1) * sizeof(*indptr));
	gw_status status = GW_NO_MEMORY;
	if (weights && table && indptr) {
		for (uint64_t i = 0; i < shape[0]; i++) {
			uint64_t dst = fixture->edges[FIXTURE_CITES].dst[from + i];
			weights[i] = dst == 2 ? 0 : (float)(gw_mix64(from + i) % 9) / 4;
		}
		for (uint64_t i = 0; i <= rows; i++)
			indptr[i] = fixture->edges[FIXTURE_CITES].indptr[starts[part] + i] - from;
		status = gw_alias_build(indptr, rows, GW_FLOAT32, weights, 2, table);
	}
	if (status == GW_OK)
		status =
			gw_writer_array(writer, part, "edge/paper__cites__paper/weight", GW_FLOAT32, 1, shape, weights);
	if (status == GW_OK)
		status = gw_writer_array(writer, part, "edge/paper__cites__paper/weight.alias", GW_UINT32, 2, shape,
					 table);
	gw_free(weights);
	gw_free(table);
	gw_free(indptr);
	return status;
}

/* The transpose of writes: for the authors of this part, their edges by paper. */
static gw_status write_transpose(const struct gw_fixture *fixture, struct gw_writer *writer, uint32_t part)
{
	const struct gw_graph_meta *meta = fixture->schema;
	const struct gw_fixture_edges *edges = &fixture->edges[FIXTURE_WRITES];
	struct gw_coo coo = {
		meta->ntypes[0].count, meta->ntypes[1].count, edges->count, edges->dst, edges->src, NULL, NULL};
	const uint64_t *starts = meta->ntypes[1].starts;
	struct gw_csc csc;
	gw_status status = gw_csc_build(&coo, 1, &csc);
	if (status != GW_OK)
		return status;
	uint64_t rows = span(starts, part), from = csc.indptr[starts[part]],
		 count = csc.indptr[starts[part + 1]] - from;
	uint64_t *offsets = gw_malloc((rows + 1) * 8), *dst = gw_malloc(count * 8);
	status = offsets && dst ? GW_OK : GW_NO_MEMORY;
	for (uint64_t i = 0; status == GW_OK && i <= rows; i++)
		offsets[i] = csc.indptr[starts[part] + i] - from;
	for (uint64_t i = 0; status == GW_OK && i < count; i++)
		dst[i] = edges->dst[csc.order[from + i]];
	const uint64_t *column = offsets;
	if (status == GW_OK)
		status = gw_writer_indptr(writer, part, "node/author/out_indptr", rows, 1, &column);
	if (status == GW_OK)
		status = gw_writer_ids(writer, part, "edge/author__writes__paper/out/indices", dst, count,
				       meta->ntypes[0].count);
	if (status == GW_OK)
		status = gw_writer_array(writer, part, "edge/author__writes__paper/out/eid", GW_UINT64, 1, &count,
					 csc.order + from);
	gw_free(offsets);
	gw_free(dst);
	gw_csc_free(&csc);
	return status;
}

gw_status gw_fixture_fill(const struct gw_fixture *fixture, struct gw_writer *writer)
{
	gw_status status = GW_OK;
	for (uint32_t p = 0; status == GW_OK && p < fixture->schema->num_parts; p++) {
		status = write_nodes(fixture, writer, p);
		for (uint32_t t = 0; status == GW_OK && t < 2; t++)
			status = write_indptr(fixture, writer, p, t);
		for (uint32_t t = 0; status == GW_OK && t < GW_FIXTURE_ETYPES; t++)
			status = write_edges(fixture, writer, p, t);
		if (status == GW_OK)
			status = write_weights(fixture, writer, p);
		if (status == GW_OK)
			status = write_transpose(fixture, writer, p);
	}
	return status;
}

static void fixture_write(const struct gw_fixture *fixture, bool index)
{
	struct gw_writer *writer;
	if (gw_writer_open(fixture->folder, fixture->schema, false, &writer) != GW_OK)
		fail_msg("%s", gw_last_error());
	if (gw_fixture_fill(fixture, writer) != GW_OK)
		fail_msg("%s", gw_last_error());
	if (index && gw_id_index_write(writer, 1, 0) != GW_OK)
		fail_msg("%s", gw_last_error());
	if (has_times && write_times(writer) != GW_OK)
		fail_msg("%s", gw_last_error());
	if (gw_writer_commit(writer, NULL) != GW_OK)
		fail_msg("%s", gw_last_error());
}

void gw_fixture_end(struct gw_fixture *fixture)
{
	for (uint32_t t = 0; t < GW_FIXTURE_ETYPES; t++) {
		gw_free(fixture->edges[t].indptr);
		gw_free(fixture->edges[t].src);
		gw_free(fixture->edges[t].dst);
		gw_free(fixture->edges[t].time);
		gw_free(fixture->edges[t].rel);
	}
	gw_meta_destroy(fixture->schema);
	assert_int_equal(gw_remove_tree(fixture->root), GW_OK);
}

void gw_fixture_write(const struct gw_fixture *fixture)
{
	fixture_write(fixture, true);
}

char *gw_fixture_json;

int gw_fixture_json_set_up(void **state)
{
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	(void)state;
	gw_fixture_begin(&fixture, 3, 40, 2);
	fixture_write(&fixture, false);
	assert_int_equal(gw_meta_read(fixture.folder, &meta), GW_OK);
	assert_int_equal(gw_meta_print(meta, &gw_fixture_json), GW_OK);
	gw_meta_destroy(meta);
	gw_fixture_end(&fixture);
	return 0;
}

int gw_fixture_json_tear_down(void **state)
{
	(void)state;
	gw_free(gw_fixture_json);
	return 0;
}

int gw_fixture_times_set_up(void **state)
{
	(void)state;
	gw_fixture_give_times(true);
	return 0;
}

int gw_fixture_times_tear_down(void **state)
{
	(void)state;
	gw_fixture_give_times(false);
	return 0;
}
