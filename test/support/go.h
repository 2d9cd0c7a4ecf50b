/* How a script and a program that it runs in the background wait for each other: by files. */
#ifndef GW_TEST_GO_H
#define GW_TEST_GO_H

#include "core/errors/status.h"

/* Makes the file `ready`, and waits for up to 20 s until somebody has made the file `go`. GW_IO; GW_DEADLINE. */
gw_status go_wait(const char *ready, const char *go);

#endif
