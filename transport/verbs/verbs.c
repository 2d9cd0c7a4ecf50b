/* The RDMA backend: one loop for each poll group. The loop drives the group's endpoints and the clients that it serves.
 *
 *   poll: completion queues ─▶ deferred work of their completions ─▶ completions are handed out
 *         every LOOK_NS, and before every sleep: the connection manager, the TCP part that carries hellos, removals
 *
 * While reads keep the loop busy, it polls little more than the completion queues. When the loop sleeps, it waits for
 * all of its descriptors. Before it sleeps, it arms the completion queues and polls them once more, so that it misses
 * no completion.
 */
#include "transport/verbs/verbs.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "transport/tcp/driver/driver.h"
#include "transport/tcp/tcp.h"

#define TICK_MAX_NS   (250 * GW_NS_PER_MS) /* longest time between checks of timers and of ended TCP connections */
#define LOOK_NS       (2 * GW_NS_PER_MS)   /* time between looks at descriptors while the loop is busy */
#define HELLO_NS      (GW_NS_PER_MS) /* longest sleep during a hello: the TCP part has steps that no descriptor shows */
#define EVENTS_MAX    16
#define CONTROL_TURNS 4 /* most polls of the TCP part before a sleep; a few suffice */
#define SPIN_TURNS    8 /* polls of the completion queues for each look at the clock */

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

/* The first read into the buffer registers it, on the device of that read. */
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

/* --- Events other than completions. --- */

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
		/* Acknowledge the event before handling it: rdma_destroy_id waits for the id's unacknowledged
		 * events. */
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

/* Makes unused shares of the ports' windows available to other groups. */
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
	/* The ticks above have released the queue pairs of removed devices. */
	for (uint32_t i = 0; i < VERBS_POLLERS_MAX; i++)
		if (loop->pollers[i] && !loop->pollers[i]->qp_count && atomic_load(&loop->pollers[i]->device->dead))
			gw_verbs_poller_destroy(loop->pollers[i]);
	shares_settle(loop);
}

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
		eventfd_t ignored;
		if (fd == loop->wake_fd) {
			(void)!read(fd, &ignored, sizeof(ignored));
			*woken = true;
		} else if (fd == loop->events->fd) {
			manager_poll(loop);
		} else if (fd == loop->control_fd) {
			control_poll(loop);
			if (loop->endpoints) /* the connection of one may have ended */
				loop->next_timer_ns = 0;
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
	gw_verbs_run_deferred(loop);
	return worked;
}

/* Before a sleep on its descriptor, the TCP part must pass its sends and receives to the kernel. */
static void control_arm(struct verbs_loop *loop)
{
	eventfd_t ignored = GW_NO_DEADLINE;
	for (int i = 0; loop->control && i < CONTROL_TURNS; i++) {
		if (gw_transport_tcp.wait_fd(loop->control, &ignored) >= 0)
			return;
		control_poll(loop);
	}
}

/* True: there is work to do instead. */
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

static size_t verbs_poll(void *state, struct gw_completion *completions, size_t max, uint64_t timeout_ns)
{
	struct verbs_loop *loop = state;
	uint64_t spin_ns = gw_poll_group_options(loop->group)->spin_ns;
	gw_verbs_possess(loop);
	uint64_t now, end = 0, spin_end = 0;
	bool woken = false, first = true, spun = false;
	size_t n = 0;
	for (;;) {
		gw_verbs_take_orders(loop);
		if (atomic_load_explicit(&loop->troubled, memory_order_relaxed))
			gw_verbs_async_take(loop);
		if (woken && loop->paused.first)
			gw_verbs_clients_woken(loop);
		bool worked = pollers_poll(loop) || spun;
		if (loop->calls.first) { /* at a server: runs one client's handler, then polls all queues again */
			gw_verbs_clients_call(loop);
			gw_verbs_run_deferred(loop);
			worked = true;
		}
		/* With completions to hand out, an approximate time is enough. */
		n = gw_completions_take(&loop->completions, completions, max);
		now = n ? gw_past_ns() : gw_now_ns();
		if (now >= loop->next_timer_ns)
			verbs_tick(loop, now);
		if (n) { /* a caller that always finds completions must not keep others from connecting */
			if (now >= loop->next_look_ns) {
				verbs_look(loop, 0, &woken);
				loop->next_look_ns = now + LOOK_NS;
			}
			break;
		}
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
	bool something = pollers_arm(loop) || !gw_completions_empty(&loop->completions) || loop->calls.first;
	gw_verbs_release(loop);
	return something ? -1 : loop->epoll_fd;
}

static void verbs_wake(void *state)
{
	eventfd_write(((struct verbs_loop *)state)->wake_fd, 1);
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
	.read = gw_verbs_read,
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
	.listener_yield = gw_verbs_listener_yield,
	.listener_stop = gw_verbs_listener_stop,
	.listener_drain = gw_verbs_listener_drain,
	.listener_free = gw_verbs_listener_free,
};
