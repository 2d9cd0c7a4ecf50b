/* Rows that change while they are read: the layout of a row, and how a reader checks that its copy is intact.
 *
 *   [ payload | zeros to a multiple of 16 | uint64 sequence | uint64 hash ]      stride: a multiple of 16
 *
 * The sequence grows by two with every write, and is odd during a write. The writer that makes it odd, by
 * compare-and-swap, has exclusive access to the row, for a write or for an undisturbed read. The hash is XXH3-64 of the
 * payload, seeded by the region's generation seed, the row's number and the sequence. A reader can check a copy in two
 * ways:
 *
 *   mapped memory    gw_row_copy: the sequence is even, and the same before and after the copy (a seqlock)
 *   received copy    gw_row_verify: the hash matches payload and trailer, whose bytes may have arrived in any order.
 *                    For reads by a device (transport/verbs/endpoint_rows.c); a TCP server copies as in mapped memory
 *
 * Neither check writes, because the reader's mapping is read-only. A torn copy is no error. The reader tries again, a
 * bounded number of times, and then asks the row's owner, which reads the row exclusively.
 *
 * Payloads of exactly 1, 2, 4 or 8 bytes have no trailer. Their rows are naturally aligned, and one store writes a row,
 * so no reader sees half of a write. A thread that computes a new value from the old one needs a separate lock.
 */
#ifndef GW_NUMBERS_ROW_H
#define GW_NUMBERS_ROW_H

#include <stdbool.h>

#include "core/errors/status.h"

#define GW_ROW_PAYLOAD_MAX   (4u << 20) /* bytes; a row of a million float32 */
#define GW_ROW_TRAILER_BYTES 16u
#define GW_ROW_ALIGN         16u /* of row 0; with trailers, the stride is a multiple of it */
#define GW_ROW_FIRST         2u  /* the sequence of a row that was never written since its creation */

struct gw_row_format {
	uint32_t payload_bytes;
	uint32_t stride; /* bytes from one row to the next */
	bool versioned;  /* each row ends in a trailer; else a row is one word of 1, 2, 4 or 8 bytes */
};

/* A row's last 16 bytes, in memory and in a reader's buffer. Little-endian, like all data that Graphwire sends. */
struct gw_row_trailer {
	uint64_t sequence;
	uint64_t hash;
};

/* GW_INVALID: no bytes; GW_LIMIT: more than GW_ROW_PAYLOAD_MAX. */
gw_status gw_row_format_init(uint64_t payload_bytes, struct gw_row_format *out);

/* The trailer's offset in a row. Versioned formats only. */
static inline uint32_t gw_row_trailer_at(const struct gw_row_format *format)
{
	return format->stride - GW_ROW_TRAILER_BYTES;
}

/* --- Reading. Never waits, never writes. --- */

/* Copies the payload out. Returns false if the copy is torn and useless; always true without trailers. */
bool gw_row_copy(const struct gw_row_format *format, const uint8_t *row, void *payload);

/* Copies the payload and its trailer, for a reader that verifies the copy later. Returns false if torn. Versioned
 * formats only. */
bool gw_row_copy_with_trailer(const struct gw_row_format *format, const uint8_t *row, void *payload,
			      struct gw_row_trailer *trailer);

/* Whether a payload and a trailer that arrived separately are of one moment, and of this row. Returns false if the copy
 * is torn, was read during a write, or comes from memory of another generation. A torn payload passes with probability
 * 2^-64. */
bool gw_row_verify(const struct gw_row_format *format, uint64_t seed, uint64_t number, const void *payload,
		   const struct gw_row_trailer *trailer);

/* --- Writing: by threads of one process, which share the memory for writing. --- */

/* Initializes a row that no reader can see yet: payload, padding and trailer. payload: NULL for zeros, or the row
 * itself if the payload is already there. */
void gw_row_make(const struct gw_row_format *format, uint64_t seed, uint64_t number, uint8_t *row, const void *payload);

/* Takes exclusive access to the row: returns true, and sets *sequence for unlock and publish. Returns false if another
 * thread has the row. */
bool gw_row_try_lock(const struct gw_row_format *format, uint8_t *row, uint64_t *sequence);

/* Releases the row unchanged: readers that saw it before and after have seen the same bytes. */
void gw_row_unlock(const struct gw_row_format *format, uint8_t *row, uint64_t sequence);

/* Writes the payload of a locked row with its new hash, and releases the row. The payload must not be in the row. */
void gw_row_publish(const struct gw_row_format *format, uint64_t seed, uint64_t number, uint8_t *row, uint64_t sequence,
		    const void *payload);

/* Writes a row without a trailer, by one store. Unversioned formats only. */
void gw_row_store(const struct gw_row_format *format, uint8_t *row, const void *payload);

#endif
