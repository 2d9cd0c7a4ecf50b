/* Finds an edge by its original id: the array orig_id.inverse, stored with the orig_id of an edge type in a graph of
 * one part.
 *
 *   orig_id of every edge -> how many ids exist; does each id occur? -> the first edge of each id
 *
 * If orig_id is a permutation of 0 ... edges - 1, this array is its inverse. If edges share an original id, as the two
 * directions of an undirected edge do, the array has fewer rows than the type has edges.
 */
#ifndef GW_GRAPH_INVERSE_H
#define GW_GRAPH_INVERSE_H

#include "core/graph/part.h"
#include "core/graph/writer.h"

/* The original id of the edge at a position; negative ids as uint64_t. */
typedef uint64_t (*gw_inverse_id)(const void *context, uint64_t position);

/* Writes "<key>.inverse" for `edges` edges, whose original ids id() returns. key: the key of the orig_id array. Writes
 * nothing if an id below the greatest id does not occur. Memory: 4 bytes for each id (8 from 2^32 - 1 edges on).
 * threads = 0: one per processor. *rows: rows of the array; may be NULL. GW_NO_MEMORY, and the errors of the writer's
 * functions. */
gw_status gw_inverse_write(struct gw_writer *writer, const char *key, gw_inverse_id id, const void *context,
			   uint64_t edges, unsigned threads, uint64_t *rows);

/* Checks that the orig_id.inverse of an edge type, if the part has one, matches its orig_id. GW_FORMAT names the file,
 * the key and the row. */
gw_status gw_inverse_check(const struct gw_part *part, uint32_t etype, unsigned threads);

#endif
