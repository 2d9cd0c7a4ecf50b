/* The buffers of a loop's accepted connections. They belong to the loop and are lent: for input from the first byte of
 * a frame until all frames are answered, for output while bytes are unsent. So an idle connection has none, and a loop
 * needs few, however many connections it has.
 *
 *   lend ─▶ a buffer of TCP_LENT_BYTES, while fewer than TCP_LENT_MAX are lent
 *        └▶ otherwise one of TCP_SMALL_BYTES: clients that do not read their answers keep at most TCP_LENT_MAX large
 *           buffers, and the others are served in smaller pieces
 */
#ifndef GW_TRANSPORT_TCP_LENDER_H
#define GW_TRANSPORT_TCP_LENDER_H

#include <stdbool.h>
#include <stdint.h>

#define TCP_LENT_BYTES  (256u << 10)
#define TCP_LENT_MAX    64u
#define TCP_SMALL_BYTES (16u << 10)

struct tcp_lender {
	void *spare; /* returned buffers; each begins with the next one's address */
	uint32_t spare_count, lent;
};

/* A buffer on loan; all zero: none. */
struct tcp_loan {
	uint8_t *memory;
	uint32_t bytes;
	bool large; /* of TCP_LENT_BYTES, and counted */
};

static inline bool gw_tcp_can_lend(const struct tcp_lender *lender)
{
	return lender->lent < TCP_LENT_MAX;
}

/* Lends a buffer; its memory is NULL, with an error text, if memory runs out. */
struct tcp_loan gw_tcp_lend(struct tcp_lender *lender);
/* A buffer of exactly this size, for a connection's own use. */
struct tcp_loan gw_tcp_lend_exactly(uint32_t bytes);
/* Returns the buffer, if any, and empties the loan. */
void gw_tcp_return(struct tcp_lender *lender, struct tcp_loan *loan);
/* Frees the spare buffers. All loans must have been returned. */
void gw_tcp_lender_end(struct tcp_lender *lender);

#endif
