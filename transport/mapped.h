/* Reads of regions that this process can address (memory, shm): prefetching copies, made inside the call. */
#ifndef GW_TRANSPORT_MAPPED_H
#define GW_TRANSPORT_MAPPED_H

#include "transport/reads.h"

/* A call copies at most this much, and returns how much it copied. The deadline is checked before each call, so a set
 * exceeds it by the time of one such copy at most. */
#define GW_MAPPED_RANGES (1u << 16)
#define GW_MAPPED_BYTES  (64ull << 20)

/* How often a changing row is read before it counts as torn. The pauses between two tries double up to
 * GW_MAPPED_PAUSES. Together they last some 20 microseconds, many times what a writer needs. */
#define GW_MAPPED_TRIES  16
#define GW_MAPPED_PAUSES 64

/* Copy a prefix of n checked reads (transport/completions.h). `from` is the region's first byte, `to` the buffer's.
 * Return the prefix's length, at least 1 if n > 0. *bytes: how many bytes were copied. Rows that stay torn are listed
 * in the set. */
size_t gw_mapped_gather(const struct gw_region *region, const uint8_t *from, uint8_t *to, struct gw_read_set *set,
			const struct gw_gather *gather, size_t n, uint64_t *bytes);
size_t gw_mapped_readv(const struct gw_region *region, const uint8_t *from, uint8_t *to, struct gw_read_set *set,
		       const struct gw_span *spans, size_t n, uint64_t *bytes);

/* Checks the reads, then copies a prefix of *taken reads. */
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

/* Ends a read call that copied `taken` of n reads. If the set has failed, all n count as accepted. Returns the number
 * of accepted reads, which the slot returns. */
size_t gw_mapped_end(struct gw_endpoint *endpoint, struct gw_completions *completions, struct gw_read_set *set,
		     size_t n, size_t taken, bool last);

#endif
