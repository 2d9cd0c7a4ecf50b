#include "test/support/mappings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/system/clock.h"

uint32_t mappings_of_clients(void)
{
	char line[1024];
	uint32_t count = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, " r--s ") && strstr(line, "memfd:graphwire-part");
	fclose(maps);
	return count;
}

void mappings_wait(uint32_t count)
{
	uint64_t end = gw_deadline_ns(100000);
	while (mappings_of_clients() != count) {
		struct timespec pause = {.tv_nsec = 5000000};
		assert_true(gw_now_ns() < end);
		nanosleep(&pause, NULL);
	}
}
