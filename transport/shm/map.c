/* Mapping what a server gave: trusted no more than bytes from a peer.
 *
 *   as many descriptors as were told? -> each: sealed? as long as told? -> addresses, aligned for huge pages -> map
 *
 * The seals are what makes reading safe: memory that cannot shrink does not end in SIGBUS. The alignment lets the
 * kernel map huge pages as such where the server has them. Fails on descriptors that are not what was told, and for
 * want of addresses.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "transport/shm/shm.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#define SEALS     (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
#define ALIGN_MIN (2ull << 20)
#define ALIGN_MAX (1ull << 30)
#define BYTES_MAX (1ull << 46) /* half of a 47-bit address space */

/* *align: of the mapping. */
static gw_status check(int fd, uint64_t bytes, uint64_t *align)
{
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS) != SEALS)
		return gw_fail(GW_PROTOCOL, "the server gave memory that is not sealed");
	struct stat st;
	if (fstat(fd, &st) != 0)
		return gw_fail_errno(GW_IO, errno, "fstat of the server's memory");
	if (bytes == 0 || bytes > BYTES_MAX || st.st_size < 0 || (uint64_t)st.st_size < bytes)
		return gw_fail(GW_PROTOCOL, "the server gave memory of %lld bytes and told of %llu",
			       (long long)st.st_size, (unsigned long long)bytes);
	uint64_t unit = (uint64_t)st.st_blksize; /* hugetlb: its page's */
	*align = unit > ALIGN_MIN && unit <= ALIGN_MAX && (unit & (unit - 1)) == 0 ? unit : ALIGN_MIN;
	return GW_OK;
}

static gw_status map_one(struct shm_mapped *mapped, int fd, uint64_t bytes, const uint8_t **base)
{
	uint64_t align;
	gw_status status = check(fd, bytes, &align);
	if (status)
		return status;
	uint64_t reserved = (bytes + align - 1) / align * align + align;
	void *addresses = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (addresses == MAP_FAILED)
		return gw_fail_errno(GW_NO_MEMORY, errno, "addresses for %llu bytes of the server's",
				     (unsigned long long)reserved);
	mapped->memories[mapped->memory_count].addresses = addresses;
	mapped->memories[mapped->memory_count++].bytes = reserved;
	uint8_t *at = (uint8_t *)(((uintptr_t)addresses + align - 1) / align * align);
	if (mmap(at, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		return gw_fail_errno(GW_NO_MEMORY, errno, "a mapping of %llu bytes of the server's",
				     (unsigned long long)bytes);
	madvise(at, bytes, MADV_DONTDUMP); /* a graph is not what a core dump is for */
	*base = at;
	return GW_OK;
}

gw_status gw_shm_map(const struct wire_memories *told, struct tcp_passing *passing, void **out)
{
	const uint8_t *bases[GW_MEMORIES_MAX] = {NULL};
	gw_status status = GW_OK;
	*out = NULL;
	struct shm_mapped *mapped = gw_calloc(1, sizeof(*mapped));
	if (!mapped)
		status = GW_NO_MEMORY;
	else if (passing->in_count != told->memory_count)
		status = gw_fail(GW_PROTOCOL, "the server gave %u descriptors and told of %u (is ulimit -n reached?)",
				 passing->in_count, told->memory_count);
	for (uint32_t i = 0; i < told->memory_count && !status; i++)
		status = map_one(mapped, passing->in[i], told->bytes[i], &bases[i]);
	gw_passing_end(passing); /* mappings hold the memory by themselves */
	if (status) {
		if (mapped)
			gw_shm_unmap(mapped);
		return status;
	}
	for (uint32_t i = 0; i < told->region_count; i++)
		mapped->bases[i] = told->memory_count ? bases[told->places[i].memory] + told->places[i].offset
						      : (const uint8_t *)"";
	*out = mapped;
	return GW_OK;
}

void gw_shm_unmap(void *opaque)
{
	struct shm_mapped *mapped = opaque;
	for (uint32_t i = 0; i < mapped->memory_count; i++)
		munmap(mapped->memories[i].addresses, mapped->memories[i].bytes);
	gw_free(mapped);
}
