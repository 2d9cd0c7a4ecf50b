/* The TCP backend. Each poll group has one loop, which drives its endpoints, its listeners and its share of the
 * accepted connections. A poll handles ready sockets, returns completions, and sleeps (after spinning for spin_ns)
 * until a socket, a timer or a wake. */
#include "transport/tcp/tcp.h"

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "transport/tcp/client/client.h"
#include "transport/tcp/server/server.h"

#define TICK_MAX_NS (GW_NS_PER_SECOND) /* timers are checked at least this often */
#define TIMER_LOOKS 8                  /* checks of the sockets before timers conclude that nothing arrived */
#define LONE_MIN_NS (5 * TCP_AWAIT_NS) /* if no timer is due within this time, a single answer may be awaited alone */

gw_status gw_tcp_loop_open(struct gw_poll_group *group, const struct gw_transport *transport,
			   const struct tcp_local *local, struct tcp_loop **out)
{
	*out = NULL;
	struct tcp_loop *loop = gw_calloc(1, sizeof(*loop));
	if (!loop)
		return GW_NO_MEMORY;
	const struct gw_poll_group_options *options = gw_poll_group_options(group);
	gw_status status = gw_tcp_driver_open(options->tcp_driver, options->spin_ns > 0, &loop->driver);
	if (status != GW_OK) {
		gw_free(loop);
		return status;
	}
	loop->group = group;
	loop->transport = transport;
	loop->local = local;
	loop->next_timer_ns = GW_NO_DEADLINE;
	gw_completions_begin(&loop->completions);
	pthread_mutex_init(&loop->inbox_lock, NULL);
	*out = loop;
	return GW_OK;
}

static gw_status tcp_open(struct gw_poll_group *group, void **out)
{
	struct tcp_loop *loop;
	gw_status status = gw_tcp_loop_open(group, &gw_transport_tcp, NULL, &loop);
	*out = loop;
	return status;
}

void gw_tcp_shut(void *state)
{
	struct tcp_loop *loop = state;
	bool woken = false;
	gw_tcp_clients_end(loop);
	gw_tcp_inbox_drop(loop);
	gw_tcp_servers_end(loop, true);
	/* The kernel's operations are cancelled and complete soon. */
	while (loop->ios && !loop->listeners)
		loop->driver->ops->run(loop->driver, gw_now_ns() + GW_NS_PER_MS, &woken);
	loop->driver->ops->shut(loop->driver);
	gw_tcp_lender_end(&loop->lender);
	gw_deadlines_end(&loop->deadlines);
	gw_completions_end(&loop->completions);
	pthread_mutex_destroy(&loop->inbox_lock);
	gw_free(loop);
}

gw_status gw_tcp_buffer_register(void *state, struct gw_buffer *buffer)
{
	(void)state;
	(void)buffer;
	return GW_OK;
}

void gw_tcp_buffer_release(void *state, struct gw_buffer *buffer)
{
	(void)state;
	(void)buffer;
}

static const uint8_t *tcp_map(struct gw_endpoint *endpoint, const struct gw_region *region)
{
	(void)endpoint;
	(void)region;
	return NULL;
}

static void take_possession(struct tcp_loop *loop)
{
	bool expected = false;
	/* Contended only while a listener is closed. */
	while (!atomic_compare_exchange_weak_explicit(&loop->owned, &expected, true, memory_order_acquire,
						      memory_order_relaxed))
		expected = false;
}

static void tcp_tick(struct tcp_loop *loop, uint64_t now_ns)
{
	loop->next_timer_ns = loop->clients || loop->servers || loop->listeners ? now_ns + TICK_MAX_NS : GW_NO_DEADLINE;
	gw_tcp_clients_tick(loop, now_ns);
	gw_tcp_servers_tick(loop, now_ns);
	gw_tcp_listeners_tick(loop, now_ns);
}

static void tcp_take_orders(struct tcp_loop *loop)
{
	if (atomic_load_explicit(&loop->inbox_filled, memory_order_relaxed))
		gw_tcp_inbox_take(loop);
	if (atomic_load_explicit(&loop->withdrawn, memory_order_relaxed))
		gw_tcp_servers_withdrawn(loop);
	if (atomic_load_explicit(&loop->renewed, memory_order_relaxed))
		gw_tcp_listeners_renew(loop);
	uint32_t asked = atomic_load_explicit(&loop->close_asked, memory_order_acquire);
	if (asked != atomic_load_explicit(&loop->close_done, memory_order_relaxed)) {
		gw_tcp_inbox_take(loop);
		gw_tcp_servers_end(loop, false);
		gw_tcp_servers_drain(loop);
		atomic_store(&loop->close_done, asked);
	}
}

