/* Code under test in a child process whose kernel refuses certain system calls: how fallbacks are tested on a machine
 * that needs none of them. The refusals are real (seccomp); the code under test has no hook for them. */
#ifndef GW_TEST_SANDBOX_H
#define GW_TEST_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Refuses a system call (SYS_…), with the errno value `error`. Where `bits` is set, only calls whose argument number
 * `argument` (from 0, its lower 32 bits) has the value there: (argument & bits) == value. */
struct sandbox_rule {
	long call;
	int argument;
	uint32_t bits, value;
	int error;
};

#define SANDBOX_RULES_MAX 16

/* Runs body(context) in a child process under the rules; unprivileged: as user and group 65534, with nothing that may
 * be locked in memory. Returns what body returned (0 to 255); fails the test if the child died of a signal. */
int sandbox_run(const struct sandbox_rule *rules, int count, bool unprivileged, int (*body)(void *context),
		void *context);

#endif
