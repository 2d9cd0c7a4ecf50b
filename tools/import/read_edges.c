/* Reads the edges of every set: text through tables (table_read.c parses the lines), NumPy by widening. Ids keep the
 * input's values. */

#include "tools/import/import.h"
#include "tools/import/matrix.h"
#include "tools/import/numbers.h"
#include "tools/weights.h"

static gw_status check_numbers(const struct gw_import *im, const struct gw_import_set *set,
			       const struct gw_import_file *file)
{
	const struct gw_import_space *spaces[2] = {&im->spaces[set->src], &im->spaces[set->dst]};
	for (int side = 0; side < 2; side++) {
		if (spaces[side]->ids == GW_IDS_TEXT)
			return gw_fail(GW_INVALID, "%s: its ids are numbers, but node type %s has text ids", file->path,
				       spaces[side]->name);
	}
	return GW_OK;
}

static gw_status read_arrays(struct gw_import *im, struct gw_import_set *set, struct gw_import_file *file)
{
	const struct gw_npy_file *a = &file->arrays[0], *b = &file->arrays[1];
	uint64_t *src = set->src_ids + file->first_row, *dst = set->dst_ids + file->first_row;
	gw_status status;
	if (b->mapping) {
		status = gw_import_whole(&a->npy, a->data, 0, 1, file->rows, file->path, im->threads, src);
		if (status == GW_OK)
			status = gw_import_whole(&b->npy, b->data, 0, 1, file->rows, file->path, im->threads, dst);
		return status;
	}
	bool by_column = a->npy.shape[1] != 2; /* [2, E] */
	status = gw_import_whole(&a->npy, a->data, 0, by_column ? 1 : 2, file->rows, file->path, im->threads, src);
	if (status == GW_OK)
		status = gw_import_whole(&a->npy, a->data, by_column ? file->rows : 1, by_column ? 1 : 2, file->rows,
					 file->path, im->threads, dst);
	return status;
}

static enum gw_column_kind id_kind(const struct gw_import_space *space)
{
	return space->ids == GW_IDS_TEXT ? GW_COLUMN_TEXT : GW_COLUMN_ID;
}

/* Whether an id may not be a word for a missing value, or have zeros in front. The words of triples are names, and so
 * are those of --ids text; dense and compact drop zeros. */
static bool is_checked(const struct gw_import *im, const struct gw_import_set *set, const struct gw_import_space *space)
{
	return !set->triples && im->options->ids == GW_IDS_AUTO && space->ids != GW_IDS_DENSE;
}

static gw_status import_read_text(struct gw_import *im, struct gw_import_set *set, struct gw_import_file *file)
{
	struct gw_table_column columns[4 + GW_IMPORT_COLUMNS_MAX];
	const char *names[4 + GW_IMPORT_COLUMNS_MAX];
	uint32_t count = 0;
	columns[count++] = (struct gw_table_column){.index = file->id_columns[0],
						    .kind = id_kind(&im->spaces[set->src]),
						    .is_id = is_checked(im, set, &im->spaces[set->src]),
						    .is_name = true,
						    .what = set->triples ? "head" : "source id",
						    .values = set->src_ids + file->first_row};
	columns[count++] = (struct gw_table_column){.index = file->id_columns[1],
						    .kind = id_kind(&im->spaces[set->dst]),
						    .is_id = is_checked(im, set, &im->spaces[set->dst]),
						    .is_name = true,
						    .what = set->triples ? "tail" : "destination id",
						    .values = set->dst_ids + file->first_row};
	if (set->triples) {
		columns[count++] = (struct gw_table_column){.index = file->id_columns[2],
							    .kind = id_kind(&im->relations),
							    .is_name = true,
							    .what = "relation",
							    .values = set->relations + file->first_row};
	}
	if (set->times) {
		names[count] = set->time_column;
		columns[count++] = (struct gw_table_column){.kind = GW_COLUMN_FIXED,
							    .digits = im->options->time_digits,
							    .cut = im->options->time_digits_given,
							    .what = "time",
							    .values = set->times + file->first_row};
	}
	for (uint32_t i = 0; i < set->num_columns; i++) {
		names[count] = set->columns[i].column;
		columns[count++] =
			(struct gw_table_column){.kind = set->columns[i].kind,
						 .what = set->columns[i].name,
						 .values = (uint64_t *)set->columns[i].values + file->first_row};
	}
	for (uint32_t i = set->triples ? 3 : 2; i < count; i++) {
		gw_status status = gw_table_find(&file->text, &file->text_format, names[i], &columns[i].index);
		if (status == GW_NOT_FOUND && set->weight_column && names[i] == set->weight_column)
			status = gw_context(status, "--weight %s is not an edge feature (NAME or SRC:REL:DST:NAME)",
					    set->weight_column);
		if (status == GW_NOT_FOUND && set->time_column && names[i] == set->time_column)
			status = gw_context(status,
					    "--time %s is not a feature of edges or nodes (NAME or SRC:REL:DST:NAME)",
					    set->time_column);
		if (status != GW_OK)
			return status;
	}
	return gw_table_read(&file->table, columns, count, im->threads);
}

