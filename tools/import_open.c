/* Opening the inputs and looking at them: delimiter, header, columns, whether ids are numbers, how NumPy edges lie.
 *
 * A node type has text ids as soon as one of its columns, in any file, shows something that is no whole number among
 * its first rows; what shows up later is an error that names the line and the option.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "tools/import.h"
#include "tools/npz.h"

#define LOOK_ROWS 100u

static bool is_name(const char *column)
{
	struct gw_span span = {.at = column, .bytes = column ? strlen(column) : 0};
	uint64_t number;
	return column && !gw_span_is_id(span, &number);
}

/* The columns as the options name them, with the defaults: 1 and 2, or 1, 2, 3 for triples. */
static void column_names(const struct gw_import *im, const struct gw_import_set *set, const char *names[5])
{
	const struct gw_import_options *o = im->options;
	names[0] = o->src_column ? o->src_column : "1";
	names[1] = o->dst_column ? o->dst_column : set->triples ? "3" : "2";
	names[2] = set->triples ? o->rel_column ? o->rel_column : "2" : NULL;
	names[3] = o->time_column;
	names[4] = NULL;
}

static uint32_t plain_number(const char *column)
{
	uint64_t number = 0;
	struct gw_span span = {.at = column, .bytes = strlen(column)};
	return gw_span_is_id(span, &number) && number >= 1 && number <= GW_TABLE_COLUMNS_MAX ? (uint32_t)number - 1
											     : UINT32_MAX;
}

/* Sniffs by the id columns first, then, as ids may be text, by the columns that are numbers in any case. */
static void sniff_text(const struct gw_import *im, const struct gw_import_set *set, struct gw_import_file *file)
{
	const char *names[5];
	uint32_t numbers[4 + GW_IMPORT_COLUMNS_MAX], ids = 0, others = 0;
	bool named = false;
	column_names(im, set, names);
	for (int i = 0; i < 4; i++)
		named |= is_name(names[i]);
	for (uint32_t i = 0; i < set->num_columns; i++)
		named |= is_name(set->columns[i].column);
	file->text_format = im->options->text;
	if (file->delimiter) {
		file->text_format.delimiter = file->delimiter;
		file->text_format.quotes = file->delimiter == ',';
		file->text_format.header = GW_HEADER_NONE;
	}
	if (named && file->text_format.header == GW_HEADER_AUTO)
		file->text_format.header = GW_HEADER_YES;
	for (int i = 0; i < 2; i++) {
		numbers[ids] = plain_number(names[i]);
		ids += numbers[ids] != UINT32_MAX;
	}
	struct gw_table_format trial = file->text_format;
	gw_table_sniff(&file->text, numbers, set->triples ? 0 : ids, &trial);
	if (trial.header != GW_HEADER_YES && file->text_format.header == GW_HEADER_AUTO) {
		if (names[3])
			numbers[others++] = plain_number(names[3]);
		for (uint32_t i = 0; i < set->num_columns; i++)
			numbers[others++] = plain_number(set->columns[i].column);
		trial = file->text_format;
		gw_table_sniff(&file->text, numbers, others, &trial);
	}
	file->text_format = trial;
}

/* Do the first rows hold something that is no id in this column? */
static bool column_is_text(const struct gw_import_file *file, uint32_t column)
{
	struct gw_span fields[64];
	uint32_t skip = file->text_format.header == GW_HEADER_YES;
	for (uint32_t row = skip; row < skip + LOOK_ROWS && column < 64; row++) {
		uint64_t value;
		uint32_t have = gw_table_peek(&file->text, &file->text_format, row, fields, 64);
		if (have == 0)
			return false;
		if (column >= have)
			continue;
		if (!gw_span_is_id(fields[column], &value) || (fields[column].bytes > 1 && fields[column].at[0] == '0'))
			return true; /* "007" and "7" are two names */
	}
	return false;
}

static gw_status open_text(struct gw_import *im, struct gw_import_set *set, struct gw_import_file *file)
{
	const char *names[5];
	gw_status status = gw_text_open(file->path, &file->text);
	if (status)
		return status;
	im->input_bytes += file->text.file_bytes;
	sniff_text(im, set, file);
	column_names(im, set, names);
	for (int i = 0; i < (set->triples ? 3 : 2); i++) {
		uint32_t column;
		status = gw_table_find(&file->text, &file->text_format, names[i], &column);
		if (status)
			return status;
		file->text_ids[i] = column_is_text(file, column);
		/* Entities are names, even where they look like numbers, unless a dictionary numbers them. */
		const struct gw_import_space *space = i == 2 ? &im->relations : &im->spaces[i ? set->dst : set->src];
		if (set->triples && !space->list_path && space->num_nodes == GW_NONE)
			file->text_ids[i] = true;
	}
	status = gw_table_scan(&file->text, &file->text_format, im->threads, &file->table);
	file->rows = file->table.rows;
	return status;
}

