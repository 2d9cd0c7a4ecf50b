/* Prints how many thousand times a second this processor's time stamp counter counts: test/guest/run tells guests,
 * whose own attempt to find out goes wrong where the emulator has to wait for a processor. Prints nothing where it
 * cannot be found, and ends with 1. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>

#define LOOKS   200
#define NEAR_NS 2000      /* a look at both clocks that took longer was interrupted */
#define APART   100000000 /* ns between two looks */

struct look {
	int64_t ns, ticks;
};

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Both clocks at one moment; 0 if none was found. */
static int look(struct look *out)
{
	for (int i = 0; i < LOOKS; i++) {
		int64_t before = now_ns();
		out->ticks = (int64_t)__rdtsc();
		out->ns = now_ns();
		if (out->ns - before < NEAR_NS)
			return 1;
	}
	return 0;
}

int main(void)
{
	struct look first, last;
	struct timespec apart = {.tv_nsec = APART};
	if (!look(&first))
		return 1;
	nanosleep(&apart, NULL);
	if (!look(&last))
		return 1;
	printf("%lld\n", (long long)((double)(last.ticks - first.ticks) * 1e6 / (double)(last.ns - first.ns)));
	return 0;
}
#else
int main(void)
{
	return 1;
}
#endif
