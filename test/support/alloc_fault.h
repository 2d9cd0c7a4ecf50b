/* An allocator that counts, and fails on request: every test of memory shortage stands on it.
 *
 *   gw_fault_begin(n) -> the code under test -> gw_fault_end() == 0, or something leaked
 *
 * or, for all n in turn, gw_fault_each(body, context). Only what goes through core/memory/alloc.h is seen. Begin and
 * end where no other thread allocates; between them any number of threads may.
 */
#ifndef GW_TEST_ALLOC_FAULT_H
#define GW_TEST_ALLOC_FAULT_H

#include <stdbool.h>

#include "core/errors/status.h"

#define GW_FAULT_NEVER 0ul

/* From here on allocations are counted, and the n-th of them (from 1) fails; GW_FAULT_NEVER: none does. */
void gw_fault_begin(unsigned long n);

/* As gw_fault_begin, but every allocation from the n-th on fails: memory that stays short. */
void gw_fault_begin_from(unsigned long n);

/* Restores libc's allocator. Returns the blocks that were allocated since begin and not freed: 0 unless there is a leak
 * (negative: blocks from before begin were freed in between). */
long gw_fault_end(void);

/* Between begin (GW_FAULT_NEVER) and end: the n-th allocation of the calling thread from here on fails, and none of any
 * other thread, which are servers' in the same process, say. GW_FAULT_NEVER: none. Whether one has failed since the
 * last call. */
bool gw_fault_here(unsigned long n);

/* The same for the n-th allocation of all threads together. */
bool gw_fault_anywhere(unsigned long n);

bool gw_fault_hit(void);            /* whether an allocation has been made to fail since begin */
unsigned long gw_fault_count(void); /* allocations asked for since begin */

/* For loops of a test's own: by how much n grows after so many runs. Plain builds fail every one; under a
 * sanitizer, where each run takes ten times as long, it is the first ones and then one in so many; in so few with
 * GRAPHWIRE_TEST_MANY in the environment (test/slow/soak). */
unsigned long gw_fault_step(unsigned long runs);

/* Runs body with its 1st, 2nd, 3rd ... allocation failing, until a run gets through without meeting the fault (under a
 * sanitizer, after the first ones, only some of them). body builds what it tests and takes it down again, and returns
 * the status. Fails the test unless
 *   - a run that met the fault returned GW_NO_MEMORY with an error text, or GW_OK (a shortage it can do without),
 *   - no run leaked, and
 *   - the last run, which met none, returned GW_OK.
 * Returns how many runs met the fault: a test asserts > 0 where memory is needed at all. */
unsigned long gw_fault_each(gw_status (*body)(void *context), void *context);

/* The same with gw_fault_begin_from. */
unsigned long gw_fault_each_from(gw_status (*body)(void *context), void *context);

#endif
