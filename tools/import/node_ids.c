/* Converts the input's ids to numbers, one node type (or the relations of triples) at a time.
 *
 *   list given:  number = place in the list; an id outside the list is an error
 *   dense:       whole numbers keep their value; nodes = --num-nodes, else the largest id + 1
 *   compact:     whole numbers in the order of their first appearance, orig_id int64
 *   text:        the same with orig_id strings
 *
 * Without --ids, whole numbers are dense in two cases: at least half of the numbers up to the largest id have an edge,
 * or every id is below the number of rows of a feature.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/import/import.h"
#include "tools/import/node_lists.h"
#include "tools/import/numbering.h"
#include "tools/import/strings.h"

#define DENSE_SHARE 2u    /* dense: at least one id in DENSE_SHARE has an edge */
#define DENSE_FLOOR 1024u /* ids below this are dense in any case */
#define GRAIN       (64u << 10)

/* The columns of a space, and the origin of each, for error texts. */
struct sources {
	struct gw_numbering_column *columns;
	const struct gw_import_file **files; /* NULL: the list of --nodes */
	uint32_t count;
	uint64_t values;
};

static gw_status gather_sources(struct gw_import *im, const struct gw_import_space *space, struct sources *out)
{
	uint32_t room = 1;
	for (uint32_t s = 0; s < im->num_sets; s++)
		room += 2 * im->sets[s].num_files;
	*out = (struct sources){0};
	out->columns = gw_calloc(room, sizeof(*out->columns));
	out->files = gw_calloc(room, sizeof(struct gw_import_file *));
	if (!out->columns || !out->files)
		return GW_NO_MEMORY;
	if (space->list) {
		const char *text = space->list_text.data ? space->list_text.data : "";
		out->columns[out->count++] = (struct gw_numbering_column){.first = space->list,
									  .rows = space->list_table.rows,
									  .text = space->list_is_text ? text : NULL};
	}
	for (uint32_t s = 0; s < im->num_sets; s++) {
		struct gw_import_set *set = &im->sets[s];
		bool relations = space == &im->relations;
		bool src = !relations && &im->spaces[set->src] == space,
		     dst = !relations && &im->spaces[set->dst] == space;
		if (!src && !dst && !(relations && set->triples))
			continue;
		for (uint32_t f = 0; f < set->num_files; f++) {
			const struct gw_import_file *file = &set->files[f];
			const char *text = file->text.data ? file->text.data : "";
			uint64_t *first = relations ? set->relations : src ? set->src_ids : set->dst_ids;
			out->files[out->count] = file;
			out->columns[out->count++] = (struct gw_numbering_column){
				.first = first + file->first_row,
				.second = src && dst ? set->dst_ids + file->first_row : NULL,
				.rows = file->rows,
				.text = space->ids == GW_IDS_TEXT ? text : NULL};
			out->values += file->rows * (src && dst ? 2 : 1);
		}
	}
	return GW_OK;
}

static void free_sources(struct sources *sources)
{
	gw_free(sources->columns);
	gw_free(sources->files);
}

/* Runs over the values of each column; *values is the part of the context that names them. */
static void for_all_values(const struct sources *sources, unsigned threads,
			   gw_status (*run)(void *context, uint64_t begin, uint64_t end, unsigned thread),
			   void *context, uint64_t **values)
{
	for (uint32_t c = 0; c < sources->count; c++) {
		const struct gw_numbering_column *column = &sources->columns[c];
		*values = column->first;
		gw_parallel_for(threads, column->rows, GRAIN, run, context);
		*values = column->second;
		if (column->second)
			gw_parallel_for(threads, column->rows, GRAIN, run, context);
	}
}

/* ---- largest ids ---- */

#define THREADS_MAX 256

struct largest {
	uint64_t *values;
	uint64_t by_thread[THREADS_MAX];
};

static gw_status find_largest(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct largest *largest = context;
	uint64_t most = largest->by_thread[thread];
	for (uint64_t i = begin; i < end; i++)
		most = largest->values[i] > most ? largest->values[i] : most;
	largest->by_thread[thread] = most;
	return GW_OK;
}

