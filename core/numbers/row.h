/* Rows that change while they are read: how one lies in memory, and how a reader knows that it has it whole.
 *
 *   [ payload | zeros to a multiple of 16 | uint64 sequence | uint64 hash ]      stride: a multiple of 16
 *
 * The sequence grows by two with every write and is odd while the row is being written: the writer that makes it odd
 * (by compare-and-swap) has the row alone, for writing or for a look that must not be disturbed. The hash is XXH3-64 of
 * the payload, seeded by the region's generation seed, the row's number and the sequence. So there are two ways to know
 * that a copy is whole:
 *
 *   memory, mapped   gw_row_copy: the sequence is even, and the same before and after the copy (a seqlock)
 *   landed apart     gw_row_verify: payload and trailer came in any order of bytes; the hash fits both. For reads by a
 *                    device (transport/verbs/endpoint_rows.c); a server of TCP copies as in memory
 *
 * Neither writes: the reader's mapping is read-only. A torn copy is no error; the reader tries again, a bounded number
 * of times, and then asks the row's owner, who takes the row alone.
 *
 * Payloads of exactly 1, 2, 4 or 8 bytes have no trailer: their rows are naturally aligned and written by one store
 * that cannot be seen in part. Whoever changes one depending on what it was needs a lock of its own.
 */
#ifndef GW_NUMBERS_ROW_H
#define GW_NUMBERS_ROW_H

#include <stdbool.h>

#include "core/errors/status.h"

#define GW_ROW_PAYLOAD_MAX   (4u << 20) /* bytes; a row of a million float32 */
#define GW_ROW_TRAILER_BYTES 16u
#define GW_ROW_ALIGN         16u /* of row 0; bytes between rows are a multiple of it where there are trailers */
#define GW_ROW_FIRST         2u  /* the sequence of a row that was never written since it was made */

struct gw_row_format {
	uint32_t payload_bytes;
	uint32_t stride; /* from one row to the next */
	bool versioned;  /* each row ends in a trailer; else a row is one word of 1, 2, 4 or 8 bytes */
};

/* As it lies in a row's last 16 bytes, and as it lands at a reader. Little-endian, as all that Graphwire sends. */
struct gw_row_trailer {
	uint64_t sequence;
	uint64_t hash;
};

/* GW_INVALID for no bytes, GW_LIMIT for more than GW_ROW_PAYLOAD_MAX. */
gw_status gw_row_format_init(uint64_t payload_bytes, struct gw_row_format *out);

/* Where the trailer stands in a row: bytes from its start. Versioned formats only. */
static inline uint32_t gw_row_trailer_at(const struct gw_row_format *format)
{
	return format->stride - GW_ROW_TRAILER_BYTES;
}

/* --- Reading. Never waits, never writes. --- */

/* Copies the payload out. False: torn, the copy is of no use. Always true without trailers. */
bool gw_row_copy(const struct gw_row_format *format, const uint8_t *row, void *payload);

/* Copies the payload and the trailer that belongs to it, for a reader that verifies it later. False: torn. Versioned
 * formats only. */
bool gw_row_copy_with_trailer(const struct gw_row_format *format, const uint8_t *row, void *payload,
			      struct gw_row_trailer *trailer);

/* Whether a payload and a trailer that landed apart are of one moment, and of this row. False: torn, or being written,
 * or memory of another generation. A payload that is not whole passes with a chance of 2^-64. */
bool gw_row_verify(const struct gw_row_format *format, uint64_t seed, uint64_t number, const void *payload,
		   const struct gw_row_trailer *trailer);

/* --- Writing: by threads of one process, who share the memory for writing. --- */

/* Makes a row that nobody reads yet: payload (NULL: zeros; or the row itself, where it lies already), padding and
 * trailer. */
void gw_row_make(const struct gw_row_format *format, uint64_t seed, uint64_t number, uint8_t *row, const void *payload);

/* Takes the row alone: true, and *sequence is what unlock and publish are given back. False: another has it. */
bool gw_row_try_lock(const struct gw_row_format *format, uint8_t *row, uint64_t *sequence);

/* Gives the row back as it was: readers who saw it before and after have seen the same bytes. */
void gw_row_unlock(const struct gw_row_format *format, uint8_t *row, uint64_t sequence);

/* Writes the payload of a row that is held, with its new hash, and gives it back. The payload is not the row's own. */
void gw_row_publish(const struct gw_row_format *format, uint64_t seed, uint64_t number, uint8_t *row, uint64_t sequence,
		    const void *payload);

/* Writes a row without a trailer: one store. Unversioned formats only. */
void gw_row_store(const struct gw_row_format *format, uint8_t *row, const void *payload);

#endif
