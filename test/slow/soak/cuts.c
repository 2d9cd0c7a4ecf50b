/* cuts COUNT SECONDS: links cut under pushes, as test_tensors_life does a few times, until so many were cut or the time
 * is over. Prints how many; a sum that is not exact fails it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/cut_pushes.h"

#define ATTEMPTS 50 /* between two looks at the sums */

static uint64_t wanted, seconds;

static void cut_again_and_again(void **state)
{
	(void)state;
	struct cut_pushes pushes;
	uint64_t until = gw_now_ns() + seconds * GW_NS_PER_SECOND, cuts = 0, attempts = 0, seed = gw_now_ns();
	cut_pushes_begin(&pushes);
	while (cuts < wanted && gw_now_ns() < until) {
		cuts += cut_pushes_run(&pushes, ATTEMPTS, seed + attempts);
		attempts += ATTEMPTS;
	}
	printf("done %llu cuts in %llu attempts\n", (unsigned long long)cuts, (unsigned long long)attempts);
	cut_pushes_end(&pushes);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(cut_again_and_again)};
	if (argc != 3) {
		fprintf(stderr, "usage: %s COUNT SECONDS\n", argv[0]);
		return 2;
	}
	wanted = strtoull(argv[1], NULL, 10);
	seconds = strtoull(argv[2], NULL, 10);
	return cmocka_run_group_tests_name("cuts", tests, NULL, NULL);
}
