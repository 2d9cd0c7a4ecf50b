/* Any bytes as what a server of mapped memory tells, with descriptors of every kind, at the hello and of a region that
 * comes later: refused as the peer's fault, or every region can be read from its first byte to its last, and no
 * descriptor is left open. */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "transport/shm/shm.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#define REGIONS 4u
#define KINDS   5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sealed memory of three lengths, memory that may shrink, and what is no memory at all. */
static int make(int kind)
{
	static const off_t lengths[] = {4096, 10000, 1 << 16, 1 << 16};
	if (kind == KINDS - 1)
		return open("/dev/zero", O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int seals = F_SEAL_GROW | F_SEAL_FUTURE_WRITE | (kind == KINDS - 2 ? 0 : F_SEAL_SHRINK);
	if (fd < 0 || ftruncate(fd, lengths[kind]) != 0 || fcntl(fd, F_ADD_SEALS, seals) != 0)
		abort();
	return fd;
}

static void give(struct tcp_fd_passing *fd_passing, const int *fds, uint32_t which)
{
	for (; which % 8 && fd_passing->in_count < TCP_PASSED_MAX; which /= 8) {
		int fd = fcntl(fds[(which % 8 - 1) % KINDS], F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			abort();
		fd_passing->in[fd_passing->in_count++] = fd;
	}
}

/* A dynamic region: mapped as of this length and as of another one, as two clients of a process do, and let go. */
static void map_dynamic(int fd, uint64_t bytes, uint64_t other)
{
	void *mappings[3];
	const uint8_t *bases[3];
	const uint64_t lengths[3] = {bytes, bytes, other};
	volatile uint8_t seen = 0;
	for (int i = 0; i < 3; i++) {
		gw_status status = gw_shm_map_dynamic(fd, lengths[i], &mappings[i], &bases[i]);
		assert(status == GW_OK == (mappings[i] != NULL));
	}
	assert(!mappings[0] == !mappings[1]);
	for (int i = 0; i < 3; i++) {
		if (!mappings[i])
			continue;
		seen = seen ^ bases[i][0] ^ bases[i][lengths[i] - 1];
		gw_shm_unmap_dynamic(mappings[i]);
	}
}

/* Two bytes say which descriptors come (three bits each, from below), eight how long the regions are; the body follows.
 * The highest bit: one descriptor of a dynamic region, whose length those eight are; and another length follows.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fds[KINDS];
	struct gw_region regions[REGIONS] = {0};
	struct wire_memories told;
	struct tcp_fd_passing fd_passing = {.wanted = true};
	uint16_t which, lengths[REGIONS];
	if (!fds[0])
		for (int i = 0; i < KINDS; i++)
			fds[i] = make(i);
	if (size < sizeof(which) + sizeof(lengths) || size > 1 << 16)
		return 0;
	memcpy(&which, data, sizeof(which));
	memcpy(lengths, data + sizeof(which), sizeof(lengths));
	data += sizeof(which) + sizeof(lengths);
	if (which >> 15) {
		uint64_t bytes, other = 0;
		memcpy(&bytes, lengths, sizeof(bytes));
		if (size >= sizeof(which) + sizeof(lengths) + sizeof(other))
			memcpy(&other, data, sizeof(other));
		map_dynamic(fds[which % KINDS], bytes, other);
		return 0;
	}
	uint32_t n = (uint32_t)(size - sizeof(which) - sizeof(lengths)), count = which >> 13 & 3;
	for (uint32_t i = 0; i < count; i++)
		regions[i] = (struct gw_region){.id = i, .bytes = lengths[i]};
	give(&fd_passing, fds, which & 0x1fff);
	int next = fcntl(fds[0], F_DUPFD_CLOEXEC, 0), after; /* the lowest number that is free */
	close(next);
	void *opaque = NULL;
	gw_status status = gw_wire_memory(data, n, regions, count, &told);
	if (status != GW_OK)
		gw_tcp_fd_passing_end(&fd_passing);
	else
		status = gw_shm_map(&told, &fd_passing, &opaque);
	assert(fd_passing.in_count == 0 && status == GW_OK == (opaque != NULL));
	const struct shm_mapped *mapped = opaque;
	volatile uint8_t seen = 0;
	for (uint32_t i = 0; i < count && mapped; i++)
		if (regions[i].bytes)
			seen = seen ^ mapped->bases[i][0] ^ mapped->bases[i][regions[i].bytes - 1];
	if (mapped)
		gw_shm_unmap(opaque);
	after = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
	assert(after <= next);
	close(after);
	return 0;
}
