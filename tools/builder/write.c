/* Writes the graph of a builder.
 *
 *   schema -> orders by time, narrow features -> writer -> node arrays -> edge types (tools/builder/edges.c) -> offsets
 * of each node type
 *   -> index of original ids (core/graph/id_index.h) -> fences and indexes of times (core/graph/times.h) -> commit
 *
 * Any failure aborts the writer, which leaves no files.
 */
#include <stdio.h>
#include <string.h>

#include "core/graph/id_index.h"
#include "core/graph/records.h"
#include "core/graph/times.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/parallel.h"
#include "tools/builder/builder_private.h"

#define NODES_MAX   (1ull << 40) /* nodes of a type; gw_csc_build cannot sort more */
#define INDEX_BYTES (256u << 20) /* that gw_id_index_write takes without a limit */

/* ---- the schema ---- */

static void fill_etype(struct gw_edge_type *out, const struct builder_etype *type, const char *prefix, bool turned)
{
	snprintf(out->name, sizeof(out->name), "%s%s", prefix, type->rel);
	out->src = turned ? type->dst : type->src;
	out->dst = turned ? type->src : type->dst;
	out->count = out->starts[1] = type->edges.count;
	out->relations = type->edges.rel ? type->edges.relations : 0;
	out->order = type->edges.time ? GW_ORDER_TIME_SRC : type->edges.rel ? GW_ORDER_REL_SRC : GW_ORDER_SRC;
	snprintf(out->time_name, sizeof(out->time_name), "%s", type->edges.time ? type->time_name : "");
	out->out_column = type->edges.transpose ? 0 : GW_TYPE_NONE;
}

/* Checks the counts before allocating for them: if ids keep their values, one large id makes a huge node type. */
static gw_status builder_check_counts(const struct gw_builder *builder)
{
	for (uint32_t i = 0; i < builder->num_ntypes; i++) {
		const struct builder_ntype *type = &builder->ntypes[i];
		if (type->count >= NODES_MAX)
			return gw_fail(GW_LIMIT,
				       "node type \"%s\": %llu nodes, but at most 2^40 are allowed: "
				       "renumber ids that have gaps (import: --ids compact)",
				       type->name, (unsigned long long)type->count);
	}
	return GW_OK;
}

static gw_status builder_make_schema(const struct gw_builder *builder, struct gw_graph_meta **out)
{
	uint32_t etypes = builder->num_etypes;
	for (uint32_t i = 0; i < builder->num_etypes; i++)
		etypes += builder->etypes[i].edges.reverse;
	gw_status status = builder_check_counts(builder);
	if (status == GW_OK)
		status = gw_meta_create(builder->name, 1, builder->num_ntypes, etypes, out);
	if (status != GW_OK)
		return status;
	struct gw_graph_meta *meta = *out;
	snprintf(meta->part_method, sizeof(meta->part_method), "none");
	for (uint32_t i = 0; i < builder->num_ntypes; i++) {
		memcpy(meta->ntypes[i].name, builder->ntypes[i].name, sizeof(meta->ntypes[i].name));
		meta->ntypes[i].count = meta->ntypes[i].starts[1] = builder->ntypes[i].count;
	}
	uint32_t at = 0;
	for (uint32_t i = 0; i < builder->num_etypes; i++) {
		const struct builder_etype *type = &builder->etypes[i];
		fill_etype(&meta->etypes[at], type, "", false);
		if (type->edges.symmetric)
			meta->etypes[at].reverse = at;
		if (type->edges.reverse) {
			if (strlen(type->rel) + 4 > GW_NAME_MAX) {
				status = gw_fail(GW_INVALID, "edge type \"%s\": its name is too long to add rev_",
						 type->rel);
				break;
			}
			meta->etypes[at].reverse = at + 1;
			fill_etype(&meta->etypes[at + 1], type, "rev_", true);
			meta->etypes[at + 1].reverse = at;
			at++;
		}
		at++;
	}
	if (status == GW_OK)
		status = gw_meta_finish(meta);
	if (status != GW_OK) {
		gw_meta_destroy(meta);
		*out = NULL;
	}
	return status;
}

/* ---- features and strings, of nodes and of edges ---- */

gw_status gw_builder_write_strings(struct builder_writing *w, const char *key, const struct builder_item *item)
{
	gw_status status = gw_writer_strings(w->writer, 0, key, item->offsets, item->array.shape[0], item->array.data);
	gw_builder_wrote(w, (item->array.shape[0] + 1) * 8 + item->offsets[item->array.shape[0]]);
	return status;
}

