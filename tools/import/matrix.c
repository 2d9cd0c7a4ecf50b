/* Matrices as inputs: Matrix Market, LightGraphs' text, SciPy's sparse archives. See matrix.h.
 *
 *   text: banner or first line -> shape -> its entries are the rows of a table
 *   archive: format, shape -> rows and columns, or offsets and indices -> widened, offsets expanded
 *   both: shape -> number of nodes of the types; check that every entry is inside the shape
 *
 * Errors: unsupported kinds, counts of entries that do not agree, entries outside the shape, offsets that do not
 * ascend, rectangular matrices of one node type, and two inputs that disagree about a type.
 */
#include "tools/import/matrix.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/system/parallel.h"
#include "tools/import/npz.h"
#include "tools/import/table_line.h"

#define BANNER       "%%MatrixMarket"
#define BANNER_WORDS 4u /* after the first: matrix coordinate real general */
#define GRAIN        (64u << 10)

static bool matrix_span_is(struct gw_text_span span, const char *text)
{
	return span.bytes == strlen(text) && strncasecmp(span.at, text, span.bytes) == 0;
}

/* ---- Matrix Market ---- */

static bool is_market(const struct gw_text *text)
{
	size_t bytes = strlen(BANNER);
	return text->bytes > bytes && strncasecmp(text->data, BANNER, bytes) == 0 && gw_is_blank(text->data[bytes]);
}

static uint32_t banner_words(const struct gw_text *text, struct gw_text_span words[BANNER_WORDS])
{
	const struct gw_table_format blanks = {.delimiter = ' '};
	const char *stop = text->data + text->bytes, *end, *at = text->data + strlen(BANNER);
	uint32_t count = 0;
	gw_line_next(at, stop, &end);
	while (count < BANNER_WORDS && gw_field_next(&at, end, &blanks, &words[count]) == GW_FIELD_MORE)
		count++;
	return count;
}

static gw_status read_market(const struct gw_text *text, struct gw_table_format *format, struct gw_import_matrix *out)
{
	struct gw_text_span words[BANNER_WORDS], sizes[3];
	uint64_t numbers[3];
	out->what = "Matrix Market";
	out->base = 1;
	if (banner_words(text, words) < BANNER_WORDS)
		return gw_fail(GW_FORMAT,
			       "%s, line 1: a Matrix Market file starts with \"matrix coordinate\", "
			       "then the kind of its values and its symmetry",
			       text->name);
	if (!matrix_span_is(words[0], "matrix") || !matrix_span_is(words[1], "coordinate"))
		return gw_fail(GW_UNSUPPORTED,
			       "%s: only coordinate matrices of Matrix Market are supported: write it sparse",
			       text->name);
	if (!matrix_span_is(words[2], "pattern") && !matrix_span_is(words[2], "integer") &&
	    !matrix_span_is(words[2], "real"))
		return gw_fail(GW_UNSUPPORTED,
			       "%s: Matrix Market values \"%.*s\": only pattern, integer and real are supported",
			       text->name, (int)(words[2].bytes < 32 ? words[2].bytes : 32), words[2].at);
	out->skew = matrix_span_is(words[3], "skew-symmetric");
	out->symmetric = out->skew || matrix_span_is(words[3], "symmetric");
	if (!out->symmetric && !matrix_span_is(words[3], "general"))
		return gw_fail(
			GW_UNSUPPORTED,
			"%s: Matrix Market symmetry \"%.*s\": only general, symmetric and skew-symmetric are supported",
			text->name, (int)(words[3].bytes < 32 ? words[3].bytes : 32), words[3].at);
	/* Comments start with %. The line of sizes is read as a header of the entries. */
	*format = (struct gw_table_format){.delimiter = ' ', .comments = "%", .header = GW_HEADER_YES};
	uint32_t have = gw_table_peek(text, format, 0, sizes, 3);
	for (uint32_t i = 0; i < 3; i++) {
		if (have != 3 || !gw_text_span_is_id(sizes[i], &numbers[i]))
			return gw_fail(GW_FORMAT,
				       "%s: no line of rows, columns and entries follows the Matrix Market banner",
				       text->name);
	}
	out->rows = numbers[0];
	out->columns = numbers[1];
	out->entries = numbers[2];
	if (out->symmetric && out->rows != out->columns)
		return gw_fail(GW_FORMAT, "%s: symmetric, but has %" PRIu64 " rows and %" PRIu64 " columns", text->name,
			       out->rows, out->columns);
	return GW_OK;
}

