/* Runs code one instruction at a time, and lets something happen between two of its instructions. So a test of threads
 * that wait for each other tries every moment at which the other thread may act, instead of the few that a loop meets.
 *
 *   for (at = 0; gw_stepped_run(at, run, between, context); at++)
 *           check what came of it
 */
#ifndef GW_TEST_STEPPED_H
#define GW_TEST_STEPPED_H

#include <stdbool.h>

/* Whether code can be stepped here: on x86-64. The thread sanitizer delays signals. The address sanitizer adds so many
 * instructions that the tests of two functions take half a minute. */
bool gw_stepped_can(void);

/* Calls run(context), and between(context) in the same thread before instruction `at` of it (from 0). The instruction
 * may be anywhere below run, in the C library too, which may hold locks; between must not wait for these. Returns false
 * if run ended before that instruction: between was not called. */
bool gw_stepped_run(unsigned long at, void (*run)(void *context), void (*between)(void *context), void *context);

#endif