gw_status gw_builder_check_rows(const struct builder_item *item, const char *what, const char *type, uint64_t rows)
{
	if (item->strings || item->array.shape[0] == rows)
		return GW_OK;
	return gw_fail(GW_INVALID, "%s feature \"%s\" of %s has %llu rows, but there are %llu %ss", what, item->name,
		       type, (unsigned long long)item->array.shape[0], (unsigned long long)rows, what);
}

/* ---- arrays of nodes ---- */

struct counting {
	int64_t *ids;
};

static gw_status count_up(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct counting *counting = context;
	for (uint64_t i = begin; i < end; i++)
		counting->ids[i] = (int64_t)i;
	return GW_OK;
}

/* Nodes that keep the numbers of the input get orig_id too, because a partitioner renumbers them. */
static gw_status write_identity(struct builder_writing *w, const char *key, uint64_t count)
{
	struct counting counting = {.ids = gw_malloc(count * sizeof(int64_t))};
	if (!counting.ids)
		return gw_context(GW_NO_MEMORY, "%s", key);
	gw_parallel_for(w->threads, count, GW_BUILDER_GRAIN, count_up, &counting);
	gw_status status = gw_writer_array(w->writer, 0, key, GW_INT64, 1, &count, counting.ids);
	gw_free(counting.ids);
	gw_builder_wrote(w, count * 8);
	return status;
}

static gw_status write_node_arrays(struct builder_writing *w)
{
	char key[GW_BUILDER_KEY_MAX];
	for (uint32_t t = 0; t < w->builder->num_ntypes; t++) {
		const struct builder_ntype *type = &w->builder->ntypes[t];
		bool has_orig_id = false;
		for (uint32_t i = 0; i < type->arrays.count; i++) {
			const struct builder_item *item = &type->arrays.items[i];
			const struct gw_builder_array *array = &item->array;
			has_orig_id |= strcmp(item->name, "orig_id") == 0;
			snprintf(key, sizeof(key), "node/%s/%s", type->name, item->name);
			gw_status status = gw_builder_check_rows(item, "node", type->name, type->count);
			if (status == GW_OK && item->strings)
				status = gw_builder_write_strings(w, key, item);
			else if (status == GW_OK)
				status = gw_writer_array(w->writer, 0, key, array->dtype, array->ndim, array->shape,
							 array->data);
			if (status != GW_OK)
				return status;
			gw_builder_wrote(w, item->strings ? 0 : gw_builder_row_bytes(array) * type->count);
		}
		snprintf(key, sizeof(key), "node/%s/orig_id", type->name);
		gw_status status = has_orig_id ? GW_OK : write_identity(w, key, type->count);
		if (status != GW_OK)
			return status;
		w->stats.nodes += type->count;
	}
	return GW_OK;
}

/* ---- offsets ---- */

static gw_status write_offsets(struct builder_writing *w)
{
	const uint64_t **columns = gw_calloc(w->meta->num_etypes, sizeof(*columns));
	if (!columns)
		return GW_NO_MEMORY;
	char key[GW_BUILDER_KEY_MAX];
	gw_status status = GW_OK;
	for (uint32_t t = 0; t < w->meta->num_ntypes && status == GW_OK; t++) {
		const struct gw_node_type *type = &w->meta->ntypes[t];
		for (uint32_t c = 0; c < type->columns; c++)
			columns[c] = w->indptr[type->column_edge_types[c]];
		snprintf(key, sizeof(key), "node/%s/indptr", type->name);
		if (type->columns)
			status = gw_writer_indptr(w->writer, 0, key, type->count, type->columns, columns);
		gw_builder_wrote(w, (type->count + 1) * type->columns * 4);
		for (uint32_t c = 0; c < type->out_columns; c++)
			columns[c] = w->out_indptr[type->out_column_edge_types[c]];
		snprintf(key, sizeof(key), "node/%s/out_indptr", type->name);
		if (status == GW_OK && type->out_columns)
			status = gw_writer_indptr(w->writer, 0, key, type->count, type->out_columns, columns);
	}
	gw_free(columns);
	return status;
}

