/* What backends do with both kinds of reads. */
#ifndef GW_TRANSPORT_READS_H
#define GW_TRANSPORT_READS_H

#include "transport/completions.h"

static inline gw_status gw_check_reads(const struct gw_region *region, const struct gw_buffer *buffer,
				       const struct gw_reads *reads)
{
	return reads->gather ? gw_check_gather(region, buffer, reads->gather, reads->n)
			     : gw_check_spans(region, buffer, reads->spans, reads->n);
}

/* The gather without its first `first` rows. */
static inline struct gw_gather gw_gather_from(const struct gw_gather *gather, size_t first)
{
	struct gw_gather rest = *gather;
	rest.remote += first;
	if (rest.rows)
		rest.rows += first;
	else
		rest.local += (uint64_t)first * rest.stride;
	return rest;
}

#endif
