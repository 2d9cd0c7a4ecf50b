/* A poll group combines the backends that one thread uses. Each backend's part is created at first use.
 *
 *   poll ─▶ poll the busy parts in turn ─▶ completions: return
 *             └─▶ none after spin_ns ─▶ poll every part once ─▶ one busy part: wait inside its poll
 *                                                            └─▶ otherwise: wait for the parts' descriptors
 *
 * Parts that complete inline (memory) have nothing to wait for. Idle parts are polled before a sleep and in every 61st
 * poll. So an idle connection costs the busy parts almost nothing, and its loss is still noticed.
 *
 * Any thread may call wake at any time, also while a part is created. Wake sets the flag before it wakes the parts. A
 * new part checks the flag after its creation, so one of the two notices the other. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "transport/service/replay_cache.h"
#include "transport/transport.h"

#define IDLE_TURNS 61 /* one in this many polls includes idle parts; a prime, so that each part is first at times */

struct part {
	const struct gw_transport *transport;
	void *state;
};

struct gw_poll_group {
	struct gw_poll_group_options options;
	char driver[16];
	struct part parts[GW_TRANSPORTS_MAX];
	_Atomic uint32_t part_count; /* raised after the part is complete: other threads read it in wake */
	uint32_t turn;               /* selects the part that is polled first, so that no part starves another */
	bool room;
	uint64_t news;
	bool idle;   /* the last wait ended without an event */
	int wake_fd; /* for a wait outside of the parts */
	_Atomic bool woken;
	struct gw_buffer **buffers;
	uint32_t buffer_count, buffer_capacity;
	uint64_t registrations; /* count since creation */
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
	struct gw_error_kept kept;
	if (!group)
		return;
	gw_error_keep(&kept);
	/* Endpoints end first: until then they may write to the buffers. */
	for (uint32_t i = atomic_load(&group->part_count); i-- > 0;) {
		group->parts[i].transport->shut(group->parts[i].state);
		group->parts[i].state = NULL;
	}
	while (group->buffer_count)
		gw_buffer_release(group->buffers[group->buffer_count - 1]);
	close(group->wake_fd);
	gw_free(group->buffers);
	gw_free(group);
	gw_error_restore(&kept);
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
	assert(count < GW_TRANSPORTS_MAX);
	struct part *part = &group->parts[count];
	part->transport = transport;
	gw_status status = transport->open(group, &part->state);
	if (status != GW_OK)
		return status;
	for (uint32_t i = 0; i < group->buffer_count; i++) {
		status = transport->buffer_register(part->state, group->buffers[i]);
		if (status == GW_OK)
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

/* Each call begins with another part. */
static size_t poll_once(struct gw_poll_group *group, uint32_t count, bool all, struct gw_completion *completions,
			size_t max)
{
	size_t n = 0;
	all |= ++group->turn % IDLE_TURNS == 0;
	/* max = 0: a server, which polls to drive its connections. */
	for (uint32_t i = 0; i < count && (n < max || max == 0); i++) {
		struct part *part = &group->parts[(group->turn + i) % count];
		if (all || part->transport->busy(part->state))
			n += part->transport->poll(part->state, max ? completions + n : NULL, max - n, 0);
	}
	return n;
}

static void drain_wakes(const struct gw_poll_group *group)
{
	eventfd_t ignored;
	eventfd_read(group->wake_fd, &ignored);
}

/* Does not sleep if a part has work already. */
static void wait_for_any(struct gw_poll_group *group, uint32_t count, uint64_t timeout_ns)
{
	struct pollfd fds[GW_TRANSPORTS_MAX + 1] = {{.fd = group->wake_fd, .events = POLLIN}};
	uint64_t timer_ns = GW_NO_DEADLINE;
	for (uint32_t i = 0; i < count; i++) {
		int fd = group->parts[i].transport->wait_fd(group->parts[i].state, &timer_ns);
		fds[i + 1] = (struct pollfd){.fd = fd, .events = POLLIN};
		timeout_ns = fd < 0 ? 0 : timeout_ns;
	}
	uint64_t now = timeout_ns && timer_ns != GW_NO_DEADLINE ? gw_now_ns() : 0;
	uint64_t left = timer_ns > now ? timer_ns - now : 0;
	timeout_ns = left < timeout_ns ? left : timeout_ns;
	struct timespec time = gw_timespec(timeout_ns);
	bool endless = timeout_ns > GW_NO_DEADLINE / 2;
	group->idle = ppoll(fds, count + 1, endless ? NULL : &time, NULL) == 0;
	/* take_wake leaves the descriptor readable if it came between the waker's two steps. */
	if (fds[0].revents)
		drain_wakes(group);
}

static bool take_wake(struct gw_poll_group *group)
{
	if (!atomic_load_explicit(&group->woken, memory_order_relaxed) || !atomic_exchange(&group->woken, false))
		return false;
	drain_wakes(group);
	return true;
}

static size_t poll_several(struct gw_poll_group *group, uint32_t count, struct gw_completion *completions, size_t max,
			   uint64_t timeout_ns)
{
	size_t n = poll_once(group, count, false, completions, max);
	if (n || timeout_ns == 0)
		return n;
	/* A server (max = 0) spins after events only. */
	uint64_t spin_ns = max == 0 && group->idle ? 0 : group->options.spin_ns;
	spin_ns = spin_ns < timeout_ns ? spin_ns : timeout_ns;
	uint64_t end = spin_ns ? gw_now_ns() + spin_ns : 0;
	while (!n && spin_ns && !group->room && gw_now_ns() < end && !atomic_load(&group->woken))
		n = poll_once(group, count, false, completions, max);
	if (!n)
		n = poll_once(group, count, true, completions, max);
	if (n || gw_poll_group_room_take(group) || take_wake(group))
		return n;
	uint32_t waiting = 0, only = 0;
	for (uint32_t i = 0; i < count; i++)
		if (group->parts[i].transport->busy(group->parts[i].state)) {
			only = i;
			waiting++;
		}
	if (waiting == 1) {
		struct part *part = &group->parts[only];
		group->idle = true; /* the part spins itself */
		return part->transport->poll(part->state, completions, max, timeout_ns);
	}
	/* Returning early is allowed; computing the remaining time is not needed. */
	wait_for_any(group, count, timeout_ns);
	take_wake(group);
	return poll_once(group, count, true, completions, max);
}

size_t gw_poll_group_poll(struct gw_poll_group *group, struct gw_completion *completions, size_t max,
			  uint64_t timeout_ns)
{
	/* Another thread may add a part: it may listen in a group that is being polled. */
	uint32_t count = atomic_load_explicit(&group->part_count, memory_order_acquire);
	if (take_wake(group))
		timeout_ns = 0;
	/* The usual case: one backend, whose poll waits. */
	if (count == 1)
		return group->parts[0].transport->poll(group->parts[0].state, completions, max, timeout_ns);
	return poll_several(group, count, completions, max, timeout_ns);
}

void gw_poll_group_room(struct gw_poll_group *group)
{
	group->room = true;
	group->news++;
}

void gw_poll_group_lost(struct gw_poll_group *group)
{
	group->news++;
}

uint64_t gw_poll_group_news(const struct gw_poll_group *group)
{
	return group->news;
}

bool gw_poll_group_room_take(struct gw_poll_group *group)
{
	bool room = group->room;
	group->room = false;
	return room;
}

void gw_poll_group_wake(struct gw_poll_group *group)
{
	if (atomic_exchange(&group->woken, true))
		return;
	eventfd_write(group->wake_fd, 1);
	uint32_t count = atomic_load(&group->part_count);
	for (uint32_t i = 0; i < count; i++)
		group->parts[i].transport->wake(group->parts[i].state);
}

bool gw_poll_group_woken(const struct gw_poll_group *group)
{
	return atomic_load_explicit(&group->woken, memory_order_relaxed);
}

static gw_status buffers_make_room(struct gw_poll_group *group)
{
	if (group->buffer_count < group->buffer_capacity)
		return GW_OK;
	if (group->buffer_count == GW_BUFFERS_MAX)
		return gw_fail(GW_LIMIT, "more than %u registered buffers", GW_BUFFERS_MAX);
	uint32_t capacity = group->buffer_capacity ? 2 * group->buffer_capacity : 64;
	struct gw_buffer **buffers = gw_realloc(group->buffers, capacity, sizeof(*buffers));
	if (!buffers)
		return GW_NO_MEMORY;
	group->buffers = buffers;
	group->buffer_capacity = capacity;
	return GW_OK;
}

gw_status gw_buffer_register(struct gw_poll_group *group, void *base, uint64_t bytes, struct gw_buffer **out)
{
	*out = NULL;
	gw_status room = buffers_make_room(group);
	if (room)
		return room;
	struct gw_buffer *buffer = gw_calloc(1, sizeof(*buffer));
	if (!buffer)
		return GW_NO_MEMORY;
	*buffer = (struct gw_buffer){.base = base, .bytes = bytes, .group = group};
	uint32_t count = atomic_load_explicit(&group->part_count, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++) {
		gw_status status = group->parts[i].transport->buffer_register(group->parts[i].state, buffer);
		if (status == GW_OK)
			continue;
		while (i-- > 0)
			group->parts[i].transport->buffer_release(group->parts[i].state, buffer);
		gw_free(buffer);
		return status;
	}
	buffer->number = group->buffer_count++;
	group->buffers[buffer->number] = buffer;
	group->registrations++;
	*out = buffer;
	return GW_OK;
}

uint64_t gw_poll_group_registrations(const struct gw_poll_group *group)
{
	return group->registrations;
}

void gw_buffer_release(struct gw_buffer *buffer)
{
	struct gw_error_kept kept;
	if (!buffer)
		return;
	gw_error_keep(&kept);
	struct gw_poll_group *group = buffer->group;
	uint32_t count = atomic_load_explicit(&group->part_count, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++)
		group->parts[i].transport->buffer_release(group->parts[i].state, buffer);
	struct gw_buffer *last = group->buffers[--group->buffer_count];
	last->number = buffer->number;
	group->buffers[last->number] = last;
	gw_free(buffer);
	gw_error_restore(&kept);
}

gw_status gw_endpoint_connect(struct gw_poll_group *group, const struct gw_connect_options *options, void *cookie,
			      struct gw_endpoint **out)
{
	const struct gw_transport *transport;
	void *state;
	*out = NULL;
	gw_status status = gw_transport_find(options->address.scheme, &transport);
	if (status == GW_OK)
		status = gw_poll_group_state(group, transport, &state);
	return status != GW_OK ? status : transport->connect(state, options, cookie, out);
}

gw_status gw_listen_on(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
		       struct gw_service *service, int socket, struct gw_listener **out)
{
	const struct gw_transport *transport;
	*out = NULL;
	if (group_count == 0)
		return gw_fail(GW_INVALID, "a listener without a poll group");
	gw_status status = gw_transport_find(address->scheme, &transport);
	return status != GW_OK ? status : transport->listen(groups, group_count, address, service, socket, out);
}

gw_status gw_listen(struct gw_poll_group *const *groups, uint32_t group_count, const struct gw_address *address,
		    struct gw_service *service, struct gw_listener **out)
{
	return gw_listen_on(groups, group_count, address, service, -1, out);
}

void gw_endpoint_close(struct gw_endpoint *endpoint)
{
	struct gw_error_kept kept;
	if (!endpoint)
		return;
	gw_error_keep(&kept);
	endpoint->transport->close(endpoint);
	gw_error_restore(&kept);
}

void gw_listener_stop(struct gw_listener *listener, bool close)
{
	struct gw_error_kept kept;
	gw_error_keep(&kept);
	listener->transport->listener_stop(listener, close);
	gw_error_restore(&kept);
}

void gw_listener_drain(struct gw_listener *listener)
{
	struct gw_error_kept kept;
	gw_error_keep(&kept);
	listener->transport->listener_drain(listener);
	gw_error_restore(&kept);
}

gw_status gw_listener_yield(struct gw_listener *listener, int *socket)
{
	*socket = -1;
	if (!listener->transport->listener_yield)
		return gw_fail(GW_UNSUPPORTED, "%s listens without a socket", listener->transport->scheme->title);
	return listener->transport->listener_yield(listener, socket);
}

void gw_listener_move(struct gw_listener *listener)
{
	atomic_store(&listener->moved, true);
	gw_listener_drain(listener);
}

gw_status gw_listener_keep(struct gw_listener *listener)
{
	return listener->transport->listener_keep ? listener->transport->listener_keep(listener) : GW_OK;
}

void gw_listener_free(struct gw_listener *listener)
{
	struct gw_error_kept kept;
	if (!listener)
		return;
	gw_error_keep(&kept);
	listener->transport->listener_free(listener);
	gw_error_restore(&kept);
}

void gw_endpoint_goodbye(struct gw_endpoint *endpoint)
{
	struct gw_error_kept kept;
	gw_error_keep(&kept);
	if (endpoint->state == GW_ENDPOINT_OPEN)
		gw_endpoint_request(endpoint, GW_OP_GOODBYE, NULL, NULL, 0, GW_NO_DEADLINE, NULL);
	gw_error_restore(&kept);
}
