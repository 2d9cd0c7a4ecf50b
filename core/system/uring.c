/* Creates and closes rings of threads that start and end often.
 *
 * If the process has no CAP_IPC_LOCK, the kernel counts a ring's memory as locked. A kernel thread frees the memory
 * some time after the ring was closed. If a new ring exceeds the limit of locked memory (ENOMEM), and a closed ring of
 * this process may soon make room for it, gw_uring_init retries for a short while:
 *
 *   ENOMEM ──► this process's own rings and the new one exceed the limit? ──► ENOMEM at once: no wait helps
 *                 │ no
 *              a ring was closed lately? ──► again and again, WAIT_NS at most; then only after another ring was closed
 *
 * Other processes of the same user may use up the limit, which this process cannot see. That is why the retries end
 * soon.
 *
 * One thread may unmap a ring and another map the next one at the same address. liburing does so by system calls of its
 * own, which the thread sanitizer does not see. uring_acquire and uring_release inform the sanitizer.
 */
#include "core/system/uring.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/system/clock.h"
#include "core/system/sysfile.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
static char uring_addresses; /* stands for all addresses of rings */
#define uring_release() __tsan_release(&uring_addresses)
#define uring_acquire() __tsan_acquire(&uring_addresses)
#else
#define uring_release() ((void)0)
#define uring_acquire() ((void)0)
#endif

#define CLOSING_NS   (5 * GW_NS_PER_SECOND) /* after the last close; the kernel has freed its memory by then */
#define WAIT_NS      (150 * GW_NS_PER_MS)   /* short: a process with too small a limit waits so long */
#define PAUSE_MAX_NS (20 * GW_NS_PER_MS)

static _Atomic uint64_t uring_closed_ns;  /* 0: no ring was closed */
static _Atomic uint64_t uring_gave_up_ns; /* 0: no wait has failed */
static _Atomic uint64_t uring_live_bytes; /* of open rings */

static uint64_t pages_of(uint64_t bytes)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	return (bytes + page - 1) / page * page;
}

/* A ring's share of the limit of locked memory: its entries, and both of its queues. */
static uint64_t ring_bytes(unsigned entries, const struct io_uring_params *parameters)
{
	uint64_t submitted = 1;
	while (submitted < entries)
		submitted *= 2;
	uint64_t completed = parameters->flags & IORING_SETUP_CQSIZE ? parameters->cq_entries : 2 * submitted;
	return pages_of(submitted * sizeof(struct io_uring_sqe)) +
	       pages_of(submitted * sizeof(uint32_t) + completed * sizeof(struct io_uring_cqe));
}

/* The limit is too small for one more ring, even if every closed ring's memory were free. */
static bool exceeds_limit(uint64_t bytes)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	       atomic_load_explicit(&uring_live_bytes, memory_order_relaxed) + bytes > limit.rlim_cur;
}

/* A ring was closed lately, and after the last wait that failed; its memory may still be counted. */
static bool may_become_free(uint64_t now_ns)
{
	uint64_t closed_ns = atomic_load_explicit(&uring_closed_ns, memory_order_relaxed);
	return closed_ns && now_ns < closed_ns + CLOSING_NS &&
	       closed_ns > atomic_load_explicit(&uring_gave_up_ns, memory_order_relaxed);
}

static int init_waiting(unsigned entries, struct io_uring *ring, struct io_uring_params *parameters)
{
	const struct io_uring_params wanted = *parameters;
	int error = io_uring_queue_init_params(entries, ring, parameters);
	uint64_t now_ns = gw_now_ns();
	const uint64_t give_up_ns = now_ns + WAIT_NS;
	for (uint64_t pause_ns = GW_NS_PER_MS / 4; error == -ENOMEM && may_become_free(now_ns);
	     pause_ns += pause_ns / 2) {
		if (now_ns > give_up_ns) {
			atomic_store_explicit(&uring_gave_up_ns, now_ns, memory_order_relaxed);
			break;
		}
		pause_ns = pause_ns < PAUSE_MAX_NS ? pause_ns : PAUSE_MAX_NS;
		nanosleep(&(struct timespec){.tv_nsec = (long)pause_ns}, NULL);
		*parameters = wanted;
		error = io_uring_queue_init_params(entries, ring, parameters);
		now_ns = gw_now_ns();
	}
	return error;
}

int gw_uring_init(unsigned entries, struct io_uring *ring, struct io_uring_params *parameters)
{
	const uint64_t bytes = ring_bytes(entries, parameters);
	int error = exceeds_limit(bytes) ? io_uring_queue_init_params(entries, ring, parameters)
					 : init_waiting(entries, ring, parameters);
	if (!error)
		atomic_fetch_add_explicit(&uring_live_bytes, bytes, memory_order_relaxed);
	uring_acquire();
	return error;
}

void gw_uring_exit(struct io_uring *ring)
{
	const struct io_uring_params parameters = {.flags = IORING_SETUP_CQSIZE, .cq_entries = ring->cq.ring_entries};
	atomic_fetch_sub_explicit(&uring_live_bytes, ring_bytes(ring->sq.ring_entries, &parameters),
				  memory_order_relaxed);
	uring_release();
	io_uring_queue_exit(ring);
	atomic_store_explicit(&uring_closed_ns, gw_now_ns(), memory_order_relaxed);
}

int gw_uring_switch(const char *root)
{
	uint64_t value;
	return gw_sysfile_number(&value, "%s/proc/sys/kernel/io_uring_disabled", root) && value <= 2 ? (int)value : -1;
}

const char *gw_uring_remedy(int error, int switched)
{
	if (error == ENOMEM)
		return "ulimit -l unlimited (a unit: LimitMEMLOCK=infinity; a container: "
		       "docker run --ulimit memlock=-1)";
	if (error == EPERM || error == EACCES)
		return switched > 0
			       ? "sudo sysctl -w kernel.io_uring_disabled=0"
			       : "a seccomp profile that allows io_uring_setup, io_uring_enter and io_uring_register "
				 "(docker run --security-opt seccomp=PROFILE; a pod: securityContext.seccompProfile)";
	if (error == ENOSYS)
		return "a kernel with CONFIG_IO_URING, or a container whose seccomp profile allows it (docker run "
		       "--security-opt seccomp=PROFILE)";
	return "Linux 5.19 or newer";
}
