/* How much a test does of what it does many times. */
#ifndef GW_TEST_SUPPORT_MANY_H
#define GW_TEST_SUPPORT_MANY_H

#include <stdint.h>

/* n, or a sixteenth of it in an emulated guest, a half under the address sanitizer, a quarter under the thread
 * sanitizer: for tests that do much of the same, which cost up to a hundred times as much there, and fail for less as
 * well. With GRAPHWIRE_TEST_MANY in the environment (test/slow/soak) it is n. */
uint32_t gw_many(uint32_t n);

/* The step of a loop over variants of an input that threads share alike: 1, or 4 under the thread sanitizer. With
 * GRAPHWIRE_TEST_MANY it is 1. */
uint32_t gw_many_step(void);

#endif
