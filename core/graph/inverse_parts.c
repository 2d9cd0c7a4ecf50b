/* Finds the first node or edge of every original id, over all parts, and divides the ids over the parts. See inverse.h.
 *
 *   orig_id of all parts, mapped -> a bit for each id that occurs -> does every id occur? -> a range of ids at a time:
 * every row lowers the place of its id -> appended to the parts' arrays
 *
 * A range may cover several parts, or a piece of one; each takes a loop over all original ids. The smallest position
 * remains in any order of threads. Fails if memory runs out, and with errors of the writer.
 */
#include <stdio.h>
#include <string.h>

#include "core/graph/book.h"
#include "core/graph/inverse.h"
#include "core/graph/inverse_private.h"
#include "core/graph/npy.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"

#define GRAIN       65536u         /* rows of a chunk */
#define RANGE_BYTES (256ull << 20) /* memory of a range by default, unless there are many ids */
#define RANGES_MAX  16u            /* of many ids */
#define KEY_ROOM    (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32)

struct inverse_parts {
	struct gw_writer *writer;
	const struct gw_inverse_of *of;
	uint32_t parts;
	struct gw_npy_file *files; /* [parts]: orig_id */
	uint32_t part;             /* of the current loop */
	uint8_t id_bytes;          /* of the part's file */
	uint64_t count;            /* nodes or edges */
	uint64_t rows;             /* ids: the greatest one + 1 */
	uint64_t *seen;            /* a bit for each id */
	bool repeats, beyond;      /* set by any thread */
	uint64_t first, last;      /* the current range of ids */
	bool wide;
	union {
		uint32_t *narrow; /* [last - first] */
		uint64_t *wide;
	} at;
	struct gw_array_stream *stream; /* of the part being written, or NULL */
};

static gw_status inverse_parts_open(struct inverse_parts *w)
{
	gw_status status = GW_OK;
	for (uint32_t p = 0; p < w->parts && status == GW_OK; p++)
		status = gw_writer_map(w->writer, p, w->of->key, &w->files[p]);
	return status;
}

/* Runs a loop over the rows of all parts; the body gets rows of w->part. */
static gw_status each_row(struct inverse_parts *w,
			  gw_status (*body)(void *context, uint64_t begin, uint64_t end, unsigned thread))
{
	gw_status status = GW_OK;
	for (w->part = 0; w->part < w->parts && status == GW_OK; w->part++) {
		w->id_bytes = w->files[w->part].npy.dtype == GW_UINT32 ? 4 : 8;
		status = gw_parallel_for(w->of->threads, w->of->starts[w->part + 1] - w->of->starts[w->part], GRAIN,
					 body, w);
	}
	return status;
}

static gw_status inverse_mark(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct inverse_parts *w = context;
	const void *ids = w->files[w->part].data;
	uint64_t rows = 0;
	(void)thread;
	for (uint64_t i = begin; i < end && !__atomic_load_n(&w->beyond, __ATOMIC_RELAXED); i++) {
		uint64_t id = gw_load_id(ids, w->id_bytes, i), bit = 1ull << (id % 64);
		if (id >= w->count) {
			__atomic_store_n(&w->beyond, true, __ATOMIC_RELAXED);
			break;
		}
		rows = id >= rows ? id + 1 : rows;
		if (__atomic_fetch_or(&w->seen[id / 64], bit, __ATOMIC_RELAXED) & bit)
			__atomic_store_n(&w->repeats, true, __ATOMIC_RELAXED);
	}
	gw_inverse_raise(&w->rows, rows);
	return GW_OK;
}

/* Sets *dense if no id below the greatest one is left out, and none repeats if they must be unique. */
static gw_status inverse_find(struct inverse_parts *w, bool *dense)
{
	w->seen = gw_calloc(w->count / 64 + 1, sizeof(*w->seen));
	if (!w->seen)
		return GW_NO_MEMORY;
	gw_status status = each_row(w, inverse_mark);
	uint64_t found = 0;
	for (uint64_t i = 0; i <= w->count / 64; i++)
		found += (uint64_t)__builtin_popcountll(w->seen[i]);
	gw_free(w->seen);
	w->seen = NULL;
	*dense = !w->beyond && found == w->rows && !(w->of->unique && w->repeats);
	return status;
}

