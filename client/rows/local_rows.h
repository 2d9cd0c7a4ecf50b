/* Rows that this process can address: those of a standalone client, and those of servers whose memory is mapped. */
#ifndef GW_CLIENT_ROWS_LOCAL_ROWS_H
#define GW_CLIENT_ROWS_LOCAL_ROWS_H

#include "client/state/client.h"
#include "core/numbers/convert.h"

struct gw_local_rows {
	const uint64_t *starts; /* the partition book: [parts + 1] */
	uint32_t parts;
	uint64_t step, row_bytes;
	uintptr_t *origins; /* [parts], the caller's: the row with id i of part p is at origins[p] + i * step */
};

/* Finds where the rows are in memory. Returns the number of parts that this process can address; the origin of any
 * other part is 0. Returns 0 if the rows change. Call it in the engine. Servers' memory is unmapped when the connection
 * is lost, which an event reports: use the rows before the engine runs again. */
uint32_t gw_local_rows_find(struct gw_engine *engine, const struct gw_rows *rows, struct gw_local_rows *local);

/* Positions in a list of ids: of the rows that this process can address, and of the others. */
struct gw_divided_rows {
	uint32_t *here, *elsewhere; /* the caller's memory, with room for all ids */
	uint64_t here_count, elsewhere_count;
};

/* Appends the positions from `first` to `end` - 1 to the two lists. Returns end, or the position of the first id that
 * is not a row. */
uint64_t gw_local_rows_divide(const struct gw_local_rows *local, const int64_t *ids, uint64_t first, uint64_t end,
			      struct gw_divided_rows *to);

/* Copies row ids[i] to out + i * row_bytes, for i below n. Returns n, or the position of the first id that is not a
 * row; the rows before it are copied. */
uint64_t gw_local_rows_copy(const struct gw_local_rows *local, const int64_t *ids, uint64_t n, uint8_t *out);

/* The same with rows that are converted: row ids[i] comes to out + i * to_bytes. */
uint64_t gw_local_rows_convert(const struct gw_local_rows *local, const int64_t *ids, uint64_t n,
			       const struct gw_conversion *conversion, uint8_t *out);

/* Copies row ids[list[k]] to out + list[k] * row_bytes, for k below n. This process must be able to address the parts
 * of these rows. Returns n, or the first k whose id is not a row. */
uint64_t gw_local_rows_copy_listed(const struct gw_local_rows *local, const int64_t *ids, const uint32_t *list,
				   uint64_t n, uint8_t *out);

#endif
