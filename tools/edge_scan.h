/* One pass over the lists of an edge type in one part: degrees, cut, and sums that show whether two groups of lists
 * hold the same edges. */
#ifndef GW_TOOLS_EDGE_SCAN_H
#define GW_TOOLS_EDGE_SCAN_H

#include "core/graph/part.h"
#include "core/numbers/histogram.h"

/* The sums are commutative hashes: they are equal for the same edges in any order and over any split into parts.
 * forward and backward stay 0 for types without a reverse pair; in and out stay 0 for types that are not stored
 * transposed. */
struct gw_edge_scan {
	uint64_t edges;
	uint64_t remote;   /* edges whose source another part owns: the cut */
	uint64_t forward;  /* sum over the pairs (src, dst) */
	uint64_t backward; /* sum over the pairs (dst, src), which is the forward sum of a reverse type */
	uint64_t in, out;  /* sums over (src, dst, edge id): in from the lists, out from the transposed lists */
	struct gw_histogram degrees;
};

/* Adds the lists that the part holds of an edge type to *scan, which starts zeroed. gw_part_check has accepted the
 * part. GW_NO_MEMORY. */
gw_status gw_edge_scan_add(const struct gw_part *part, uint32_t etype, unsigned threads, struct gw_edge_scan *scan);

#endif
