#include "test/support/go.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 120000

gw_status go_wait(const char *ready, const char *go)
{
	FILE *file = fopen(ready, "we");
	if (!file || fclose(file) != 0)
		return gw_fail(GW_IO, "%s cannot be written", ready);
	for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
		if (access(go, F_OK) == 0)
			return GW_OK;
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return gw_fail(GW_DEADLINE, "%s did not appear", go);
}
