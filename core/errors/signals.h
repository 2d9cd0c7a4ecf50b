/* The last step of a signal handler that has cleaned up: the process dies of the signal, so that a shell sees its
 * number. */
#ifndef GW_ERRORS_SIGNALS_H
#define GW_ERRORS_SIGNALS_H

#include <signal.h>
#include <unistd.h>

/* Safe in a signal handler. Process 1 of a container cannot die of a signal, because the kernel drops signals that it
 * does not handle. It exits with the status that a shell would report. */
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
