/* Prints the frequency of this processor's time stamp counter in kHz. test/slow/guest/run passes it to guests, because
 * a guest's own measurement fails while the emulator waits for a processor. If the frequency cannot be measured, it
 * prints nothing and ends with 1.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>

#define LOOKS   200
#define NEAR_NS 2000      /* a read of both clocks that took longer was interrupted */
#define APART   100000000 /* ns between the two measurements */

struct look {
	int64_t ns, ticks;
};

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* 0 if every attempt was interrupted. */
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
