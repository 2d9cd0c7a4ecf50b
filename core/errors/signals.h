/* Ends the process by the signal that a handler has cleaned up for, so that a shell sees the signal's number. */
#ifndef GW_ERRORS_SIGNALS_H
#define GW_ERRORS_SIGNALS_H

#include <signal.h>
#include <unistd.h>

/* Safe in a signal handler. The kernel drops signals that process 1 (of a container) does not handle. There the process
 * ends with the status that a shell would report. */
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
