/* A poll group: one thread's view of every backend. Each backend's part is made on first use. A poll asks each part in
 * turn and, when none has a completion, waits in the one that has something open; parts that complete inline (memory)
 * have nothing to wait for. Several that need waiting are waited for through their descriptors.
 *
 * A wake may come from any thread at any time, also while a part is being made: the flag is set before the parts are
 * woken and is looked at after a part was made, so that one of the two sees the other. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "transport/transport.h"

#define PARTS_MAX 8
/* A wait through descriptors ends after this long, since a part's own timers do not show there. */
#define SLICE_NS (5 * GW_NS_PER_MS)

struct part {
	const struct gw_transport *transport;
	void *state;
};

struct gw_poll_group {
	struct gw_poll_group_options options;
	char driver[16];
	struct part parts[PARTS_MAX];
	_Atomic uint32_t part_count; /* raised when the part is whole: wake reads it from other threads */
	uint32_t turn;               /* the part asked first: none starves another */
	int wake_fd;                 /* for a group without a part to wait in */
	_Atomic bool woken;
	struct gw_buffer *buffers[GW_BUFFERS_MAX];
	uint32_t buffer_count;
};

gw_status gw_poll_group_create(const struct gw_poll_group_options *options, struct gw_poll_group **out)
{
	*out = NULL;
	struct gw_poll_group *group = gw_calloc(1, sizeof(*group));
	if (!group)
		return GW_NO_MEMORY;
	if (options)
		group->options = *options;
	if (options && options->tcp_driver) {
		if (strlen(options->tcp_driver) >= sizeof(group->driver)) {
			gw_free(group);
			return gw_fail(GW_INVALID, "no tcp driver \"%.40s\"", options->tcp_driver);
		}
		snprintf(group->driver, sizeof(group->driver), "%s", options->tcp_driver);
		group->options.tcp_driver = group->driver;
	}
	group->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (group->wake_fd < 0) {
		int error = errno;
		gw_free(group);
		return gw_fail_errno(GW_IO, error, "eventfd");
	}
	*out = group;
	return GW_OK;
}

void gw_poll_group_destroy(struct gw_poll_group *group)
{
	if (!group)
		return;
	/* Endpoints first: until they are silenced they may write to the buffers. */
	for (uint32_t i = atomic_load(&group->part_count); i-- > 0;) {
		group->parts[i].transport->shut(group->parts[i].state);
		group->parts[i].state = NULL;
	}
	while (group->buffer_count)
		gw_buffer_release(group->buffers[group->buffer_count - 1]);
	close(group->wake_fd);
	gw_free(group);
}

const struct gw_poll_group_options *gw_poll_group_options(const struct gw_poll_group *group)
{
	return &group->options;
}

gw_status gw_poll_group_state(struct gw_poll_group *group, const struct gw_transport *transport, void **state)
{
	uint32_t count = atomic_load_explicit(&group->part_count, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++) {
		if (group->parts[i].transport == transport) {
			*state = group->parts[i].state;
			return GW_OK;
		}
	}
	*state = NULL;
	assert(count < PARTS_MAX);
	struct part *part = &group->parts[count];
	part->transport = transport;
	gw_status status = transport->open(group, &part->state);
	if (status)
		return status;
	for (uint32_t i = 0; i < group->buffer_count; i++) {
		status = transport->buffer_register(part->state, group->buffers[i]);
		if (!status)
			continue;
		while (i-- > 0)
			transport->buffer_release(part->state, group->buffers[i]);
		transport->shut(part->state);
		return status;
	}
	atomic_store(&group->part_count, count + 1);
	*state = part->state;
	return GW_OK;
}

/* Asks every part once, without waiting, beginning with another one each time; max = 0 lets all of them work. */
static size_t poll_once(struct gw_poll_group *group, uint32_t count, struct gw_completion *completions, size_t max)
{
	size_t n = 0;
	group->turn++;
	for (uint32_t i = 0; i < count && (n < max || !max); i++) {
		struct part *part = &group->parts[(group->turn + i) % count];
		n += part->transport->poll(part->state, completions + n, max - n, 0);
	}
	return n;
}

/* Sleeps until one of the parts' descriptors, or a wake, or the time. */
static void wait_for_any(struct gw_poll_group *group, uint32_t count, uint64_t timeout_ns)
{
	struct pollfd fds[PARTS_MAX + 1] = {{.fd = group->wake_fd, .events = POLLIN}};
	for (uint32_t i = 0; i < count; i++)
		fds[i + 1] = (struct pollfd){.fd = group->parts[i].transport->wait_fd(group->parts[i].state),
					     .events = POLLIN};
	struct timespec time = {.tv_sec = (time_t)(timeout_ns / GW_NS_PER_SECOND),
				.tv_nsec = (long)(timeout_ns % GW_NS_PER_SECOND)};
	bool endless = timeout_ns > GW_NO_DEADLINE / 2;
	ppoll(fds, count + 1, endless ? NULL : &time, NULL);
}

