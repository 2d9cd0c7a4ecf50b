/* What a link and an engine count. The thread that runs the engine writes; others read. client/stats.c adds up. */
#ifndef GW_CLIENT_STATE_LINK_COUNTS_H
#define GW_CLIENT_STATE_LINK_COUNTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/numbers/latency.h"
#include "transport/scheme.h"

struct gw_link_counts {
	struct {
		_Atomic uint64_t reads, read_bytes, requests, sent_bytes, received_bytes, errors;
	} by_scheme[GW_SCHEMES];
	struct gw_latency_counts waits[GW_SCHEMES];
	/* Without a request, from the server's mapped memory: rows of other parts, and hops over their lists. */
	_Atomic uint64_t near_rows, near_bytes, held_hops;
};

static inline void gw_link_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

#endif