static uint64_t largest_id(const struct sources *sources, unsigned threads)
{
	struct largest *largest = &(struct largest){0};
	for_all_values(sources, threads, find_largest, largest, &largest->values);
	uint64_t most = 0;
	for (int i = 0; i < THREADS_MAX; i++)
		most = largest->by_thread[i] > most ? largest->by_thread[i] : most;
	return most;
}

/* ---- different ids ---- */

struct marking {
	uint64_t *values;
	_Atomic uint64_t *seen; /* a bit for each id */
	_Atomic uint64_t different;
};

static gw_status mark(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	struct marking *m = context;
	uint64_t found = 0;
	for (uint64_t i = begin; i < end; i++) {
		_Atomic uint64_t *word = &m->seen[m->values[i] / 64];
		uint64_t bit = 1ull << m->values[i] % 64;
		if (atomic_load_explicit(word, memory_order_relaxed) & bit)
			continue; /* most bits are set already; the load costs other threads nothing */
		found += !(atomic_fetch_or_explicit(word, bit, memory_order_relaxed) & bit);
	}
	atomic_fetch_add_explicit(&m->different, found, memory_order_relaxed);
	return GW_OK;
}

/* Counts the ids that have an edge. One bit for each id takes less memory than the edges, since largest is bounded.
 * */
static gw_status count_different(const struct sources *sources, uint64_t largest, unsigned threads, uint64_t *out)
{
	struct marking marking = {.seen = gw_calloc(largest / 64 + 1, sizeof(*marking.seen))};
	*out = 0;
	if (!marking.seen)
		return GW_NO_MEMORY;
	for_all_values(sources, threads, mark, &marking, &marking.values);
	*out = atomic_load(&marking.different);
	gw_free((void *)marking.seen);
	return GW_OK;
}

struct shifting {
	uint64_t *values, base;
};

static gw_status shift(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct shifting *s = context;
	for (uint64_t i = begin; i < end; i++)
		s->values[i] -= s->base;
	return GW_OK;
}

/* All ids have been checked. */
static gw_status node_ids_fail_at_first(const struct sources *sources, uint64_t limit, const char *space,
					const char *why)
{
	for (uint32_t c = 0; c < sources->count; c++) {
		const struct gw_numbering_column *column = &sources->columns[c];
		const struct gw_import_file *file = sources->files[c];
		for (uint64_t i = 0; i < column->rows; i++) {
			uint64_t value = column->first[i];
			if (value < limit && column->second)
				value = column->second[i];
			if (value < limit || !file)
				continue;
			if (file->format == GW_FROM_TEXT)
				return gw_fail(GW_RANGE, "%s, line %llu: node type %s: %s", file->path,
					       (unsigned long long)gw_table_line(&file->table, i), space, why);
			return gw_fail(GW_RANGE, "%s, edge %llu: node type %s: %s", file->path, (unsigned long long)i,
				       space, why);
		}
	}
	return gw_fail(GW_RANGE, "node type %s: %s", space, why);
}

/* ---- the kinds of numbering ---- */

static gw_status keep_dense_values(struct gw_import *im, struct gw_import_space *space, const struct sources *sources)
{
	struct shifting shifting = {.base = space->base};
	uint64_t largest, wanted;
	if (space->base)
		for_all_values(sources, im->threads, shift, &shifting, &shifting.values);
	largest = largest_id(sources, im->threads);
	wanted = sources->values ? largest + 1 : 0;
	space->ids = GW_IDS_DENSE;
	space->count = wanted;
	if (space->num_nodes != GW_NONE)
		space->count = space->num_nodes;
	else if (space->shape_path)
		space->count = space->shape_nodes; /* nodes without edges count */
	else if (space->counted_rows > wanted)
		space->count = space->counted_rows; /* each counted feature row is a node */
	if (space->shape_path && space->count < space->shape_nodes)
		return gw_fail(GW_INVALID, "%s: it has %llu nodes of type %s, but %s lists %llu", space->shape_path,
			       (unsigned long long)space->shape_nodes, space->name,
			       space->list_path ? space->list_path : "--num-nodes", (unsigned long long)space->count);
	if (wanted <= space->count)
		return GW_OK;
	char why[512];
	int used = snprintf(why, sizeof(why), "an id of %llu or more, but there are %llu nodes",
			    (unsigned long long)space->count, (unsigned long long)space->count);
	if (space->list_path)
		snprintf(why + used, sizeof(why) - (size_t)used, " in the list %s", space->list_path);
	return node_ids_fail_at_first(sources, space->count, space->name, why);
}

