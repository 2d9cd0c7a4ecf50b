/* A service's memory on the RDMA devices of this host: finds the devices, and registers a memory region (MR) for every
 * slice.
 *
 *   address ─▶ its local addresses ─▶ their devices: the rails ─▶ slices registered, several at a time
 *
 * The memory is registered for remote reads only, in a protection domain that contains nothing else: no key of it
 * permits a write. Fails where no address belongs to a device, and at the locked-memory limit, which the error names.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "transport/tcp/socket.h"
#include "transport/verbs/listener_private.h"

static gw_status region_mrs_rail_of(struct verbs_listener *listener, struct rdma_cm_id *id, uint32_t *number)
{
	struct verbs_device *device;
	gw_status status = gw_verbs_device_get(id, &device);
	if (status != GW_OK)
		return status;
	for (uint32_t i = 0; i < listener->rail_count; i++) {
		if (listener->rails[i].device != device)
			continue;
		gw_verbs_device_put(device);
		*number = i;
		return GW_OK;
	}
	if (listener->rail_count == VERBS_RAILS_MAX) {
		gw_verbs_device_put(device);
		return gw_fail(GW_LIMIT, "more than %u RDMA devices", VERBS_RAILS_MAX);
	}
	*number = listener->rail_count;
	struct verbs_rail *rail = &listener->rails[listener->rail_count++];
	rail->device = device;
	/* IBV_ATOMIC_GLOB promises atomicity toward processors as well. A weaker promise does not cover reads of memory
	 * that processors write to. */
	if (device->attr.atomic_cap == IBV_ATOMIC_GLOB)
		listener->whole_words |= 1u << *number;
	atomic_init(&rail->cm_listeners_left, listener->cm_listener_count);
	rail->pd = ibv_alloc_pd(device->context);
	return rail->pd ? GW_OK : gw_verbs_object_fail(device->context, errno, "RDMA protection domain");
}

/* GW_UNSUPPORTED: no device has the address. */
static gw_status region_mrs_add(struct verbs_listener *listener, const struct sockaddr *address)
{
	struct sockaddr_storage local = {0};
	struct handshake_address *out = &listener->addresses[listener->address_count];
	struct rdma_cm_id *id;
	if (listener->address_count == HANDSHAKE_ADDRESSES_MAX)
		return GW_OK;
	*out = (struct handshake_address){.family = address->sa_family == AF_INET ? 4 : 6};
	if (out->family == 4) {
		memcpy(&local, address, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)&local)->sin_port = 0;
		memcpy(out->bytes, &((struct sockaddr_in *)&local)->sin_addr, 4);
	} else {
		memcpy(&local, address, sizeof(struct sockaddr_in6));
		((struct sockaddr_in6 *)&local)->sin6_port = 0;
		memcpy(out->bytes, &((struct sockaddr_in6 *)&local)->sin6_addr, 16);
	}
	/* An id that is created without an event channel gets a channel of its own. */
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) != 0)
		return gw_verbs_missing("RDMA connection manager", errno);
	gw_status status;
	if (rdma_bind_addr(id, (struct sockaddr *)&local) != 0 || !id->verbs)
		status = gw_fail(GW_UNSUPPORTED, "no RDMA device has this address");
	else
		status = region_mrs_rail_of(listener, id, &out->rail);
	rdma_destroy_id(id);
	listener->address_count += status == GW_OK;
	return status;
}

