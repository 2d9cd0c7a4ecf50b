/* The request for rows of an array that stays on disk (serve --on-disk). Little-endian, 8-byte aligned.
 *
 *   call:   struct gw_disk_call, rows [count] uint64: numbers within the part, in any order
 *   reply:  the rows' bytes [count], in the order of the call
 *
 * Offsets of lists (indptr, out_indptr) and of buckets (orig_id.buckets) are requested as records: record r has rows r
 * and r + 1 of the array.
 */
#ifndef GW_PROTOCOL_DISK_CALL_H
#define GW_PROTOCOL_DISK_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "core/errors/status.h"

/* Long, so that a disk has many reads in flight: a call is answered as a whole. */
#define GW_DISK_REPLY_BYTES (4u << 20) /* of a reply, at most; a longer row is sent alone */
#define GW_DISK_ROWS_MAX    131072u    /* in one call */

struct gw_disk_call {
	uint32_t array; /* its number in the catalog */
	uint32_t count;
	uint64_t digest; /* the array's: proves that both sides mean the same one */
};

/* Rows of this length in one call, at least one. */
static inline uint64_t gw_disk_call_most(uint64_t row_bytes)
{
	uint64_t most = row_bytes ? GW_DISK_REPLY_BYTES / row_bytes : GW_DISK_ROWS_MAX;
	most = most < GW_DISK_ROWS_MAX ? most : GW_DISK_ROWS_MAX;
	return most ? most : 1;
}

/* Checks a call's length. *rows points into it, at any alignment. GW_PROTOCOL. */
gw_status gw_disk_call_parse(const void *bytes, size_t byte_count, struct gw_disk_call *call, const uint8_t **rows);

#endif
