/* A row taken alone, as a thread takes it that may wait. */
#ifndef TEST_SUPPORT_ROW_TAKE_H
#define TEST_SUPPORT_ROW_TAKE_H

#include <sched.h>

#include "core/numbers/row.h"

/* The sequence is what gw_row_unlock and gw_row_publish are given. */
static inline uint64_t row_take(const struct gw_row_format *format, uint8_t *row)
{
	uint64_t sequence;
	while (!gw_row_try_lock(format, row, &sequence))
		sched_yield();
	return sequence;
}

#endif
