/* Writes the parts of an assignment.
 *
 *   nodes renumbered: part by part, old order inside -> edges counted for each part -> schema, writer
 *   -> for each node type and part: offsets of all edge types that end there, their lists, their edges' rows
 *   -> transposes, through a table of new edge ids -> nodes' rows -> index of original ids -> fences and indexes of
 *   times -> commit
 *
 * Memory: 8 to 16 bytes for each node, and the same for the edges of one type in one part. A type that is stored
 * transposed needs a table of 4 or 8 bytes more for each edge. Tables beyond half of the plan's memory are in temporary
 * files (tools/builder/spill.h). Rows of features pass through a block of each thread. At the end the index of original
 * ids takes 256 MiB or half of the plan's memory at most, or a sixteenth of a larger index. The final name appears only
 * when everything is written. Fails with the writer's errors (GW_EXISTS, GW_NO_SPACE, GW_IO) and GW_NO_MEMORY.
 */
#include "tools/partition/split.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/graph/id_index.h"
#include "core/graph/npy.h"
#include "core/graph/record_names.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/parallel.h"

#define INDEX_BYTES (256u << 20) /* that gw_id_index_write takes without a limit */

static double split_seconds_since(uint64_t start_ns)
{
	return (double)(gw_now_ns() - start_ns) * 1e-9;
}

static uint32_t part_of(const struct gw_split *split, uint32_t ntype, uint64_t node)
{
	return split->assignment->piece[ntype][node] / split->plan->trainers;
}

/* Stable. */
static gw_status renumber(struct gw_split *split, uint32_t ntype)
{
	struct gw_node_type *type = &split->schema->ntypes[ntype];
	uint32_t parts = split->plan->parts;
	gw_status status = gw_numbers_make(&split->spill, type->count, type->count, &split->new_id[ntype]);
	if (status == GW_OK)
		status = gw_numbers_make(&split->spill, type->count, type->count, &split->old_id[ntype]);
	uint64_t *next = status != GW_OK ? NULL : gw_calloc(parts, sizeof(*next));
	if (!next)
		return GW_NO_MEMORY;
	for (uint64_t v = 0; v < type->count; v++)
		next[part_of(split, ntype, v)]++;
	type->starts[0] = 0;
	for (uint32_t p = 0; p < parts; p++) {
		type->starts[p + 1] = type->starts[p] + next[p];
		next[p] = type->starts[p];
	}
	for (uint64_t v = 0; v < type->count; v++) {
		uint64_t id = next[part_of(split, ntype, v)]++;
		gw_numbers_put(&split->new_id[ntype], v, id);
		gw_numbers_put(&split->old_id[ntype], id, v);
	}
	gw_free(next);
	return GW_OK;
}

/* Each part owns the edges of its destinations. */
static void split_count_edges(struct gw_split *split, uint32_t etype)
{
	struct gw_edge_type *type = &split->schema->etypes[etype];
	const struct gw_adjacency *adjacency = gw_part_adjacency(split->part, etype);
	uint64_t from, to;
	memset(type->starts, 0, (split->plan->parts + 1ull) * sizeof(*type->starts));
	for (uint64_t v = 0; v < adjacency->rows; v++) {
		gw_adjacency_list(adjacency, v, &from, &to);
		type->starts[part_of(split, type->dst, v) + 1] += to - from;
	}
	for (uint32_t p = 0; p < split->plan->parts; p++)
		type->starts[p + 1] += type->starts[p];
}

static gw_status split_make_schema(struct gw_split *split)
{
	const struct gw_graph_meta *in = split->in;
	gw_status status =
		gw_meta_create(in->graph_name, split->plan->parts, in->num_ntypes, in->num_etypes, &split->schema);
	if (status != GW_OK)
		return status;
	struct gw_graph_meta *out = split->schema;
	snprintf(out->part_method, sizeof(out->part_method), "%s", gw_plan_method_name(split->plan->method));
	for (uint32_t t = 0; t < in->num_ntypes && status == GW_OK; t++) {
		memcpy(out->ntypes[t].name, in->ntypes[t].name, sizeof(out->ntypes[t].name));
		out->ntypes[t].count = in->ntypes[t].count;
		status = renumber(split, t);
	}
	for (uint32_t e = 0; e < in->num_etypes && status == GW_OK; e++) {
		const struct gw_edge_type *from = &in->etypes[e];
		struct gw_edge_type *to = &out->etypes[e];
		memcpy(to->name, from->name, sizeof(to->name));
		to->src = from->src;
		to->dst = from->dst;
		to->count = from->count;
		to->relations = from->relations;
		const struct gw_time_order *time = gw_split_time_order(split, e);
		to->order = time ? GW_ORDER_TIME_SRC : from->order;
		snprintf(to->time_name, sizeof(to->time_name), "%s", time ? time->name : from->time_name);
		to->reverse = from->reverse;
		to->out_column = from->out_column;
		split_count_edges(split, e);
	}
	return status != GW_OK ? status : gw_meta_finish(out);
}

