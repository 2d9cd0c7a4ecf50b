/* A call of the library that has to work: otherwise its text ends the test. */
#ifndef GW_TEST_MUST_H
#define GW_TEST_MUST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "graphwire/graphwire.h"

static inline void must(gw_status status)
{
	if (status != GW_OK)
		fail_msg("%s", gw_last_error());
}

#endif
