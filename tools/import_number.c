/* From the input's ids to numbers, one node type (or the relations of triples) at a time.
 *
 *   list given:  number = place in the list; an id that is not there is an error
 *   dense:       whole numbers stay as they are; nodes = --num-nodes, else the largest id + 1
 *   compact:     whole numbers in the order of their first appearance, orig_id int64
 *   text:        the same with orig_id strings
 *
 * Unless told, whole numbers are dense when the ids reach no further than eight times the number of edge ends, or than
 * the rows of a feature.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/parallel.h"
#include "tools/import.h"

#define DENSE_SLACK 8u
#define DENSE_FLOOR 1024u /* ids below it are dense in any case */
#define GRAIN       (64u << 10)

/* The columns of a space, and where each came from, for error text. */
struct sources {
	struct gw_numbering_column *columns;
	const struct gw_import_file **files; /* NULL: the list */
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

/* ---- largest ids ---- */

#define THREADS_MAX 256

struct largest {
	const uint64_t *values;
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
	for (uint32_t c = 0; c < sources->count; c++) {
		const struct gw_numbering_column *column = &sources->columns[c];
		largest->values = column->first;
		gw_parallel_for(threads, column->rows, GRAIN, find_largest, largest);
		largest->values = column->second;
		if (column->second)
			gw_parallel_for(threads, column->rows, GRAIN, find_largest, largest);
	}
	uint64_t most = 0;
	for (int i = 0; i < THREADS_MAX; i++)
		most = largest->by_thread[i] > most ? largest->by_thread[i] : most;
	return most;
}

/* Where a value first reaches the limit: the file, the line (or row) and the value, as text. */
static gw_status fail_at(const struct sources *sources, uint64_t limit, const char *space, const char *why)
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

/* ---- lists ---- */

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Puts names where their numbers say: places[i] is the number of names[i]. */
static gw_status place_list(struct gw_import *im, struct gw_import_space *space, const uint64_t *places)
{
	uint64_t rows = space->list_table.rows;
	gw_status status = GW_OK;
	uint64_t *placed = gw_import_take(im, rows, 8, &status);
	uint64_t *check = gw_import_take(im, rows, 8, &status);
	if (status)
		return status;
	memcpy(check, places, rows * 8);
	qsort(check, rows, 8, compare_ids);
	for (uint64_t i = 0; i < rows; i++) {
		if (check[i] != i)
			return gw_fail(GW_FORMAT, "%s: its numbers are not 0 to %llu, each once", space->list_path,
				       (unsigned long long)(rows - 1));
	}
	for (uint64_t i = 0; i < rows; i++)
		placed[places[i]] = space->list[i];
	space->list = placed;
	return GW_OK;
}

/* How a list is laid out. */
struct list_form {
	struct gw_table_format format;
	bool numbered, names_first; /* two columns: a number and a name */
	bool first_is_id;
};

/* A line is a name, blanks and commas in it too, unless its two fields are a number and a name. */
static gw_status look_at_list(const struct gw_import_space *space, struct list_form *out)
{
	struct gw_table_format format = {.header = GW_HEADER_NONE};
	struct gw_span fields[3] = {{0}};
	uint64_t number;
	gw_table_sniff(&space->list_text, NULL, 0, &format);
	uint32_t have = gw_table_peek(&space->list_text, &format, 0, fields, 3);
	bool first = have > 0 && gw_span_is_id(fields[0], &number),
	     second = have == 2 && gw_span_is_id(fields[1], &number), tab = format.delimiter == '\t';
	*out = (struct list_form){.numbered = have == 2 && (first || second), .names_first = !first, .format = format};
	if (have > 2 && (first || tab))
		return gw_fail(GW_FORMAT, "%s: a list has one column, or two: number and name", space->list_path);
	if (have == 2 && tab && !out->numbered)
		return gw_fail(GW_FORMAT, "%s: of two columns, one must be a number", space->list_path);
	if (!out->numbered && !tab) {
		out->format.quotes =
			format.quotes && have && fields[0].at > space->list_text.data && fields[0].at[-1] == '"';
		out->format.delimiter = '\n';
	}
	out->first_is_id = first && have == 1;
	return GW_OK;
}

/* "7 New York": the name that was cut at a blank is not the name that was meant. */
static gw_status check_line_ends(const struct gw_import_space *space)
{
	const struct gw_text *text = &space->list_text;
	const char *stop = text->data + text->bytes;
	for (uint64_t i = 0; i < space->list_table.rows; i++) {
		struct gw_span span = gw_text_span(text->data, space->list[i]);
		const char *at = span.at + span.bytes;
		while (at < stop && (*at == ' ' || *at == '\t' || *at == '"'))
			at++;
		if (at < stop && *at != '\n' && *at != '\r')
			return gw_fail(GW_FORMAT,
				       "%s, line %llu: more than a number and a name: put a tab between them",
				       space->list_path, (unsigned long long)gw_table_line(&space->list_table, i));
	}
	return GW_OK;
}

/* Reads a list of ids: one a line, or with its number beside it, in either order. */
static gw_status read_list(struct gw_import *im, struct gw_import_space *space)
{
	struct list_form form;
	gw_status status = gw_text_open(space->list_path, &space->list_text);
	if (status == GW_OK)
		status = look_at_list(space, &form);
	if (status == GW_OK)
		status = gw_table_scan(&space->list_text, &form.format, im->threads, &space->list_table);
	if (status)
		return status;
	uint64_t rows = space->list_table.rows, *places = NULL;
	space->list = gw_import_take(im, rows, 8, &status);
	if (form.numbered)
		places = gw_import_take(im, rows, 8, &status);
	if (status)
		return status;
	/* A list without numbers is text when the edges' ids are, or when it plainly is. */
	space->list_is_text = !form.first_is_id || space->ids == GW_IDS_TEXT;
	struct gw_table_column columns[2] = {
		{.index = form.numbered && !form.names_first ? 1 : 0,
		 .kind = space->list_is_text ? GW_COLUMN_TEXT : GW_COLUMN_ID,
		 .what = "id",
		 .values = space->list},
		{.index = form.names_first ? 1 : 0, .kind = GW_COLUMN_ID, .what = "number", .values = places}};
	status = gw_table_read(&space->list_table, columns, form.numbered ? 2 : 1, im->threads);
	if (status || !form.numbered)
		return status;
	status = form.names_first ? GW_OK : check_line_ends(space);
	return status ? status : place_list(im, space, places);
}

/* ---- the ways to number ---- */

/* Whole numbers below count stay as they are. */
static gw_status keep_dense(struct gw_import *im, struct gw_import_space *space, const struct sources *sources)
{
	uint64_t largest = largest_id(sources, im->threads), wanted = sources->values ? largest + 1 : 0;
	space->ids = GW_IDS_DENSE;
	if (wanted < space->feature_rows)
		space->count = space->feature_rows; /* nodes without edges */
	else
		space->count = wanted;
	if (space->num_nodes != GW_NONE)
		space->count = space->num_nodes;
	if (wanted <= space->count)
		return GW_OK;
	char why[128];
	snprintf(why, sizeof(why), "an id of %llu or more, but there are %llu nodes", (unsigned long long)space->count,
		 (unsigned long long)space->count);
	return fail_at(sources, space->count, space->name, why);
}

/* Hands what numbers stand for to the space, as strings or as whole numbers. */
static gw_status keep_values(struct gw_import *im, struct gw_import_space *space, const struct sources *sources,
			     struct gw_numbering *numbering)
{
	gw_status status;
	space->count = numbering->count;
	if (!sources->columns[0].text) {
		space->values = numbering->values;
		numbering->values = NULL;
		status = gw_builder_own(im->builder, space->values, gw_free);
	} else {
		status = gw_numbering_strings(numbering, sources->columns, im->threads, &space->offsets, &space->bytes);
		if (status == GW_OK)
			status = gw_builder_own(im->builder, space->offsets, gw_free);
		if (status == GW_OK)
			status = gw_builder_own(im->builder, space->bytes, gw_free);
		else if (space->bytes)
			gw_free(space->bytes);
	}
	return status;
}

static gw_status number_values(struct gw_import *im, struct gw_import_space *space, const struct sources *sources)
{
	struct gw_numbering numbering;
	if (sources->count == 0)
		return GW_OK; /* a type without edges and without a list has no nodes */
	gw_status status = gw_numbering_create(sources->columns, sources->count, im->threads, &numbering);
	if (status)
		return status;
	uint64_t listed = space->list_table.rows;
	for (uint64_t i = 0; space->list && i < listed && status == GW_OK; i++) {
		if (space->list[i] != i)
			status = gw_fail(GW_FORMAT, "%s, line %llu: an id that stands there before", space->list_path,
					 (unsigned long long)gw_table_line(&space->list_table, i));
	}
	if (status == GW_OK && space->list && numbering.count > listed) {
		char why[128];
		snprintf(why, sizeof(why), "an id that is not in the list");
		status = fail_at(sources, listed, space->name, why);
	}
	if (status == GW_OK && space->ids != GW_IDS_TEXT)
		space->ids = GW_IDS_COMPACT;
	if (status == GW_OK)
		status = keep_values(im, space, sources, &numbering);
	gw_numbering_free(&numbering);
	return status;
}

/* A list of names for ids that are numbers: places in it. */
static gw_status number_by_place(struct gw_import *im, struct gw_import_space *space, const struct sources *edges)
{
	struct sources list = {.columns = edges->columns, .files = edges->files, .count = 1};
	struct sources rest = {.columns = edges->columns + 1,
			       .files = edges->files + 1,
			       .count = edges->count - 1,
			       .values = edges->values};
	space->num_nodes = space->list_table.rows;
	gw_status status = keep_dense(im, space, &rest);
	return status ? status : number_values(im, space, &list);
}

/* Do ids that are numbers keep them? Told to, or because few numbers would be left out. */
static bool stay_dense(const struct gw_import *im, const struct gw_import_space *space, const struct sources *sources)
{
	if (space->ids == GW_IDS_TEXT || space->ids == GW_IDS_COMPACT)
		return false;
	if (space->ids == GW_IDS_DENSE || space->num_nodes != GW_NONE)
		return true;
	uint64_t largest = largest_id(sources, im->threads);
	/* A feature with a row for every id counts the nodes, however few of them have edges. */
	return largest < space->feature_rows || largest / DENSE_SLACK <= sources->values + DENSE_FLOOR / DENSE_SLACK;
}

static gw_status number_space(struct gw_import *im, struct gw_import_space *space)
{
	struct sources sources;
	if (space->ids == GW_IDS_TEXT && space->num_nodes != GW_NONE && !space->list_path)
		return gw_fail(
			GW_INVALID,
			"node type %s: its ids are names, which --num-nodes cannot make up: list them with --nodes",
			space->name);
	gw_status status = space->list_path ? read_list(im, space) : GW_OK;
	if (status)
		return status;
	status = gather_sources(im, space, &sources);
	if (status)
		goto free_all;
	if (space->list && space->list_is_text && space->ids != GW_IDS_TEXT && space->ids != GW_IDS_COMPACT)
		status = number_by_place(im, space, &sources);
	else if (space->list || !stay_dense(im, space, &sources))
		status = number_values(im, space, &sources);
	else
		status = keep_dense(im, space, &sources);
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
	if (!space->values)
		return GW_OK;
	struct gw_builder_array array = {
		.name = "orig_id", .dtype = GW_INT64, .ndim = 1, .shape = {space->count}, .data = space->values};
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