struct note {
	struct gw_numbers *edge_id;
	const struct gw_split_lists *lists;
	uint64_t start;
};

static gw_status note_ids(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct note *note = context;
	for (uint64_t i = begin; i < end; i++)
		gw_numbers_put(note->edge_id, gw_numbers_get(&note->lists->at, i), note->start + i);
	(void)thread;
	return GW_OK;
}

/* For the transpose. */
static gw_status note_edges(struct gw_split *split, const struct gw_split_lists *lists)
{
	const struct gw_edge_type *type = &split->schema->etypes[lists->etype];
	struct gw_numbers *edge_id = &split->edge_id[lists->etype];
	if (type->out_column == GW_TYPE_NONE)
		return GW_OK;
	if (!edge_id->data) {
		gw_status status = gw_numbers_make(&split->spill, type->count, type->count, edge_id);
		if (status != GW_OK)
			return status;
	}
	struct note note = {.edge_id = edge_id, .lists = lists, .start = type->starts[lists->part]};
	return gw_parallel_for(split->threads, lists->offsets[lists->rows], 0, note_ids, &note);
}

/* In the width that the format prescribes; the numbers may have it already. */
static gw_status write_ids(struct gw_split *split, const struct gw_split_lists *lists, const char *name)
{
	char key[GW_KEY_MAX];
	uint64_t edges = lists->offsets[lists->rows], space = split->schema->ntypes[lists->id_type].count;
	uint8_t bytes = (uint8_t)gw_number_bytes(space);
	snprintf(key, sizeof(key), "edge/%s/%s", split->schema->etypes[lists->etype].folder, name);
	__atomic_fetch_add(&split->bytes, edges * bytes, __ATOMIC_RELAXED);
	if (bytes != lists->ids.bytes)
		return gw_split_write_numbers(split, lists->part, key, GW_UINT64, &lists->ids, 0, edges, NULL);
	return gw_writer_array(split->writer, lists->part, key, bytes == 4 ? GW_UINT32 : GW_UINT64, 1, &edges,
			       lists->ids.data);
}

static gw_status split_write_lists(struct gw_split *split, struct gw_split_lists *lists, bool out)
{
	char key[GW_KEY_MAX];
	gw_status status = gw_split_fill(split, lists);
	if (status == GW_OK)
		status = write_ids(split, lists, out ? "out/indices" : "indices");
	if (status == GW_OK && !out)
		status = gw_split_edge_rows(split, lists);
	if (status == GW_OK && !out)
		status = note_edges(split, lists);
	if (status == GW_OK && out) {
		snprintf(key, sizeof(key), "edge/%s/out/eid", split->schema->etypes[lists->etype].folder);
		status = gw_split_write_numbers(split, lists->part, key, GW_UINT64, &lists->at, 0,
						lists->offsets[lists->rows], &split->edge_id[lists->etype]);
	}
	gw_split_lists_free(lists);
	return status;
}

static gw_status write_indptr(struct gw_split *split, const struct gw_split_lists *lists, uint32_t columns, bool out)
{
	char key[GW_KEY_MAX];
	const uint64_t **offsets = gw_calloc(columns, sizeof(*offsets));
	if (!offsets)
		return GW_NO_MEMORY;
	for (uint32_t c = 0; c < columns; c++)
		offsets[c] = lists[c].offsets;
	snprintf(key, sizeof(key), "node/%s/%s", split->schema->ntypes[lists[0].row_type].name,
		 out ? "out_indptr" : "indptr");
	__atomic_fetch_add(&split->bytes, (lists[0].rows + 1) * columns * sizeof(uint32_t), __ATOMIC_RELAXED);
	gw_status status = gw_writer_indptr(split->writer, lists[0].part, key, lists[0].rows, columns, offsets);
	gw_free(offsets);
	return status;
}

static gw_status write_type(struct gw_split *split, uint32_t ntype, uint32_t part, bool out)
{
	const struct gw_node_type *type = &split->schema->ntypes[ntype];
	uint32_t columns = out ? type->out_columns : type->columns;
	if (columns == 0)
		return GW_OK;
	struct gw_split_lists *lists = gw_calloc(columns, sizeof(*lists));
	if (!lists)
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	for (uint32_t c = 0; c < columns && status == GW_OK; c++) {
		uint32_t e = out ? type->out_column_edge_types[c] : type->column_edge_types[c];
		const struct gw_edge_type *etype = &split->schema->etypes[e];
		lists[c].from = out ? gw_part_out_adjacency(split->part, e) : gw_part_adjacency(split->part, e);
		lists[c].etype = e;
		lists[c].part = part;
		lists[c].row_type = ntype;
		lists[c].id_type = out ? etype->dst : etype->src;
		status = gw_split_offsets(split, &lists[c]);
	}
	if (status == GW_OK)
		status = write_indptr(split, lists, columns, out);
	for (uint32_t c = 0; c < columns && status == GW_OK; c++) {
		split->edges_done += lists[c].offsets[lists[c].rows];
		status = split_write_lists(split, &lists[c], out);
		gw_progress_update(&split->progress, split->edges_done);
	}
	for (uint32_t c = 0; c < columns; c++)
		gw_split_lists_free(&lists[c]);
	gw_free(lists);
	return status;
}

