/* Reads of regions that this process can address (memory, shm): prefetching copies, done inside the call. */
#ifndef GW_TRANSPORT_MAPPED_H
#define GW_TRANSPORT_MAPPED_H

#include "transport/reads.h"

/* A call copies at most so much, then says how many: a deadline is looked at before each call, and so is kept to within
 * the time of one such copy. */
#define GW_MAPPED_RANGES (1u << 16)
#define GW_MAPPED_BYTES  (64ull << 20)

/* Looks at a row that changes, before it is given up. Between them pauses that double up to GW_MAPPED_PAUSES: together
 * some 20 microseconds, many times what a writer needs. */
#define GW_MAPPED_TRIES  16
#define GW_MAPPED_PAUSES 64

/* Copy the first of n reads that were checked (transport/completions.h), from a region's first byte to a buffer's.
 * Return how many, at least one if n > 0; *bytes: of these. Rows that stay torn are listed in the set. */
size_t gw_mapped_gather(const struct gw_region *region, const uint8_t *from, uint8_t *to, struct gw_read_set *set,
			const struct gw_gather *gather, size_t n, uint64_t *bytes);
size_t gw_mapped_readv(const struct gw_region *region, const uint8_t *from, uint8_t *to, struct gw_read_set *set,
		       const struct gw_span *spans, size_t n, uint64_t *bytes);

/* Either, checked first: *taken of them are copied. */
static inline gw_status gw_mapped_read(const struct gw_region *region, const uint8_t *from,
				       const struct gw_buffer *buffer, struct gw_read_set *set,
				       const struct gw_reads *reads, size_t *taken, uint64_t *bytes)
{
	gw_status status = gw_check_reads(region, buffer, reads);
	if (status != GW_OK)
		return status;
	*taken = reads->gather ? gw_mapped_gather(region, from, buffer->base, set, reads->gather, reads->n, bytes)
			       : gw_mapped_readv(region, from, buffer->base, set, reads->spans, reads->n, bytes);
	return GW_OK;
}

/* Ends a read call of which `taken` of n reads were copied: all are accepted if the set has failed. Returns how many
 * are, for the caller to return. */
size_t gw_mapped_end(struct gw_endpoint *endpoint, struct gw_completions *completions, struct gw_read_set *set,
		     size_t n, size_t taken, bool last);

#endif
