/* Bare one-sided reads: what the verbs benchmarks are measured against. libibverbs and nothing of Graphwire: a queue
 * pair at each end on one device, no connection manager, no tables, no deadlines. */
#ifndef GW_BENCH_BARE_VERBS_H
#define GW_BENCH_BARE_VERBS_H

#include <stddef.h>
#include <stdint.h>

struct gw_bare_verbs;

/* Connects `queues` pairs over the first device whose port is up, and registers both memories. An errno: ENODEV where
 * there is no device (or the build has no libibverbs). */
int gw_bare_verbs_open(const uint8_t *table, uint64_t table_bytes, uint8_t *landing, uint64_t landing_bytes,
		       unsigned queues, struct gw_bare_verbs **out);
void gw_bare_verbs_close(struct gw_bare_verbs *verbs); /* NULL is allowed */

/* Rows at random for so many seconds, `depth` reads in flight on each pair: bytes per second. An errno. */
int gw_bare_verbs_many(struct gw_bare_verbs *verbs, uint32_t row_bytes, unsigned depth, double seconds, double *figure);

/* One row at a time: the time of each round in microseconds. Looks all the time, or sleeps on the completion channel.
 */
int gw_bare_verbs_one(struct gw_bare_verbs *verbs, uint32_t row_bytes, uint32_t rounds, int sleeping,
		      double *microseconds);

#endif
