/* fork -> drop privileges -> seccomp filter -> body -> exit status. */
#include "test/support/sandbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY           65534
#define STATUS_NO_FILTER 254

static struct sock_filter load_word(size_t offset)
{
	return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

/* Appends: if the call is the rule's (and its argument matches), return the error; else fall through. */
static unsigned append_rule(struct sock_filter *at, const struct sandbox_rule *rule)
{
	unsigned n = 0;
	unsigned char skip = rule->bits ? 4 : 1;
	at[n++] = load_word(offsetof(struct seccomp_data, nr));
	at[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)rule->call, 0, skip);
	if (rule->bits) {
		at[n++] = load_word(offsetof(struct seccomp_data, args) + 8 * (size_t)rule->argument);
		at[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, rule->bits);
		at[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->value, 0, 1);
	}
	at[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
					       SECCOMP_RET_ERRNO | ((uint32_t)rule->error & SECCOMP_RET_DATA));
	return n;
}

static int install_filter(const struct sandbox_rule *rules, int count)
{
	struct sock_filter code[6 * SANDBOX_RULES_MAX + 1];
	unsigned n = 0;
	for (int i = 0; i < count; i++)
		n += append_rule(code + n, &rules[i]);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int become_nobody(void)
{
	const struct rlimit none = {0, 0};
	if (setrlimit(RLIMIT_MEMLOCK, &none))
		return -1;
	if (getuid() != 0)
		return 0;
	return setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY) ? -1 : 0;
}

int sandbox_run(const struct sandbox_rule *rules, int count, bool unprivileged, int (*body)(void *context),
		void *context)
{
	assert_true(count <= SANDBOX_RULES_MAX);
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if ((unprivileged && become_nobody()) || (count && install_filter(rules, count)))
			_exit(STATUS_NO_FILTER);
		_exit(body(context));
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status))
		fail_msg("the child died of signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status) == STATUS_NO_FILTER)
		fail_msg("the sandbox could not be set up");
	return WEXITSTATUS(status);
}
