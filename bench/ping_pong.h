/* The bare ceiling of one row: a question and an answer over a loopback connection, with blocking sockets and an
 * answering thread, and without code of Graphwire. The connection stays open, so that rounds can be measured in short
 * slices.
 */
#ifndef GW_BENCH_PING_PONG_H
#define GW_BENCH_PING_PONG_H

#include <stdint.h>

struct gw_ping_pong;

/* The calling thread is the client. The answering thread is pinned to `processor` (gw_bench_pin). Both poll for spin_ns
 * before they sleep. Returns 0 or an errno. */
int gw_ping_pong_begin(uint32_t question_bytes, uint32_t answer_bytes, unsigned processor, uint64_t spin_ns,
		       struct gw_ping_pong **out);
/* microseconds[rounds] gets the time of each round. Returns 0 or an errno. */
int gw_ping_pong_run(struct gw_ping_pong *ping_pong, uint32_t rounds, double *microseconds);
void gw_ping_pong_end(struct gw_ping_pong *ping_pong); /* NULL is allowed */

#endif
