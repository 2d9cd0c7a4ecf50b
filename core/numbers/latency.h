/* How long operations took, counted by powers of two: what an operator's histogram needs. Each count is a word, so any
 * thread may add to it while others read. Percentiles of a measurement need more digits: core/numbers/histogram.h. */
#ifndef GW_NUMBERS_LATENCY_H
#define GW_NUMBERS_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

#define GW_LATENCY_BUCKETS    26 /* the last one has no bound */
#define GW_LATENCY_FIRST_BITS 10 /* bucket 0: up to 2^10 ns; bucket i: up to 2^(10 + i) ns */

struct gw_latency {
	uint64_t buckets[GW_LATENCY_BUCKETS];
	uint64_t ns; /* the sum */
};

struct gw_latency_counts {
	_Atomic uint64_t buckets[GW_LATENCY_BUCKETS];
	_Atomic uint64_t ns;
};

static inline uint64_t gw_latency_bound_ns(uint32_t bucket)
{
	return 1ull << (GW_LATENCY_FIRST_BITS + bucket);
}

/* The first bucket whose bound is ns or more. */
static inline uint32_t gw_latency_bucket(uint64_t ns)
{
	if (ns <= gw_latency_bound_ns(0))
		return 0;
	uint32_t bucket = 64 - (uint32_t)__builtin_clzll(ns - 1) - GW_LATENCY_FIRST_BITS;
	return bucket < GW_LATENCY_BUCKETS - 1 ? bucket : GW_LATENCY_BUCKETS - 1;
}

static inline void gw_latency_count(struct gw_latency_counts *counts, uint64_t ns)
{
	atomic_fetch_add_explicit(&counts->buckets[gw_latency_bucket(ns)], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&counts->ns, ns, memory_order_relaxed);
}

static inline void gw_latency_sum(struct gw_latency *into, const struct gw_latency_counts *counts)
{
	for (uint32_t i = 0; i < GW_LATENCY_BUCKETS; i++)
		into->buckets[i] += atomic_load_explicit(&counts->buckets[i], memory_order_relaxed);
	into->ns += atomic_load_explicit(&counts->ns, memory_order_relaxed);
}

#endif