static gw_status split_write_edges(struct gw_split *split)
{
	uint64_t edges = 0;
	gw_status status = GW_OK;
	for (uint32_t e = 0; e < split->in->num_etypes; e++)
		edges += split->in->etypes[e].count * (split->in->etypes[e].out_column == GW_TYPE_NONE ? 1 : 2);
	gw_progress_begin(&split->progress, "writing edges", "edges", edges);
	for (int out = 0; out < 2 && status == GW_OK; out++) {
		for (uint32_t t = 0; t < split->in->num_ntypes && status == GW_OK; t++) {
			for (uint32_t p = 0; p < split->plan->parts && status == GW_OK; p++)
				status = write_type(split, t, p, out);
		}
	}
	gw_progress_end(&split->progress, split->edges_done);
	return status;
}

static void free_split(struct gw_split *split)
{
	for (uint32_t t = 0; split->new_id && split->old_id && t < split->in->num_ntypes; t++) {
		gw_spill_give(split->new_id[t].data);
		gw_spill_give(split->old_id[t].data);
	}
	for (uint32_t e = 0; split->edge_id && e < split->in->num_etypes; e++)
		gw_spill_give(split->edge_id[e].data);
	gw_free(split->new_id);
	gw_free(split->old_id);
	gw_free(split->edge_id);
	gw_spill_close(&split->spill);
	gw_meta_destroy(split->schema);
}

/* A graph of an older version that uses the names of these arrays itself stays as it is. */
static bool makes_times(const struct gw_split *split)
{
	bool sorted = split->plan->times.num_index > 0 || split->in->minor >= GW_FORMAT_MINOR_TIMES;
	for (uint32_t e = 0; e < split->schema->num_etypes; e++)
		sorted |= split->schema->etypes[e].order == GW_ORDER_TIME_SRC;
	return sorted && (split->in->minor >= GW_FORMAT_MINOR_TIMES || !gw_times_names_are_used(split->in));
}

static gw_status set_units(struct gw_split *split)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < split->in->num_units && status == GW_OK; i++)
		status = gw_writer_set_unit(split->writer, split->in->units[i].key, split->in->units[i].unit);
	for (uint32_t e = 0; e < split->schema->num_etypes && status == GW_OK; e++) {
		const struct gw_time_order *time = gw_split_time_order(split, e);
		char key[GW_KEY_MAX];
		snprintf(key, sizeof(key), "edge/%s/%s", split->schema->etypes[e].folder, time ? time->name : "");
		if (time)
			status = gw_writer_set_unit(split->writer, key, time->column.unit);
	}
	return status;
}

/* What narrow rows of the input were, and the rows that become narrow. */
static gw_status set_stores(struct gw_split *split)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < split->in->num_originals && status == GW_OK; i++) {
		const struct gw_original_meta *original = &split->in->originals[i];
		status = gw_writer_set_original(split->writer, original->key, original->dtype, original->columns);
	}
	return status == GW_OK ? gw_store_plan_apply(&split->plan->stores, split->writer) : status;
}

static gw_status write_times(struct gw_split *split)
{
	struct gw_time_plan times = {0};
	const struct gw_array *array;
	gw_status status = GW_OK;
	if (!split->has_times)
		return GW_OK;
	for (uint32_t i = 0; i < split->plan->times.num_index && status == GW_OK; i++)
		status = gw_time_plan_add_index(&times, split->plan->times.index[i].ntype,
						split->plan->times.index[i].name);
	for (uint32_t i = 0; status == GW_OK && (array = gw_part_array_at(split->part, i)); i++) {
		struct gw_array_key key;
		char name[GW_NAME_MAX + 1];
		status = gw_array_key_parse(split->in, array->meta->key, &key);
		if (status != GW_OK || key.edge || split->in->minor < GW_FORMAT_MINOR_TIMES ||
		    !gw_name_ends_in(key.name, GW_TIMES_TAIL))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(strlen(key.name) - strlen(GW_TIMES_TAIL)), key.name);
		status = gw_time_plan_add_index(&times, key.type, name);
	}
	if (status == GW_OK)
		status = gw_times_write(split->writer, times.index, times.num_index, split->threads, &split->bytes);
	gw_time_plan_free(&times);
	return status;
}

