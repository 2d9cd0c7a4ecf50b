/* What a read call asks for, so that each backend has one course for both kinds: the rows of a gather, or spans. */
#ifndef GW_TRANSPORT_READS_H
#define GW_TRANSPORT_READS_H

#include "transport/completions.h"

struct gw_reads {
	const struct gw_gather *gather; /* NULL: spans */
	const struct gw_span *spans;
	size_t n;
};

static inline gw_status gw_check_reads(const struct gw_region *region, const struct gw_buffer *buffer,
				       const struct gw_reads *reads)
{
	return reads->gather ? gw_check_gather(region, buffer, reads->gather, reads->n)
			     : gw_check_spans(region, buffer, reads->spans, reads->n);
}

/* The rows from number `first` on. */
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
