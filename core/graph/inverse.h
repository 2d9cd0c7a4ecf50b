/* Finds a node or an edge by its original id: the array orig_id.inverse, stored with an orig_id of numbers.
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

/* Original ids of nodes or edges in a writer's files. */
struct gw_inverse_of {
	const char *key;        /* of orig_id, complete in all parts: "node/paper/orig_id" */
	const uint64_t *starts; /* [num_parts + 1]: the ranges of the nodes or edges */
	bool unique;            /* write nothing if an id repeats */
	unsigned threads;       /* 0: one per processor */
	uint64_t range_bytes;   /* 0: 256 MiB */
};

/* Writes "<key>.inverse" over all parts: part p gets the ids gw_dense_start(ids, p, parts) up to that of p + 1, and of
 * each id the first node or edge, as an id over all parts. *written is false, and nothing is written, if an id below
 * the greatest one does not occur. Maps the writer's files: for tools. Memory: range_bytes, or a sixteenth of the array
 * if that is more; and a bit for each node or edge. GW_NO_MEMORY, errors of the writer. */
gw_status gw_inverse_write_parts(struct gw_writer *writer, const struct gw_inverse_of *of, bool *written);

/* Checks that the orig_id.inverse of an edge type, if the graph has one part, matches its orig_id. GW_FORMAT names the
 * file, the key and the row. */
gw_status gw_inverse_check(const struct gw_part *part, uint32_t etype, unsigned threads);

/* Sums of marks over the pairs of original id and edge: over the edges, and over orig_id.inverse. */
struct gw_inverse_scan {
	uint64_t edges, inverse;
	uint64_t rows; /* of orig_id.inverse */
};

/* Adds a part of a graph in several parts to the sums of an edge type. After all parts, the sums are equal if the
 * inverse has as many rows as there are edges, and leads from every original id to its edge. */
gw_status gw_inverse_scan_add(const struct gw_part *part, uint32_t etype, unsigned threads,
			      struct gw_inverse_scan *scan);

#endif