static gw_status inverse_place(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct inverse_parts *w = context;
	const void *ids = w->files[w->part].data;
	(void)thread;
	for (uint64_t i = begin; i < end; i++) {
		uint64_t at = gw_load_id(ids, w->id_bytes, i) - w->first, position = w->of->starts[w->part] + i;
		if (at >= w->last - w->first)
			continue;
		if (w->wide)
			gw_inverse_lower_wide(&w->at.wide[at], position);
		else
			gw_inverse_lower_narrow(&w->at.narrow[at], (uint32_t)position);
	}
	return GW_OK;
}

static gw_status inverse_begin(struct inverse_parts *w, uint32_t part)
{
	char key[KEY_ROOM];
	uint64_t rows = gw_dense_start(w->rows, part + 1, w->parts) - gw_dense_start(w->rows, part, w->parts);
	snprintf(key, sizeof(key), "%s" GW_INVERSE_TAIL, w->of->key);
	return gw_writer_begin(w->writer, part, key, w->wide ? GW_UINT64 : GW_UINT32, 1, &rows, &w->stream);
}

/* Appends the range to the parts that have its ids. *part: the first of them, and then the next one. */
static gw_status inverse_append(struct inverse_parts *w, uint32_t *part)
{
	const uint8_t *data = (const uint8_t *)w->at.narrow;
	size_t width = w->wide ? 8 : 4;
	gw_status status = GW_OK;
	for (uint64_t at = w->first; status == GW_OK && *part < w->parts;) {
		uint64_t end = gw_dense_start(w->rows, *part + 1, w->parts), upto = end < w->last ? end : w->last;
		if (!w->stream)
			status = inverse_begin(w, *part);
		if (status == GW_OK)
			status = gw_writer_append(w->stream, data + (at - w->first) * width, (upto - at) * width);
		if (status != GW_OK || upto < end)
			break;
		at = upto;
		struct gw_array_stream *stream = w->stream;
		w->stream = NULL;
		status = gw_writer_end(stream);
		++*part;
	}
	return status;
}

static gw_status inverse_write_all(struct inverse_parts *w)
{
	uint64_t width = w->wide ? 8 : 4, wanted = (w->of->range_bytes ? w->of->range_bytes : RANGE_BYTES) / width;
	uint64_t least = w->rows / RANGES_MAX + 1, most = wanted > least ? wanted : least;
	uint32_t part = 0;
	gw_status status = GW_OK;
	most = most < w->rows ? most : w->rows;
	w->at.narrow = gw_malloc(most * width);
	if (!w->at.narrow)
		return GW_NO_MEMORY;
	do {
		w->last = w->rows - w->first < most ? w->rows : w->first + most;
		memset(w->at.narrow, 0xff, (w->last - w->first) * width);
		status = each_row(w, inverse_place);
		if (status == GW_OK)
			status = inverse_append(w, &part);
		w->first = w->last;
	} while (status == GW_OK && w->first < w->rows);
	gw_free(w->at.narrow);
	return status;
}

gw_status gw_inverse_write_parts(struct gw_writer *writer, const struct gw_inverse_of *of, bool *written)
{
	struct inverse_parts w = {.writer = writer, .of = of, .parts = gw_writer_meta(writer)->num_parts};
	w.count = of->starts[w.parts];
	w.wide = gw_is_wide(w.count);
	w.files = gw_calloc(w.parts, sizeof(*w.files));
	*written = false;
	gw_status status = w.files ? inverse_parts_open(&w) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = inverse_find(&w, written);
	if (status == GW_OK && *written)
		status = inverse_write_all(&w);
	if (w.stream)
		gw_writer_drop(w.stream);
	for (uint32_t p = 0; w.files && p < w.parts; p++)
		gw_npy_close(&w.files[p]);
	gw_free(w.files);
	return status == GW_OK ? GW_OK : gw_context(status, "%s" GW_INVERSE_TAIL, of->key);
}
