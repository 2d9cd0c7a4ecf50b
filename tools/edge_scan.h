/* One pass over the lists of an edge type in one part: degrees, cut, and sums that prove two orders of the same edges
 * equal. */
#ifndef GW_TOOLS_EDGE_SCAN_H
#define GW_TOOLS_EDGE_SCAN_H

#include "core/graph/part.h"
#include "core/numbers/histogram.h"

/* Sums are commutative hashes: equal for the same edges in any order, over any split into parts. forward and backward
 * stay 0 for types that are part of no reverse pair, in and out for those that are not stored transposed. */
struct gw_edge_scan {
	uint64_t edges;
	uint64_t remote;   /* edges whose source another part owns: the cut */
	uint64_t forward;  /* of (src, dst) */
	uint64_t backward; /* of (dst, src): the forward sum of a reverse type */
	uint64_t in, out;  /* of (src, dst, edge id), by the lists and by the transposed lists */
	struct gw_histogram degrees;
};

/* Adds what part's lists of an edge type hold to *scan, which starts as all zero. The part has been checked
 * (gw_part_check). GW_NO_MEMORY. */
gw_status gw_edge_scan_add(const struct gw_part *part, uint32_t etype, unsigned threads, struct gw_edge_scan *scan);

#endif
