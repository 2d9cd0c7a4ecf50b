/* How much a test does of what it does many times. */
#include "test/support/many.h"

#include <stdlib.h>

#if defined(__SANITIZE_THREAD__)
#define SHARE 4
#elif defined(__SANITIZE_ADDRESS__)
#define SHARE 2
#else
#define SHARE 1
#endif

uint32_t gw_many(uint32_t n)
{
	if (getenv("GRAPHWIRE_TEST_MANY"))
		return n;
	return n / (getenv("GRAPHWIRE_GUEST") ? 16 : SHARE);
}

uint32_t gw_many_step(void)
{
	return SHARE == 4 && !getenv("GRAPHWIRE_TEST_MANY") ? 4 : 1;
}