/* Runs the driver once, or awaits the only open answer. */
static bool tcp_run(struct tcp_loop *loop, uint64_t now_ns, uint64_t until_ns, bool *woken)
{
	const struct tcp_driver_ops *driver = loop->driver->ops;
	struct tcp_io *lone = until_ns > now_ns + LONE_MIN_NS ? gw_tcp_lone(loop) : NULL;
	enum tcp_awaited outcome = lone ? driver->await(loop->driver, lone) : TCP_AWAIT_NOT;
	if (outcome == TCP_AWAIT_NOT)
		return driver->run(loop->driver, until_ns, woken);
	gw_tcp_lone_ended(loop, outcome);
	return outcome == TCP_AWAIT_HANDLED;
}

/* Timers are due. If this thread was delayed, answers that came in time may still be in the sockets. They are received
 * first, with a few checks (an answer may take two: one for its header). */
static void tcp_timers(struct tcp_loop *loop, uint64_t now_ns, bool *woken)
{
	bool worked = true;
	for (int looks = 0; worked && looks < TIMER_LOOKS; looks++) {
		loop->now_ns = 0;
		worked = loop->driver->ops->run(loop->driver, 0, woken);
	}
	tcp_tick(loop, now_ns);
}

size_t gw_tcp_poll(void *state, struct gw_completion *completions, size_t max, uint64_t timeout_ns)
{
	struct tcp_loop *loop = state;
	uint64_t spin_ns = gw_poll_group_options(loop->group)->spin_ns;
	take_possession(loop);
	uint64_t now = gw_now_ns(), end = gw_later_ns(now, timeout_ns);
	/* A caller that waits for completions has just asked for something. A server spins after events only: how often
	 * it calls poll does not matter. */
	uint64_t spin_end = gw_later_ns(max ? now : loop->worked_ns, spin_ns);
	bool woken = false, first = true;
	size_t n = 0;
	if (loop->unsent)
		gw_tcp_clients_flush(loop);
	for (;;) {
		tcp_take_orders(loop);
		if (now >= loop->next_timer_ns)
			tcp_timers(loop, now, &woken);
		/* Queued completions are returned without a wait, but every poll first checks the sockets once. */
		if (first && !gw_completions_empty(&loop->completions))
			loop->driver->ops->run(loop->driver, 0, &woken);
		if (woken && loop->paused.first)
			gw_tcp_servers_woken(loop);
		n = gw_completions_take(&loop->completions, completions, max);
		if (n || (!first && now >= end))
			break;
		if (timeout_ns && (gw_poll_group_room_take(loop->group) || woken))
			break;
		first = false;
		uint64_t until = end < loop->next_timer_ns ? end : loop->next_timer_ns;
		bool spin = spin_ns && now < spin_end;
		uint64_t wait = spin || loop->calls.first || until <= now ? 0 : until;
		loop->now_ns = 0;
		bool worked = tcp_run(loop, now, wait, &woken);
		if (loop->calls.first) { /* a server's calls: one run for each check of all sockets */
			gw_tcp_servers_call(loop);
			worked = true;
		}
		if (timeout_ns || worked || wait) /* a poll that only checks does not read the clock */
			now = tcp_loop_now(loop);
		if (worked) {
			loop->worked_ns = now;
			spin_end = gw_later_ns(now, spin_ns);
		}
	}
	loop->now_ns = 0;
	atomic_store_explicit(&loop->owned, false, memory_order_release);
	return n;
}

bool gw_tcp_busy(void *state)
{
	struct tcp_loop *loop = state;
	return !gw_completions_empty(&loop->completions) || loop->servers || loop->listeners ||
	       gw_tcp_clients_busy(loop) || atomic_load(&loop->inbox_filled);
}

int gw_tcp_wait_fd(void *state, uint64_t *until_ns)
{
	struct tcp_loop *loop = state;
	if (loop->unsent)
		gw_tcp_clients_flush(loop);
	if (loop->next_timer_ns < *until_ns)
		*until_ns = loop->next_timer_ns;
	return loop->calls.first ? -1 : loop->driver->ops->wait_fd(loop->driver);
}

void gw_tcp_wake(void *state)
{
	struct tcp_loop *loop = state;
	loop->driver->ops->wake(loop->driver);
}

const struct gw_transport gw_transport_tcp = {
	.scheme = &gw_schemes[GW_SCHEME_TCP],
	.number = GW_SCHEME_TCP,
	.range_cost_bytes = 64,
	.open = tcp_open,
	.shut = gw_tcp_shut,
	.connect = gw_tcp_connect,
	.close = gw_tcp_close,
	.buffer_register = gw_tcp_buffer_register,
	.buffer_release = gw_tcp_buffer_release,
	.read = gw_tcp_read,
	.request = gw_tcp_request,
	.cancel = gw_tcp_cancel,
	.request_cancel = gw_tcp_request_cancel,
	.region_open = gw_tcp_region_open,
	.map = tcp_map,
	.poll = gw_tcp_poll,
	.busy = gw_tcp_busy,
	.wait_fd = gw_tcp_wait_fd,
	.wake = gw_tcp_wake,
	.listen = gw_tcp_listen,
	.listener_yield = gw_tcp_listener_yield,
	.listener_stop = gw_tcp_listener_stop,
	.listener_drain = gw_tcp_listener_drain,
	.listener_free = gw_tcp_listener_free,
};