/* ---- LightGraphs ---- */

/* "82168,948464,d,graph": nodes, edges, directed or undirected, a name and more; pairs on the lines below. */
static bool read_light(const struct gw_text *text, struct gw_table_format *format, struct gw_import_matrix *out)
{
	struct gw_table_format commas = *format;
	struct gw_text_span first[4], second[3];
	uint64_t nodes, edges, id;
	if (format->header != GW_HEADER_AUTO || (format->delimiter != 0 && format->delimiter != ','))
		return false;
	commas.delimiter = ',';
	commas.header = GW_HEADER_YES;
	if (gw_table_peek(text, &commas, 0, first, 4) < 3 || !gw_text_span_is_id(first[0], &nodes) ||
	    !gw_text_span_is_id(first[1], &edges) || (!matrix_span_is(first[2], "d") && !matrix_span_is(first[2], "u")))
		return false;
	uint32_t below = gw_table_peek(text, &commas, 1, second, 3);
	if (below == 0 ? edges != 0
		       : below != 2 || !gw_text_span_is_id(second[0], &id) || !gw_text_span_is_id(second[1], &id))
		return false;
	*out = (struct gw_import_matrix){.what = "LightGraphs",
					 .rows = nodes,
					 .columns = nodes,
					 .entries = edges,
					 .base = 1,
					 .symmetric = matrix_span_is(first[2], "u")};
	*format = commas;
	return true;
}

gw_status gw_import_matrix_text(const struct gw_text *text, struct gw_table_format *format,
				struct gw_import_matrix *out)
{
	*out = (struct gw_import_matrix){0};
	if (is_market(text))
		return read_market(text, format, out);
	read_light(text, format, out);
	return GW_OK;
}

/* ---- SciPy ---- */

static gw_status open_column(const struct gw_npz *npz, const char *path, const char *name, struct gw_npy_file *out)
{
	gw_status status = gw_npz_read(npz, name, out);
	if (status == GW_OK && out->npy.ndim != 1)
		status = gw_fail(GW_FORMAT, "%s: member \"%s\" has %u dimensions: a sparse matrix has one", path, name,
				 out->npy.ndim);
	return status;
}

static gw_status read_shape(const struct gw_npz *npz, const char *path, struct gw_import_matrix *out)
{
	struct gw_npy_file array;
	uint64_t shape[2] = {0};
	gw_status status = open_column(npz, path, "shape", &array);
	if (status == GW_OK && array.npy.shape[0] != 2)
		status = gw_fail(GW_UNSUPPORTED, "%s: a sparse array of %" PRIu64 " dimensions: matrices have two",
				 path, array.npy.shape[0]);
	if (status == GW_OK)
		status = gw_import_whole(&array.npy, array.data, 0, 1, 2, path, 1, shape);
	if (array.mapping)
		gw_npy_close(&array);
	out->rows = shape[0];
	out->columns = shape[1];
	return status;
}

