/* Rows that this process can address: those of a standalone client, and those of servers whose memory is mapped. */
#ifndef GW_CLIENT_ROWS_LOCAL_ROWS_H
#define GW_CLIENT_ROWS_LOCAL_ROWS_H

#include "client/state/client.h"

struct gw_local_rows {
	const uint64_t *starts; /* the partition book: [parts + 1] */
	uint32_t parts;
	uint64_t step, row_bytes;
	uintptr_t *origins; /* [parts], the caller's: the row with id i of part p is at origins[p] + i * step */
};

/* Finds where the rows are in memory. False: some part cannot be addressed, or its rows change. Call it in the engine.
 * Servers' memory is unmapped when the connection is lost, which an event reports: use the rows before the engine runs
 * again. */
bool gw_local_rows_find(struct gw_engine *engine, const struct gw_rows *rows, struct gw_local_rows *local);

/* Copies row ids[i] to out + i * row_bytes, for i below n. Returns n, or the position of the first id that is not a
 * row; the rows before it are copied. */
uint64_t gw_local_rows_copy(const struct gw_local_rows *local, const int64_t *ids, uint64_t n, uint8_t *out);

#endif
