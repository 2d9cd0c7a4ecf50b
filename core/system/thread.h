/* Threads of ours. */
#ifndef GW_SYSTEM_THREAD_H
#define GW_SYSTEM_THREAD_H

#include <pthread.h>

#include "core/errors/status.h"

/* As pthread_create, 0 or an error number. No signal is delivered to the thread: those are the program's. Except those
 * that a thread can only raise itself (SIGBUS, SIGSEGV, ...): while they are blocked, the kernel ends the process
 * instead of calling the program's handler. */
int gw_thread_start(pthread_t *thread, void *(*run)(void *context), void *context);

/* What gw_thread_start said, as an error, GW_LIMIT; the text names the limit that binds and the command
 * that raises it. The format tells what the thread was for. */
gw_status gw_thread_failed(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
