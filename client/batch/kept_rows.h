/* The rows of one fetch that a loader keeps for an epoch: how often the epoch needs each, and copies of the chosen
 * ones.
 *
 *   the epoch's batches in order: ids elsewhere -> gw_kept_count -> counts
 *   all fetches: counts -> gw_kept_choose -> the rows that save most within the bytes
 *   gw_kept_change: rows that are new -> fetched -> the set that batches look rows up in
 *
 * The count of a row is the number of batches that would fetch it if none were kept: with a look-ahead of W batches, a
 * batch that needs the row within W - 1 batches after one that fetches it does not count. A kept row is fetched once,
 * so that it saves count - 1 fetches. The rows with the highest counts are chosen; those of equal counts by the number
 * of the fetch, then by id. A row that does not fit any more is passed over. Rows with the count 1 save nothing.
 *
 * The bytes are those of the rows. Beside them, the set takes a sixth of a byte for each row of the tensor, and a kept
 * row 4 bytes. While an epoch is counted, 8 bytes for each row of the tensor that it needs.
 */
#ifndef GW_CLIENT_BATCH_KEPT_ROWS_H
#define GW_CLIENT_BATCH_KEPT_ROWS_H

#include "client/rows/row_window.h"
#include "client/state/client.h"

struct gw_kept {
	struct gw_client *client;
	const struct gw_tensor *tensor;
	uint64_t ids, row_bytes;
	struct gw_row_seen *seen; /* [ids], while an epoch is counted */
	uint64_t chosen;
	uint32_t least; /* chosen are the rows with higher counts, and the first `at_least` with this one */
	uint64_t at_least;
	/* The set, of `count` rows. */
	struct gw_replica_block *blocks;
	uint32_t *slots;
	uint8_t *rows; /* [room] */
	uint64_t count, room;
	struct gw_kept_rows view;
};

/* What an epoch fetches, bytes. */
struct gw_kept_sums {
	uint64_t without;     /* with no row kept */
	uint64_t saved;       /* by the rows that are kept, each of which is fetched once */
	uint64_t rows, bytes; /* that are kept */
	uint64_t fetched;     /* of these, rows that were not kept before */
};

/* Zero-initialized `kept` needs no free. */
void gw_kept_init(struct gw_kept *kept, struct gw_client *client, const struct gw_tensor *tensor);
void gw_kept_free(struct gw_kept *kept);

/* Begins an epoch. GW_NO_MEMORY. */
gw_status gw_kept_count_begin(struct gw_kept *kept);
/* Counts the rows of one batch, ids[positions[i]] for i below n. number: of the batch in the epoch. Returns how many of
 * them the batch would fetch. */
uint64_t gw_kept_count(struct gw_kept *kept, const int64_t *ids, const uint32_t *positions, uint64_t n, uint32_t number,
		       uint32_t lookahead);
void gw_kept_count_end(struct gw_kept *kept);

/* Chooses the rows of all fetches that the counts speak for, within so many bytes. kept: [n]; NULL where a fetch takes
 * no part. Adds to the sums. GW_NO_MEMORY. */
gw_status gw_kept_choose(struct gw_kept *const *kept, uint32_t n, uint64_t bytes, struct gw_kept_sums *sums);

/* The memory of the chosen rows, of the set and of the counts: bytes. */
uint64_t gw_kept_memory(const struct gw_kept *kept);

/* Makes the set that of the chosen rows, and fetches those that it did not have. No batch may use the set. A failure,
 * which may be that of a server, leaves an empty set. */
gw_status gw_kept_change(struct gw_kept *kept, struct gw_kept_sums *sums);

#endif
