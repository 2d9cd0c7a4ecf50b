/* From an edge's original id to the edge: the array orig_id.inverse, which stands beside the orig_id of an edge type
 * of a graph in one part.
 *
 *   orig_id of every edge -> how many ids there are; is each of them there? -> the first edge of each
 *
 * Where orig_id is a permutation of 0 ... edges - 1, this is its inverse. Where edges share an original id, as both
 * directions of an undirected edge do, the array has fewer rows than there are edges.
 */
#ifndef GW_GRAPH_INVERSE_H
#define GW_GRAPH_INVERSE_H

#include "core/graph/part.h"
#include "core/graph/writer.h"

/* The original id of an edge, by its position; negative ones as uint64_t. */
typedef uint64_t (*gw_inverse_id)(const void *context, uint64_t position);

/* Writes "<key>.inverse" for the original ids that id() tells of `edges` edges, key being that of orig_id. Writes
 * nothing where an id below the greatest one is missing. Memory: 4 bytes for each id (8 from 2^32 - 1 edges on).
 * threads = 0: all processors. *rows: of the array; may be NULL. GW_NO_MEMORY, errors of the writer. */
gw_status gw_inverse_write(struct gw_writer *writer, const char *key, gw_inverse_id id, const void *context,
			   uint64_t edges, unsigned threads, uint64_t *rows);

/* Is the orig_id.inverse of an edge type, where the part has one, that of its orig_id? GW_FORMAT names the file, the
 * key and the row. */
gw_status gw_inverse_check(const struct gw_part *part, uint32_t etype, unsigned threads);

#endif
