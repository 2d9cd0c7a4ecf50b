/* The RDMA devices of this process.
 *
 *   first poll group to use verbs ─ begin ──▶ an event channel of our own
 *   an id is bound ──────────────── get ───▶ a device: librdmacm's context, a protection domain, an id to keep both
 *   its removal is announced ───── look ───▶ dead: every group releases it ─▶ the last one frees it
 *
 * librdmacm opens a device once and shares its context among all ids. It may close the context when no id refers to the
 * device; `hold` is an id that prevents that. If the only device is removed, librdmacm (version 44) keeps it open for
 * ever, and the kernel's removal waits for the close. device_free therefore replaces the device's descriptors with
 *  /dev/null, which closes the device for the kernel.
 *
 * A forked child begins without devices. It must not use its parent's devices: at the addresses of a registration, the
 * device writes to the parent's pages. librdmacm gives the child the inherited context, and the child makes its own
 * protection domain on it. Some kernel drivers take commands on a context only from the process that opened it
 * (Soft-RoCE's posts). There RDMA fails in the child, and its client uses TCP.
 *
 * Fails where the host lacks libibverbs or librdmacm (library.h), or where no device exists. Fails for a device that
 * needs a writable key at the reader for one-sided reads (iWARP).
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/fork.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs.h"

pthread_mutex_t gw_verbs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rdma_event_channel *channel; /* for the ids that keep devices open */
static int watch_fd = -1;                  /* epoll: the channel and every device's asynchronous events */
static uint32_t users;
static struct verbs_device *devices;

/* The channel's memory leaks in the child: it belongs to the library, whose state the child must not touch. */
static void device_forget(void)
{
	if (watch_fd >= 0)
		close(watch_fd);
	watch_fd = -1;
	if (channel)
		close(channel->fd);
	channel = NULL;
	users = 0;
	devices = NULL;
}

static struct gw_fork_guard guard = {.lock = &gw_verbs_lock, .in_child = device_forget};

gw_status gw_verbs_missing(const char *what, int error)
{
	if (error == ENODEV || error == ENOENT)
		return gw_fail(GW_UNSUPPORTED,
			       "%s: this host has no RDMA device, or its modules (ib_uverbs, rdma_ucm) are not loaded; "
			       "rdma link shows devices",
			       what);
	if (error == EPERM || error == EACCES)
		return gw_fail(GW_UNSUPPORTED, "%s: this user may not open /dev/infiniband/rdma_cm or uverbs*", what);
	return gw_fail_errno(error == ENOMEM ? GW_NO_MEMORY : GW_IO, error, "%s", what);
}

gw_status gw_verbs_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
		return gw_fail_errno(GW_IO, errno, "RDMA events");
	return GW_OK;
}

static gw_status device_watch(int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	gw_status status = gw_verbs_nonblocking(fd);
	if (status == GW_OK && epoll_ctl(watch_fd, EPOLL_CTL_ADD, fd, &event) != 0)
		status = gw_fail_errno(GW_IO, errno, "RDMA events");
	return status;
}

/* Copy on write must not let a child share pages that a device writes to. Newer kernels copy such pages at the fork. On
 * older kernels the library must mark them, huge pages by their true size. ibv_fork_init has no effect once memory is
 * registered. */
static void make_fork_safe(void)
{
	if (ibv_is_fork_initialized() != IBV_FORK_DISABLED)
		return;
	setenv("RDMAV_HUGEPAGES_SAFE", "1", 0);
	int error = ibv_fork_init();
	if (error)
		gw_log(GW_LOG_WARN, "RDMA: %s: a fork while reads are open may lose bytes", strerror(error));
}

gw_status gw_verbs_begin(void)
{
	gw_status status = gw_verbs_library();
	if (status != GW_OK)
		return status;
	gw_fork_guard(&guard);
	pthread_mutex_lock(&gw_verbs_lock);
	if (users++ == 0) {
		make_fork_safe();
		channel = rdma_create_event_channel();
		if (!channel) {
			status = gw_verbs_missing("RDMA connection manager", errno);
		} else {
			watch_fd = epoll_create1(EPOLL_CLOEXEC);
			status = watch_fd < 0 ? gw_fail_errno(GW_IO, errno, "epoll") : device_watch(channel->fd);
		}
		if (status != GW_OK) {
			users = 0;
			if (watch_fd >= 0)
				close(watch_fd);
			watch_fd = -1;
			if (channel)
				rdma_destroy_event_channel(channel);
			channel = NULL;
		}
	}
	pthread_mutex_unlock(&gw_verbs_lock);
	return status;
}

void gw_verbs_end(void)
{
	pthread_mutex_lock(&gw_verbs_lock);
	if (--users == 0) {
		assert(!devices);
		close(watch_fd);
		watch_fd = -1;
		rdma_destroy_event_channel(channel);
		channel = NULL;
	}
	pthread_mutex_unlock(&gw_verbs_lock);
}

int gw_verbs_devices_fd(void)
{
	return watch_fd;
}

static struct verbs_device *device_of(const struct ibv_context *context)
{
	for (struct verbs_device *device = devices; device; device = device->next)
		if (device->context == context)
			return device;
	return NULL;
}

