/* Signals and threads: which of them threads of the library receive, and how a process dies of one. */
#ifndef GW_ERRORS_SIGNALS_H
#define GW_ERRORS_SIGNALS_H

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

/* Masks signals in the calling thread as in the library's threads, which inherit the mask when they start: signals go
 * to the program's threads. Signals that a thread raises itself (SIGBUS, SIGSEGV, ...) are exceptions: if these were
 * blocked, the kernel would end the process instead of calling the program's handler. before: the mask to restore. */
static inline void gw_signals_leave_to_program(sigset_t *before)
{
	static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
	sigset_t most;
	sigfillset(&most);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&most, own[i]);
	pthread_sigmask(SIG_SETMASK, &most, before);
}

/* The last step of a signal handler that has cleaned up: the process dies of the signal, so that a shell sees its
 * number. Safe in a signal handler. Process 1 of a container cannot die of a signal, because the kernel drops signals
 * that it does not handle. It exits with the status that a shell would report. */
static inline _Noreturn void gw_die_of_signal(int number)
{
	sigset_t signals;
	signal(number, SIG_DFL);
	sigemptyset(&signals);
	sigaddset(&signals, number);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	raise(number);
	_exit(128 + number);
}

#endif
