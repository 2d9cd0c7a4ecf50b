/* Rings that come and go.
 *
 * The kernel takes a closed ring apart after the call that closes it, in a thread of its own, and what the ring takes
 * of the locked-memory limit is free only then: on a machine that is busy a new ring finds no room for some hundredth
 * of a second, or more. While rings that this process closed may be on their way, it is waited for, though not for ever
 * where rings are closed all the time; else the error is told at once.
 *
 * What one thread unmaps and another maps: the kernel gives the next ring the address of the last one, and liburing
 * asks it by system calls of its own, which the thread sanitizer does not see. It is told here.
 */
#include "core/base/uring.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "core/base/clock.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
static char uring_addresses; /* stands for all of them */
#define uring_give() __tsan_release(&uring_addresses)
#define uring_take() __tsan_acquire(&uring_addresses)
#else
#define uring_give() ((void)0)
#define uring_take() ((void)0)
#endif

#define CLOSING_NS   (5 * GW_NS_PER_SECOND) /* since the last was closed: by then the kernel is through */
#define PAUSE_MAX_NS (50 * GW_NS_PER_MS)

static _Atomic uint64_t uring_closed_ns; /* 0: none was */

int gw_uring_init(unsigned entries, struct io_uring *ring, struct io_uring_params *parameters)
{
	const struct io_uring_params wanted = *parameters;
	int error = io_uring_queue_init_params(entries, ring, parameters);
	const uint64_t give_up_ns = error == -ENOMEM ? gw_now_ns() + CLOSING_NS : 0;
	for (uint64_t pause_ns = GW_NS_PER_MS / 4; error == -ENOMEM; pause_ns += pause_ns / 2) {
		uint64_t closed_ns = atomic_load_explicit(&uring_closed_ns, memory_order_relaxed), now_ns = gw_now_ns();
		if (!closed_ns || now_ns > closed_ns + CLOSING_NS || now_ns > give_up_ns)
			break;
		pause_ns = pause_ns < PAUSE_MAX_NS ? pause_ns : PAUSE_MAX_NS;
		nanosleep(&(struct timespec){.tv_nsec = (long)pause_ns}, NULL);
		*parameters = wanted;
		error = io_uring_queue_init_params(entries, ring, parameters);
	}
	uring_take();
	return error;
}

void gw_uring_exit(struct io_uring *ring)
{
	uring_give();
	io_uring_queue_exit(ring);
	atomic_store_explicit(&uring_closed_ns, gw_now_ns(), memory_order_relaxed);
}