void gw_verbs_devices_look(void)
{
	struct rdma_cm_event *event;
	pthread_mutex_lock(&gw_verbs_lock);
	while (channel && rdma_get_cm_event(channel, &event) == 0) {
		struct verbs_device *device = event->id ? device_of(event->id->verbs) : NULL;
		if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL && device) {
			gw_log(GW_LOG_WARN, "RDMA device %s is being removed",
			       ibv_get_device_name(device->context->device));
			gw_verbs_device_dead(device);
		}
		rdma_ack_cm_event(event);
	}
	for (struct verbs_device *device = devices; device; device = device->next) {
		struct ibv_async_event async;
		while (ibv_get_async_event(device->context, &async) == 0) {
			gw_verbs_async(device, &async);
			ibv_ack_async_event(&async);
		}
	}
	pthread_mutex_unlock(&gw_verbs_lock);
}

static gw_status device_check(struct ibv_context *context, uint8_t port, const char *name)
{
	struct ibv_port_attr attr;
	if (context->device->transport_type != IBV_TRANSPORT_IB)
		return gw_fail(GW_UNSUPPORTED, "RDMA device %s is not an InfiniBand or RoCE device", name);
	int error = ibv_query_port(context, port, &attr);
	if (error)
		return gw_verbs_missing("RDMA device", error);
	if (attr.max_msg_sz < VERBS_READ_BYTES)
		return gw_fail(GW_UNSUPPORTED, "RDMA device %s reads at most %u bytes at once; Graphwire needs %u",
			       name, attr.max_msg_sz, VERBS_READ_BYTES);
	return GW_OK;
}

/* Binds a second id, device->hold, to the device of `id`. */
static gw_status device_ref(struct verbs_device *device, struct rdma_cm_id *id)
{
	struct sockaddr_storage local = {0};
	const struct sockaddr *address = rdma_get_local_addr(id);
	if (address->sa_family == AF_INET6)
		memcpy(&local, address, sizeof(struct sockaddr_in6));
	else
		memcpy(&local, address, sizeof(struct sockaddr_in));
	if (local.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&local)->sin6_port = 0;
	else
		((struct sockaddr_in *)&local)->sin_port = 0;
	if (rdma_create_id(channel, &device->hold, NULL, RDMA_PS_TCP) != 0)
		return gw_verbs_missing("RDMA connection manager", errno);
	if (rdma_bind_addr(device->hold, (struct sockaddr *)&local) != 0)
		return gw_verbs_missing("RDMA device", errno);
	if (device->hold->verbs != id->verbs)
		return gw_fail(GW_UNSUPPORTED, "RDMA device: another device has the same address");
	return GW_OK;
}

static void device_free(struct verbs_device *device)
{
	if (device->pd) {
		gw_verbs_mr_cache_drop(device);
		ibv_dealloc_pd(device->pd);
	}
	epoll_ctl(watch_fd, EPOLL_CTL_DEL, device->context->async_fd, NULL);
	if (atomic_load(&device->dead)) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null >= 0) {
			dup3(null, device->context->async_fd, O_CLOEXEC);
			dup3(null, device->context->cmd_fd, O_CLOEXEC);
			close(null);
		}
	}
	if (device->hold)
		rdma_destroy_id(device->hold);
	gw_free(device);
}

static gw_status device_open(struct rdma_cm_id *id, struct verbs_device **out)
{
	*out = NULL;
	const char *name = ibv_get_device_name(id->verbs->device);
	gw_status status = device_check(id->verbs, id->port_num, name);
	if (status != GW_OK)
		return status;
	struct verbs_device *device = gw_calloc(1, sizeof(*device));
	if (!device)
		return GW_NO_MEMORY;
	device->context = id->verbs;
	device->references = 1;
	int error = ibv_query_device(device->context, &device->attr);
	gw_verbs_ports_begin(device);
	status = error ? gw_verbs_missing("RDMA device", error) : device_ref(device, id);
	if (status == GW_OK)
		status = device_watch(device->context->async_fd);
	if (status == GW_OK) {
		device->pd = ibv_alloc_pd(device->context);
		if (!device->pd)
			status = gw_verbs_object_fail(device->context, errno, "RDMA protection domain");
	}
	if (status != GW_OK) {
		device_free(device);
		return status;
	}
	device->next = devices;
	devices = device;
	*out = device;
	return GW_OK;
}

gw_status gw_verbs_device_get(struct rdma_cm_id *id, struct verbs_device **out)
{
	gw_status status = GW_OK;
	pthread_mutex_lock(&gw_verbs_lock);
	*out = device_of(id->verbs);
	if (!*out)
		status = device_open(id, out);
	else if (atomic_load(&(*out)->dead))
		status = gw_fail(GW_PEER_LOST, "the RDMA device is being removed");
	else
		(*out)->references++;
	if (status != GW_OK)
		*out = NULL;
	pthread_mutex_unlock(&gw_verbs_lock);
	return status;
}

void gw_verbs_device_put(struct verbs_device *device)
{
	pthread_mutex_lock(&gw_verbs_lock);
	if (--device->references == 0) {
		GW_SLIST_REMOVE(devices, device, next);
		device_free(device);
	}
	pthread_mutex_unlock(&gw_verbs_lock);
}
