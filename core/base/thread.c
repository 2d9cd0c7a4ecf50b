/* See thread.h. */
#include "core/base/thread.h"

#include <signal.h>
#include <stddef.h>

int gw_thread_start(pthread_t *thread, void *(*run)(void *context), void *context)
{
	static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
	sigset_t most, before;
	sigfillset(&most);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&most, own[i]);
	pthread_sigmask(SIG_SETMASK, &most, &before);
	int error = pthread_create(thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}
