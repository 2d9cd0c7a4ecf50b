/* Copies, in this process's reach, of rows that other parts own: the replicas of mapped servers
 * (core/graph/replicas.h), and whatever else keeps rows by id.
 *
 *   ids out of reach -> the set that has the id -> its rank there -> the row
 *
 * A gather first divides its rows into those of parts that it can address and the others (local_rows.h), and then the
 * others into those that are near and those that owners must send.
 */
#ifndef GW_CLIENT_ROWS_NEAR_ROWS_H
#define GW_CLIENT_ROWS_NEAR_ROWS_H

#include "client/state/client.h"
#include "core/graph/replicas.h"

#define GW_NEAR_SETS_MAX 16u

/* Rows of a set of ids, by ascending id. */
struct gw_near_set {
	const struct gw_replica_block *blocks; /* of all ids of the type */
	const uint8_t *rows;                   /* [count], of row_bytes each, as they are stored */
	uint64_t count;
	struct gw_link *link; /* of the server that has the set */
	uint64_t copied;      /* rows, by the last call of gw_near_rows_copy */
};

struct gw_near_rows {
	uint64_t ids, row_bytes; /* of the type; of a row as it is stored */
	uint32_t sets;
	struct gw_near_set set[GW_NEAR_SETS_MAX];
};

/* Finds the replicas of mapped servers. Call it in the engine; the rows stay as long as those of gw_local_rows_find.
 * Returns the number of sets. */
uint32_t gw_near_rows_find(struct gw_engine *engine, const struct gw_rows *rows, struct gw_near_rows *near);

/* Where the row of an id is, and in which set; NULL: nowhere near. The id is one of the type. */
static inline const uint8_t *gw_near_row(const struct gw_near_rows *near, uint64_t id, uint32_t *set)
{
	for (*set = 0; *set < near->sets; ++*set) {
		uint64_t row;
		/* the server's memory may hold anything */
		if (gw_replica_find(near->set[*set].blocks, id, &row) && row < near->set[*set].count)
			return near->set[*set].rows + row * near->row_bytes;
	}
	return NULL;
}

/* Moves the positions of near rows from the end of a list, which begins at list[0] with n entries, to `out`: returns
 * how many. The others move up, in order. */
uint64_t gw_near_rows_divide(const struct gw_near_rows *near, const int64_t *ids, uint32_t *list, uint64_t n,
			     uint32_t *out);

/* Copies row ids[list[k]] to out + list[k] * row_bytes, for k below n. Returns n, or the first k whose row is not near
 * any more. */
uint64_t gw_near_rows_copy(struct gw_near_rows *near, const int64_t *ids, const uint32_t *list, uint64_t n,
			   uint8_t *out);

#endif
