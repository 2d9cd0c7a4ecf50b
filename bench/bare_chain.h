/* The bare ceiling of one mini-batch of a single seed: round trips one after the other, without code of Graphwire. A
 * round trip is a question, and an answer of rows from random places of a table. */
#ifndef GW_BENCH_BARE_CHAIN_H
#define GW_BENCH_BARE_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#define GW_BARE_HEADER 48u /* bytes of a question before its ids; an answer has 16 before its rows */

struct gw_bare_round {
	uint32_t question_bytes; /* at least GW_BARE_HEADER */
	uint32_t rows, row_bytes;
};

struct gw_bare_chain;

/* by_socket: over a loopback connection with blocking sockets, to an answering thread. Else the calling thread copies
 * the rows itself, as from mapped memory. No round trip has a question or an answer above bytes_max. Returns 0 or an
 * errno. */
int gw_bare_chain_begin(const uint8_t *table, uint64_t table_bytes, uint32_t bytes_max, bool by_socket,
			struct gw_bare_chain **out);
/* Returns 0 or an errno. */
int gw_bare_chain_run(struct gw_bare_chain *chain, const struct gw_bare_round *rounds, uint32_t count);
void gw_bare_chain_end(struct gw_bare_chain *chain); /* NULL is allowed */

#endif
