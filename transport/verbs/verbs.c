/* The RDMA backend: one loop for each poll group, which drives its endpoints and the clients that it serves.
 *
 *   poll: completion queues ─▶ what they deferred runs ─▶ completions are handed out
 *         now and then, and before every sleep: the connection manager, the TCP part that carries hellos, removals
 *
 * Nothing but the completion queues is looked at while reads keep the loop busy. Asleep it waits for any of them: the
 * completion queues are armed first and looked at once more, so that no completion slips in between.
 */
#include "transport/verbs/verbs.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/clock.h"
#include "transport/tcp/driver.h"
#include "transport/tcp/tcp.h"

#define TICK_MAX_NS   (250 * GW_NS_PER_MS) /* timers, and TCP connections that have ended, are looked at so often */
#define LOOK_NS       (2 * GW_NS_PER_MS)   /* descriptors, while the loop is busy */
#define HELLO_NS      (GW_NS_PER_MS) /* a hello under way: TCP's part has steps of its own that no descriptor shows */
#define EVENTS_MAX    16
#define CONTROL_TURNS 4 /* of TCP's part, before a sleep: those that wait in it are few */
#define SPIN_TURNS    8 /* looks at the completion queues for one look at the clock */

void gw_verbs_defer(struct verbs_loop *loop, struct verbs_deferred *deferred)
{
	if (deferred->queued)
		return;
	deferred->queued = true;
	deferred->next = loop->deferred;
	loop->deferred = deferred;
}

void gw_verbs_undefer(struct verbs_loop *loop, struct verbs_deferred *deferred)
{
	if (!deferred->queued)
		return;
	GW_SLIST_REMOVE(loop->deferred, deferred, next);
	deferred->queued = false;
}

static void run_deferred(struct verbs_loop *loop)
{
	while (loop->deferred) {
		struct verbs_deferred *deferred = loop->deferred;
		loop->deferred = deferred->next;
		deferred->queued = false;
		deferred->run(deferred);
	}
}

gw_status gw_verbs_watch(struct verbs_loop *loop, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
		return gw_fail_errno(GW_IO, errno, "epoll_ctl");
	return GW_OK;
}

void gw_verbs_unwatch(struct verbs_loop *loop, int fd)
{
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static gw_status verbs_open(struct gw_poll_group *group, void **out)
{
	*out = NULL;
	struct verbs_loop *loop = gw_calloc(1, sizeof(*loop));
	if (!loop)
		return GW_NO_MEMORY;
	loop->group = group;
	loop->control_fd = loop->epoll_fd = loop->wake_fd = -1;
	loop->next_timer_ns = GW_NO_DEADLINE;
	gw_completions_begin(&loop->completions);
	gw_status status = gw_verbs_begin();
	if (status != GW_OK)
		goto free_loop;
	loop->events = rdma_create_event_channel();
	if (!loop->events) {
		status = gw_verbs_missing("RDMA connection manager", errno);
		goto end_devices;
	}
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->epoll_fd < 0 || loop->wake_fd < 0)
		status = gw_fail_errno(GW_IO, errno, "epoll");
	if (status == GW_OK)
		status = gw_verbs_nonblocking(loop->events->fd);
	if (status == GW_OK)
		status = gw_verbs_watch(loop, loop->wake_fd);
	if (status == GW_OK)
		status = gw_verbs_watch(loop, loop->events->fd);
	if (status == GW_OK)
		status = gw_verbs_watch(loop, gw_verbs_devices_fd());
	if (status == GW_OK) {
		*out = loop;
		return GW_OK;
	}
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	if (loop->wake_fd >= 0)
		close(loop->wake_fd);
	rdma_destroy_event_channel(loop->events);
end_devices:
	gw_verbs_end();
free_loop:
	gw_free(loop);
	return status;
}