gw_status gw_import_matrix_npz(const struct gw_npz *npz, struct gw_import_file *file)
{
	struct gw_import_matrix *m = &file->matrix;
	char layout[8];
	*m = (struct gw_import_matrix){0};
	if (!gw_npz_has(npz, "format") || !gw_npz_has(npz, "shape"))
		return GW_OK;
	m->what = "SciPy";
	gw_status status = gw_npz_word(npz, "format", layout, sizeof(layout));
	if (status != GW_OK)
		return status;
	bool coo = strcmp(layout, "coo") == 0;
	if (!coo && strcmp(layout, "csr") != 0 && strcmp(layout, "csc") != 0)
		return gw_fail(GW_UNSUPPORTED, "%s: a sparse matrix in format \"%s\": save it as .tocsr() or .tocoo()",
			       file->path, layout);
	m->layout = coo ? GW_MATRIX_COO : layout[2] == 'r' ? GW_MATRIX_CSR : GW_MATRIX_CSC;
	status = read_shape(npz, file->path, m);
	if (status == GW_OK)
		status = open_column(npz, file->path, coo ? "row" : "indptr", &file->arrays[0]);
	if (status == GW_OK)
		status = open_column(npz, file->path, coo ? "col" : "indices", &file->arrays[1]);
	if (status != GW_OK)
		return status;
	m->entries = file->arrays[1].npy.shape[0];
	uint64_t lists = m->layout == GW_MATRIX_CSR ? m->rows : m->columns, first = file->arrays[0].npy.shape[0];
	if (first == 0 || first - 1 != lists)
		status = coo ? GW_OK
			     : gw_fail(GW_FORMAT, "%s: %" PRIu64 " offsets for %" PRIu64 " %s: must be one more",
				       file->path, first, lists, layout[2] == 'r' ? "rows" : "columns");
	if (status == GW_OK && coo && first != m->entries)
		status = gw_fail(GW_FORMAT, "%s: %" PRIu64 " rows, but %" PRIu64 " columns", file->path, first,
				 m->entries);
	return status;
}

struct spreading {
	const uint64_t *offsets;
	uint64_t *out;
};

static gw_status spread(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct spreading *s = context;
	for (uint64_t list = begin; list < end; list++) {
		for (uint64_t i = s->offsets[list]; i < s->offsets[list + 1]; i++)
			s->out[i] = list;
	}
	return GW_OK;
}

/* Expands the offsets of lists to the list number of each entry. */
static gw_status spread_offsets(struct gw_import *im, const struct gw_import_file *file, uint64_t *out)
{
	const struct gw_npy *npy = &file->arrays[0].npy;
	uint64_t lists = npy->shape[0] - 1, entries = file->rows;
	gw_status status = GW_OK;
	uint64_t *offsets = gw_import_take(im, lists + 1, 8, &status);
	if (status == GW_OK)
		status = gw_import_whole(npy, file->arrays[0].data, 0, 1, lists + 1, file->path, im->threads, offsets);
	if (status != GW_OK)
		return status;
	for (uint64_t i = 0; i < lists; i++) {
		if (offsets[i] > offsets[i + 1])
			return gw_fail(GW_FORMAT, "%s: offset %" PRIu64 " of indptr is above the next one", file->path,
				       i);
	}
	if (offsets[0] != 0 || offsets[lists] != entries)
		return gw_fail(GW_FORMAT,
			       "%s: indptr runs from %" PRIu64 " to %" PRIu64 ", but there are %" PRIu64 " indices",
			       file->path, offsets[0], offsets[lists], entries);
	struct spreading spreading = {.offsets = offsets, .out = out};
	return gw_parallel_for(im->threads, lists, GRAIN, spread, &spreading);
}

gw_status gw_import_matrix_read(struct gw_import *im, const struct gw_import_file *file, uint64_t *src, uint64_t *dst)
{
	const struct gw_npy_file *a = &file->arrays[0], *b = &file->arrays[1];
	bool csc = file->matrix.layout == GW_MATRIX_CSC;
	gw_status status =
		gw_import_whole(&b->npy, b->data, 0, 1, file->rows, file->path, im->threads, csc ? src : dst);
	if (status != GW_OK)
		return status;
	if (file->matrix.layout == GW_MATRIX_COO)
		return gw_import_whole(&a->npy, a->data, 0, 1, file->rows, file->path, im->threads, src);
	return spread_offsets(im, file, csc ? dst : src);
}

/* ---- shape and ids of all kinds ---- */