/* How much memory a range of an index of original ids may take; 0: what it takes without a limit. */
static uint64_t split_index_bytes(const struct gw_plan *plan)
{
	uint64_t bytes = gw_plan_lists_bytes(plan);
	return bytes < INDEX_BYTES ? bytes : 0;
}

static gw_status prepare(struct gw_split *split, const char *folder, bool replace)
{
	if (split->in->num_parts != 1)
		return gw_fail(GW_INVALID,
			       "graph \"%s\" is in %u parts already; partition the one-part graph that import made",
			       split->in->graph_name, split->in->num_parts);
	split->new_id = gw_calloc(split->in->num_ntypes, sizeof(*split->new_id));
	split->old_id = gw_calloc(split->in->num_ntypes, sizeof(*split->old_id));
	split->edge_id = gw_calloc(split->in->num_etypes, sizeof(*split->edge_id));
	if (!split->new_id || !split->old_id || !split->edge_id)
		return GW_NO_MEMORY;
	gw_status status = gw_spill_open(&split->spill, folder, gw_plan_lists_bytes(split->plan));
	split->spill.reports = true;
	if (status == GW_OK)
		status = split_make_schema(split);
	if (status == GW_OK)
		status = gw_writer_open(folder, split->schema, replace, &split->writer);
	split->has_times = status == GW_OK && makes_times(split);
	if (split->has_times)
		gw_writer_set_minor(split->writer, GW_FORMAT_MINOR_TIMES);
	if (status == GW_OK)
		status = set_units(split);
	return status == GW_OK ? set_stores(split) : status;
}

/* NAME.assignment.npy: the part of each node of the input, type after type, for --assignment. */
static gw_status write_assignment(const struct gw_split *split)
{
	uint8_t header[GW_NPY_HEADER_BYTES];
	uint64_t nodes = 0;
	for (uint32_t t = 0; t < split->in->num_ntypes; t++)
		nodes += split->in->ntypes[t].count;
	gw_status status = gw_npy_format(GW_UINT16, 1, &nodes, header);
	char *path = gw_writer_path(split->writer, GW_ASSIGNMENT_FILE);
	FILE *file = path ? fopen(path, "wbxe") : NULL;
	if (status == GW_OK && !file)
		status = path ? gw_fail_errno(GW_IO, errno, "%s: cannot create", path) : GW_NO_MEMORY;
	bool written = status == GW_OK && fwrite(header, sizeof(header), 1, file) == 1;
	for (uint32_t t = 0; t < split->in->num_ntypes && written; t++) {
		uint64_t count = split->in->ntypes[t].count;
		for (uint64_t v = 0; v < count && written; v++) {
			uint16_t part = (uint16_t)(split->assignment->piece[t][v] / split->plan->trainers);
			written = fwrite(&part, sizeof(part), 1, file) == 1;
		}
	}
	int error = errno;
	if (file && fclose(file) != 0 && written) {
		error = errno;
		written = false;
	}
	if (status == GW_OK && !written)
		status = gw_fail_errno(error == ENOSPC ? GW_NO_SPACE : GW_IO, error, "%s: cannot write", path);
	gw_free(path);
	return status;
}

gw_status gw_split(const struct gw_plan *plan, const struct gw_part *part, const struct gw_assignment *assignment,
		   const char *folder, bool replace, struct gw_split_stats *stats)
{
	struct gw_split split = {.plan = plan,
				 .part = part,
				 .in = gw_part_meta(part),
				 .assignment = assignment,
				 .threads = plan->threads ? plan->threads : gw_processors()};
	uint64_t start_ns = gw_now_ns();
	*stats = (struct gw_split_stats){0};
	gw_status status = prepare(&split, folder, replace);
	stats->renumber_s = split_seconds_since(start_ns);
	if (status != GW_OK)
		goto done;
	start_ns = gw_now_ns();
	status = split_write_edges(&split);
	stats->edges_s = split_seconds_since(start_ns);
	start_ns = gw_now_ns();
	if (status == GW_OK)
		status = gw_split_node_rows(&split);
	stats->rows_s = split_seconds_since(start_ns);
	if (status == GW_OK)
		status = gw_id_index_write(split.writer, split.threads, split_index_bytes(plan));
	if (status == GW_OK)
		status = write_times(&split);
	if (status == GW_OK && assignment->keep)
		status = write_assignment(&split);
	if (status != GW_OK) {
		gw_writer_abort(split.writer);
		goto done;
	}
	start_ns = gw_now_ns();
	stats->times_bytes = gw_times_bytes(gw_writer_meta(split.writer));
	status = gw_writer_commit(split.writer, &stats->graph_id);
	stats->commit_s = split_seconds_since(start_ns);
	stats->bytes = split.bytes;
done:
	free_split(&split);
	return status;
}
