/* Rings that one thread unmaps and another maps: the kernel gives the next ring the address of the last one, and
 * liburing asks it by system calls of its own, which the thread sanitizer does not see. It is told here. */
#include "core/base/uring.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
static char uring_addresses; /* stands for all of them */
#define uring_give() __tsan_release(&uring_addresses)
#define uring_take() __tsan_acquire(&uring_addresses)
#else
#define uring_give() ((void)0)
#define uring_take() ((void)0)
#endif

int gw_uring_init(unsigned entries, struct io_uring *ring, struct io_uring_params *parameters)
{
	int error = io_uring_queue_init_params(entries, ring, parameters);
	uring_take();
	return error;
}

void gw_uring_exit(struct io_uring *ring)
{
	uring_give();
	io_uring_queue_exit(ring);
}
