/* Examines the machine: files of /proc and /sys, limits, and small trials where no file has the answer. */
#include "core/memory/probe.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/memory/arena_pages.h"
#include "core/system/parallel.h"
#include "core/system/sysfile.h"
#include "core/system/thread.h"
#include "core/system/uring.h"

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif

#define RINGS_MAX   64u  /* the most that the trial opens at once */
#define THREADS_MAX 256u /* the most that the trial starts at once */

/* ---- looking ---- */

/* RLIMIT_MEMLOCK does not bind a process with CAP_IPC_LOCK outside any user namespace. Only an attempt to exceed it
 * shows that. The attempt faults nothing in. */
static uint64_t read_locked_limit(uint64_t page_bytes)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	size_t bytes = (limit.rlim_cur / page_bytes + 1) * page_bytes;
	void *memory = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return limit.rlim_cur;
	bool passed = mlock2(memory, bytes, MLOCK_ONFAULT) == 0;
	munmap(memory, bytes);
	return passed ? UINT64_MAX : limit.rlim_cur;
}

/* A server has one ring for each of its threads, and the limit of locked memory may have room for only some of them. */
static void try_rings(struct gw_probe *out)
{
	struct io_uring rings[RINGS_MAX];
	uint32_t wanted = out->processors < RINGS_MAX ? out->processors : RINGS_MAX;
	int error = 0;
	while (out->io_uring_rings < wanted && !error) {
		struct io_uring_params parameters = {.flags = IORING_SETUP_CQSIZE,
						     .cq_entries = 8 * GW_URING_SOCKET_ENTRIES};
		error = gw_uring_init(GW_URING_SOCKET_ENTRIES, &rings[out->io_uring_rings], &parameters);
		out->io_uring_rings += !error;
	}
	for (uint32_t i = 0; i < out->io_uring_rings; i++)
		gw_uring_exit(&rings[i]);
	if (out->io_uring_rings == wanted)
		out->io_uring_rings = out->processors;
}

static void try_io_uring(struct gw_probe *out)
{
	struct io_uring ring;
	struct io_uring_params parameters = {0};
	int error = gw_uring_init(2, &ring, &parameters);
	out->io_uring_error = -error;
	if (error)
		return;
	struct io_uring_cqe *cqe;
	io_uring_prep_nop(io_uring_get_sqe(&ring));
	if (io_uring_submit(&ring) != 1 || io_uring_wait_cqe(&ring, &cqe) || cqe->res < 0)
		out->io_uring_error = EIO;
	void *page = mmap(NULL, out->page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page != MAP_FAILED) {
		const struct iovec buffer = {.iov_base = page, .iov_len = out->page_bytes};
		out->io_uring_buffers = io_uring_register_buffers(&ring, &buffer, 1) == 0;
	}
	gw_uring_exit(&ring);
	if (page != MAP_FAILED)
		munmap(page, out->page_bytes);
	if (!out->io_uring_error)
		try_rings(out);
}

static void *wait_for_end(void *context)
{
	pthread_mutex_t *lock = context;
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

/* Files do not show which limit binds: the user's other threads and the process's privileges matter as well. */
static void try_threads(struct gw_probe *out)
{
	pthread_t threads[THREADS_MAX] = {0};
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint32_t wanted = out->processors < THREADS_MAX ? out->processors : THREADS_MAX;
	pthread_mutex_lock(&lock);
	while (out->threads < wanted && gw_thread_start(&threads[out->threads], wait_for_end, &lock) == 0)
		out->threads++;
	pthread_mutex_unlock(&lock);
	for (uint32_t i = 0; i < out->threads; i++)
		pthread_join(threads[i], NULL);
	if (out->threads == wanted)
		out->threads = out->processors;
}

static bool try_collapse(uint64_t huge_bytes)
{
	struct gw_pages pages;
	if (gw_memory_check(huge_bytes, -1, "probe") ||
	    gw_pages_map(huge_bytes, GW_PAGES_COLLAPSED, true, "probe", 1, &pages))
		return false;
	bool works = gw_pages_populate(&pages, 1) == GW_OK && pages.huge_share > 0.5;
	gw_pages_unmap(&pages);
	return works;
}

void gw_probe_read(struct gw_probe *out)
{
	*out = (struct gw_probe){.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	out->processors = gw_processors();
	out->locked_bytes_max = read_locked_limit(out->page_bytes);
	out->collapse = try_collapse(gw_pages_huge_bytes());
	try_io_uring(out);
	try_threads(out);
	gw_sysfile_number(&out->hugetlb_free, "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
}