static uint64_t expected_bytes(const struct gw_builder *builder, const struct gw_graph_meta *meta)
{
	uint64_t bytes = 0;
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		bytes += (meta->ntypes[t].count + 1) * meta->ntypes[t].columns * 4;
	for (uint32_t t = 0; t < builder->num_ntypes; t++) {
		const struct builder_ntype *type = &builder->ntypes[t];
		bytes += type->count * 8;
		for (uint32_t i = 0; i < type->arrays.count; i++)
			bytes += gw_builder_row_bytes(&type->arrays.items[i].array) * type->count;
	}
	for (uint32_t t = 0; t < builder->num_etypes; t++) {
		const struct builder_etype *type = &builder->etypes[t];
		uint64_t row = 4 + (type->edges.transpose ? 16u : 0u) + (type->edges.time ? 8u : 0u);
		row += gw_builder_keeps_origins(type) ? 8 : 0; /* orig_id and its inverse */
		for (uint32_t i = 0; i < type->arrays.count; i++)
			row += gw_builder_row_bytes(&type->arrays.items[i].array) +
			       (type->arrays.items[i].array.weight ? 8 : 0);
		bytes += row * type->edges.count * (type->edges.reverse ? 2u : 1u);
	}
	return bytes;
}

static void free_offsets(struct builder_writing *w, uint64_t **offsets)
{
	for (uint32_t i = 0; offsets && i < w->meta->num_etypes; i++)
		gw_free(offsets[i]);
	gw_free(offsets);
}

/* How much memory a range of an index of original ids may take; 0: what it takes without a limit. */
static uint64_t index_bytes(const struct gw_builder *builder)
{
	return builder->run_bytes && builder->run_bytes < INDEX_BYTES ? builder->run_bytes : 0;
}

/* Says how much the disk must hold besides the graph, and fails early if it cannot. */
static gw_status builder_check_files(struct gw_builder *builder)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < builder->num_etypes; i++) {
		uint64_t of_type = gw_builder_sort_files(builder, &builder->etypes[i]);
		bytes = of_type > bytes ? of_type : bytes;
	}
	return gw_spill_announce(&builder->spill, bytes, "sorting");
}

gw_status gw_builder_write(struct gw_builder *builder, const char *folder, const struct gw_builder_options *options,
			   struct gw_builder_stats *stats)
{
	struct builder_writing w = {.builder = builder, .threads = options->threads};
	uint64_t start_ns = gw_now_ns();
	gw_status status = builder_make_schema(builder, &w.meta);
	if (status != GW_OK)
		return status;
	status = builder_check_files(builder);
	if (status != GW_OK) {
		gw_meta_destroy(w.meta);
		return status;
	}
	w.indptr = gw_calloc(w.meta->num_etypes, sizeof(*w.indptr));
	w.out_indptr = gw_calloc(w.meta->num_etypes, sizeof(*w.out_indptr));
	status = w.indptr && w.out_indptr ? gw_builder_plan_times(&w, options) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = gw_builder_plan_stores(&w, options);
	if (status == GW_OK)
		status = gw_writer_open(folder, w.meta, options->replace, &w.writer);
	if (status != GW_OK)
		goto free_all;
	bool has_times = w.times.num_index > 0;
	for (uint32_t e = 0; e < w.meta->num_etypes; e++)
		has_times |= w.meta->etypes[e].order == GW_ORDER_TIME_SRC;
	if (has_times)
		gw_writer_set_minor(w.writer, GW_FORMAT_MINOR_TIMES);
	gw_progress_begin(&w.progress, "writing", "B", expected_bytes(builder, w.meta));
	if (options->quiet)
		w.progress.next_ns = UINT64_MAX;
	status = gw_builder_set_units(&w);
	if (status == GW_OK)
		status = gw_store_plan_apply(&w.stores, w.writer);
	if (status == GW_OK)
		status = write_node_arrays(&w);
	if (status == GW_OK)
		status = gw_builder_write_edges(&w);
	if (status == GW_OK)
		status = write_offsets(&w);
	if (status == GW_OK)
		status = gw_id_index_write(w.writer, w.threads, index_bytes(builder));
	if (status == GW_OK && has_times)
		status = gw_times_write(w.writer, w.times.index, w.times.num_index, w.threads, &w.stats.bytes);
	if (status == GW_OK)
		status = gw_records_add(w.writer, options->records, options->num_records);
	w.stats.runs = w.stats.runs > w.meta->num_etypes ? w.stats.runs : 0;
	w.stats.file_bytes = builder->spill.file_bytes;
	w.stats.times_bytes = gw_times_bytes(gw_writer_meta(w.writer));
	gw_progress_end(&w.progress, w.stats.bytes);
	if (status == GW_OK)
		status = gw_writer_commit(w.writer, &w.stats.graph_id);
	else
		gw_writer_abort(w.writer);
	w.stats.write_ns = gw_now_ns() - start_ns - w.stats.csc_ns;
	if (status == GW_OK && stats)
		*stats = w.stats;
free_all:
	free_offsets(&w, w.indptr);
	free_offsets(&w, w.out_indptr);
	gw_time_plan_free(&w.times);
	gw_store_plan_free(&w.stores);
	gw_meta_destroy(w.meta);
	return status;
}
