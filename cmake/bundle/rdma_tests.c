/* Linked into the bundle's program rdma-tests only, for test/slow/rdma/run: runs the test program that the first
 * argument names. RDMA_TESTS lists them as TEST(name); the main of each is compiled as main_NAME. */
#include <stdio.h>
#include <string.h>

#define TEST(name) int main_##name(int argc, char **argv);
RDMA_TESTS
#undef TEST

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} tests[] = {
#define TEST(name) {#name, main_##name},
	RDMA_TESTS
#undef TEST
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(tests) / sizeof(tests[0]); i++)
		if (strcmp(argv[1], tests[i].name) == 0)
			return tests[i].run(argc - 1, argv + 1);
	fputs("usage: rdma-tests NAME [ARGUMENT...]; the names are:", stderr);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		fprintf(stderr, " %s", tests[i].name);
	fputs("\n", stderr);
	return 2;
}