static void verbs_shut(void *state)
{
	struct verbs_loop *loop = state;
	gw_verbs_endpoints_end(loop);
	gw_verbs_cm_listeners_end(loop, true);
	if (loop->control)
		gw_transport_tcp.shut(loop->control);
	for (uint32_t i = 0; i < VERBS_POLLERS_MAX; i++)
		if (loop->pollers[i])
			gw_verbs_poller_destroy(loop->pollers[i]);
	rdma_destroy_event_channel(loop->events);
	close(loop->wake_fd);
	close(loop->epoll_fd);
	gw_completions_end(&loop->completions);
	gw_free(loop);
	gw_verbs_end();
}

gw_status gw_verbs_control(struct verbs_loop *loop)
{
	if (loop->control)
		return GW_OK;
	gw_status status = gw_transport_tcp.open(loop->group, &loop->control);
	if (status != GW_OK)
		return status;
	uint64_t ignored = GW_NO_DEADLINE;
	loop->control_fd = gw_transport_tcp.wait_fd(loop->control, &ignored);
	status = gw_verbs_watch(loop, loop->control_fd);
	if (status != GW_OK) {
		gw_transport_tcp.shut(loop->control);
		loop->control = NULL;
	}
	return status;
}

/* Registered when a read first needs it, for the device that it needs. */
static gw_status verbs_buffer_register(void *state, struct gw_buffer *buffer)
{
	(void)state;
	buffer->words[gw_transport_verbs.number] = NULL;
	return GW_OK;
}

static void verbs_buffer_release(void *state, struct gw_buffer *buffer)
{
	(void)state;
	struct verbs_buffer_mrs *mrs = buffer->words[gw_transport_verbs.number];
	for (uint32_t i = 0; i < VERBS_POLLERS_MAX && mrs; i++)
		if (mrs->on[i])
			gw_verbs_mr_cache_put(mrs->on[i], buffer->base, buffer->bytes);
	gw_free(mrs);
	buffer->words[gw_transport_verbs.number] = NULL;
}

static const uint8_t *verbs_map(struct gw_endpoint *endpoint, const struct gw_region *region)
{
	(void)endpoint;
	(void)region;
	return NULL;
}

/* --- What else than completion queues there is to look at. --- */

static void control_poll(struct verbs_loop *loop)
{
	struct gw_completion completions[8];
	size_t n;
	do {
		n = gw_transport_tcp.poll(loop->control, completions, 8, 0);
		for (size_t i = 0; i < n; i++)
			gw_verbs_control_completed(loop, &completions[i]);
	} while (n);
}

static void manager_poll(struct verbs_loop *loop)
{
	struct rdma_cm_event *event;
	while (rdma_get_cm_event(loop->events, &event) == 0) {
		/* Acknowledged before it is handled: destroying an id waits for its events. */
		struct rdma_cm_event copy = *event;
		uint8_t data[256];
		uint8_t bytes = event->param.conn.private_data_len;
		if (event->param.conn.private_data)
			memcpy(data, event->param.conn.private_data, bytes);
		copy.param.conn.private_data = event->param.conn.private_data ? data : NULL;
		rdma_ack_cm_event(event);
		struct verbs_cm_handler *handler = copy.listen_id ? copy.listen_id->context : copy.id->context;
		handler->event(handler, &copy);
	}
}

/* What others may have of the window, since we have less in flight. */
static void shares_settle(struct verbs_loop *loop)
{
	for (uint32_t i = 0; i < VERBS_POLLERS_MAX; i++)
		for (uint32_t port = 0; loop->pollers[i] && port < VERBS_PORTS_MAX; port++)
			gw_verbs_share_settle(&loop->pollers[i]->shares[port]);
}

static void verbs_tick(struct verbs_loop *loop, uint64_t now_ns)
{
	loop->next_timer_ns =
		loop->endpoints || loop->cm_listeners || loop->poller_count ? now_ns + TICK_MAX_NS : GW_NO_DEADLINE;
	if (loop->control)
		control_poll(loop);
	gw_verbs_endpoints_tick(loop, now_ns);
	gw_verbs_cm_listeners_tick(loop, now_ns);
	/* Those who used a removed device have let go of it now. */
	for (uint32_t i = 0; i < VERBS_POLLERS_MAX; i++)
		if (loop->pollers[i] && !loop->pollers[i]->qp_count && atomic_load(&loop->pollers[i]->device->dead))
			gw_verbs_poller_destroy(loop->pollers[i]);
	shares_settle(loop);
}

