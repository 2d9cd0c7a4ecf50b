/* The rows of a gather that requests fetch, listed by owner.
 *
 *   a piece of the ids -> owner of each (book) -> [duplicates] -> per owner: where its rows are, where they go
 *
 * If the caller knows that all ids have one owner, one pass lists them. The lists of a piece have a place of
 * their own, and stay until the next gather begins.
 */
#ifndef GW_CLIENT_ROWS_ROW_LISTS_H
#define GW_CLIENT_ROWS_ROW_LISTS_H

#include "client/state/client.h"
#include "core/memory/vec.h"

/* Reused from gather to gather; allocates only to grow. */
struct gw_row_lists {
	struct gw_vec remote, to;           /* uint64_t, uint32_t: of row i, its place at the owner and in the output */
	struct gw_vec owners, seen, copies; /* private */
	uint64_t *counts;                   /* [parts]: how many rows of the last piece each owner has */
	uint64_t *cursors;                  /* [parts] */
	uint32_t parts;
	uint64_t copy_count, seen_slots;
};

/* The numbers first to end - 1 of a list. */
struct gw_row_piece {
	uint64_t first, end;
};

/* What is listed. */
struct gw_row_ids {
	const struct gw_rows *rows;
	const int64_t *ids;
	const uint32_t *positions; /* number i of the list is ids[positions[i]]; NULL: ids[i] */
	uint32_t owner;            /* of all ids of the list, if it is known; or UINT32_MAX */
};

gw_status gw_row_lists_init(struct gw_row_lists *lists, uint32_t parts);
void gw_row_lists_free(struct gw_row_lists *lists);

/* Begins a gather of n rows. unique: the ids have no duplicates. */
gw_status gw_row_lists_begin(struct gw_row_lists *lists, uint64_t n, bool unique);

/* Lists a piece: the rows of owner p follow those of p - 1, from piece->first on. Rows of duplicate ids are left out,
 * if there are enough of them to pay. GW_RANGE names the first id that is not a row. */
gw_status gw_row_lists_add(struct gw_row_lists *lists, const struct gw_row_ids *of, const struct gw_row_piece *piece);

/* Copies the rows that were left out, when the others have been fetched. */
void gw_row_lists_copy_duplicates(const struct gw_row_lists *lists, uint8_t *out, uint64_t row_bytes);

#endif
