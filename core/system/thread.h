/* Threads of the library. */
#ifndef GW_SYSTEM_THREAD_H
#define GW_SYSTEM_THREAD_H

#include <pthread.h>

#include "core/errors/status.h"

/* Like pthread_create: returns 0 or an error number. Signals go to the program's threads, not to this one
 * (gw_signals_leave_to_program). */
int gw_thread_start(pthread_t *thread, void *(*run)(void *context), void *context);

/* Makes an error of gw_thread_start's result: GW_LIMIT. The text names the limit that binds and the command that raises
 * it. The format describes the thread's purpose. */
gw_status gw_thread_failed(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
