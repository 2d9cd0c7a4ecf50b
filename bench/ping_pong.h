/* The bare ceiling of one row: a question and an answer over a loopback connection, blocking sockets, a thread that
 * answers; nothing of Graphwire. The connection stays, so that rounds can be measured in short slices. */
#ifndef GW_BENCH_PING_PONG_H
#define GW_BENCH_PING_PONG_H

#include <stdint.h>

struct gw_ping_pong;

/* The caller is the client. The other side runs on the processor (gw_bench_pin). Both look for spin_ns before they
 * sleep. An errno. */
int gw_ping_pong_begin(uint32_t question_bytes, uint32_t answer_bytes, unsigned processor, uint64_t spin_ns,
		       struct gw_ping_pong **out);
/* The time of each round in microseconds. An errno. */
int gw_ping_pong_run(struct gw_ping_pong *ping_pong, uint32_t rounds, double *microseconds);
void gw_ping_pong_end(struct gw_ping_pong *ping_pong); /* NULL is allowed */

#endif