/* Waits for a descriptor and handles those that are ready. */
static void verbs_look(struct verbs_loop *loop, uint64_t timeout_ns, bool *woken)
{
	struct epoll_event events[EVENTS_MAX];
	if (loop->controls_busy) {
		control_poll(loop);
		timeout_ns = timeout_ns < HELLO_NS ? timeout_ns : HELLO_NS;
	}
	int n = gw_epoll_wait(loop->epoll_fd, events, EVENTS_MAX, timeout_ns);
	for (int i = 0; i < n; i++) {
		int fd = events[i].data.fd;
		uint64_t ignored;
		if (fd == loop->wake_fd) {
			(void)!read(fd, &ignored, sizeof(ignored));
			*woken = true;
		} else if (fd == loop->events->fd) {
			manager_poll(loop);
		} else if (fd == loop->control_fd) {
			control_poll(loop);
			loop->next_timer_ns = 0; /* a connection may have ended */
		} else if (fd == gw_verbs_devices_fd()) {
			gw_verbs_devices_look();
			loop->next_timer_ns = 0;
		} else {
			for (uint32_t p = 0; p < VERBS_POLLERS_MAX; p++)
				if (loop->pollers[p] && loop->pollers[p]->channel->fd == fd)
					loop->pollers[p]->heard = true;
		}
	}
}

static bool pollers_poll(struct verbs_loop *loop)
{
	bool worked = false;
	for (uint32_t i = 0; i < VERBS_POLLERS_MAX; i++)
		if (loop->pollers[i])
			worked |= gw_verbs_poller_poll(loop->pollers[i]);
	run_deferred(loop);
	return worked;
}

/* What the TCP part has to send, and its wish to receive, reach the kernel before a sleep on its descriptor. */
static void control_arm(struct verbs_loop *loop)
{
	uint64_t ignored = GW_NO_DEADLINE;
	for (int i = 0; loop->control && i < CONTROL_TURNS; i++) {
		if (gw_transport_tcp.wait_fd(loop->control, &ignored) >= 0)
			return;
		control_poll(loop);
	}
}

/* Before a sleep; true if there is something to do after all. */
static bool pollers_arm(struct verbs_loop *loop)
{
	control_arm(loop);
	for (uint32_t i = 0; i < VERBS_POLLERS_MAX; i++)
		if (loop->pollers[i])
			gw_verbs_cqs_arm(loop->pollers[i]);
	bool worked = pollers_poll(loop);
	shares_settle(loop);
	return worked;
}

/* --- Possession: held while polled, so that the thread that stops a listener may end its clients in a loop that nobody
 * polls.
 */

void gw_verbs_possess(struct verbs_loop *loop)
{
	bool expected = false;
	while (!atomic_compare_exchange_weak_explicit(&loop->owned, &expected, true, memory_order_acquire,
						      memory_order_relaxed))
		expected = false;
}

void gw_verbs_release(struct verbs_loop *loop)
{
	atomic_store_explicit(&loop->owned, false, memory_order_release);
}

static void verbs_take_orders(struct verbs_loop *loop)
{
	uint32_t asked = atomic_load_explicit(&loop->close_asked, memory_order_acquire);
	if (asked == atomic_load_explicit(&loop->close_done, memory_order_relaxed))
		return;
	gw_verbs_cm_listeners_end(loop, false);
	atomic_store(&loop->close_done, asked);
}

void gw_verbs_loop_close(struct verbs_loop *loop)
{
	uint32_t token = atomic_fetch_add(&loop->close_asked, 1) + 1;
	uint64_t one = 1;
	(void)!write(loop->wake_fd, &one, sizeof(one));
	while ((int32_t)(atomic_load(&loop->close_done) - token) < 0) {
		bool expected = false;
		if (atomic_compare_exchange_strong(&loop->owned, &expected, true)) {
			verbs_take_orders(loop);
			gw_verbs_release(loop);
		} else {
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
		}
	}
}