static gw_status claim_space(struct gw_import_space *space, const struct gw_import_file *file, uint64_t nodes)
{
	const struct gw_import_matrix *m = &file->matrix;
	if (space->base_path && space->base != m->base)
		return gw_fail(GW_INVALID,
			       "node type %s: its ids count from %u in %s, from %u in %s: convert one of them",
			       space->name, space->base, space->base_path, m->base, file->path);
	space->base = m->base;
	space->base_path = file->path;
	if (!m->what)
		return GW_OK;
	if (space->ids == GW_IDS_TEXT)
		return gw_fail(GW_INVALID, "%s: its ids are numbers, but node type %s has text ids", file->path,
			       space->name);
	if (nodes >= GW_NONE)
		return gw_fail(GW_RANGE, "%s: %" PRIu64 " nodes are more than a type may have", file->path, nodes);
	if (space->num_nodes != GW_NONE && space->num_nodes < nodes)
		return gw_fail(GW_INVALID, "%s: it has %" PRIu64 " nodes of type %s, but --num-nodes says %" PRIu64,
			       file->path, nodes, space->name, space->num_nodes);
	if (space->num_nodes == GW_NONE && space->shape_path && space->shape_nodes != nodes)
		return gw_fail(GW_INVALID,
			       "node type %s: %s has %" PRIu64 " of them, %s has %" PRIu64
			       ": say --num-nodes %s=N if they are the same nodes all the same",
			       space->name, space->shape_path, space->shape_nodes, file->path, nodes, space->name);
	space->shape_nodes = nodes;
	space->shape_path = file->path;
	return GW_OK;
}

gw_status gw_import_matrix_claim(struct gw_import *im, struct gw_import_set *set, const struct gw_import_file *file)
{
	const struct gw_import_matrix *m = &file->matrix;
	uint64_t from = m->swapped ? m->columns : m->rows, to = m->swapped ? m->rows : m->columns;
	if (m->what && set->src == set->dst && from != to)
		return gw_fail(GW_INVALID,
			       "%s: a matrix of %" PRIu64 " rows and %" PRIu64
			       " columns has two node types: write --edges ROW:REL:COLUMN=%s, with a name for each",
			       file->path, m->rows, m->columns, file->path);
	if (m->what && file->rows != m->entries)
		return gw_fail(GW_FORMAT, "%s: it says that it has %" PRIu64 " entries, but there are %" PRIu64,
			       file->path, m->entries, file->rows);
	if (m->symmetric && set->src != set->dst)
		return gw_fail(GW_INVALID,
			       "%s: it is symmetric: its rows and columns are nodes of one type, not %s and %s",
			       file->path, im->spaces[set->src].name, im->spaces[set->dst].name);
	gw_status status = claim_space(&im->spaces[set->src], file, from);
	return status != GW_OK || set->src == set->dst ? status : claim_space(&im->spaces[set->dst], file, to);
}

gw_status gw_import_matrix_check(const struct gw_import_file *file, const uint64_t *src, const uint64_t *dst)
{
	const struct gw_import_matrix *m = &file->matrix;
	const uint64_t *rows = m->swapped ? dst : src, *columns = m->swapped ? src : dst;
	for (uint64_t i = 0; i < file->rows; i++) {
		/* A number below the base wraps round to one that is too large. */
		if (rows[i] - m->base < m->rows && columns[i] - m->base < m->columns)
			continue;
		char place[64];
		snprintf(place, sizeof(place), file->format == GW_FROM_TEXT ? "line %" PRIu64 : "entry %" PRIu64,
			 file->format == GW_FROM_TEXT ? gw_table_line(&file->table, i) : i);
		return gw_fail(GW_RANGE,
			       "%s, %s: (%" PRIu64 ", %" PRIu64 ") lies outside of its %" PRIu64 " by %" PRIu64
			       ", counted from %u",
			       file->path, place, rows[i], columns[i], m->rows, m->columns, m->base);
	}
	return GW_OK;
}
