/* Writes a partitioned graph: arrays one by one in any order of parts, then the JSON, then one rename.
 *
 *   gw_writer_open -> [gw_writer_store for rows that are stored narrow] -> gw_writer_array (or _begin, _append ...,
 * _end) for each array -> gw_writer_commit
 *
 * The writer computes the digests and pads the .npy headers. It checks each array's shape against the schema: the rows
 * of a node feature are the nodes that the part owns, and so on. Nothing appears under the final name before the
 * commit.
 */
#ifndef GW_GRAPH_WRITER_H
#define GW_GRAPH_WRITER_H

#include "core/graph/meta.h"
#include "core/graph/npy.h"
#include "core/graph/width.h"

struct gw_writer;

/* schema: finished (gw_meta_finish), without arrays; the call copies it. replace: replaces an existing graph of that
 * name; files that users have put into its folder stay. The JSON is <folder>/<graph_name>.json. GW_EXISTS, GW_NO_SPACE,
 * GW_IO. */
gw_status gw_writer_open(const char *folder, const struct gw_graph_meta *schema, bool replace, struct gw_writer **out);

/* Writes one array of a part. key: "node/<ntype>/<name>" or "edge/<folder>/<name>". data: C order, the part's rows in
 * the order of local ids or CSC positions. */
gw_status gw_writer_array(struct gw_writer *writer, uint32_t part, const char *key, gw_dtype dtype, uint32_t ndim,
			  const uint64_t *shape, const void *data);

/* Writes one array in pieces. A stream writes one array at a time. Several streams may be open, in different
 * threads. */
struct gw_array_stream;
gw_status gw_writer_begin(struct gw_writer *writer, uint32_t part, const char *key, gw_dtype dtype, uint32_t ndim,
			  const uint64_t *shape, struct gw_array_stream **out);
gw_status gw_writer_append(struct gw_array_stream *stream, const void *data, size_t bytes);
/* The bytes of the array as it is stored. */
uint64_t gw_writer_bytes(const struct gw_array_stream *stream);
/* Frees the stream in any case. GW_INVALID: more or fewer bytes arrived than the shape requires. */
gw_status gw_writer_end(struct gw_array_stream *stream);
/* Frees a stream whose caller failed before its end. The writer can then only be aborted. The error text stays. */
void gw_writer_drop(struct gw_array_stream *stream);

/* Writes offsets or neighbour ids in the narrowest type that the format allows: uint32 if every value is below 2^32 -
 * 1, else uint64. offsets: [columns][rows + 1] in column-major order; written as [rows + 1, columns]. */
gw_status gw_writer_indptr(struct gw_writer *writer, uint32_t part, const char *key, uint64_t rows, uint32_t columns,
			   const uint64_t *const *offsets);
gw_status gw_writer_ids(struct gw_writer *writer, uint32_t part, const char *key, const uint64_t *ids, uint64_t count,
			uint64_t id_space);

/* The dtype that gw_writer_ids chooses. */
static inline gw_dtype gw_writer_ids_dtype(uint64_t id_space)
{
	return gw_is_wide(id_space) ? GW_UINT64 : GW_UINT32;
}

/* Appends ids to a stream of this dtype, which has 4 or 8 bytes. GW_RANGE names the first id that is not below
 * id_space; key: for the error. */
gw_status gw_writer_append_ids(struct gw_array_stream *stream, const char *key, gw_dtype dtype, const uint64_t *ids,
			       uint64_t count, uint64_t id_space);

/* The dtype for the input's edge ids, if all are below id_space. */
static inline gw_dtype gw_edge_origin_dtype(uint64_t id_space)
{
	return gw_is_wide(id_space) ? GW_INT64 : GW_UINT32;
}

/* Writes the input's edge ids, in the dtype that gw_edge_origin_dtype returns. GW_RANGE names the first id that is not
 * below id_space. */