static size_t verbs_poll(void *state, struct gw_completion *completions, size_t max, uint64_t timeout_ns)
{
	struct verbs_loop *loop = state;
	uint64_t spin_ns = gw_poll_group_options(loop->group)->spin_ns;
	gw_verbs_possess(loop);
	uint64_t now, end = 0, spin_end = 0;
	bool woken = false, first = true, spun = false;
	size_t n = 0;
	for (;;) {
		verbs_take_orders(loop);
		if (atomic_load_explicit(&loop->troubled, memory_order_relaxed))
			gw_verbs_async_take(loop);
		bool worked = pollers_poll(loop) || spun;
		if (loop->calls) { /* a server's: one run for each look at everybody */
			gw_verbs_clients_call(loop);
			run_deferred(loop);
			worked = true;
		}
		/* When there is something to hand out, the exact time matters to nobody. */
		n = gw_completions_take(&loop->completions, completions, max);
		now = n ? gw_past_ns() : gw_now_ns();
		if (now >= loop->next_timer_ns)
			verbs_tick(loop, now);
		if (n)
			break;
		if (first) {
			end = gw_later_ns(now, timeout_ns);
			spin_end = gw_later_ns(now, spin_ns);
		}
		n = gw_completions_take(&loop->completions, completions, max);
		if (n || (!first && now >= end))
			break;
		if (timeout_ns && (gw_poll_group_room_take(loop->group) || woken))
			break;
		first = false;
		if (worked)
			spin_end = gw_later_ns(now, spin_ns);
		uint64_t until = end < loop->next_timer_ns ? end : loop->next_timer_ns;
		bool spin = worked || (spin_ns && now < spin_end);
		if (!spin && until > now && !pollers_arm(loop)) {
			verbs_look(loop, until - now, &woken);
			loop->next_look_ns = now + LOOK_NS;
		} else if (now >= loop->next_look_ns || loop->controls_busy) {
			verbs_look(loop, 0, &woken);
			loop->next_look_ns = now + LOOK_NS;
		}
		spun = false;
		for (int i = 0; i < SPIN_TURNS && spin && timeout_ns && !spun; i++)
			spun = pollers_poll(loop);
	}
	gw_verbs_release(loop);
	return n;
}

static bool verbs_busy(void *state)
{
	struct verbs_loop *loop = state;
	return loop->open || loop->cm_listeners || !gw_completions_empty(&loop->completions);
}

static int verbs_wait_fd(void *state, uint64_t *until_ns)
{
	struct verbs_loop *loop = state;
	gw_verbs_possess(loop);
	uint64_t until = loop->controls_busy ? gw_now_ns() + HELLO_NS : loop->next_timer_ns;
	*until_ns = until < *until_ns ? until : *until_ns;
	bool something = pollers_arm(loop) || !gw_completions_empty(&loop->completions) || loop->calls;
	gw_verbs_release(loop);
	return something ? -1 : loop->epoll_fd;
}

static void verbs_wake(void *state)
{
	uint64_t one = 1;
	(void)!write(((struct verbs_loop *)state)->wake_fd, &one, sizeof(one));
}

const struct gw_transport gw_transport_verbs = {
	.scheme = &gw_schemes[GW_SCHEME_VERBS],
	.number = GW_SCHEME_VERBS,
	.one_sided = true,
	.range_cost_bytes = 310,
	.order_pays = true,
	.open = verbs_open,
	.shut = verbs_shut,
	.connect = gw_verbs_connect,
	.close = gw_verbs_close,
	.buffer_register = verbs_buffer_register,
	.buffer_release = verbs_buffer_release,
	.readv = gw_verbs_readv,
	.gather = gw_verbs_gather,
	.request = gw_verbs_request,
	.cancel = gw_verbs_cancel,
	.request_cancel = gw_verbs_request_cancel,
	.region_open = gw_verbs_region_open,
	.map = verbs_map,
	.poll = verbs_poll,
	.busy = verbs_busy,
	.wait_fd = verbs_wait_fd,
	.wake = verbs_wake,
	.listen = gw_verbs_listen,
	.listener_stop = gw_verbs_listener_stop,
	.listener_drain = gw_verbs_listener_drain,
	.listener_free = gw_verbs_listener_free,
};