static bool take_wake(struct gw_poll_group *group)
{
	if (!atomic_load_explicit(&group->woken, memory_order_relaxed) || !atomic_exchange(&group->woken, false))
		return false;
	uint64_t ignored;
	(void)!read(group->wake_fd, &ignored, sizeof(ignored));
	return true;
}

size_t gw_poll_group_poll(struct gw_poll_group *group, struct gw_completion *completions, size_t max,
			  uint64_t timeout_ns)
{
	uint32_t count = atomic_load_explicit(&group->part_count, memory_order_relaxed);
	if (take_wake(group))
		timeout_ns = 0;
	/* The usual case: one backend, which waits by itself. */
	if (count == 1)
		return group->parts[0].transport->poll(group->parts[0].state, completions, max, timeout_ns);
	size_t n = poll_once(group, count, completions, max);
	if (n || timeout_ns == 0)
		return n;
	uint32_t waiting = 0, only = 0;
	for (uint32_t i = 0; i < count; i++)
		if (group->parts[i].transport->busy(group->parts[i].state)) {
			only = i;
			waiting++;
		}
	if (waiting == 1) {
		struct part *part = &group->parts[only];
		return part->transport->poll(part->state, completions, max, timeout_ns);
	}
	/* Early returns are allowed, and spare a second count of the time. */
	wait_for_any(group, count, waiting && timeout_ns > SLICE_NS ? SLICE_NS : timeout_ns);
	take_wake(group);
	return poll_once(group, count, completions, max);
}

void gw_poll_group_wake(struct gw_poll_group *group)
{
	if (atomic_exchange(&group->woken, true))
		return;
	uint64_t one = 1;
	(void)!write(group->wake_fd, &one, sizeof(one));
	uint32_t count = atomic_load(&group->part_count);
	for (uint32_t i = 0; i < count; i++)
		group->parts[i].transport->wake(group->parts[i].state);
}

gw_status gw_buffer_register(struct gw_poll_group *group, void *base, uint64_t bytes, struct gw_buffer **out)
{
	*out = NULL;
	if (group->buffer_count == GW_BUFFERS_MAX)
		return gw_fail(GW_LIMIT, "more than %d registered buffers", GW_BUFFERS_MAX);
	struct gw_buffer *buffer = gw_calloc(1, sizeof(*buffer));
	if (!buffer)
		return GW_NO_MEMORY;
	*buffer = (struct gw_buffer){.base = base, .bytes = bytes, .group = group};
	uint32_t count = atomic_load_explicit(&group->part_count, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++) {
		gw_status status = group->parts[i].transport->buffer_register(group->parts[i].state, buffer);
		if (!status)
			continue;
		while (i-- > 0)
			group->parts[i].transport->buffer_release(group->parts[i].state, buffer);
		gw_free(buffer);
		return status;
	}
	group->buffers[group->buffer_count++] = buffer;
	*out = buffer;
	return GW_OK;
}

void gw_buffer_release(struct gw_buffer *buffer)
{
	if (!buffer)
		return;
	struct gw_poll_group *group = buffer->group;
	uint32_t count = atomic_load_explicit(&group->part_count, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++)
		group->parts[i].transport->buffer_release(group->parts[i].state, buffer);
	for (uint32_t i = 0; i < group->buffer_count; i++) {
		if (group->buffers[i] != buffer)
			continue;
		group->buffers[i] = group->buffers[--group->buffer_count];
		break;
	}
	gw_free(buffer);
}

gw_status gw_endpoint_connect(struct gw_poll_group *group, const struct gw_connect_options *options, void *cookie,
			      struct gw_endpoint **out)
{
	const struct gw_transport *transport;
	void *state;
	*out = NULL;
	gw_status status = gw_transport_find(options->address.scheme, &transport);
	if (!status)
		status = gw_poll_group_state(group, transport, &state);
	return status ? status : transport->connect(state, options, cookie, out);
}

gw_status gw_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
		    struct gw_service *service, struct gw_listener **out)
{
	const struct gw_transport *transport;
	*out = NULL;
	if (group_count == 0)
		return gw_fail(GW_INVALID, "a listener without a poll group");
	gw_status status = gw_transport_find(address->scheme, &transport);
	return status ? status : transport->listen(groups, group_count, address, service, out);
}
