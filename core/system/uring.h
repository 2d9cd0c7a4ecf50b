/* liburing, with functions that versions before 2.2 lack (Ubuntu 22.04 has 2.1). Flags that older headers lack are
 * defined here with the kernel's numbers. A kernel that does not know a flag returns EINVAL. */
#ifndef GW_SYSTEM_URING_H
#define GW_SYSTEM_URING_H

#include <liburing.h>

#ifndef IORING_SETUP_COOP_TASKRUN
#define IORING_SETUP_COOP_TASKRUN (1u << 8)
#endif
#ifndef IORING_SETUP_TASKRUN_FLAG
#define IORING_SETUP_TASKRUN_FLAG (1u << 9)
#endif
#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1u << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1u << 13)
#endif
#ifndef IORING_CQE_F_SOCK_NONEMPTY
#define IORING_CQE_F_SOCK_NONEMPTY (1u << 2)
#endif

#ifndef IORING_RECVSEND_POLL_FIRST /* older headers lack it and the functions below */
#define IORING_RECVSEND_POLL_FIRST (1u << 0)

static inline void io_uring_sqe_set_data64(struct io_uring_sqe *sqe, uint64_t data)
{
	sqe->user_data = data;
}

static inline uint64_t io_uring_cqe_get_data64(const struct io_uring_cqe *cqe)
{
	return cqe->user_data;
}

static inline void io_uring_prep_cancel64(struct io_uring_sqe *sqe, uint64_t data, int flags)
{
	io_uring_prep_cancel(sqe, (void *)(uintptr_t)data, flags);
}
#endif

/* io_uring_queue_init_params(3) and io_uring_queue_exit(3), for threads that start and end often
 * (core/system/uring.c). */
int gw_uring_init(unsigned entries, struct io_uring *ring, struct io_uring_params *parameters);
void gw_uring_exit(struct io_uring *ring);

/* Submission entries of the ring that drives a thread's sockets; the ring has eight times as many completion
 * entries. */
#define GW_URING_SOCKET_ENTRIES 256u

/* kernel.io_uring_disabled under this root, 0 to 2; -1 if the kernel (before 6.6) has no such switch. */
int gw_uring_switch(const char *root);

/* The remedy after a ring failed with this errno value: a command, or an option that a container needs. */
const char *gw_uring_remedy(int error, int switched);

#endif
