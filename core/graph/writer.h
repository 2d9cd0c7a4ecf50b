/* Writing a partitioned graph: arrays one by one in any order of parts, then the JSON, then one rename.
 *
 *   gw_writer_open -> gw_writer_array (or _begin, _append ..., _end) for each array -> gw_writer_commit
 *
 * The writer computes the digests, pads the .npy headers and checks each array's shape against the schema (rows of a
 * node feature = nodes the part owns, and so on). Nothing appears under the final name before commit.
 */
#ifndef GW_GRAPH_WRITER_H
#define GW_GRAPH_WRITER_H

#include "core/graph/meta.h"

struct gw_writer;

/* schema: finished (gw_meta_finish), without arrays; copied. replace: an existing graph of that name is replaced, and
 * what its users have put into its folder stays there. The
 * JSON is <folder>/<graph_name>.json. GW_EXISTS, GW_NO_SPACE, GW_IO. */
gw_status gw_writer_open(const char *folder, const struct gw_graph_meta *schema, bool replace, struct gw_writer **out);

/* Writes one array of a part. key: "node/<ntype>/<name>" or "edge/<folder>/<name>". data: C order, the part's rows in
 * the order of local ids or CSC positions. */
gw_status gw_writer_array(struct gw_writer *writer, uint32_t part, const char *key, gw_dtype dtype, uint32_t ndim,
			  const uint64_t *shape, const void *data);

/* The same in pieces. One array at a time per stream; several streams may be open, and used by different threads. */
struct gw_array_stream;
gw_status gw_writer_begin(struct gw_writer *writer, uint32_t part, const char *key, gw_dtype dtype, uint32_t ndim,
			  const uint64_t *shape, struct gw_array_stream **out);
gw_status gw_writer_append(struct gw_array_stream *stream, const void *data, size_t bytes);
/* Frees the stream in any case. GW_INVALID if more or fewer bytes came than the shape says. */
gw_status gw_writer_end(struct gw_array_stream *stream);
/* Gives a stream up, for a caller that failed in the middle of it: frees it; the writer can only be aborted then. The
 * error text stays. */
void gw_writer_drop(struct gw_array_stream *stream);

/* Offsets and neighbour ids in the narrowest type the format allows: uint32 where every value is below 2^32 - 1, else
 * uint64. offsets: [columns][rows + 1] in column-major order; written as [rows + 1, columns]. */
gw_status gw_writer_indptr(struct gw_writer *writer, uint32_t part, const char *key, uint64_t rows, uint32_t columns,
			   const uint64_t *const *offsets);
gw_status gw_writer_ids(struct gw_writer *writer, uint32_t part, const char *key, const uint64_t *ids, uint64_t count,
			uint64_t id_space);

/* What ids of the input, of edges, are written as, where all of them are below id_space. */
static inline gw_dtype gw_edge_origin_dtype(uint64_t id_space)
{
	return id_space < UINT32_MAX ? GW_UINT32 : GW_INT64;
}

/* Such ids, in that type. Each is below id_space: GW_RANGE
 * names the one that is not. */
gw_status gw_writer_edge_origins(struct gw_writer *writer, uint32_t part, const char *key, const uint64_t *ids,
				 uint64_t count, uint64_t id_space);

/* Strings as two arrays, <key>.offsets (uint64 [count + 1]) and <key>.bytes (uint8). */
gw_status gw_writer_strings(struct gw_writer *writer, uint32_t part, const char *key, const uint64_t *offsets,
			    uint64_t count, const char *bytes);

/* Checks that what the format demands is there, computes graph_id, writes the JSON, fsyncs, renames. Frees the writer
 * in any case; graph_id may be NULL. */
gw_status gw_writer_commit(struct gw_writer *writer, uint64_t *graph_id);
void gw_writer_abort(struct gw_writer *writer); /* NULL is allowed */

#endif
