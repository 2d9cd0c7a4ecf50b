/* Maps the memory that a server exports. Trusts it no more than bytes from a peer.
 *
 *   number of descriptors as announced? -> each: sealed? at least as long as announced? -> mapped here already?
 *   -> reserve addresses, aligned for huge pages -> map
 *
 * Endpoints of one process share a mapping: with small pages, the page tables of each mapping take a five-hundredth of
 * its size. The seals make reading safe: memory that cannot shrink causes no SIGBUS. The alignment lets the kernel map
 * huge pages as such if the server has them. A forked child does not inherit the mappings: it cannot use its parent's
 * connections, and would keep the memory of servers that have ended. Fails if the number of descriptors is not as
 * announced, if a memfd is too short or not sealed, and if addresses run out.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/memory/alloc.h"
#include "core/system/fork.h"
#include "transport/shm/shm.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#define SEALS     (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
#define ALIGN_MIN (2ull << 20)
#define ALIGN_MAX (1ull << 30)
#define BYTES_MAX (1ull << 46) /* half of a 47-bit address space */

struct shm_memory {
	struct shm_memory *next;
	dev_t device; /* identifies the file */
	ino_t inode;
	uint64_t bytes;
	void *addresses; /* the reserved addresses, which include the mapping */
	uint64_t reserved;
	const uint8_t *base;
	uint32_t references;
};

/* The mappings of this process. The lock is taken when an endpoint connects or is closed. */
static struct {
	pthread_mutex_t lock;
	struct shm_memory *memories;
} here = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void shm_map_forget(void)
{
	here.memories = NULL;
}

static struct gw_fork_guard guard = {.lock = &here.lock, .in_child = shm_map_forget};

static gw_status shm_map_check(int fd, uint64_t bytes, struct stat *st)
{
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS) != SEALS)
		return gw_fail(GW_PROTOCOL, "the server sent a memfd that is not sealed");
	if (fstat(fd, st) != 0)
		return gw_fail_errno(GW_IO, errno, "fstat of the server's memory");
	if (bytes == 0 || bytes > BYTES_MAX || st->st_size < 0 || (uint64_t)st->st_size < bytes)
		return gw_fail(GW_PROTOCOL, "the server sent a memfd of %lld bytes and announced %llu",
			       (long long)st->st_size, (unsigned long long)bytes);
	return GW_OK;
}

static void memory_free(struct shm_memory *memory)
{
	if (memory->addresses)
		munmap(memory->addresses, memory->reserved);
	gw_free(memory);
}

/* blksize: the file's block size; for hugetlb, the page size. */
static gw_status shm_map_memory_map(struct shm_memory *memory, int fd, uint64_t blksize)
{
	bool huge = blksize > ALIGN_MIN && blksize <= ALIGN_MAX && (blksize & (blksize - 1)) == 0;
	uint64_t align = huge ? blksize : ALIGN_MIN;
	memory->reserved = (memory->bytes + align - 1) / align * align + align;
	void *addresses = mmap(NULL, memory->reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (addresses == MAP_FAILED)
		return gw_fail_errno(GW_NO_MEMORY, errno, "no addresses for %llu bytes of the server's memory",
				     (unsigned long long)memory->reserved);
	memory->addresses = addresses;
	uint8_t *at = (uint8_t *)(((uintptr_t)addresses + align - 1) / align * align);
	if (mmap(at, memory->bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		return gw_fail_errno(GW_NO_MEMORY, errno, "cannot map %llu bytes of the server's memory",
				     (unsigned long long)memory->bytes);
	madvise(at, memory->bytes, MADV_DONTDUMP); /* keep the graph out of core dumps */
	madvise(at, memory->bytes, MADV_DONTFORK);
	memory->base = at;
	return GW_OK;
}

/* The caller has locked `here`. */
static gw_status memory_get(int fd, const struct stat *st, uint64_t bytes, struct shm_memory **out)
{
	for (struct shm_memory *memory = here.memories; memory; memory = memory->next) {
		if (memory->device != st->st_dev || memory->inode != st->st_ino || memory->bytes != bytes)
			continue;
		memory->references++;
		*out = memory;
		return GW_OK;
	}
	struct shm_memory *memory = gw_calloc(1, sizeof(*memory));
	if (!memory)
		return GW_NO_MEMORY;
	memory->device = st->st_dev;
	memory->inode = st->st_ino;
	memory->bytes = bytes;
	memory->references = 1;
	gw_status status = shm_map_memory_map(memory, fd, (uint64_t)st->st_blksize);
	if (status != GW_OK) {
		memory_free(memory);
		return status;
	}
	memory->next = here.memories;
	here.memories = memory;
	*out = memory;
	return GW_OK;
}

/* The caller has locked `here`. */
static void memory_put(struct shm_memory *memory)
{
	if (--memory->references)
		return;
	struct shm_memory **at = &here.memories;
	while (*at && *at != memory)
		at = &(*at)->next;
	if (!*at)
		return; /* mapped by the parent process, not here */
	*at = memory->next;
	memory_free(memory);
}

static gw_status map_one(int fd, uint64_t bytes, struct shm_memory **out)
{
	struct stat st;
	gw_status status = shm_map_check(fd, bytes, &st);
	if (status != GW_OK)
		return status;
	gw_fork_guard(&guard);
	pthread_mutex_lock(&here.lock);
	status = memory_get(fd, &st, bytes, out);
	pthread_mutex_unlock(&here.lock);
	return status;
}

gw_status gw_shm_map_dynamic(int fd, uint64_t bytes, void **mapping, const uint8_t **base)
{
	struct shm_memory *memory = NULL;
	gw_status status = map_one(fd, bytes, &memory);
	*mapping = memory;
	*base = memory ? memory->base : NULL;
	return status;
}

void gw_shm_unmap_dynamic(void *mapping)
{
	pthread_mutex_lock(&here.lock);
	memory_put(mapping);
	pthread_mutex_unlock(&here.lock);
}

gw_status gw_shm_map(const struct wire_memories *announced, struct tcp_fd_passing *fd_passing, void **out)
{
	gw_status status = GW_OK;
	*out = NULL;
	struct shm_mapped *mapped = gw_calloc(1, sizeof(*mapped));
	if (!mapped)
		status = GW_NO_MEMORY;
	else if (fd_passing->in_count != announced->memory_count)
		status = gw_fail(GW_PROTOCOL, "the server sent %u descriptors and announced %u (is ulimit -n reached?)",
				 fd_passing->in_count, announced->memory_count);
	for (uint32_t i = 0; i < announced->memory_count && status == GW_OK; i++) {
		status = map_one(fd_passing->in[i], announced->bytes[i], &mapped->memories[mapped->memory_count]);
		mapped->memory_count += status == GW_OK;
	}
	gw_tcp_fd_passing_end(fd_passing); /* the mappings keep the memory */
	if (status != GW_OK) {
		if (mapped)
			gw_shm_unmap(mapped);
		return status;
	}
	for (uint32_t i = 0; i < announced->region_count; i++)
		mapped->bases[i] = announced->memory_count ? mapped->memories[announced->places[i].memory]->base +
								     announced->places[i].offset
							   : (const uint8_t *)"";
	*out = mapped;
	return GW_OK;
}

void gw_shm_unmap(void *opaque)
{
	struct shm_mapped *mapped = opaque;
	pthread_mutex_lock(&here.lock);
	while (mapped->memory_count)
		memory_put(mapped->memories[--mapped->memory_count]);
	pthread_mutex_unlock(&here.lock);
	gw_free(mapped);
}