static gw_status read_file(struct gw_import *im, struct gw_import_set *set, struct gw_import_file *file)
{
	uint64_t *src = set->src_ids + file->first_row, *dst = set->dst_ids + file->first_row;
	gw_status status = file->format != GW_FROM_TEXT || file->matrix.what ? check_numbers(im, set, file) : GW_OK;
	if (status != GW_OK)
		return status;
	if (file->format == GW_FROM_TEXT)
		status = import_read_text(im, set, file);
	else
		status = file->matrix.what ? gw_import_matrix_read(im, file, src, dst) : read_arrays(im, set, file);
	return status != GW_OK || !file->matrix.what ? status : gw_import_matrix_check(file, src, dst);
}

static gw_status read_files(struct gw_import *im, struct gw_import_set *set)
{
	gw_status status = GW_OK;
	for (uint32_t f = 0; f < set->num_files && status == GW_OK; f++)
		status = read_file(im, set, &set->files[f]);
	return status;
}

struct edge_column {
	struct gw_import *im;
	const struct gw_import_set *set;
	const struct gw_import_column *column;
};

static gw_status read_edge_column(void *context, enum gw_column_kind kind)
{
	const struct edge_column *e = context;
	gw_status status = GW_OK;
	for (uint32_t f = 0; f < e->set->num_files && status == GW_OK; f++) {
		const struct gw_import_file *file = &e->set->files[f];
		struct gw_table_column column = {.kind = kind,
						 .what = e->column->name,
						 .values = (uint64_t *)e->column->values + file->first_row};
		status = gw_table_find(&file->text, &file->text_format, e->column->column, &column.index);
		if (status == GW_OK)
			status = gw_table_read(&file->table, &column, 1, e->im->threads);
	}
	return status;
}

/* Reads all files as float32 columns. If float32 does not hold a value, chooses the kind of each column, and reads the
 * files again. */
static gw_status read_set(struct gw_import *im, struct gw_import_set *set)
{
	for (uint32_t i = 0; i < set->num_columns; i++)
		set->columns[i].kind = GW_COLUMN_FLOAT;
	gw_status status = read_files(im, set);
	if (status != GW_RANGE || set->num_columns == 0)
		return status;
	for (uint32_t i = 0; i < set->num_columns; i++) {
		struct edge_column column = {im, set, &set->columns[i]};
		status = gw_numbers_choose(GW_NUMBERS_FLOAT, read_edge_column, &column, &set->columns[i].kind);
		if (status != GW_OK)
			return status;
	}
	return read_files(im, set);
}

/* The error for a value that no alias table can hold names its line. */
static gw_status fail_column_weight(const struct gw_import_set *set, const struct gw_import_column *column,
				    uint64_t row, const char *value)
{
	const struct gw_import_file *file = set->files;
	while (row >= file->first_row + file->rows)
		file++;
	unsigned long long line = gw_table_line(&file->table, row - file->first_row);
	if (column->column == set->weight_column)
		return gw_fail(GW_RANGE,
			       "%s, line %llu: weight %s: " GW_WEIGHT_RULE "; read other columns as --edge-column",
			       file->path, line, value);
	return gw_fail(GW_RANGE, "%s, line %llu: weight \"%s\" is %s: " GW_WEIGHT_RULE, file->path, line, column->name,
		       value);
}

static gw_status pack_column(const struct gw_import *im, const struct gw_import_set *set,
			     struct gw_import_column *column)
{
	char text[GW_WEIGHT_TEXT_MAX];
	column->dtype = gw_numbers_pack(column->kind, column->values, set->rows);
	uint64_t row = column->weight
			       ? gw_weight_first_fault(column->dtype, column->values, set->rows, im->threads, text)
			       : GW_NONE;
	return row == GW_NONE ? GW_OK : fail_column_weight(set, column, row, text);
}

gw_status gw_import_read_all(struct gw_import *im)
{
	gw_status status = GW_OK;
	for (uint32_t s = 0; s < im->num_sets && status == GW_OK; s++) {
		struct gw_import_set *set = &im->sets[s];
		uint64_t arrays = 2ull + set->triples + (set->time_column ? 1u : 0u) + set->num_columns;
		status = gw_spill_announce_blocks(gw_import_memory(im).spill, set->rows * 8 * arrays, "reading");
		set->src_ids = gw_import_take(im, set->rows, 8, &status);
		set->dst_ids = gw_import_take(im, set->rows, 8, &status);
		if (set->triples)
			set->relations = gw_import_take(im, set->rows, 8, &status);
		if (set->time_column)
			set->times = gw_import_take(im, set->rows, 8, &status);
		for (uint32_t i = 0; i < set->num_columns; i++)
			set->columns[i].values = gw_import_take(im, set->rows, 8, &status);
		if (status == GW_OK)
			status = read_set(im, set);
		for (uint32_t i = 0; i < set->num_columns && status == GW_OK; i++)
			status = pack_column(im, set, &set->columns[i]);
	}
	return status;
}
