/* Digests: XXH3-64 of each 4 MiB of an array's payload. They detect accidents, not tampering. */
#ifndef GW_NUMBERS_DIGEST_H
#define GW_NUMBERS_DIGEST_H

#include <graphwire/digests.h>

#include "core/errors/status.h"

#define GW_DIGEST_CHUNK (4ull << 20) /* bytes of payload per digest; the last chunk may be shorter */

/* XXH3-64, seed 0, of bytes at data. */
uint64_t gw_digest(const void *data, size_t bytes);
/* XXH3-128, seed 0: the upper half, then the lower half. */
void gw_digest_wide(const void *data, size_t bytes, uint64_t digest[2]);

/* A piece of data; gw_digest_pieces digests several pieces as if they were contiguous. */
struct gw_digest_piece {
	const void *data;
	size_t bytes;
};
uint64_t gw_digest_pieces(const struct gw_digest_piece *pieces, size_t count);

/* Chains digests: returns the digest of `before` and these bytes. The same bytes, divided differently among calls, give
 * another digest. */
uint64_t gw_digest_add(uint64_t before, const void *data, size_t bytes);

/* The number of digests of a payload; 0 for an empty array. */
static inline uint64_t gw_digest_count(uint64_t bytes)
{
	return (bytes + GW_DIGEST_CHUNK - 1) / GW_DIGEST_CHUNK;
}

/* Computes the list of digests of a payload that arrives in pieces of any size. */
struct gw_digester;
gw_status gw_digester_create(struct gw_digester **out);
gw_status gw_digester_add(struct gw_digester *digester, const void *data, size_t bytes); /* GW_NO_MEMORY */
/* Ends the last chunk. *digests has *count entries, which the digester owns. */
gw_status gw_digester_finish(struct gw_digester *digester, const uint64_t **digests, uint64_t *count);
void gw_digester_destroy(struct gw_digester *digester);

#endif
