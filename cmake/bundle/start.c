/* Linked into the bundle's program only: runs the program's constructors on hosts with an older C library.
 *
 * Since 2.34 the C library runs a program's constructors; before, each program contained code for this. A program that
 * is linked on a newer host lacks this code. Its main (by ld's --wrap) therefore checks whether the constructors have
 * run, and runs them otherwise. */
#include <stdbool.h>

typedef void constructor(int argc, char **argv, char **environment);

/* Symbols of the linker and of crti.o, under names of this file. */
extern constructor *const start_first[] __asm__("__init_array_start") __attribute__((visibility("hidden")));
extern constructor *const start_end[] __asm__("__init_array_end") __attribute__((visibility("hidden")));
extern char **environ;
void start_init(void) __asm__("_init");
int start_real_main(int argc, char **argv) __asm__("__real_main");
int start_main(int argc, char **argv) __asm__("__wrap_main");

static bool start_constructed;

__attribute__((constructor)) static void start_construct(void)
{
	start_constructed = true;
}

int start_main(int argc, char **argv)
{
	if (!start_constructed) {
		start_init();
		for (constructor *const *one = start_first; one < start_end; one++)
			(*one)(argc, argv, environ);
	}
	return start_real_main(argc, argv);
}