/* Names are stored byte for byte, in any encoding. Later readers will read them as UTF-8. */
static void report_encoding(const struct gw_import_space *space)
{
	for (uint64_t i = 0; i < space->count; i++) {
		const char *name = space->bytes + space->offsets[i];
		uint64_t bytes = space->offsets[i + 1] - space->offsets[i], good = gw_text_utf8(name, bytes);
		if (good == bytes)
			continue;
		gw_log(GW_LOG_WARN,
		       "node type %s: a name that begins with \"%.*s\" is not UTF-8, and others may not be: "
		       "names are stored byte for byte",
		       space->name, (int)(good < 40 ? good : 40), name);
		return;
	}
}

static gw_status keep_values(struct gw_import *im, struct gw_import_space *space, const struct sources *sources,
			     struct gw_numbering *numbering)
{
	gw_status status;
	space->count = numbering->count;
	if (!sources->columns[0].text) {
		space->values = numbering->values;
		numbering->values = NULL;
		status = gw_builder_own(im->builder, space->values, gw_spill_give);
	} else {
		status = gw_import_numbered_strings(im, numbering, sources->columns, &space->offsets, &space->bytes);
		if (status == GW_OK)
			report_encoding(space);
	}
	return status;
}

static gw_status fail_unlisted(const struct gw_import_space *space, const struct sources *sources,
			       const struct gw_numbering *numbering)
{
	uint64_t listed = space->list_table.rows, value = numbering->values[listed];
	const char *text = sources->columns[numbering->columns[listed]].text;
	struct gw_text_span span = text ? gw_text_span(text, value) : (struct gw_text_span){0};
	char why[512];
	if (text)
		snprintf(why, sizeof(why), "\"%.*s\" is not in the list %s", (int)(span.bytes < 40 ? span.bytes : 40),
			 span.at, space->list_path);
	else
		snprintf(why, sizeof(why), "%llu is not in the list %s", (unsigned long long)value, space->list_path);
	return node_ids_fail_at_first(sources, listed, space->name, why);
}

static gw_status number_values(struct gw_import *im, struct gw_import_space *space, const struct sources *sources)
{
	struct gw_numbering numbering;
	if (sources->count == 0)
		return GW_OK; /* a type without edges and without a list has no nodes */
	const struct gw_numbering_memory memory = gw_import_memory(im);
	gw_status status = gw_numbering_create(sources->columns, sources->count, im->threads, &memory, &numbering);
	if (status != GW_OK)
		return gw_context(status, "ids of %s", space->name);
	im->number_runs += numbering.runs;
	uint64_t listed = space->list_table.rows;
	for (uint64_t i = 0; space->list && i < listed && status == GW_OK; i++) {
		if (space->list[i] != i)
			status = gw_fail(GW_FORMAT, "%s, line %llu: an id that the list has before", space->list_path,
					 (unsigned long long)gw_import_list_line(space, i));
	}
	if (status == GW_OK && space->list && numbering.count > listed)
		status = fail_unlisted(space, sources, &numbering);
	if (status == GW_OK && space->ids != GW_IDS_TEXT)
		space->ids = GW_IDS_COMPACT;
	if (status == GW_OK)
		status = keep_values(im, space, sources, &numbering);
	gw_numbering_free(&numbering);
	return status;
}

/* For ids that are numbers, with a list of names: an id is the place of its name in the list. */
static gw_status number_by_place(struct gw_import *im, struct gw_import_space *space, const struct sources *edges)
{
	struct sources list = {.columns = edges->columns, .files = edges->files, .count = 1};
	struct sources rest = {.columns = edges->columns + 1,
			       .files = edges->files + 1,
			       .count = edges->count - 1,
			       .values = edges->values};
	space->num_nodes = space->list_table.rows;
	gw_status status = keep_dense_values(im, space, &rest);
	return status != GW_OK ? status : number_values(im, space, &list);
}

