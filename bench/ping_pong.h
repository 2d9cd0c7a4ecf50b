/* The bare ceiling of one row: a question and an answer over a loopback connection with blocking sockets and a thread
 * that answers, without any code of Graphwire. The connection stays open, so that rounds can be measured in short
 * slices. */
#ifndef GW_BENCH_PING_PONG_H
#define GW_BENCH_PING_PONG_H

#include <stdint.h>

struct gw_ping_pong;

/* The caller is the client. The other side runs on the given processor (gw_bench_pin). Both sides poll for spin_ns
 * before they sleep. Returns an errno. */
int gw_ping_pong_begin(uint32_t question_bytes, uint32_t answer_bytes, unsigned processor, uint64_t spin_ns,
		       struct gw_ping_pong **out);
/* microseconds gets the time of each round. Returns an errno. */
int gw_ping_pong_run(struct gw_ping_pong *ping_pong, uint32_t rounds, double *microseconds);
void gw_ping_pong_end(struct gw_ping_pong *ping_pong); /* NULL is allowed */

#endif
