/* A program on the simulated device: its tests run over that device alone, and it aborts when the device is misused. */
#include <stdio.h>
#include <stdlib.h>

#include "test/fabric/fabric.h"

__attribute__((constructor)) static void choose_bed(void)
{
	setenv("GRAPHWIRE_TEST_BED", "verbs", 1);
}

void fabric_end(const char *what)
{
	fprintf(stderr, "fabric: %s\n", what);
	abort();
}
