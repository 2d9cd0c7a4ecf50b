/* The buffers of a loop: see lender.h. A few returned buffers are kept, the last one on top, because its lines are
 * probably still in the processor's cache. Fails only if memory runs out. */
#include "transport/tcp/lender.h"

#include <string.h>

#include "core/memory/alloc.h"

#define SPARE_MAX 4u

struct tcp_loan gw_tcp_lend_exactly(uint32_t bytes)
{
	struct tcp_loan loan = {.memory = gw_malloc(bytes)};
	loan.bytes = loan.memory ? bytes : 0;
	return loan;
}

struct tcp_loan gw_tcp_lend(struct tcp_lender *lender)
{
	if (!gw_tcp_can_lend(lender))
		return gw_tcp_lend_exactly(TCP_SMALL_BYTES);
	struct tcp_loan loan = {.memory = lender->spare, .bytes = TCP_LENT_BYTES, .large = true};
	if (loan.memory) {
		memcpy(&lender->spare, loan.memory, sizeof(lender->spare));
		lender->spare_count--;
	} else {
		loan.memory = gw_malloc(TCP_LENT_BYTES);
		if (!loan.memory)
			return (struct tcp_loan){0};
	}
	lender->lent++;
	return loan;
}

void gw_tcp_return(struct tcp_lender *lender, struct tcp_loan *loan)
{
	if (loan->large)
		lender->lent--;
	if (loan->large && lender->spare_count < SPARE_MAX) {
		memcpy(loan->memory, &lender->spare, sizeof(lender->spare));
		lender->spare = loan->memory;
		lender->spare_count++;
	} else {
		gw_free(loan->memory);
	}
	*loan = (struct tcp_loan){0};
}

void gw_tcp_lender_end(struct tcp_lender *lender)
{
	while (lender->spare) {
		void *memory = lender->spare;
		memcpy(&lender->spare, memory, sizeof(lender->spare));
		gw_free(memory);
	}
	*lender = (struct tcp_lender){0};
}
