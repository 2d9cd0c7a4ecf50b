/* Threads of ours. */
#ifndef GW_BASE_THREAD_H
#define GW_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create, 0 or an error number. No signal is delivered to the thread: those are the program's. Except those
 * that a thread can only raise itself (SIGBUS, SIGSEGV, ...): while they are blocked, the kernel ends the process
 * instead of calling the program's handler. */
int gw_thread_start(pthread_t *thread, void *(*run)(void *context), void *context);

#endif