gw_status gw_import_archive(struct gw_import *im, const char *path, struct gw_npz **out)
{
	for (uint32_t i = 0; i < im->num_archives; i++) {
		if (strcmp(im->archives[i].path, path) == 0) {
			*out = im->archives[i].npz;
			return GW_OK;
		}
	}
	struct gw_npz *npz;
	gw_status status = gw_npz_open(path, &npz);
	if (status)
		return status;
	if (im->num_archives == im->archives_room) {
		uint32_t room = im->archives_room ? im->archives_room * 2 : 4;
		void *grown = gw_realloc(im->archives, room, sizeof(*im->archives));
		if (!grown) {
			gw_npz_close(npz);
			return GW_NO_MEMORY;
		}
		im->archives = grown;
		im->archives_room = room;
	}
	im->archives[im->num_archives++] = (struct gw_import_archive){.path = path, .npz = npz};
	*out = npz;
	return GW_OK;
}

static bool has_member(const struct gw_npz *npz, const char *name)
{
	for (uint32_t i = 0; gw_npz_name(npz, i); i++) {
		if (strcmp(gw_npz_name(npz, i), name) == 0)
			return true;
	}
	return false;
}

/* The members that hold edges, by the names people give them. */
static gw_status open_npz(struct gw_import *im, const struct gw_import_set *set, struct gw_import_file *file)
{
	static const char *const pairs[][2] = {{"src", "dst"}, {"row", "col"}, {"source", "target"}};
	static const char *const singles[] = {"edges", "edge_index", "edge_list"};
	struct gw_npz *npz;
	gw_status status = gw_import_archive(im, file->path, &npz);
	if (status == GW_OK && set->src == set->dst)
		status = gw_import_archive_features(im, npz, file->path, set->src);
	if (status)
		return status;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (!has_member(npz, pairs[i][0]) || !has_member(npz, pairs[i][1]))
			continue;
		status = gw_npz_read(npz, pairs[i][0], &file->arrays[0]);
		return status ? status : gw_npz_read(npz, pairs[i][1], &file->arrays[1]);
	}
	for (size_t i = 0; i < sizeof(singles) / sizeof(singles[0]); i++) {
		if (has_member(npz, singles[i]))
			return gw_npz_read(npz, singles[i], &file->arrays[0]);
	}
	return gw_fail(GW_NOT_FOUND, "%s: no edges: no members \"src\" and \"dst\", \"edges\" or \"edge_index\"",
		       file->path);
}

static bool is_integer(gw_dtype dtype)
{
	return dtype == GW_UINT8 || dtype == GW_INT8 || dtype == GW_UINT16 || dtype == GW_INT32 || dtype == GW_UINT32 ||
	       dtype == GW_INT64 || dtype == GW_UINT64;
}

static gw_status check_edge_arrays(struct gw_import *im, struct gw_import_file *file)
{
	const struct gw_npy *a = &file->arrays[0].npy, *b = &file->arrays[1].npy;
	bool pair = file->arrays[1].mapping != NULL;
	if (!is_integer(a->dtype) || (pair && !is_integer(b->dtype)))
		return gw_fail(GW_FORMAT, "%s: edges of dtype %s: ids are whole numbers", file->path,
			       gw_dtype_name(is_integer(a->dtype) ? b->dtype : a->dtype));
	im->input_bytes += a->data_bytes + (pair ? b->data_bytes : 0);
	if (pair) {
		if (a->ndim != 1 || b->ndim != 1 || a->shape[0] != b->shape[0])
			return gw_fail(GW_FORMAT, "%s: source and destination ids are not two columns of one length",
				       file->path);
		file->rows = a->shape[0];
		return GW_OK;
	}
	if (a->ndim != 2 || (a->shape[0] != 2 && a->shape[1] != 2))
		return gw_fail(GW_FORMAT, "%s: edges are an array of shape [E, 2] or [2, E]", file->path);
	/* [2, 2] is taken as two edges, one a row. */
	file->rows = a->shape[1] == 2 ? a->shape[0] : a->shape[1];
	return GW_OK;
}

static gw_status open_file(struct gw_import *im, struct gw_import_set *set, struct gw_import_file *file)
{
	gw_status status = GW_OK;
	switch (file->format) {
	case GW_FROM_NPY:
		status = gw_npy_open(file->path, &file->arrays[0]);
		break;
	case GW_FROM_NPZ:
		status = open_npz(im, set, file);
		break;
	case GW_FROM_DGL:
		return gw_fail(GW_INVALID, "%s: a chunked graph says its types itself: pass it with --from",
			       file->path);
	default:
		return open_text(im, set, file);
	}
	return status ? status : check_edge_arrays(im, file);
}

gw_status gw_import_open_all(struct gw_import *im)
{
	for (uint32_t s = 0; s < im->num_sets; s++) {
		struct gw_import_set *set = &im->sets[s];
		for (uint32_t f = 0; f < set->num_files; f++) {
			struct gw_import_file *file = &set->files[f];
			gw_status status = open_file(im, set, file);
			if (status)
				return status;
			file->first_row = set->rows;
			set->rows += file->rows;
			if (file->text_ids[2])
				im->relations.ids = GW_IDS_TEXT;
			for (int side = 0; side < 2; side++) {
				struct gw_import_space *space = &im->spaces[side ? set->dst : set->src];
				if (file->text_ids[side] && space->ids == GW_IDS_AUTO)
					space->ids = GW_IDS_TEXT;
			}
		}
		if (set->rows_expected && set->rows != set->rows_expected)
			return gw_fail(GW_FORMAT,
				       "edge type %s: its files have %llu edges, but num_edges_per_chunk says %llu",
				       set->rel, (unsigned long long)set->rows, (unsigned long long)set->rows_expected);
	}
	return GW_OK;
}
