/* A cache of memory regions (MRs) of clients' buffers: the memory that a device may write to.
 *
 * An MR pins its pages and belongs to the device. All poll groups of the process therefore share it: a buffer that lies
 * inside an existing MR needs no other. An MR ends with its last user. The cache keeps it no longer, because the owner
 * may unmap the memory and map other pages at the same address; reads would then land in the old pages. For the same
 * reason no further buffer joins an MR whose owner has released it; the present users keep it.
 *
 * Memory that cannot be registered (the locked-memory limit, a mapping whose pages cannot be pinned) can still be a
 * destination: through a bounce buffer. Small buffers also use it, because registering them does not pay.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/limits.h"
#include "transport/verbs/verbs.h"

/* Registering and releasing memory for one read takes 25,000 to 40,000 instructions. Copying the bytes takes 4,000 to
 * 12,000 for 16 to 64 KiB (Soft-RoCE, counted). For memory that receives a single read, registration pays only from
 * about half a megabyte on. For memory that receives many reads, it pays after about three reads of SMALL_BYTES, so the
 * limit is no higher. */
#define SMALL_BYTES (64u << 10)

gw_status gw_verbs_mr_fail(uint64_t bytes, int error)
{
	uint64_t limit = gw_process_limit(GW_PROCESS_LOCKED);
	char fix[GW_LIMIT_FIX_MAX];
	struct gw_group_rdma group;
	if (error == EAGAIN && gw_group_rdma_read("", NULL, &group))
		return gw_verbs_object_fail(NULL, error, "RDMA registration");
	if (error != ENOMEM && error != EAGAIN && error != EPERM)
		return gw_fail_errno(GW_IO, error, "RDMA registration of %llu bytes", (unsigned long long)bytes);
	if (limit == UINT64_MAX)
		return gw_fail_errno(GW_NO_MEMORY, error, "RDMA registration of %llu bytes", (unsigned long long)bytes);
	return gw_fail(GW_LOCKED_MEMORY,
		       "RDMA registration of %llu bytes: the locked-memory limit is %llu bytes; raise it: %s",
		       (unsigned long long)bytes, (unsigned long long)limit,
		       gw_process_fix_own(GW_PROCESS_LOCKED, UINT64_MAX, fix));
}

gw_status gw_verbs_object_fail(const struct ibv_context *context, int error, const char *what)
{
	const char *device = context ? ibv_get_device_name(context->device) : NULL;
	struct gw_group_rdma group;
	if (error == EAGAIN && gw_group_rdma_read("", device, &group))
		return gw_fail(GW_LIMIT,
			       "%s: the control group's limit for %s is used up (%s): "
			       "echo '%s hca_handle=max hca_object=max' | sudo tee %s",
			       what, device ? device : "RDMA devices", group.file, device ? device : "DEVICE",
			       group.file);
	return gw_fail_errno(error == ENOMEM ? GW_NO_MEMORY : GW_IO, error, "%s", what);
}

static struct verbs_cached_mr *mr_cache_find(struct verbs_device *device, const uint8_t *base, uint64_t bytes)
{
	for (struct verbs_cached_mr *r = device->mrs; r; r = r->next)
		if (r->mr && r->owners && base >= r->base && bytes <= r->bytes &&
		    (uint64_t)(base - r->base) <= r->bytes - bytes)
			return r;
	return NULL;
}

static bool mr_cache_owns(const struct verbs_cached_mr *cached, const uint8_t *base, uint64_t bytes)
{
	return cached->base == base && cached->bytes == bytes;
}

struct verbs_cached_mr *gw_verbs_mr_cache_get(struct verbs_device *device, uint8_t *base, uint64_t bytes)
{
	pthread_mutex_lock(&gw_verbs_lock);
	struct verbs_cached_mr *found = mr_cache_find(device, base, bytes);
	if (found) {
		found->references++;
		found->owners += mr_cache_owns(found, base, bytes);
		pthread_mutex_unlock(&gw_verbs_lock);
		return found;
	}
	struct verbs_cached_mr *cached = gw_calloc(1, sizeof(*cached));
	if (cached) {
		*cached = (struct verbs_cached_mr){.next = device->mrs,
						   .device = device,
						   .base = base,
						   .bytes = bytes,
						   .references = 1,
						   .owners = 1};
		if (bytes > SMALL_BYTES)
			cached->mr = ibv_reg_mr(device->pd, base, bytes, IBV_ACCESS_LOCAL_WRITE);
		if (bytes > SMALL_BYTES && !cached->mr) {
			gw_verbs_mr_fail(bytes, errno);
			gw_log(GW_LOG_INFO, "%s; its reads are copied", gw_last_error());
		}
		device->mrs = cached;
	}
	pthread_mutex_unlock(&gw_verbs_lock);
	return cached;
}

void gw_verbs_mr_cache_put(struct verbs_cached_mr *cached, const uint8_t *base, uint64_t bytes)
{
	pthread_mutex_lock(&gw_verbs_lock);
	cached->owners -= mr_cache_owns(cached, base, bytes);
	if (--cached->references == 0) {
		struct verbs_device *device = cached->device;
		if (device)
			GW_SLIST_REMOVE(device->mrs, cached, next);
		if (cached->mr)
			ibv_dereg_mr(cached->mr);
		gw_free(cached);
	}
	pthread_mutex_unlock(&gw_verbs_lock);
}

void gw_verbs_mr_cache_drop(struct verbs_device *device)
{
	while (device->mrs) {
		struct verbs_cached_mr *cached = device->mrs;
		device->mrs = cached->next;
		if (cached->mr)
			ibv_dereg_mr(cached->mr);
		cached->mr = NULL;
		cached->device = NULL;
	}
}

gw_status gw_verbs_pages_create(struct ibv_pd *pd, size_t bytes, struct verbs_pages *out)
{
	*out = (struct verbs_pages){0};
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return gw_fail_errno(GW_NO_MEMORY, errno, "%zu bytes", bytes);
	struct ibv_mr *mr = ibv_reg_mr(pd, base, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!mr) {
		int error = errno;
		munmap(base, bytes);
		return gw_verbs_mr_fail(bytes, error);
	}
	*out = (struct verbs_pages){base, bytes, mr};
	return GW_OK;
}

void gw_verbs_pages_destroy(struct verbs_pages *pages)
{
	if (!pages->base)
		return;
	ibv_dereg_mr(pages->mr);
	munmap(pages->base, pages->bytes);
	*pages = (struct verbs_pages){0};
}
