/* The memory that a server exports to clients of its host: its memfds, sealed, and opened again read-only.
 *
 *   listen: name -> each memfd: seal -> open /proc/self/fd/N read-only -> find each region's place -> socket
 *
 * The seals are permanent. No process can map the memory writable any more, write to it, shrink it or grow it. Mappings
 * that the server made before stay writable, for the server alone. F_SEAL_FUTURE_WRITE is necessary: without it a
 * client could open the read-only descriptor again for writing, through /proc. Fails, with the reason in one line, if a
 * region's memory is not a memfd (private pages, a file) or if its memfd cannot be sealed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "transport/shm/shm.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif
#define SEALS (F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct shm_export {
	char name[GW_ADDRESS_NAME_MAX + 1];
	struct wire_memories memories;
	int fds[GW_MEMORIES_MAX]; /* read-only */
	uint32_t fd_count;
};

static gw_status shm_export_seal(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0)
		return gw_fail_errno(GW_UNSUPPORTED, errno, "its memory cannot be sealed");
	if ((seals & SEALS) == SEALS)
		return GW_OK;
	if (fcntl(fd, F_ADD_SEALS, SEALS) != 0)
		return gw_fail_errno(GW_UNSUPPORTED, errno, "its memory cannot be sealed (Linux 5.1 can)");
	return GW_OK;
}

static gw_status shm_export_reopen(int fd, int *out)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*out = open(path, O_RDONLY | O_CLOEXEC);
	return *out < 0 ? gw_fail_errno(GW_UNSUPPORTED, errno,
					"its memory cannot be opened for reading (is /proc mounted?)")
			: GW_OK;
}

gw_status gw_shm_share(const struct gw_dynamic_region *region, int *fd)
{
	*fd = -1;
	if (region->fd < 0)
		return gw_fail(GW_UNSUPPORTED, "its memory is not a memfd");
	gw_status status = shm_export_seal(region->fd);
	return status != GW_OK ? status : shm_export_reopen(region->fd, fd);
}

static gw_status add_memory(struct shm_export *export, const struct gw_service_memory *memory)
{
	if (memory->fd < 0)
		return gw_fail(GW_UNSUPPORTED, "its memory is not a memfd");
	gw_status status = shm_export_seal(memory->fd);
	if (status == GW_OK)
		status = shm_export_reopen(memory->fd, &export->fds[export->fd_count]);
	if (status == GW_OK)
		export->memories.bytes[export->fd_count++] = memory->bytes;
	return status;
}

/* Finds a region's place: the memfd that contains the complete region, and the offset in it. */
static gw_status shm_export_place(const struct gw_service *service, uint32_t id, struct wire_place *out)
{
	const uint8_t *base = service->bases[id];
	uint64_t bytes = service->regions[id].bytes;
	*out = (struct wire_place){0};
	if (!bytes)
		return GW_OK;
	for (uint32_t i = 0; i < service->memory_count; i++) {
		const struct gw_service_memory *memory = &service->memories[i];
		uint64_t offset = (uint64_t)((uintptr_t)base - (uintptr_t)memory->base);
		if (base < memory->base || offset > memory->bytes || bytes > memory->bytes - offset)
			continue;
		*out = (struct wire_place){.offset = offset, .memory = i};
		return GW_OK;
	}
	return gw_fail(GW_UNSUPPORTED, "region %u is in memory that cannot be shared (not a memfd)", id);
}

static gw_status shm_export_fill(struct shm_export *export, const struct gw_service *service)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < service->memory_count && status == GW_OK; i++)
		status = add_memory(export, &service->memories[i]);
	for (uint32_t i = 0; i < service->region_count && status == GW_OK; i++)
		status = shm_export_place(service, i, &export->memories.places[i]);
	export->memories.memory_count = service->memory_count;
	export->memories.region_count = service->region_count;
	return status;
}

gw_status gw_shm_listen(struct gw_address *address, const struct gw_service *service, int *fd, void **out)
{
	*out = NULL;
	if (!address->host[0])
		snprintf(address->host, sizeof(address->host), "%016llx",
			 (unsigned long long)service->identity.incarnation);
	address->port = 0;
	if (!gw_address_name_check(address->host))
		return gw_fail(GW_INVALID,
			       "shm:%.100s: a name has 1 to %d letters, digits, dots, dashes and underscores",
			       address->host, GW_ADDRESS_NAME_MAX);
	struct shm_export *export = gw_calloc(1, sizeof(*export));
	if (!export)
		return GW_NO_MEMORY;
	snprintf(export->name, sizeof(export->name), "%.64s", address->host);
	gw_status status = shm_export_fill(export, service);
	if (status != GW_OK)
		gw_context(status, "shm:%s", export->name);
	else if (*fd < 0)
		status = gw_shm_socket_listen(export->name, fd);
	if (status != GW_OK)
		gw_shm_export_free(export);
	else
		*out = export;
	return status;
}

gw_status gw_shm_export_keep(void *opaque, int *fd)
{
	return gw_shm_socket_keep(((struct shm_export *)opaque)->name, fd);
}

void gw_shm_export_stop(void *opaque)
{
	gw_shm_socket_forget(((struct shm_export *)opaque)->name);
}

void gw_shm_export_free(void *opaque)
{
	struct shm_export *export = opaque;
	while (export->fd_count)
		close(export->fds[--export->fd_count]);
	gw_free(export);
}

uint32_t gw_shm_describe(const void *opaque, uint8_t *body, struct tcp_fd_passing *fd_passing)
{
	const struct shm_export *export = opaque;
	const struct wire_memories *memories = &export->memories;
	struct wire_memory head = {memories->memory_count, memories->region_count};
	uint8_t *at = body;
	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	memcpy(at, memories->bytes, 8ull * memories->memory_count);
	at += 8ull * memories->memory_count;
	memcpy(at, memories->places, sizeof(struct wire_place) * memories->region_count);
	memcpy(fd_passing->out, export->fds, export->fd_count * sizeof(int));
	fd_passing->out_count = export->fd_count;
	return WIRE_MEMORY_BYTES(memories->memory_count, memories->region_count);
}
