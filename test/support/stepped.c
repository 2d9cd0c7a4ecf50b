/* See stepped.h. While the trap flag is set, the processor sends SIGTRAP after each instruction. The kernel clears the
 * flag for the handler and restores it afterwards, from the context that the handler may change. */
#include "test/support/stepped.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

#define TRAP_FLAG 0x100

static _Thread_local struct {
	unsigned long left; /* instructions before the call */
	void (*between)(void *context);
	void *context;
	bool called;
} stepped;

static void stepped_trap(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	if (stepped.left-- > 0)
		return;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	int error = errno;
	stepped.called = true;
	stepped.between(stepped.context);
	errno = error;
}

/* Below the red zone, which the compiler may be using. */
static inline void trap_flag_set(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::
				 : "memory", "cc");
}

static inline void trap_flag_clear(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $-257, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::
				 : "memory", "cc");
}

bool gw_stepped_can(void)
{
	return true;
}

bool gw_stepped_run(unsigned long at, void (*run)(void *context), void (*between)(void *context), void *context)
{
	struct sigaction trap = {.sa_sigaction = stepped_trap, .sa_flags = SA_SIGINFO}, before;
	sigset_t traps, mask;
	sigemptyset(&traps);
	sigaddset(&traps, SIGTRAP);
	stepped.left = at;
	stepped.between = between;
	stepped.context = context;
	stepped.called = false;
	sigaction(SIGTRAP, &trap, &before);
	pthread_sigmask(SIG_UNBLOCK, &traps, &mask);
	trap_flag_set();
	run(context);
	trap_flag_clear();
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sigaction(SIGTRAP, &before, NULL);
	return stepped.called;
}

#else

bool gw_stepped_can(void)
{
	return false;
}

bool gw_stepped_run(unsigned long at, void (*run)(void *context), void (*between)(void *context), void *context)
{
	(void)at;
	(void)between;
	run(context);
	return false;
}

#endif