/* Whether numeric ids keep their value: --ids asks for it, or few numbers would be left without an edge. */
static gw_status stay_dense(const struct gw_import *im, const struct gw_import_space *space,
			    const struct sources *sources, bool *out)
{
	*out = space->ids == GW_IDS_DENSE || space->num_nodes != GW_NONE || space->shape_path;
	if (*out || space->ids == GW_IDS_TEXT || space->ids == GW_IDS_COMPACT) {
		*out &= space->ids != GW_IDS_TEXT && space->ids != GW_IDS_COMPACT;
		return GW_OK;
	}
	uint64_t largest = largest_id(sources, im->threads);
	/* A feature with a row for every id defines the nodes, even if few of them have edges. */
	*out = largest < space->feature_rows || largest < DENSE_FLOOR;
	if (*out || largest / DENSE_SHARE > sources->values) /* too few edges for this largest id */
		return GW_OK;
	uint64_t different;
	gw_status status = count_different(sources, largest, im->threads, &different);
	*out = different >= largest / DENSE_SHARE;
	return status;
}

static gw_status number_numbers(struct gw_import *im, struct gw_import_space *space, const struct sources *sources)
{
	bool dense;
	gw_status status = stay_dense(im, space, sources, &dense);
	if (status != GW_OK)
		return status;
	return dense ? keep_dense_values(im, space, sources) : number_values(im, space, sources);
}

static gw_status number_space(struct gw_import *im, struct gw_import_space *space)
{
	struct sources sources;
	if (space->ids == GW_IDS_TEXT && space->num_nodes != GW_NONE && !space->list_path)
		return gw_fail(
			GW_INVALID,
			"node type %s: its ids are names, which --num-nodes cannot supply: list them with --nodes",
			space->name);
	gw_status status = space->list_path ? gw_import_list_read(im, space) : GW_OK;
	if (status != GW_OK)
		return status;
	status = gather_sources(im, space, &sources);
	if (status != GW_OK)
		goto free_all;
	if (space->list && space->list_is_text && space->ids != GW_IDS_TEXT && space->ids != GW_IDS_COMPACT)
		status = number_by_place(im, space, &sources);
	else if (space->list)
		status = number_values(im, space, &sources);
	else
		status = number_numbers(im, space, &sources);
free_all:
	free_sources(&sources);
	return status;
}

static gw_status add_orig_ids(struct gw_import *im, const struct gw_import_space *space)
{
	gw_builder_ntype_count(im->builder, space->ntype, space->count);
	if (space->offsets)
		return gw_builder_node_strings(im->builder, space->ntype, "orig_id", space->count, space->offsets,
					       space->bytes);
	const uint64_t *ids = space->values;
	if (!ids && space->base) { /* the input's ids count from 1, even if they kept their order */
		gw_status status = GW_OK;
		uint64_t *counted = gw_import_take(im, space->count, 8, &status);
		if (status != GW_OK)
			return status;
		for (uint64_t i = 0; i < space->count; i++)
			counted[i] = i + space->base;
		ids = counted;
	}
	if (!ids)
		return GW_OK;
	struct gw_builder_array array = {
		.name = "orig_id", .dtype = GW_INT64, .ndim = 1, .shape = {space->count}, .data = ids};
	return gw_builder_node_array(im->builder, space->ntype, &array);
}

gw_status gw_import_number(struct gw_import *im)
{
	gw_status status = GW_OK;
	bool triples = false;
	for (uint32_t s = 0; s < im->num_sets; s++)
		triples |= im->sets[s].triples;
	for (uint32_t i = 0; i < im->num_spaces && status == GW_OK; i++) {
		status = number_space(im, &im->spaces[i]);
		if (status == GW_OK)
			status = add_orig_ids(im, &im->spaces[i]);
	}
	if (status == GW_OK && triples) {
		snprintf(im->relations.name, sizeof(im->relations.name), "(relations)");
		status = number_space(im, &im->relations);
	}
	return status;
}
