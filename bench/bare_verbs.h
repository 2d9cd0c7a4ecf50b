/* Bare one-sided reads: the ceiling of the verbs benchmarks. They call libibverbs without any other code of Graphwire:
 * both ends of each queue pair are on one device, without a connection manager, tables or deadlines. */
#ifndef GW_BENCH_BARE_VERBS_H
#define GW_BENCH_BARE_VERBS_H

#include <stddef.h>
#include <stdint.h>

struct gw_bare_verbs;

/* Connects `queues` pairs over the first device whose port is up, and registers both memories. Returns 0 or an errno:
 * ENODEV without a device, or if the build has no libibverbs. */
int gw_bare_verbs_open(const uint8_t *table, uint64_t table_bytes, uint8_t *landing, uint64_t landing_bytes,
		       unsigned queues, struct gw_bare_verbs **out);
void gw_bare_verbs_close(struct gw_bare_verbs *verbs); /* NULL is allowed */

/* Reads random rows for the given time, with `depth` reads in flight on each pair. *figure: bytes a second. Returns 0
 * or an errno. */
int gw_bare_verbs_many(struct gw_bare_verbs *verbs, uint32_t row_bytes, unsigned depth, double seconds, double *figure);

/* Reads one row at a time; microseconds has the time of each round. Polls all the time or, with `sleeping`, sleeps on
 * the completion channel. Returns 0 or an errno. */
int gw_bare_verbs_one(struct gw_bare_verbs *verbs, uint32_t row_bytes, uint32_t rounds, int sleeping,
		      double *microseconds);

#endif