gw_status gw_writer_edge_origins(struct gw_writer *writer, uint32_t part, const char *key, const uint64_t *ids,
				 uint64_t count, uint64_t id_space);

/* Writes strings as two arrays, <key>.offsets (uint64 [count + 1]) and <key>.bytes (uint8). */
gw_status gw_writer_strings(struct gw_writer *writer, uint32_t part, const char *key, const uint64_t *offsets,
			    uint64_t count, const char *bytes);

/* Takes an array of another graph on disk, whose bytes are as this writer would write them: by a hard link if the file
 * system allows it, else by a copy. Both graphs then share the file, which no program of Graphwire changes.
 * GW_NOT_FOUND: the graph has no such array; GW_DIGEST or GW_FORMAT: the file is damaged. */
gw_status gw_writer_take(struct gw_writer *writer, uint32_t part, const char *key, const struct gw_graph_meta *from);

/* Takes an array of another graph on disk as gw_writer_take does, but leaves its bytes unread where a link is possible:
 * digests keep on revealing what is damaged. Nothing may be linked across file systems: then the bytes are copied. */
gw_status gw_writer_link(struct gw_writer *writer, uint32_t part, const char *key, const struct gw_graph_meta *from);

/* The path of a file <graph_name><end> that appears with the graph, if the caller writes it before the commit. The
 * caller frees it with gw_free. NULL: no memory. */
char *gw_writer_path(const struct gw_writer *writer, const char *end);

/* Adds a text file, <graph_name><end>, which appears with the graph. The commit puts the graph's id in place of the
 * first sixteen zeros. Copies both. GW_LIMIT, GW_NO_MEMORY. */
gw_status gw_writer_text(struct gw_writer *writer, const char *end, const char *text);

/* The schema, with the arrays written so far. No stream may be open. */
const struct gw_graph_meta *gw_writer_meta(const struct gw_writer *writer);

/* Maps an array that was written, for tools that compute further arrays from it; gw_npy_close unmaps it. GW_NOT_FOUND:
 * no such array was written. GW_IO. */
gw_status gw_writer_map(const struct gw_writer *writer, uint32_t part, const char *key, struct gw_npy_file *out);

/* Raises the minor version of the graph, before arrays that only this version has. */
void gw_writer_set_minor(struct gw_writer *writer, uint32_t minor);

/* Sets the unit of an array of times, in all parts, and raises the minor version. GW_UNIT_NONE changes nothing.
 * GW_NO_MEMORY. */
gw_status gw_writer_set_unit(struct gw_writer *writer, const char *key, enum gw_time_unit unit);

/* Records what the rows of a narrow array were, in all parts, and raises the minor version. columns: of an int8_row,
 * else 0. GW_NO_MEMORY. */
gw_status gw_writer_set_original(struct gw_writer *writer, const char *key, gw_dtype original, uint64_t columns);

/* Records that a feature has replicas, and raises the minor version. GW_NO_MEMORY. */
gw_status gw_writer_set_replicas(struct gw_writer *writer, const char *key, const char *by, uint64_t of);

/* Stores the array of this key as `dtype`: callers write rows of `numbers` numbers of the original type, and the writer
 * converts them. Pieces of the array must be whole rows. Call it before the array begins in any part. The conversion
 * must be possible (core/numbers/convert.h). GW_RANGE of the pieces names a row that an int8_row cannot hold.
 * GW_NO_MEMORY. */
gw_status gw_writer_store(struct gw_writer *writer, const char *key, gw_dtype original, uint64_t numbers,
			  gw_dtype dtype);

/* Checks that all required arrays exist, computes graph_id, writes the JSON, fsyncs and renames. Frees the writer in
 * any case; graph_id may be NULL. */
gw_status gw_writer_commit(struct gw_writer *writer, uint64_t *graph_id);
void gw_writer_abort(struct gw_writer *writer); /* NULL is allowed */

#endif