static bool is_link_local(const struct sockaddr *address)
{
	return address->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* Adds every address of this host that a client on another host could use. */
static gw_status add_all(struct verbs_listener *listener)
{
	struct ifaddrs *list;
	if (getifaddrs(&list) != 0)
		return gw_fail_errno(GW_IO, errno, "this host's addresses");
	gw_status status = GW_OK;
	for (const struct ifaddrs *at = list; at && status == GW_OK; at = at->ifa_next) {
		if (!at->ifa_addr || (at->ifa_addr->sa_family != AF_INET && at->ifa_addr->sa_family != AF_INET6))
			continue;
		if (is_link_local(at->ifa_addr))
			continue; /* valid only together with an interface of the client */
		status = region_mrs_add(listener, at->ifa_addr);
		if (status == GW_UNSUPPORTED)
			status = GW_OK;
	}
	freeifaddrs(list);
	return status;
}

static bool is_any(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
	return ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr == htonl(INADDR_ANY);
}

gw_status gw_verbs_rails_find(struct verbs_listener *listener)
{
	struct addrinfo *list;
	char text[GW_ADDRESS_MAX];
	const struct gw_address *address = &listener->base.address;
	gw_status status = gw_socket_resolve(address, &list);
	if (status != GW_OK)
		return status;
	/* The loopback address has no device. A client that can reach it can reach every address of this host. */
	if (is_any(list->ai_addr) || gw_address_is_loopback(address))
		status = add_all(listener);
	else if (is_link_local(list->ai_addr))
		status = gw_fail(GW_UNSUPPORTED,
				 "RDMA clients do not know which of their interfaces leads to a link-local address; "
				 "use another address");
	else
		status = region_mrs_add(listener, list->ai_addr);
	freeaddrinfo(list);
	if (status == GW_OK && !listener->rail_count)
		status = gw_fail(GW_UNSUPPORTED, "no address of this host belongs to an RDMA device that is up");
	return status != GW_OK ? gw_context(status, "listen on %s", gw_address_text(address, text)) : GW_OK;
}

/* --- Registration: memory is cut into slices, and each slice is an MR of its own. --- */

#define SHIFT_MIN 12u
#define SHIFT_MAX 30u

static uint32_t slice_shift(uint64_t bytes, uint64_t slice_bytes)
{
	uint64_t wanted = slice_bytes ? slice_bytes : bytes;
	uint32_t shift = SHIFT_MIN;
	while (shift < SHIFT_MAX && (1ull << shift) < wanted)
		shift++;
	return shift;
}

struct handshake_region gw_verbs_place(const uint8_t *base, uint64_t bytes, uint64_t slice_bytes)
{
	uint32_t shift = slice_shift(bytes, slice_bytes);
	return (struct handshake_region){(uintptr_t)base, shift, gw_handshake_slices(bytes, shift)};
}

gw_status gw_verbs_slice_register(struct ibv_pd *pd, const uint8_t *base, uint64_t bytes, uint32_t shift, uint64_t i,
				  struct ibv_mr **out)
{
	uint64_t at = i << shift, left = bytes - at, most = 1ull << shift;
	/* The cast is safe: registering for reads only does not write to the memory. */
	void *memory = (void *)(uintptr_t)(base + at);
	*out = ibv_reg_mr(pd, memory, left < most ? left : most, IBV_ACCESS_REMOTE_READ);
	return *out ? GW_OK : gw_verbs_mr_fail(left < most ? left : most, errno);
}

struct registering {
	struct verbs_listener *listener;
	struct verbs_rail *rail;
};

static gw_status register_slices(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct registering *work = context;
	const struct gw_service *service = work->listener->base.service;
	uint64_t first = 0;
	for (uint32_t r = 0; r < service->region_count; r++) {
		const struct handshake_region *place = &work->listener->places[r];
		for (uint64_t i = begin > first ? begin - first : 0; i < place->slice_count && first + i < end; i++) {
			gw_status status =
				gw_verbs_slice_register(work->rail->pd, service->bases[r], service->regions[r].bytes,
							place->slice_shift, i, &work->rail->mrs[first + i]);
			if (status != GW_OK)
				return status;
		}
		first += place->slice_count;
	}
	return GW_OK;
}

gw_status gw_verbs_rails_register(struct verbs_listener *listener)
{
	const struct gw_service *service = listener->base.service;
	uint64_t bytes = 0;
	for (uint32_t r = 0; r < service->region_count; r++) {
		struct handshake_region *place = &listener->places[r];
		*place = gw_verbs_place(service->bases[r], service->regions[r].bytes, service->slice_bytes[r]);
		listener->slice_count += place->slice_count;
		bytes += service->regions[r].bytes;
	}
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < listener->rail_count && status == GW_OK; i++) {
		struct registering work = {listener, &listener->rails[i]};
		work.rail->mrs = gw_calloc(listener->slice_count ? listener->slice_count : 1, sizeof(struct ibv_mr *));
		if (!work.rail->mrs)
			return GW_NO_MEMORY;
		/* Pinning a gigabyte takes so long that several threads are faster. They are used from 256 MiB on. */
		unsigned threads = bytes >> 28 ? 0 : 1;
		status = gw_parallel_for(threads, listener->slice_count, 1, register_slices, &work);
		if (status == GW_OK)
			gw_log(GW_LOG_INFO, "%llu bytes in %llu slices are registered on RDMA device %s",
			       (unsigned long long)bytes, (unsigned long long)listener->slice_count,
			       ibv_get_device_name(work.rail->device->context->device));
	}
	return status;
}

void gw_verbs_rail_close(struct verbs_listener *listener, struct verbs_rail *rail)
{
	pthread_mutex_lock(&listener->dynamic.rails_lock);
	gw_verbs_dynamic_mrs_rail_close(listener, rail);
	for (uint64_t i = 0; rail->mrs && i < listener->slice_count; i++)
		if (rail->mrs[i])
			ibv_dereg_mr(rail->mrs[i]);
	gw_free(rail->mrs);
	rail->mrs = NULL;
	if (rail->pd)
		ibv_dealloc_pd(rail->pd);
	rail->pd = NULL;
	pthread_mutex_unlock(&listener->dynamic.rails_lock);
	if (rail->device)
		gw_verbs_device_put(rail->device);
	rail->device = NULL;
}
